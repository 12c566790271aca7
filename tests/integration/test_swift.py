"""The quick way of `swarm send` does what the engine does, to the byte, or leaves everything to it."""

from __future__ import annotations

import json
import os
import posix
import random
import shutil
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm import dirs
from swarm.cli import boot, quick, swift
from swarm.domain import plain
from swarm.domain.addressing import EVERYBODY, PARENT, ROLE, USER
from swarm.domain.message import PRIORITIES, Message
from swarm.engine import post_base
from swarm.engine.post import Post
from swarm.pane import records
from swarm.pane.whoami import Who
from swarm.store.bus import Limits, box, lines
from swarm.store.bus.log import ROLL_AT
from swarm.testing.lab import Lab, file_digests

if TYPE_CHECKING:
    from collections.abc import Callable

PROJECT = Path(__file__).parents[2]
NOW = 1_700_000_000_123_456_789


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A repository with a session, whose inboxes hold a message each, at a person's command line."""
    made = Lab(tmp_path.resolve())
    made.swarm.create("fx", "researcher,developer,Tester=reviewer", instructions=False)
    for one in ("researcher", "developer", "Tester", "user"):
        made.swarm.send(one, "the first")
    monkeypatch.chdir(made.root)
    monkeypatch.setattr(swift, "whoami", lambda _: None)
    monkeypatch.setattr(post_base, "whoami", lambda *_: None)
    return made


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands, and every message has the same id."""
    monkeypatch.setattr(time, "time_ns", lambda: NOW)
    monkeypatch.setattr(swift, "time_ns", lambda: NOW)
    monkeypatch.setattr(plain, "id_of", lambda *_: "0" * 28)


def agent(lab: Lab, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let both ways see that an agent sends."""
    who = Who(f"{lab.root}/.swarm/sessions/fx/run/{name}", {})
    monkeypatch.setattr(swift, "whoami", lambda _: who)
    monkeypatch.setattr(post_base, "whoami", lambda *_: who)


def log_of(lab: Lab, address: str, lane: str = "normal") -> Path:
    return lab.root / ".swarm/messages/inbox" / address.replace("@", "-") / lane / "active.log"


def full(lab: Lab, to: str, text: str) -> str:
    """Send as the engine does; return what is said."""
    found = Post.find(str(lab.root), environ=lab.env)
    assert found is not None
    return "".join(f"{line}\n" for line in quick.sent_lines(found.send(to, text)))


def both(lab: Lab, to: str, text: str, address: str) -> tuple[bytes, bytes]:
    """Send both ways; return the two records without what numbers and sums them up."""
    assert swift.send(to, text) == full(lab, to, text)
    one, other = log_of(lab, address).read_bytes().splitlines()[-2:]
    assert lines.verify(other) == lines.verify(one) + 1 > 1
    return one[: one.rindex(b',"n":')], other[: other.rindex(b',"n":')]


def texts() -> list[str]:
    rng = random.Random(7)
    kinds = ["abc xyz", '"\\/', "\n\t\r\x01\x1f\x7f", "äßλ漢🙂\u2028\ufeff", "{}[]$`'"]
    made = ["".join(rng.choice(rng.choice(kinds)) for _ in range(rng.randrange(1, 400))) for _ in range(60)]
    return ["a", "hello", "x" * 5000, *(text for text in made if not text.startswith("-"))]


@pytest.mark.usefixtures("still")
def test_both_ways_write_the_same_bytes(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in texts():
        one, other = both(lab, "researcher", text, "researcher@fx")
        assert one == other
    for to, address in (("developer@fx", "developer@fx"), ("tester", "Tester@fx"), ("USER", "user")):
        one, other = both(lab, to, "hello", address)
        assert one == other
    agent(lab, monkeypatch, "developer")
    recipients = {
        "researcher": "researcher@fx",
        "Tester@fx": "Tester@fx",
        "parent": "user",
        "developer": "developer@fx",
    }
    for to, address in recipients.items():
        one, other = both(lab, to, "hello", address)
        assert one == other
        assert b'"from":"developer@fx"' in one


@pytest.mark.usefixtures("still")
def test_a_parent_that_is_an_agent_is_left_to_the_engine(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    agent(lab, monkeypatch, "developer")
    lab.swarm.create("sub", "worker=developer", instructions=False)
    who = Who(f"{lab.root}/.swarm/sessions/sub/run/worker", {})
    monkeypatch.setattr(swift, "whoami", lambda _: who)
    assert swift.send("parent", "hello") == full(lab, "parent", "hello")  # a person started it
    record = lab.root / ".swarm/sessions/sub/session.json"
    generation = lab.swarm.session("fx").generation
    parent = {"agent": "developer", "session": "fx", "generation": generation}
    record.write_text(json.dumps(json.loads(record.read_text()) | {"parent": parent}))
    monkeypatch.setattr(post_base, "whoami", lambda *_: who)
    before = file_digests(lab.root / ".swarm")
    for word in ("parent", "Parent"):
        assert swift.send(word, "hello") is None
    assert file_digests(lab.root / ".swarm") == before
    assert full(lab, "parent", "hello").startswith(f"sent {'0' * 28} to developer@fx")
    assert swift.send("user", "hello") == f"sent {'0' * 28} to user\n"


@pytest.mark.usefixtures("still")
def test_both_ways_tell_why_it_is_not_read_now(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    record = lab.root / ".swarm/sessions/fx/session.json"
    record.write_text(record.read_text().replace('"program": ""', '"program": "demo"'))
    run = lab.root / ".swarm/sessions/fx/run/developer"
    run.mkdir(parents=True)
    both(lab, "developer", "x", "developer@fx")
    assert "it was never started" in (swift.send("developer", "x") or "")
    (run / "process.json").write_text('{"schema": 1, "pid": 1, "pid_start": 0, "boot_id": "another"}')
    both(lab, "developer", "x", "developer@fx")
    (run / "launch.json").write_text("{}")
    both(lab, "developer", "x", "developer@fx")
    assert swift.send("developer", "x") == f"sent {'0' * 28} to developer@fx\n"


# --- what is left to the engine ---------------------------------------------------------------------------


def closed(lab: Lab) -> None:
    with log_of(lab, "researcher@fx").open("ab") as file:
        file.write(lines.seal(lines.CLOSED, 1))


def torn(lab: Lab) -> None:
    with log_of(lab, "researcher@fx").open("ab") as file:
        file.write(b'{"schema":1,"id":"')


def waiting_below(lab: Lab) -> None:
    lab.swarm.send("researcher", "when there is time", priority="low")


def twice(lab: Lab) -> None:
    lab.swarm.create("other", "researcher", instructions=False)


def nearly_full(lab: Lab) -> None:
    with log_of(lab, "researcher@fx").open("ab") as file:
        file.write(lines.seal(b"{}", swift.MOST_MESSAGES))


def link(lab: Lab) -> None:
    log = log_of(lab, "researcher@fx")
    log.rename(log.with_name("elsewhere"))
    log.symlink_to("elsewhere")


def open_to_all(lab: Lab) -> None:
    (lab.root / ".swarm").chmod(0o777)


def no_inbox(lab: Lab) -> None:
    shutil.rmtree(log_of(lab, "researcher@fx").parents[1])


@pytest.mark.parametrize("prepare", [closed, torn, waiting_below, twice, nearly_full, link, open_to_all, no_inbox])
def test_whatever_is_out_of_the_ordinary_is_left_as_it_is(lab: Lab, prepare: Callable[[Lab], None]) -> None:
    assert swift.run(["send", "researcher", "hello"]) == 0
    prepare(lab)
    before = file_digests(lab.root / ".swarm")
    assert swift.run(["send", "researcher", "hello"]) is None
    assert file_digests(lab.root / ".swarm") == before


@pytest.mark.parametrize(
    "args",
    [
        ["send", "all", "x"],
        ["send", "Broadcast@fx", "x"],
        ["send", "role:developer", "x"],
        ["send", "researcher,developer", "x"],
        ["send", " researcher", "x"],
        ["send", "nobody", "x"],
        ["send", "researcher@nowhere", "x"],
        ["send", "researcher@", "x"],
        ["send", "user@fx", "x"],
        ["send", "researcher", "-"],
        ["send", "researcher", ""],
        ["send", "researcher", "--json"],
        ["send", "researcher", "lone \udc80"],
        ["send", "researcher", "x" * (plain.SURELY_FITS + 1)],
        ["send", "researcher", "x", "y"],
        ["send", "--help"],
        ["inbox"],
    ],
)
def test_what_it_does_not_understand_it_leaves(lab: Lab, args: list[str]) -> None:
    before = file_digests(lab.root / ".swarm")
    assert swift.run(args) is None
    assert file_digests(lab.root / ".swarm") == before


def test_a_write_that_breaks_off_adds_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = posix.write
    before = log_of(lab, "researcher@fx").read_bytes()
    monkeypatch.setattr(posix, "write", lambda fd, data: whole(fd, data[:20]))
    assert swift.run(["send", "researcher", "hello"]) is None
    assert log_of(lab, "researcher@fx").read_bytes() == before


def test_a_sync_that_fails_is_a_send_that_failed_and_is_not_done_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(posix, "fdatasync", fail)
    with pytest.raises(swift.NotSynced) as caught:
        swift.run(["send", "researcher", "hello"])
    assert swift.failed(caught.value, ["send", "researcher", "hello"]) == 5
    assert "cannot send to inbox.researcher-fx" in capfd.readouterr().err
    assert log_of(lab, "researcher@fx").read_bytes().count(b"\n") == 3


def test_its_limits_lie_within_those_of_the_engine() -> None:
    limits = Limits()
    near = len(PRIORITIES) / box._GRANT
    assert limits.messages * (1 - near) >= swift.MOST_MESSAGES
    assert limits.octets * (1 - near) >= swift.MOST_BYTES
    assert swift.MOST_IN_PART == ROLL_AT
    assert {swift._LANE, *swift._OTHERS} == set(PRIORITIES)
    assert Message("a", "b").priority == swift._LANE
    assert PRIORITIES[PRIORITIES.index(swift._LANE) + 1 :] == (swift._LESS_URGENT,)
    assert {*swift._FOR_USER, *swift._MEANS_SEVERAL} == {USER, PARENT, *EVERYBODY}
    assert ROLE == "role:"


def lab_cli(lab: Lab, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the full program."""
    argv = [sys.executable, "-P", "-m", "swarm", *words]
    return subprocess.run(argv, cwd=lab.root, env=lab.env, capture_output=True, text=True, check=False, timeout=120)


# --- the program ------------------------------------------------------------------------------------------


def test_its_own_sum_is_that_of_zlib() -> None:
    rng = random.Random(3)
    for size in (0, 1, 2, 41, 300, boot._SHORT):
        data = rng.randbytes(size)
        assert boot.crc32(data) == zlib.crc32(data)


def program(folder: Path) -> Path:
    """Lay the program into a folder, with a stand-in for the full one that tells of itself."""
    folder.mkdir()
    full_one = folder / "swarm-full"
    full_one.write_text(f'#!{sys.executable}\nimport sys\nprint("FULL", *sys.argv[1:])\nsys.exit(7)\n')
    full_one.chmod(0o755)
    return Path(shutil.copy(PROJECT / "bin/swarm", folder))


def said(lab: Lab, *words: str | Path) -> tuple[int, str]:
    done = subprocess.run(words, cwd=lab.root, env=lab.env, capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_the_program_sends_itself_and_leaves_the_rest(lab: Lab, tmp_path: Path) -> None:
    swarm = program(tmp_path / "pro grams")
    code, text = said(lab, swarm, "send", "researcher", "look: $(x) 'ü'\n\\n *")
    assert (code, text.split()[0]) == (0, "sent")
    assert said(lab, swarm, "send", "nobody", "a  b", "")[:2] == (7, "FULL send nobody a  b \n")
    assert said(lab, swarm, "status", "--all") == (7, "FULL status --all\n")
    assert said(lab, swarm)[0] == 0
    assert said(lab, swarm, "--version", "--json") == said(lab, sys.executable, "-m", "swarm", "--version", "--json")
    assert said(lab, swarm, "--help") == said(lab, sys.executable, "-m", "swarm", "--help")
    assert said(lab, swarm, "", "x") == (7, "FULL  x\n")
    (tmp_path / "links").mkdir()
    (tmp_path / "links/swarm").symlink_to(swarm)
    assert said(lab, tmp_path / "links/swarm", "send", "researcher", "by a link")[0] == 0
    lab.env["PATH"] = f"{swarm.parent}{os.pathsep}{lab.env['PATH']}"
    assert said(lab, "swarm", "send", "researcher", "by its name")[0] == 0
    bodies = [one.message.body for one in lab.swarm.inbox("researcher")]
    assert bodies == ["the first", "look: $(x) 'ü'\n\\n *", "by a link", "by its name"]


def test_a_variable_that_names_a_wrong_folder_is_an_error_as_of_every_command(lab: Lab, tmp_path: Path) -> None:
    swarm = program(tmp_path / "bin")
    good, own = lab.root / ".swarm", tmp_path / "own"
    shutil.copytree(good, own)
    (own / records.MARKER).write_text("version 1\n")
    for named in (good, "", own, good.parent, "not absolute", tmp_path / "nowhere"):
        lab.env["SWARM_DIR"] = str(named)
        expected = (0, "sent") if named in (good, "") else (7, "FULL")
        code, text = said(lab, swarm, "send", "researcher", "x")
        assert (code, text.split()[0]) == expected, named
        for words in (["send", "researcher", "x"], ["send", "researcher", "x", "--subject", "s"], ["inbox", "take"]):
            done = lab_cli(lab, *words)
            assert (done.returncode, "code: SWARM_DIR" in done.stderr) == ((0, False) if not expected[0] else (2, True))
            assert done.stderr.splitlines()[1:] == lab_cli(lab, "list").stderr.splitlines()[1:] or not expected[0]
    lab.env |= {"SWARM_DIR": "", "SWARM_ROOT": str(lab.root)}
    assert said(lab, swarm, "send", "researcher", "x")[0] == 7
    assert records.MARKER == dirs.MARKER


@pytest.mark.parametrize("first", ["#!/bin/sh", "#!/nowhere/python3"])
def test_without_a_python_in_the_first_line_the_full_program_does_it(lab: Lab, tmp_path: Path, first: str) -> None:
    swarm = program(tmp_path / "bin")
    (swarm.parent / "swarm-full").write_text(f"{first}\necho FULL $*\n")
    if "nowhere" in first:  # nothing can start that one; `sh` says so
        done = subprocess.run([swarm, "send", "user", "x"], cwd=lab.root, env=lab.env, capture_output=True, check=False)
        assert done.returncode in (126, 127)
    else:
        assert said(lab, swarm, "send", "researcher", "x") == (0, "FULL send researcher x\n")


def test_a_changed_module_is_compiled_anew(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name in boot._MODULES:
        path = home / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    paths = [f"{home}/{name.replace('.', '/')}.py" for name in boot._MODULES]

    def values() -> list[Any]:
        found: list[Any] = []
        for code in boot._codes(paths):
            space: dict[str, Any] = {}
            exec(code, space)
            found.append(space["x"])
        return found

    assert values() == [1] * len(paths)
    (kept,) = (home / "swarm/cli/__pycache__").glob("*.all") if (home / "swarm/cli/__pycache__").is_dir() else (None,)
    Path(paths[2]).write_text("x = 2  # changed\n")
    assert values() == [1, 1, 2, *[1] * (len(paths) - 3)]
    if kept is not None:
        kept.write_bytes(kept.read_bytes()[:-10])
        assert values() == [1, 1, 2, *[1] * (len(paths) - 3)]


def test_it_loads_none_of_what_takes_time(lab: Lab) -> None:
    code = (
        "import sys\nhome = sys.argv[1]\nexec(open(home + '/swarm/cli/boot.py').read())\n"
        "swift = load(home)\ncode = swift.run(['send', 'researcher', 'hello'])\nprint(code, *sys.modules)"
    )
    command = [sys.executable, "-I", "-S", "-c", code, str(PROJECT)]
    done = subprocess.run(command, cwd=lab.root, env=lab.env, capture_output=True, text=True, check=True)
    status, *loaded = done.stdout.splitlines()[-1].split()
    assert status == "0"
    assert not {"os", "re", "json", "pathlib", "typing", "enum", "swarm.domain.message"} & set(loaded)
