"""Setup of worktrees: how commands are read, which files patterns mean, what is given and what never is, ports."""

from __future__ import annotations

import os
import re
import stat
import time
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from swarm.kit import kill
from swarm.kit.commandline import STAMP, argv, command, hook_stamp, inside, ports, shown, words_of
from swarm.kit.errors import ConfigProblem
from swarm.machine import processes as proc
from swarm.project.config.layers import build_settings, environment_layer, flag_layer
from swarm.testing.terminal import wait_for
from swarm.worktrees.setup import commands, placing
from swarm.worktrees.setup.setup_values import Selected

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from swarm.worktrees.setup.setup_values import Ended

pytestmark = pytest.mark.integration


# --- commands are read without a shell -------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("npm ci", ["npm", "ci"]),
        ("npm ci\n", ["npm", "ci"]),
        ("echo 'a && b' \"c; d\" e\\;f", ["echo", "a && b", "c; d", "e;f"]),
        ("awk '{print $1}' x#y", ["awk", "{print $1}", "x#y"]),
        ("sh -c 'echo $PORT > x\necho `y`'", ["sh", "-c", "echo $PORT > x\necho `y`"]),
        ("costs 5$ \\$HOME", ["costs", "5$", "$HOME"]),
    ],
)
def test_a_line_is_split_as_a_shell_would(line: str, words: list[str]) -> None:
    assert words_of(command(line)) == words
    assert words_of(argv(words)) == words


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("npm ci && npm run build", "&& needs a shell"),
        ("a|b", "| needs a shell"),
        ("a > b", "> needs a shell"),
        ("a &", "& needs a shell"),
        ("echo $PORT", "$PORT needs a shell"),
        ('echo "${PORT}"', "${ needs a shell"),
        ("echo $(date)", "( needs a shell"),
        ('echo "`date`"', "` needs a shell"),
        ("one\ntwo", "a second line needs a shell"),
        ("echo 'open", "cannot be read: no closing quotation"),
        (" \n", "must not be empty"),
        ("''", "must name a program"),
        ("a\0b", "must name a program"),
    ],
)
def test_what_only_a_shell_knows_is_refused(line: str, what: str) -> None:
    with pytest.raises(ValueError, match=re.escape(what)):
        command(line)


@pytest.mark.parametrize("words", [[], [""], ["a\0b"]])
def test_words_must_name_a_program(words: list[str]) -> None:
    with pytest.raises(ValueError, match="must name a program"):
        argv(words)


def test_settings_take_lines_and_words_and_say_what_is_wrong() -> None:
    made = build_settings(
        [
            flag_layer(
                {"setup.run": ["npm ci", ["sh", "-c", "a && b"]], "setup.copy": [".env"], "setup.ports": ["PORT"]}
            ),
            environment_layer(
                {"SWARM_TEARDOWN_RUN": "docker compose down, all\n\nrm -r 'a b'", "SWARM_SETUP_LINK": "a, b"}
            ),
        ]
    )

    assert [words_of(line) for line in made.setup.run] == [["npm", "ci"], ["sh", "-c", "a && b"]]
    assert made.teardown.run == ("docker compose down, all", "rm -r 'a b'")
    assert (made.setup.copy, made.setup.link, made.setup.ports) == ((".env",), ("a", "b"), ("PORT",))
    assert (made.setup.policy, made.teardown.policy) == ("abort", "warn")


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("setup.run", ["a && b"], "needs a shell"),
        ("setup.run", [[]], "must name a program"),
        ("setup.run", {"a": 1}, "must be a list"),
        ("setup.copy", ["../x"], "must not lead out"),
        ("setup.link", ["/etc"], "not an absolute one"),
        ("setup.ports", ["SWARM_PORT"], "keeps for itself"),
        ("setup.ports", ["A-B"], "must be the name of a variable"),
        ("setup.ports", ["PATH"], "need as it is"),
        ("teardown.policy", "ignore", "must be one of abort, warn"),
    ],
)
def test_settings_that_cannot_be_meant(key: str, value: object, why: str) -> None:
    with pytest.raises(ConfigProblem, match=why):
        build_settings([flag_layer({key: value})])


def test_the_command_of_a_notice_is_a_line_or_a_list_of_words() -> None:
    for given, kept in (("", ""), ("n -a 'b c'", "n -a 'b c'"), (["sh", "-c", "a | b"], "sh -c 'a | b'")):
        assert build_settings([flag_layer({"notify.command": given})]).notify.command == kept
    for wrong, why in (("a | b", "needs a shell"), ([], "must name a program"), ({"a": 1}, "must be text")):
        with pytest.raises(ConfigProblem, match=why):
            build_settings([flag_layer({"notify.command": wrong})])


def test_a_long_command_is_shortened_where_it_is_told() -> None:
    assert shown("npm ci") == "npm ci"
    assert shown("sh -c 'a\nb'") == "sh -c 'a…"
    assert len(shown("x" * 500)) == 78


# --- which files ---------------------------------------------------------------------------------


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """Give a checkout with files of every kind."""
    made = tmp_path / "main"
    for name in (".env", ".env.local", "conf/a.yml", "conf/b.yml", "conf/deep/c.yml", "x/node_modules/m.js"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(name)
    for name in (".git/config", ".swarm/lock", ".worktrees/dev/conf/a.yml", "nested/.git/HEAD", "nested/a.yml"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(name)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.yml").write_text("not yours")
    (made / "away").symlink_to(outside)
    return made


HIDDEN = (".swarm", ".worktrees")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (".env", [".env"]),
        (".env*", [".env", ".env.local"]),
        ("./conf/*.yml", ["conf/a.yml", "conf/b.yml"]),
        ("conf/", ["conf"]),
        ("*/node_modules", ["x/node_modules"]),
        ("**/node_modules", ["x/node_modules"]),
        ("**/*.yml", ["conf/a.yml", "conf/b.yml", "conf/deep/c.yml"]),
        ("conf/**", ["conf/a.yml", "conf/b.yml", "conf/deep", "conf/deep/c.yml"]),
        ("away/a.yml", []),
        ("*/a.yml", ["conf/a.yml"]),
        (".git/config", []),
        (".g*/c*", []),
        (".swarm/lock", []),
        (".worktrees", []),
        ("nothing", []),
        (".env/x", []),
    ],
)
def test_patterns_are_of_paths_from_the_root(top: Path, pattern: str, found: list[str]) -> None:
    assert list(placing.find(top, pattern, HIDDEN)) == found


@pytest.mark.parametrize("pattern", ["/etc/passwd", "~/x", "../x", "a/../../x", ".git/config", "a/.GIT/x", "", "a\0b"])
def test_a_pattern_stays_in_the_repository(pattern: str) -> None:
    with pytest.raises(ValueError, match="must"):
        inside(pattern)


def test_a_folder_means_all_that_is_in_it_but_nothing_behind_a_link(top: Path) -> None:
    (top / "conf/away").symlink_to("../../outside")

    assert list(placing.files_below(top, "conf", HIDDEN)) == [
        "conf/a.yml",
        "conf/away",
        "conf/b.yml",
        "conf/deep/c.yml",
    ]
    assert list(placing.files_below(top, "away", HIDDEN)) == ["away"]
    assert list(placing.files_below(top, "nested", HIDDEN)) == []


def test_links_that_lead_out_and_pipes_are_left_out(top: Path) -> None:
    (top / "conf/in").symlink_to("../.env")
    (top / "conf/out").symlink_to("../../outside/a.yml")
    (top / "conf/absolute").symlink_to(top / ".env")
    (top / "conf/through").symlink_to("../away/a.yml")
    os.mkfifo(top / "conf/pipe")
    paths = ["conf/a.yml", "conf/in", "conf/out", "conf/absolute", "conf/through", "conf/pipe"]

    found = placing.sort_out(top, paths)

    assert found.paths == ("conf/a.yml", "conf/in")
    assert [problem.split()[0] for problem in found.problems] == paths[2:]
    assert "leads out of the repository" in found.problems[0]
    assert "neither a file nor a folder" in found.problems[-1]
    assert found == Selected(found.paths, (), found.problems)


# --- what is given --------------------------------------------------------------------------------


def test_a_copy_has_content_mode_and_time(top: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (top / "conf/a.yml").chmod(0o750)
    os.utime(top / "conf/a.yml", ns=(10**18, 10**18))
    (top / "empty").touch()
    (top / "big").write_bytes(os.urandom(3 << 20))
    (top / "conf/in").symlink_to("../.env")

    assert placing.copy(top, tree, ["conf/a.yml", "empty", "big", "conf/in"]) == ()

    info = (tree / "conf/a.yml").stat()
    assert (stat.S_IMODE(info.st_mode), info.st_mtime_ns) == (0o750, 10**18)
    assert all((tree / name).read_bytes() == (top / name).read_bytes() for name in ("conf/a.yml", "empty", "big"))
    assert os.readlink(tree / "conf/in") == "../.env"


def test_nothing_is_written_over_or_through_a_link(top: Path, tmp_path: Path) -> None:
    tree, elsewhere = tmp_path / "tree", tmp_path / "elsewhere"
    elsewhere.mkdir()
    tree.mkdir()
    (tree / ".env").write_text("the project's own")
    (tree / "conf").symlink_to(elsewhere)
    (tree / "x").write_text("a file")

    problems = placing.copy(top, tree, [".env", "conf/a.yml", "x/node_modules/m.js", "gone"])
    linked = placing.link(top, tree, ["x/node_modules", ".env", ".env.local"])

    assert (tree / ".env").read_text() == "the project's own"
    assert list(elsewhere.iterdir()) == []
    assert [problem.split(":")[0] for problem in problems] == ["conf/a.yml", "x/node_modules/m.js", "gone"]
    assert [problem.split(":")[0] for problem in linked] == ["x/node_modules", ".env"]
    assert os.path.samefile(tree / ".env.local", top / ".env.local")


def test_a_signature_tells_every_change(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("one")
    link.symlink_to("file")
    first = placing.signature(file)

    file.write_text("two")
    second = placing.signature(file)
    file.write_text("one")
    file.chmod(0o755)
    third = placing.signature(file)
    file.write_bytes(b"x" * (2 << 20))
    large = placing.signature(file)
    file.touch()

    assert len({first, second, third, large, placing.signature(file), placing.signature(link)}) == 6
    assert placing.signature(tmp_path) == placing.signature(tmp_path / "nothing") == ""


# --- commands are run -----------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Ended]:
    def go(line: str, limit: float = 60, stopped: Callable[[], bool] = lambda: False) -> Ended:
        environ = {"PATH": os.environ["PATH"], STAMP: f"test/{tmp_path.name}/{os.getpid()}"}
        return commands.run(line, cwd=tmp_path, environ=environ, log=tmp_path / "log", limit=limit, stopped=stopped)

    return go


def test_a_command_says_how_it_ended(run: Callable[..., Ended], tmp_path: Path) -> None:
    (tmp_path / "here").write_text("#!/bin/sh\necho here\n")
    (tmp_path / "here").chmod(0o700)

    assert run("true").outcome == ""
    assert run("sh -c 'exit 3'").outcome == "ended with 3"
    assert run("sh -c 'kill -USR1 $$'").outcome == "was ended by SIGUSR1"
    assert run("no-such-program-at-all x").outcome == "could not be started: there is no program no-such-program-at-all"
    assert run("./nothing").outcome.startswith("could not be started: ")
    assert run("./here").outcome == ""
    assert (tmp_path / "log").read_text().endswith("$ ./here\nhere\n")
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o600


def test_the_last_lines_are_told_without_what_a_terminal_obeys(run: Callable[..., Ended]) -> None:
    text = "printf '\\033[31mred\\033[0m\\n\\033]0;title\\007two\\n10%%\\r100%%\\n\\n\\a\\n'; exit 1"

    assert run(argv(["sh", "-c", text])).tail == ("red", "two", "100%")
    assert len(run("sh -c 'seq 1000; exit 1'").tail) == 20
    assert run("sh -c 'seq 1000'").tail == ()


def test_one_that_takes_too_long_ends_with_all_it_started(run: Callable[..., Ended], tmp_path: Path) -> None:
    """Also what ignores being asked, what has a session of its own, and what hides its environment."""
    script = (
        "(trap '' TERM; echo $$ > a; sleep 600) & setsid sleep 600 & echo $! > b; env -i sleep 600 & echo $! > c; wait"
    )

    def told() -> list[str]:
        return [(tmp_path / name).read_text() if (tmp_path / name).exists() else "" for name in "abc"]

    limits = iter((0.5, 5, 60))  # a busy machine needs long until all three are there
    while not all(told()):
        limit, began = next(limits), time.monotonic()
        assert run(argv(["sh", "-c", script]), limit=limit).outcome == f"did not end within {limit} s"
        assert time.monotonic() - began < limit + 20

    pids = [int(text) for text in told()]
    wait_for(lambda: not any(proc.start_of(pid) for pid in pids), "the end of all of it")


def test_what_failed_leaves_nothing_running_and_what_worked_may(run: Callable[..., Ended], tmp_path: Path) -> None:
    failed = run("sh -c 'setsid sleep 600 & echo $! > a; exit 1'")
    worked = run("sh -c 'setsid sleep 600 & echo $! > b'")
    left, server = (int((tmp_path / name).read_text()) for name in "ab")

    assert (failed.outcome, worked.outcome) == ("ended with 1", "")
    wait_for(lambda: proc.start_of(left) is None, "the end of what the failed one left")
    assert proc.start_of(server) is not None
    commands.end_all(lambda: kill.stamped(f"test/{tmp_path.name}", variable=STAMP, below=True))
    wait_for(lambda: proc.start_of(server) is None, "the end of the server: what is just ending has no stamp any more")


def test_a_command_is_ended_when_somebody_says_so(run: Callable[..., Ended]) -> None:
    seen: list[int] = []

    def stopped() -> bool:
        seen.append(1)
        return len(seen) > 3

    assert run("sleep 600", stopped=stopped).outcome == "was interrupted"


def test_one_that_prints_without_end_is_ended(run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_MOST_OUTPUT", 1 << 20)

    assert run("yes").outcome == "printed more than 1 MiB"


def test_of_a_long_output_the_beginning_and_the_end_are_kept(run: Callable[..., Ended], tmp_path: Path) -> None:
    many = "sh -c 'echo begun; head -c 9000000 /dev/zero; echo; echo over'"
    assert run("echo before").outcome == ""
    assert run(many).outcome == ""
    assert run("sh -c 'echo after; exit 1'").tail == ("after",)

    kept = (tmp_path / "log").read_bytes()

    assert len(kept) < (2 << 20) + 1000
    assert b"before\n$ sh -c 'echo begun" in kept
    assert b"begun\n" in kept
    assert b"over\n$ sh -c 'echo after" in kept
    left = int(kept.partition(b"[swarm left out ")[2].split(b" ")[0])
    assert left == 9_000_000 + len("begun\n\nover\n") - (2 << 20)


# --- ports ------------------------------------------------------------------------------------------


def test_ports_begin_elsewhere_for_each_and_all_come_once() -> None:
    assert len({next(ports(f"repository {n}")) for n in range(50)}) > 40
    every = list(ports("x"))
    assert len(every) == len(set(every)) == 12_000
    assert min(every) >= 20_000
    assert max(every) < 32_768
    assert list(islice(ports("x"), 3)) == every[:3]


def test_stamps_of_one_are_below_those_of_all() -> None:
    assert hook_stamp("/r", "op", "dev").startswith(hook_stamp("/r", "op") + "/")
    assert hook_stamp("/r", "op") != hook_stamp("/s", "op")
    assert "/r" not in hook_stamp("/r", "op").split("/")[0]
