"""swarm's own hooks in Claude Code: one entry an event, since two of one event race.

``PreToolUse`` is where deny rules are held in every mode, by ``guard.py``; without such rules it is only noted.

``asyncRewake`` lets a hook wait in the background; when it ends with status 2, the program is woken with what it
printed, or gets it with the next tool result.  No key is typed, and a half-typed line or a dialog is not touched.
"""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

from swarm.machine import hook, turn_end
from swarm.machine.mcp import wait
from swarm.permissions import guard

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: At these events a process must wait for messages again: the last one may have woken, or ended with a turn.
_TURNS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop", "StopFailure")
_NOTED = ("Notification", "SessionEnd", "PreCompact", "SubagentStop")
#: Its value in a dialog; print mode sets another.
_DIALOG = "CLAUDE_CODE_ENTRYPOINT=cli"
_DAY = 86_400
_SHORT = 5
#: Its own limit comes first, and is a refusal; the program takes this one for a yes.
_GUARD = 60


def standard(
    run_dir: Path, main: Path, *, guarded: bool, prints: bool = False, door: bool = False
) -> dict[str, Sequence[Any]]:
    """Return the hooks that every agent has.

    Args:
        guarded: there are rules about what it must not do.
        prints: it is in print mode: its questions are not for people, and one without an answer is denied.
        door: it has an MCP door; print mode waits for that by itself, a dialog does not.
    """
    quick = [sys.executable, "-I", "-S"]
    note = [*quick, hook.__file__, str(run_dir)]
    judge = [*quick, guard.__file__, str(run_dir)]
    swarm = [sys.executable, "-P", "-m", "swarm", "-C", str(main)]
    waiter = {"asyncRewake": True, **_command([*note, _DIALOG, *swarm, "hook", "deliver"], _DAY)}
    begin = [waiter, _command([*quick, wait.__file__, str(run_dir)], _GUARD)] if door and not prints else [waiter]
    end = _command([*quick, turn_end.__file__, str(run_dir), *swarm, "hook", "turn-end"], _GUARD)
    ask = _command([*swarm, "permission-request", *(("--wait", "0") if prints else ())], _DAY)
    return {
        **{event: [_entry(waiter)] for event in _TURNS},
        "SessionStart": [{"matcher": "", "hooks": begin}],
        "Stop": [{"matcher": "", "hooks": [waiter, end]}],
        **{event: [_entry(_command(note, _SHORT))] for event in _NOTED},
        "PreToolUse": [_entry(_command(judge, _GUARD) if guarded else _command(note, _SHORT))],
        "PermissionRequest": [_entry(ask)],
    }


def _entry(command: dict[str, Any]) -> dict[str, Any]:
    return {"matcher": "", "hooks": [command]}


def _command(words: Sequence[str], timeout: int) -> dict[str, Any]:
    return {"type": "command", "command": shlex.join(words), "timeout": timeout}
