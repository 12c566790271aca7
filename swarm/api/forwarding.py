"""Commands of an agent in a box: handed to its supervisor outside, where a short list of them is done.

What is done outside reads and writes files as the user.  So nothing is done that names a file, and nothing about other
agents but to write to them.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from swarm.machine import broker, hook
from swarm.machine.identity import whoami
from swarm.machine.run_folder import program_facts
from swarm.sandbox.errors import NotInBox
from swarm.sandbox.values import HOME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from swarm.kit.errors import SwarmError
    from swarm.machine.identity import Identity

_ALWAYS = frozenset({"--json", "--quiet", "--no-color"})
#: Options without a value; behind each other one the next word is its value, also one that looks like an option.
FLAGS = _ALWAYS | {"--expects-reply", "--ack", "--all", "--now", "--from-head", "--dry-run"}
_MESSAGE = frozenset({"--subject", "--priority"})
#: Command -> its options that may be used, and whether it may have further words.
COMMANDS: Mapping[str, tuple[frozenset[str], bool]] = {
    "send": (_MESSAGE | {"--type", "--reply-to", "--expects-reply", "--deadline", "--ttl", "--id"}, True),
    "reply": (_MESSAGE, True),
    "inbox": (frozenset(), False),
    **dict.fromkeys(("inbox show", "inbox history", "outbox"), (frozenset({"--max"}), False)),
    "inbox dead": (frozenset(), False),
    "inbox take": (frozenset({"--wait", "--max", "--lease", "--ack"}), False),
    "inbox extend": (frozenset({"--lease"}), False),
    "inbox ack": (frozenset(), True),
    "inbox nack": (frozenset({"--delay", "--reason"}), True),
    "queue add": (frozenset({"--priority", "--after", "--id", "--ttl"}), True),
    "queue take": (frozenset({"--wait", "--lease", "--max"}), True),
    "queue done": (frozenset({"--result"}), True),
    "queue back": (frozenset({"--delay", "--reason"}), True),
    "queue fail": (frozenset({"--reason"}), True),
    "queue extend": (frozenset({"--lease"}), True),
    "queue list": (frozenset({"--all"}), True),
    "queue names": (frozenset(), False),
    "status": (frozenset(), False),
    "why": (frozenset(), False),
    "notify-parent": (frozenset(), True),
    "spawn subtree": (frozenset({"--role", "--from-head", "--dry-run"}), True),
    "spawn worker": (frozenset({"--role", "--dry-run"}), True),
    "tree": (frozenset(), False),
    "wait-event": (frozenset({"--timeout", "--after", "--kind", "--session", "--agent"}), False),
    "permission-request": (frozenset({"--wait"}), False),
    "hook deliver": (frozenset({"--now"}), False),
    "hook collect": (frozenset(), False),
}
_LOCAL = frozenset({"--help", "-h", "--version", "help", "version"})
#: These read an event, or a text.
_READS = frozenset({"permission-request", "hook", "-"})
_UNREACHABLE = 75
#: Bytes of one input or output.
LONGEST = broker.LIMIT // 4
HOOK = hook.__file__
#: The words of the socket, for the process that serves it.
receive, send, as_text, as_bytes = broker.read, broker.write, broker.as_text, broker.as_bytes


def forwarded(argv: Sequence[str]) -> int | None:
    """Hand a command on, if this is in a box, and return its exit status; None: it is for this process to do."""
    if not broker.path() or not argv or _LOCAL.intersection(argv):
        return None
    words = _without_place(argv)
    if words[0] == "mcp":
        return _door(words[1:])
    given = sys.stdin.buffer.read(LONGEST) if _READS.intersection(words) else b""
    request = {"argv": broker.as_text(os.fsencode("\0".join(words))), "stdin": broker.as_text(given)}
    try:
        answer = broker.ask({"kind": "command", **request})
        for stream, name in ((sys.stdout, "out"), (sys.stderr, "err")):
            stream.buffer.write(broker.as_bytes(answer.get(name, "")))
            stream.flush()
        return int(answer.get("code", 1))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"error: cannot reach swarm from this box: {error}\nhint: try again in a moment\n")
        return _UNREACHABLE


def _door(words: Sequence[str]) -> int:
    """Be the MCP door of the agent, as `swarm mcp [--agent NAME]` is outside of a box."""
    from swarm.machine.mcp import boxed

    agent = "".join(words[1:]) if words[:1] == ["--agent"] else "".join(words).removeprefix("--agent=")
    return boxed.main(broker.path(), agent)


def _without_place(argv: Sequence[str]) -> list[str]:
    """Return the words without ``-C DIR``: in a box there is one repository."""
    words = list(argv)
    while len(words) > 1 and words[0] == "-C":
        del words[:2]
    return words


def served(peer: int) -> Identity:
    """Return the agent that a served process belongs to.

    Raises:
        NotInBox: it is another one than this process belongs to.
    """
    me, them = whoami({}), whoami({}, pid=peer)
    if me is None or them is None or me.run_dir != them.run_dir:
        raise NotInBox(f"cannot serve process {peer}: it is not of this agent")
    return me


def words_of(me: Identity) -> dict[str, str]:
    """Return swarm's words to an agent, which the hooks of its program read."""
    return {
        "SWARM_RUN_DIR": me.run_dir,
        "SWARM_SESSION_DIR": me.run_dir,
        "SWARM_SESSION": me.session,
        "SWARM_ACTOR": me.agent,
    }


def command_of(argv: Sequence[str], me: Identity) -> list[str]:
    """Return the command as it is run outside.

    Raises:
        NotInBox: it is none of those that agents in boxes may have run.
    """
    name = next((one for one in (" ".join(argv[:2]), *argv[:1]) if one in COMMANDS), "")
    if not name:
        known = ", ".join(sorted({one.partition(" ")[0] for one in COMMANDS} - {"hook", "permission-request"}))
        raise NotInBox(f"cannot run swarm {argv[0]} from a box", hint=f"from here there are: {known}")
    options, more = COMMANDS[name]
    further: list[str] = []
    words = iter(argv[len(name.split()) :])
    for word in words:
        option = word.partition("=")[0]
        if word == "--":
            further += words
        elif not word.startswith("-") or word == "-":
            further.append(word)
        elif option not in options | _ALWAYS:
            raise NotInBox(f"cannot use {option} of swarm {name} from a box")
        elif option not in FLAGS and "=" not in word:
            next(words, "")  # its value, whatever it looks like
    if name in ("status", "why"):
        return [name, *(one for one in argv[1:] if one in _ALWAYS), me.session if name == "status" else me.address]
    if further and not more:
        raise NotInBox(f"cannot run swarm {name} for others from a box", hint=f"run `swarm {name}` without a name")
    return list(argv)


def event_of(request: Mapping[str, Any], me: Identity) -> tuple[bytes, list[str], dict[str, str]]:
    """Return an event of the program's, the words for its hook outside, and variables.

    Raises:
        ValueError, TypeError: it is none.
    """
    import json
    import re

    event = json.loads(broker.as_bytes(request["event"]))
    path = event.get("transcript_path")
    if isinstance(path, str):  # it is said as the box has it
        home = os.path.join(me.session_folder, "box", me.agent, "home")
        inside = path.startswith(f"{HOME}/") and ".." not in path.split("/")
        event["transcript_path"] = home + path.removeprefix(HOME) if inside else ""
    wait = str(request.get("wait", ""))
    if not wait:
        return json.dumps(event).encode(), [], {}
    dialog, _, value = wait.partition("\0")
    name = dialog.partition("=")[0]
    if not re.fullmatch(r"[A-Z][A-Z_]*_ENTRYPOINT=[a-z-]*", dialog) or not re.fullmatch(r"[A-Za-z_-]*", value):
        raise ValueError("a strange variable")
    return json.dumps(event).encode(), [dialog], {name: value} if value else {}


def note_state(request: Mapping[str, Any], me: Identity) -> None:
    """Write down what an agent's program says of its state."""
    state = request.get("state")
    if state in ("working", "idle", "waiting", "done"):
        words = (str(request.get(key, ""))[:1000] for key in ("detail", "prompt"))
        program_facts.write_state(me.run_dir, state, *words)


def wait_for_door(me: Identity) -> int:
    """Wait until an agent's MCP door is open, in the place of its program's hook."""
    from swarm.machine.mcp import wait

    return wait.main([me.run_dir])


def told(problem: SwarmError) -> bytes:
    """Return an error as the command line tells it."""
    hint = f"hint: {problem.hint}\n" if problem.hint else ""
    return f"error: {problem.message}\n{hint}code: {problem.code}\n".encode("utf-8", "replace")
