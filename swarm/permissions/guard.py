"""Refuse denied tool calls: ``python -I -S guard.py RUN_DIR``, a PreToolUse event on stdin.

The program may have the same rules in its settings.  This is asked in every mode, also where the program would not ask,
and it sees through commands that hide another one.  It runs at every tool call: nothing is imported that is not
needed for this very tool, and the rules come from a small file that was made at the start (``programs/guarded.py``).

With the name of a program behind it, the event is one of that program, whose ``calls.py`` says it in the words of
rules.  A refusal is told by the exit status alone, since the shell that runs its hooks may print of its own.  Its other
event, PermissionRequest, is answered by the allow rules.

Whatever goes wrong where there is a rule to hold is a refusal.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from swarm.permissions.paths import Place
    from swarm.permissions.rules import Decision

RULES = "guard.json"
_LIMIT = 4 << 20
_SECONDS = 20.0
#: The program takes this for a refusal, whatever was printed.
_REFUSED = 2
_ALLOWED = b'{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}\n'


def main(seconds: float = _SECONDS) -> int:
    """Run and return the exit status.

    Args:
        seconds: how long it may take from when the event is there.
    """
    try:
        package = type(sys)("swarm")
        package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
        sys.modules["swarm"] = package
        from swarm.machine import hook_events

        event = hook_events.read()
        try:
            hook_events.note(sys.argv[1], event)
        except OSError:
            pass  # a full disk changes nothing about the rules
        _end_after(seconds)
        if sys.argv[2:]:
            return _by_status(sys.argv[1], event, sys.argv[2])
        answer = _judge(sys.argv[1], event)
    except BaseException as error:  # noqa: BLE001  # a rule that cannot be held is no reason to go on
        os.write(2, f"swarm cannot enforce the rules of this agent: {type(error).__name__}: {error}\n".encode())
        return _REFUSED
    if answer:
        os.write(1, answer)
    return 0


def _end_after(seconds: float) -> None:
    """Refuse, and end, when it takes too long.

    An error in the handler would not do: what looks at files takes those of its kind for a file that is not there.
    """
    import signal

    def late(*_: object) -> None:
        try:
            os.write(2, f"swarm cannot enforce the rules of this agent: the check took over {seconds:g} s\n".encode())
        finally:
            os._exit(_REFUSED)

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _read(run_dir: str) -> Any:
    from swarm.machine import records

    with open(os.path.join(run_dir, RULES), "rb") as file:
        return records.loads(file.read(_LIMIT))


def _judge(run_dir: str, event: dict[str, Any]) -> bytes:
    """Return the answer to the program; empty if no rule matches."""
    from swarm.machine import records

    rules = _read(run_dir)
    decision = _decide(rules, event["tool_name"], event.get("tool_input"), event)
    if decision is None:
        return b""
    asks = decision.behavior == "ask" and rules["unclear"] == "ask"
    said = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "ask" if asks else "deny",
        "permissionDecisionReason": f"swarm: {decision.reason}",
    }
    return b'{"hookSpecificOutput": ' + records.line(said).rstrip() + b"}\n"


def _by_status(run_dir: str, event: dict[str, Any], program: str) -> int:
    """Refuse a call of a program, or allow its request; return the exit status."""
    from importlib import import_module

    rules = _read(run_dir)
    calls = import_module(f"swarm.programs.{program}.calls").calls(event["tool_name"], event.get("tool_input"))
    if event["hook_event_name"] == "PermissionRequest":
        if calls and all(_is_allowed(rules, tool, given, event) for tool, given in calls):
            os.write(1, _ALLOWED)
        return 0
    found = [one for tool, given in calls if (one := _decide(rules, tool, given, event)) is not None]
    if not found:
        return 0
    decision = next((one for one in found if one.behavior == "deny"), found[0])
    more = "" if decision.behavior == "deny" else ", and no person can be asked here: write the command plainly"
    os.write(2, f"swarm: {decision.reason}{more}\n".encode())
    return _REFUSED


def _is_allowed(rules: dict[str, Any], tool: str, given: object, event: dict[str, Any]) -> bool:
    from swarm.permissions.decide import decide
    from swarm.permissions.rules import Rule, Rules

    known = Rules(*(tuple(Rule(*rule) for rule in rules[key]) for key in ("allow", "deny")))
    return bool(decide(known, tool, given, _place(rules, event)).behavior == "allow")


def _decide(rules: dict[str, Any], tool: str, given: object, event: dict[str, Any]) -> Decision | None:
    """Return the rules' decision; a tool that takes a command counts as one that runs it, under any name."""
    known = rules["tools"]
    is_known = tool in known or (tool.startswith("mcp__") and "mcp__" in known)
    runs = (
        "Bash" in known and isinstance(given, dict) and ("command" in given or "cmd" in given)
    )  # whatever it is called
    if not is_known and not runs:
        return None
    from swarm.permissions import denials
    from swarm.permissions.rules import Rule

    deny = [Rule(*rule) for rule in rules["deny"]]
    return denials.forbid(deny, tool, given, _place(rules, event))


def _place(rules: dict[str, Any], event: dict[str, Any]) -> Place:
    from swarm.permissions.paths import Place

    home = os.environ.get("HOME", "")
    cwd = event.get("cwd") or rules["root"]
    return Place(cwd, rules["root"], home, _real(), _names(cwd))


def _real() -> Callable[[str], str]:
    """Return a function that follows links and remembers each path, as many rules ask about the same one."""
    known: dict[str, str] = {}

    def real(path: str) -> str:
        if path not in known:
            known[path] = os.path.realpath(path)
        return known[path]

    return real


def _names(cwd: str) -> Callable[[str], list[str] | None]:
    """Return a function that expands a pattern to files as a shell does, or to None where it cannot tell."""

    def listing(folder: str, links: bool) -> Iterator[tuple[str, bool]]:  # noqa: FBT001  # said by place, of two
        try:
            with os.scandir(os.path.join(cwd, folder)) as entries:
                for entry in entries:
                    yield entry.name, _is_folder(entry, links=links)
        except OSError:
            return  # no folder, or none that the agent could look into

    def names(pattern: str) -> list[str] | None:
        from swarm.permissions.shell import glob

        return glob.expand(pattern, listing, lambda path: os.path.lexists(os.path.join(cwd, path)))

    return names


def _is_folder(entry: os.DirEntry[str], *, links: bool) -> bool:
    try:
        return entry.is_dir(follow_symlinks=links)
    except OSError:
        return False


if __name__ == "__main__":
    gc.disable()  # all memory goes with the process in a moment
    sys.exit(main())
