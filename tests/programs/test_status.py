"""What an agent is doing, row by row: facts in, state and the deciding evidence out."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from swarm.machine import processes
from swarm.machine.run_folder import runfiles
from swarm.programs.processes import facts
from swarm.programs.reading import seen
from swarm.programs.status import PaneFacts, ProgramFacts, State, Verdict, conclude
from swarm.sessions.status import overall

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

OPEN = PaneFacts("%1")
DEAD = PaneFacts("%1", dead=True)
NONE = PaneFacts()
NO_SERVER = PaneFacts(server=False)
NEVER = ProgramFacts()
TOLD = ProgramFacts(launched=True)
RUNS = ProgramFacts(launched=True, pid=7, supervisor=6, alive=True, started_ms=1000)
GONE = RUNS._replace(alive=False)


def says(state: str, detail: str = "", at: int = 2000) -> ProgramFacts:
    return RUNS._replace(said_state=state, said_detail=detail, said_ms=at)


def ended(cause: str, code: int | None = None, signal: int | None = None, **more: Any) -> ProgramFacts:
    return GONE._replace(exit_cause=cause, exit_code=code, exit_signal=signal, ended_ms=3000, **more)


ROWS = [
    # program, facts, pane → state, words of the detail, source that decided, since
    ("no program at all", "", NEVER, NONE, State.STOPPED, "worktree only", None, 0),
    ("at its gate", "demo", TOLD, OPEN, State.STARTING, "has not reported", "pane", 0),
    ("nothing known but a pane", "demo", NEVER, OPEN, State.STARTING, "has not reported", "pane", 0),
    ("the launcher died", "demo", TOLD, DEAD, State.FAILED, "before the program was started", "pane", 0),
    ("nothing, nowhere", "demo", NEVER, NONE, State.STOPPED, "no pane", "pane", 0),
    ("no server", "demo", TOLD, NO_SERVER, State.STOPPED, "no pane", "pane", 0),
    ("stopped at its gate", "demo", TOLD._replace(stopped_ms=5), DEAD, State.STOPPED, "by swarm", "swarm", 5),
    ("works", "demo", says("working", "step 1"), OPEN, State.WORKING, "step 1", "program", 2000),
    ("idle", "demo", says("idle"), OPEN, State.IDLE, "", "program", 2000),
    ("waits", "demo", says("waiting", "permission: Bash"), OPEN, State.WAITING, "permission: Bash", "program", 2000),
    ("says done and runs", "demo", says("done"), OPEN, State.DONE, "", "program", 2000),
    ("says what we do not know", "demo", says("dreaming"), OPEN, State.UNKNOWN, "", "program", 2000),
    (
        "said in an earlier run",
        "demo",
        says("waiting", "old", at=999),
        OPEN,
        State.UNKNOWN,
        "does not report",
        None,
        1000,
    ),
    ("any command that tells", "command", says("idle", "x"), OPEN, State.IDLE, "x", "program", 2000),
    ("silence is not idleness", "claude", RUNS, OPEN, State.UNKNOWN, "does not report", None, 1000),
    ("nor with the terminal", "claude", RUNS._replace(foreground=True), OPEN, State.UNKNOWN, "", None, 1000),
    ("shell at its prompt", "shell", RUNS._replace(foreground=True), OPEN, State.IDLE, "prompt", "terminal", 0),
    ("shell with a command", "shell", RUNS._replace(foreground=False), OPEN, State.WORKING, "command", "terminal", 0),
    ("shell without a terminal", "shell", RUNS, OPEN, State.UNKNOWN, "", None, 1000),
    ("in print mode", "codex", RUNS._replace(prints=True), OPEN, State.WORKING, "at its task", "process", 1000),
    (
        "in print mode, whatever it says",
        "demo",
        says("idle", "ready")._replace(prints=True),
        OPEN,
        State.WORKING,
        "at its task",
        "process",
        1000,
    ),
    ("runs on without a pane", "demo", says("working"), NO_SERVER, State.WORKING, "", "program", 2000),
    ("ended well", "demo", ended("exited", 0), DEAD, State.DONE, "by itself", "exit", 3000),
    ("ended badly", "demo", ended("exited", 3), DEAD, State.FAILED, "exit status 3", "exit", 3000),
    ("could not be run", "demo", ended("exited", 127), DEAD, State.FAILED, "exit status 127", "exit", 3000),
    ("killed", "demo", ended("signal", None, 9), DEAD, State.FAILED, "signal 9", "exit", 3000),
    ("stopped", "demo", ended("stopped", None, 15, stopped_ms=2900), DEAD, State.STOPPED, "by swarm", "exit", 3000),
    ("stopped, ended well", "demo", ended("stopped", 0), DEAD, State.STOPPED, "by swarm", "exit", 3000),
    ("told to stop, then ended", "demo", ended("exited", 0, stopped_ms=2900), DEAD, State.STOPPED, "", "exit", 3000),
    ("ended, then told to stop", "demo", ended("exited", 0, stopped_ms=3100), DEAD, State.DONE, "", "exit", 3000),
    ("terminal closed", "demo", ended("hangup", None, 1), NONE, State.STOPPED, "terminal was closed", "exit", 3000),
    ("server killed", "demo", ended("hangup", 0), NO_SERVER, State.STOPPED, "terminal was closed", "exit", 3000),
    ("no word", "demo", GONE, DEAD, State.FAILED, "without a record", "process", 0),
    ("no word, no pane", "demo", GONE, NONE, State.FAILED, "without a record", "process", 0),
    ("no word, but we did it", "demo", GONE._replace(stopped_ms=9), DEAD, State.STOPPED, "by swarm", "swarm", 9),
    (
        "its launcher is still at it",
        "demo",
        GONE._replace(supervised=True),
        OPEN,
        State.UNKNOWN,
        "being ended",
        "process",
        0,
    ),
    ("rebooted", "demo", GONE._replace(same_boot=False), NO_SERVER, State.STOPPED, "restarted", "process", 0),
    ("ended before the reboot", "demo", ended("exited", 0, same_boot=False), NONE, State.DONE, "", "exit", 3000),
    (
        "its last words count no more",
        "demo",
        says("working")._replace(alive=False),
        DEAD,
        State.FAILED,
        "",
        "process",
        0,
    ),
]


@pytest.mark.parametrize(
    ("program", "facts", "pane", "state", "detail", "decides", "since"),
    [row[1:] for row in ROWS],
    ids=[r[0] for r in ROWS],
)
def test_conclusion(
    program: str, facts: ProgramFacts, pane: PaneFacts, state: State, detail: str, decides: str | None, since: int
) -> None:
    found = conclude(program, facts, pane)

    assert found.state is state
    assert detail in found.detail
    assert [item.source for item in found.evidence if item.decides] == ([decides] if decides else [])
    assert found.since_ms == since


@pytest.mark.parametrize("facts", [says("idle"), ended("exited", 0), ended("stopped", 143)])
def test_whose_conversation_went_elsewhere_is_unknown_and_not_over(facts: ProgramFacts) -> None:
    found = conclude("claude", facts._replace(elsewhere="background session 1f7f"), OPEN)
    assert (found.state, found.detail) == (State.UNKNOWN, "its conversation goes on in background session 1f7f")
    assert [one.source for one in found.evidence if one.decides] == ["elsewhere"]
    assert found.runs


def test_every_state_has_a_row() -> None:
    assert {row[4] for row in ROWS} == set(State)


def test_every_fact_is_evidence_with_its_age() -> None:
    facts = ended("exited", 3)._replace(said_state="idle", said_detail="ready", said_ms=2000, stopped_ms=4000)

    found = {item.source: item for item in conclude("demo", facts, DEAD).evidence}

    assert {source: item.at_ms for source, item in found.items()} == {
        "process": 1000,
        "program": 2000,
        "exit": 3000,
        "swarm": 4000,
        "pane": 0,
    }
    assert "process 7 is gone" in found["process"].text
    assert "idle: ready" in found["program"].text
    assert "status 3" in found["exit"].text
    assert "%1 is dead" in found["pane"].text


@pytest.mark.parametrize(
    ("facts", "pane", "runs"),
    [
        (NEVER, NONE, False),
        (TOLD, OPEN, True),
        (TOLD, DEAD, False),
        (RUNS, DEAD, True),
        (says("done"), OPEN, True),
        (GONE, OPEN, False),
        (GONE._replace(supervised=True), OPEN, True),
        (ended("exited", 0), OPEN, False),
    ],
)
def test_whether_it_runs_is_not_a_matter_of_words(facts: ProgramFacts, pane: PaneFacts, runs: bool) -> None:
    assert conclude("demo", facts, pane).runs is runs


@pytest.mark.parametrize(
    ("states", "whole"),
    [
        ([], State.STOPPED),
        ([State.IDLE, State.WORKING], State.WORKING),
        ([State.WORKING, State.WAITING, State.FAILED], State.WAITING),
        ([State.DONE, State.FAILED], State.FAILED),
        ([State.DONE, State.STOPPED], State.DONE),
        ([State.UNKNOWN, State.STARTING], State.UNKNOWN),
    ],
)
def test_a_session_is_what_most_needs_a_look(states: list[State], whole: State) -> None:
    assert overall(states) is whole


# --- from files to facts --------------------------------------------------------------------------


def write(folder: Path, name: str, **record: Any) -> None:
    (folder / name).write_text(json.dumps({"schema": 1, **record}))


def me(**other: Any) -> dict[str, Any]:
    """Return process.json of this very process."""
    start = processes.start_of(os.getpid())
    supervisor = {"supervisor_pid": os.getpid(), "supervisor_start": start}
    facts = {**supervisor, "pid": os.getpid(), "pid_start": start, "boot_id": processes.boot_id(), "started_ms": 1000}
    return {**facts, "argv0": "x", "operation": "1", **other}


def state_of(folder: Path, program: str = "demo", pane: PaneFacts = OPEN) -> tuple[str, str]:
    found = conclude(program, facts(folder), pane)
    return found.state.value, found.detail


def test_an_empty_folder_says_nothing(tmp_path: Path) -> None:
    assert facts(tmp_path) == ProgramFacts()
    assert facts(tmp_path / "not there") == ProgramFacts()


def test_this_very_process_lives(tmp_path: Path) -> None:
    write(tmp_path, "process.json", **me())
    write(tmp_path, "state.json", state="waiting", detail="a word", at_ms=2000, pid=1)

    assert state_of(tmp_path) == ("waiting", "a word")


def test_a_pid_that_is_somebody_elses_by_now(tmp_path: Path) -> None:
    write(tmp_path, "process.json", **me(pid_start=1, supervisor_start=1))

    assert state_of(tmp_path)[0] == "failed"


def test_another_boot(tmp_path: Path) -> None:
    write(tmp_path, "process.json", **me(boot_id="another"))
    write(tmp_path, "state.json", state="working", detail="", at_ms=2000, pid=1)

    assert state_of(tmp_path) == ("stopped", "the machine was restarted")


def test_an_exit_of_an_earlier_run_does_not_count(tmp_path: Path) -> None:
    write(tmp_path, "process.json", **me())
    record = {"code": 0, "signal": None, "cause": "exited", "ended_ms": 500, "operation": "0"}
    write(tmp_path, "exit.json", pid=os.getpid(), pid_start=1, boot_id=processes.boot_id(), **record)

    assert state_of(tmp_path)[0] == "unknown"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"schema": 2}', '{"schema": 1, "state": "dreaming", "detail": "", "at_ms": 1, "pid": 1}'],
)
def test_a_state_that_cannot_be_read_is_no_state(tmp_path: Path, text: str) -> None:
    write(tmp_path, "process.json", **me())
    (tmp_path / "state.json").write_text(text)

    assert state_of(tmp_path)[0] == "unknown"


def test_a_state_that_is_a_pipe_does_not_hold_anybody_up(tmp_path: Path) -> None:
    write(tmp_path, "process.json", **me())
    os.mkfifo(tmp_path / "state.json")

    assert state_of(tmp_path)[0] == "unknown"


def test_a_launch_that_waits_is_newer_than_what_was_written_down(tmp_path: Path) -> None:
    """A resume at its gate: neither the end of the run before nor the order to stop it counts."""
    write(tmp_path, "process.json", **me(pid_start=1, supervisor_start=1))
    write(tmp_path, "stop.json", at_ms=1)
    os.utime(tmp_path / "stop.json", (100, 100))
    (tmp_path / "launch.json").write_text("{}")

    assert state_of(tmp_path)[0] == "starting"
    assert state_of(tmp_path, pane=DEAD)[0] == "failed"

    os.utime(tmp_path / "stop.json", (4e9, 4e9))
    assert state_of(tmp_path, pane=DEAD)[0] == "stopped"


def test_an_order_to_stop_from_before_its_start_does_not_count(tmp_path: Path) -> None:
    write(tmp_path, "process.json", **me(pid_start=1, supervisor_start=1, started_ms=200_000))
    write(tmp_path, "stop.json", at_ms=1)
    os.utime(tmp_path / "stop.json", (100, 100))

    assert state_of(tmp_path)[0] == "failed"


@pytest.mark.parametrize(
    ("started", "written", "counts"),
    [(1_000, 6_000, True), (1_000, 35_000, True), (1_000, 36_000, False), (6_000, 0, False)],
)
def test_a_screen_that_was_read_before_the_program_wrote_again_says_nothing(
    tmp_path: Path, started: int, written: int, counts: bool
) -> None:
    """SESS-14: a supervisor goes by what the last look saw, unless the screen is another one by now."""
    said = {"state": "idle", "detail": "done", "why": "its prompt is free (rule x/y)", "at_ms": 5_000}
    runfiles.write(str(tmp_path), runfiles.SCREEN, dict(said))
    facts = ProgramFacts(launched=True, pid=7, alive=True, started_ms=started)

    found = seen.read(tmp_path, facts, written)

    assert (found is not None) is counts
    if found is not None:
        known = conclude("x", facts, PaneFacts("%1", screen=found))
        assert (known.state, known.detail) == (State.IDLE, "done")
        assert [(one.text, one.at_ms) for one in known.evidence if one.decides] == [(said["why"], 5_000)]


def test_only_a_state_that_the_screen_decided_leaves_a_note(tmp_path: Path) -> None:
    facts = ProgramFacts(launched=True, pid=7, alive=True, started_ms=1)
    seen.note(tmp_path, conclude("x", facts, PaneFacts("%1")))
    assert os.listdir(tmp_path) == []
    verdict = Verdict("waiting", "for permission", "x/asks", "it asks")
    seen.note(tmp_path, conclude("x", facts, PaneFacts("%1", screen=verdict)))
    found = seen.read(tmp_path, facts, 0)
    assert found is not None
    assert found[:4] == ("waiting", "for permission", "", "it asks (rule x/asks)")
