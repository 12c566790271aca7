"""What the hooks of a program run at each event: it is noted, and one process waits for messages, never two."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from swarm import machine
from swarm.machine import hook_events
from swarm.machine.run_folder import runfiles
from swarm.supervisor import mail
from swarm.testing.terminal import wait_for

pytestmark = pytest.mark.component

HOOK = str(Path(machine.__file__).with_name("hook.py"))
#: What the program says of itself in a dialog.
DIALOG = "CLAUDE_CODE_ENTRYPOINT=cli"
#: Stands for the one that waits: tells what it was given, then waits to be ended.
WAITS = "import sys; print(sys.stdin.read(), sys.argv[1:], flush=True); import time; time.sleep(600)"
TELLS = "import sys; print(sys.stdin.read(), sys.argv[1:])"


def hook(run: Path, event: Any, *command: str, entrypoint: str = "cli") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-S", HOOK, str(run), *((DIALOG, *command) if command else ())],
        input=json.dumps(event),
        env={"CLAUDE_CODE_ENTRYPOINT": entrypoint},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_one_waits_and_everybody_can_see_whether_it_lives(tmp_path: Path) -> None:
    assert not hook_events.is_awaited(str(tmp_path))
    argv = [sys.executable, "-I", "-S", HOOK, str(tmp_path), DIALOG, sys.executable, "-c", WAITS]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as waiter:
        assert waiter.stdin is not None
        assert waiter.stdout is not None
        waiter.stdin.write(json.dumps({"hook_event_name": "Stop", "transcript_path": "/t", "other": 1}))
        waiter.stdin.close()
        try:
            assert json.loads(waiter.stdout.readline()) == {"hook_event_name": "Stop", "transcript_path": "/t"}
            assert hook_events.is_awaited(str(tmp_path))
            done = hook(tmp_path, {"hook_event_name": "Stop"}, sys.executable, "-c", TELLS)
            assert (done.returncode, done.stdout) == (0, "")
        finally:
            waiter.kill()
    wait_for(lambda: not hook_events.is_awaited(str(tmp_path)), "the end of the one that waits")
    assert hook(tmp_path, {"hook_event_name": "Stop"}, sys.executable, "-c", TELLS).stdout  # the next one may


@pytest.mark.parametrize("text", ["", "x y", "1", f"{2**40} 5"])
def test_a_note_that_is_none_is_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / hook_events.LOCK).write_text(text)
    assert not hook_events.is_awaited(str(tmp_path))


def test_in_print_mode_only_the_end_of_a_turn_delivers_and_nobody_waits(tmp_path: Path) -> None:
    tell = (sys.executable, "-c", TELLS)
    assert hook(tmp_path, {"hook_event_name": "PostToolUse"}, *tell, entrypoint="sdk-cli").stdout == ""
    start = {"hook_event_name": "SessionStart", "session_id": "other"}
    assert hook(tmp_path, start, *tell, entrypoint="sdk-cli").stdout == ""
    assert not (tmp_path / hook_events.CONVERSATION).exists()
    assert "['--now']" in hook(tmp_path, {"hook_event_name": "Stop"}, *tell, entrypoint="sdk-cli").stdout


def test_the_conversation_that_begins_is_written_down(tmp_path: Path) -> None:
    for name in ("one", "two"):
        start = {"hook_event_name": "SessionStart", "session_id": name}
        assert hook(tmp_path, start, sys.executable, "-c", TELLS).returncode == 0
    found = runfiles.read(str(tmp_path), hook_events.CONVERSATION)
    assert found is not None
    assert found["id"] == "two"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"hook_event_name": 5}'])
def test_whatever_comes_in_the_program_hears_nothing_of_it(tmp_path: Path, text: str) -> None:
    argv = [sys.executable, "-I", "-S", HOOK, str(tmp_path / "none")]
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_idleness_is_read_from_the_programs_own_file(tmp_path: Path) -> None:
    own = tmp_path / "41.json"
    quiet = mail.Quiet(str(tmp_path), lambda: True, shell=False, says=str(own))
    assert (quiet.maybe(), quiet.since()) == (True, "")  # it says nothing: for others to decide, and no idleness
    for status, maybe, since in (("idle", True, "7"), ("busy", False, ""), ("waiting", False, ""), (None, False, "")):
        own.write_text(json.dumps({"pid": 41, "status": status, "statusUpdatedAt": 7}))
        assert (quiet.maybe(), quiet.since()) == (maybe, since)
    own.write_text("{")
    assert quiet.since() == ""
