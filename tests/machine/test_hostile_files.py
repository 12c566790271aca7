"""What an agent in a box may write where swarm reads outside: links, pipes, floods, depth, odd bytes, great numbers."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm.git.content.walk import walk
from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.machine import foreign, own, records, tail
from swarm.machine.tail import Tail
from swarm.programs.claude import launch as claude_launch
from swarm.programs.codex import queue
from swarm.programs.opencode import database
from swarm.programs.reading import transcript_reading
from swarm.usage.spending import meter
from swarm.usage.spending.prices import Prices

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.component, pytest.mark.timeout(60)]

TREE = "/work/tree"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the home of an agent in a box."""
    folder = tmp_path / "repo/.swarm/sessions/fx/box/developer/home"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Return a file of the user's that looks like a conversation of this very worktree."""
    path = tmp_path / "user/talk.jsonl"
    path.parent.mkdir()
    path.write_text(answer("the user's secret"))
    return path


def answer(said: str, **usage: Any) -> str:
    message: dict[str, Any] = {"id": said[:20], "model": "m", "content": [{"type": "text", "text": said}]}
    message["usage"] = {"input_tokens": 7, **usage}
    return json.dumps({"type": "assistant", "timestamp": "3", "cwd": TREE, "message": message}) + "\n"


def claude_talks(home: Path) -> Path:
    folder = home / ".claude/projects/-work-tree"
    folder.mkdir(parents=True)
    return folder


def claude(home: Path) -> meter.Record:
    source: dict[str, Any] = {"program": "claude", "home": str(home / ".claude"), "cwd": TREE, "since_ms": 1}
    found = meter.open_record(source)
    assert found is not None
    return found


def counted(record: meter.Record) -> int:
    made = meter.Meter(record)
    made.look()
    made.cost(Prices({}, {"m": [1, 1, 1, 1, 1]}))
    return made.tokens()


def test_only_what_lies_below_an_agents_folder_is_in_a_box() -> None:
    box = "/r/.swarm/sessions/s/box/a"
    assert own.box_of(f"{box}/home/x") == box
    assert own.box_of(f"/box/{box}/home") == f"/box/{box}"
    for path in ("/r/box/a/x", "/sessions//box/a/x", "/r/sessions/s/t/box/a/x", box, f"{box[:-1]}../x"):
        assert own.box_of(path) == "", path


# --- links -----------------------------------------------------------------------------------------


def linked_file(home: Path, secret: Path) -> None:
    (claude_talks(home) / "talk.jsonl").symlink_to(secret)


def linked_folder(home: Path, secret: Path) -> None:
    talks = claude_talks(home)
    talks.rmdir()
    talks.symlink_to(secret.parent)


def linked_home(home: Path, secret: Path) -> None:
    users = secret.parent / "projects/-work-tree"
    users.mkdir(parents=True)
    secret.rename(users / "talk.jsonl")
    (home / ".claude").symlink_to(secret.parent)


@pytest.mark.parametrize("plant", [linked_file, linked_folder, linked_home])
def test_no_link_shows_a_conversation_of_the_user(
    home: Path, secret: Path, plant: Callable[[Path, Path], None]
) -> None:
    plant(home, secret)
    record = claude(home)

    assert list(record.lines()) == []
    assert list(record.latest()) == []
    assert counted(claude(home)) == 0


def test_links_of_the_user_are_followed_in_the_users_own_home(tmp_path: Path, secret: Path) -> None:
    linked_file(tmp_path, secret)

    assert counted(claude(tmp_path)) == 7


@pytest.mark.parametrize("where", ["home", "home/inner"])
def test_records_and_settings_in_a_box_are_read_without_links(home: Path, tmp_path: Path, where: str) -> None:
    (tmp_path / "user").mkdir()
    (tmp_path / "user/x.json").write_text('{"schema": 1}')
    path = home.parent / where
    if where == "home":
        (path / "x.json").symlink_to(tmp_path / "user/x.json")
    else:
        path.symlink_to(tmp_path / "user")

    assert records.read(str(path / "x.json")) is None
    with pytest.raises((OSError, SwarmError)):
        files.read_small(path / "x.json")
    assert foreign.names(str(path)) == (["x.json"] if where == "home" else [])


def test_no_walk_leaves_the_box(home: Path) -> None:
    (home / ".codex").mkdir()
    (home / ".codex/sessions").symlink_to("/")
    (home / ".gemini/tmp/x").mkdir(parents=True)
    (home / ".gemini/tmp/x/.project_root").write_text(TREE)
    (home / ".gemini/tmp/x/chats").symlink_to("/")

    assert queue.newest(home / ".codex", TREE) == ""
    for program, folder in (("codex", ".codex"), ("gemini", ".gemini")):
        record = meter.open_record({"program": program, "home": str(home / folder), "cwd": TREE, "since_ms": 1})
        assert record is not None
        assert list(record.lines()) == []


# --- pipes and devices -----------------------------------------------------------------------------


def test_nobody_waits_at_a_pipe(home: Path) -> None:
    os.mkfifo(home / "pipe")
    path = str(home / "pipe")

    assert tail.end_of(path, 10) == b""
    assert tail.whole(path) == {}
    assert list(Tail(path).lines()) == []
    assert Tail(path).last(100) == []
    assert records.read(path) is None
    assert database.rows(path, "select 1", ()) == []


# --- floods ----------------------------------------------------------------------------------------


def test_a_line_without_end_is_not_read_into_memory(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "_LONGEST", 1 << 20)
    path = claude_talks(home) / "talk.jsonl"
    path.write_text(answer("first"))
    os.truncate(path, 1 << 40)  # takes no room
    record = claude(home)

    assert counted(record) == 7
    assert list(record.lines()) == []
    assert not claude_launch.can_resume(home / ".claude", "other")


def test_of_very_much_each_look_reads_a_part(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "_AT_ONCE", 1000)
    path = home / "many.jsonl"
    path.write_text('{"a": 1}\n' * 1000)
    one = Tail(str(path))

    looks = [len(list(one.lines())) for _ in range(20)]

    assert looks[0] < 200
    assert sum(looks) == 1000


def test_of_too_many_files_some_are_looked_at(home: Path) -> None:
    for number in range(50):
        (home / f"{number}.x").touch()

    assert len(foreign.names(str(home), most=20)) == 20


def test_answers_and_models_that_are_made_up_do_not_fill_the_memory(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meter, "_MOST_ANSWERS", 10)
    monkeypatch.setattr(meter, "_MOST_MODELS", 3)
    lines = [answer(f"answer {number}").replace('"m"', f'"model {number}"') for number in range(100)]
    (claude_talks(home) / "talk.jsonl").write_text("".join(lines))
    made = meter.Meter(claude(home))
    made.look()

    assert made.tokens() == 700
    assert len(made._seen) == 10
    assert len(made.models) <= 4


# --- depth, numbers, bytes ---------------------------------------------------------------------------


def test_depth_ends_nothing(home: Path) -> None:
    for depth in (100, 900, 100_000):
        nested = '{"type": "assistant", "message": {"content": ' + "[" * depth + "]" * depth + "}}\n"
        (home / "deep").write_text(nested)
        for line in Tail(str(home / "deep")).lines():
            assert transcript_reading.words(line["message"]["content"]) == ""
            assert transcript_reading.telling(line)
        assert records.read(str(home / "deep")) is None


@pytest.mark.parametrize("count", ["1" + "0" * 400, "1e999", "-1", "true", '"7"', "null", "NaN"])
def test_numbers_that_nobody_counts_up_to_count_nothing(home: Path, count: str) -> None:
    line = answer("x", output_tokens="COUNT").replace('"COUNT"', count)
    (claude_talks(home) / "talk.jsonl").write_text(line)

    assert counted(claude(home)) == 7


@pytest.mark.parametrize("odd", [b"\xff\xfe{}\n", b"\0\0\0\n", b'{"a": "\\ud800"}\n', b"[]\n", b"7\n", b"{}\n\n\n"])
def test_odd_bytes_are_no_conversation(home: Path, odd: bytes) -> None:
    path = claude_talks(home) / "talk.jsonl"
    path.write_bytes(odd + answer("x").encode())

    assert counted(claude(home)) == 7
    assert len(claude(home).tails()) == 1  # type: ignore[attr-defined]


def test_folders_without_end_are_folders_that_cannot_be_looked_into(home: Path) -> None:
    tree = home / "tree"
    tree.mkdir()
    fd = os.open(tree, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d" * 40, dir_fd=fd)
        inner = os.open("d" * 40, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)
    (tree / "file").touch()

    found = walk(tree)

    assert list(found.files) == ["file"]
    assert len(found.unreadable) == 1
    files.remove_tree(tree)
    assert not tree.exists()


# --- databases ---------------------------------------------------------------------------------------


def opencode(home: Path, script: str) -> str:
    path = home / "opencode.db"
    with sqlite3.connect(path) as db:
        db.executescript(script)
    db.close()
    return str(path)


TABLES = "create table message (id, data); create table session (id, directory, parent_id, time_updated);"
PART = "create table part (id, message_id, session_id, time_created, time_updated, data);"


def test_a_database_in_a_box_is_read_from_a_copy(home: Path) -> None:
    path = opencode(home, TABLES + PART + "insert into part (id) values (5);")

    assert database.rows(path, "select id from part", ()) == [(5,)]
    assert sorted(os.listdir(home)) == ["opencode.db"]


def test_a_database_beside_which_links_lie_changes_nothing(home: Path, tmp_path: Path) -> None:
    path = opencode(home, "pragma journal_mode = wal;" + TABLES + PART)
    for behind in ("-wal", "-shm", "-journal"):
        users = tmp_path / f"users{behind}"
        users.write_text("mine\n")
        Path(path + behind).unlink(missing_ok=True)
        Path(path + behind).symlink_to(users)

    database.rows(path, "select id from part", ())

    assert {one.read_text() for one in tmp_path.glob("users-*")} == {"mine\n"}


def test_a_query_without_end_ends(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_SECONDS", 0.5)
    endless = "with recursive n(id) as (select 1 union all select id + 1 from n) select id from n"
    path = opencode(home, TABLES + f"create view part as {endless};")

    assert database.rows(path, "select max(id) from part", ()) == []
    path = opencode(home, f"drop view part; {PART}")
    assert database.rows(path, f"select max(id) from ({endless})", ()) == []


def test_a_link_to_another_database_is_not_followed(home: Path, tmp_path: Path) -> None:
    users = opencode(tmp_path, TABLES + PART + "insert into part (id) values (5);")
    (home / "opencode.db").symlink_to(users)

    assert database.rows(str(home / "opencode.db"), "select id from part", ()) == []
    assert database.rows(users, "select id from part", ()) == [(5,)]
