"""Refuse what the deny rules of an agent's role forbid: ``python -I -S guard.py RUN_DIR``, a PreToolUse event on stdin.

The program has the same rules in its settings.  This is asked in every mode, also where the program would not ask,
and it sees through commands that hide another one.  It runs at every tool call: nothing is imported that is not
needed for this very tool, and the rules come from a small file that was made at the start (``drivers/agents/claude``).

Whatever goes wrong where there is a rule to hold is a refusal.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from swarm.domain.permission_rules import Decision

RULES = "guard.json"
_LIMIT = 4 << 20
_SECONDS = 20.0
#: The program takes this for a refusal, whatever was printed.
_REFUSED = 2


def main() -> int:
    """Run and return the exit status."""
    try:
        package = type(sys)("swarm")
        package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
        sys.modules["swarm"] = package
        from swarm.pane import events

        event = events.read()
        try:
            events.note(sys.argv[1], event)
        except OSError:
            pass  # a full disk changes nothing about the rules
        answer = _judge(sys.argv[1], event)
    except BaseException as error:  # noqa: BLE001  # a rule that cannot be held is no reason to go on
        os.write(2, f"swarm cannot hold the rules of this agent: {type(error).__name__}: {error}\n".encode())
        return _REFUSED
    if answer:
        os.write(1, answer)
    return 0


def _judge(run_dir: str, event: dict[str, Any]) -> bytes:
    """Return what the program is answered; empty when no rule has anything to say."""
    from swarm.pane import quickjson

    with open(os.path.join(run_dir, RULES), "rb") as file:
        rules: Any = quickjson.loads(file.read(_LIMIT))
    tool = event["tool_name"]
    if tool not in rules["tools"] and not (tool.startswith("mcp__") and "mcp__" in rules["tools"]):
        return b""
    decision = _decide(rules, tool, event)
    if decision is None:
        return b""
    asks = decision.behavior == "ask" and rules["unclear"] == "ask"
    said = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "ask" if asks else "deny",
        "permissionDecisionReason": f"swarm: {decision.reason}",
    }
    return b'{"hookSpecificOutput": ' + quickjson.line(said).rstrip() + b"}\n"


def _decide(rules: dict[str, Any], tool: str, event: dict[str, Any]) -> Decision | None:
    """Return what the rules say, within the time."""
    import _signal as signal  # type: ignore[import-not-found]  # the signal module is this with words for its numbers, which take long to make

    from swarm.domain import permission_denials
    from swarm.domain.pathrules import Place
    from swarm.domain.permission_rules import Rule

    def late(*_: object) -> None:
        raise TimeoutError(f"it took more than {_SECONDS:g} s to judge this call")

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    home = os.environ.get("HOME", "")
    place = Place(event.get("cwd") or rules["root"], rules["root"], home, _real(), _names)
    deny = [Rule(*rule) for rule in rules["deny"]]
    return permission_denials.forbid(deny, tool, event.get("tool_input"), place)


def _real() -> Callable[[str], str]:
    """Return what follows links, each path once: many rules ask about the same one."""
    known: dict[str, str] = {}

    def real(path: str) -> str:
        if path not in known:
            known[path] = os.path.realpath(path)
        return known[path]

    return real


def _names(pattern: str) -> list[str]:
    """Return the files that a shell would put in the place of a pattern."""
    import glob

    return glob.glob(pattern)


if __name__ == "__main__":
    sys.exit(main())
