"""Hostile calls against doors and the server: other identities, odd arguments, sizes and orders, drawn from a seed.

Every call comes from the agent developer@fx.  Afterwards nothing may have crossed: no message that says it is from
somebody else, nothing taken from another's inbox, no traceback, no report of a bug.
"""

from __future__ import annotations

import json
import random
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tests.mcp_door.test_http import answers, request, token
from tests.mcp_door.test_tasks import EXTENSION

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.puppet import Door, Puppets

#: In the other agent's messages, and in the events of its children.
SECRETS = ("for the reviewer,", "the child of the reviewer")
ATTACKER, VICTIM = "developer@fx", "reviewer@fx"
TOOLS = (
    *("send_message", "inbox_take", "inbox_ack", "report", "list_agents", "notify_parent", "wait_for_event"),
    *("spawn_subtree", "spawn_worker", "approve", "", "send_message ", "../report", "tools/call", "x" * 5000),
)
KEYS = (
    *("to", "body", "subject", "reply_to", "ids", "limit", "wait_seconds", "message", "status", "after", "kinds"),
    *("sender", "agent", "session", "from", "as", "pid", "token", "environ", "__class__", "inbox", "name", "task"),
)
TEXTS = (
    *("", " ", "reviewer", "reviewer@fx", "user", "parent", "all", "queue.x", "events.user", "inbox.reviewer-fx"),
    *(
        "../../etc/passwd",
        "a\0b",
        "\x1b[31m",
        "\u202e",
        "\ud800",
        "$(id)",
        "`id`",
        "'; rm -rf /",
        "-C",
        "--as=reviewer",
    ),
    *("x" * 200_000, "\n" * 500, "e99999999999999999", "NaN", "é" * 300, "role:reviewer", "@fx", "reviewer@"),
)
ODD: tuple[Any, ...] = (None, True, -1, 0, 10**30, 1e308, [], {}, [[]], ["reviewer@fx"], {"$ref": "#"}, [None] * 50)
#: Ids of tasks, which say all there is to know of a wait: behind which event, from when, until when, which kinds.
TASKS: tuple[Any, ...] = (
    *("wait-e0-1-99999999999999-", "wait-e0-1-1-", "wait-e1-1-99999999999999-WorkerComplete", "wait-e99-1-1-"),
    *("wait-e0-1-99999999999999-../events.reviewer-fx", "wait-e0-1-99999999999999-reviewer@fx", "wait--1-1-"),
    *("wait-e0-1-1-x\n", "wait-e٣-1-1-", "reviewer@fx", "", "x" * 100_000, "wait-e0-1-1-" + "A." * 150),
    *(None, 7, [], {}, ["wait-e0-1-1-"], True),
)
TASK_METHODS = ("tasks/get", "tasks/get", "tasks/cancel", "tasks/result", "tasks/list", "tasks/update")
#: What a client of the newest protocol says with each request; the second declares no tasks, the others are odd.
METAS: tuple[Any, ...] = tuple(
    {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "reviewer", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": can,
    }
    for version, can in (
        ("2026-07-28", {"extensions": {EXTENSION: {}}}),
        ("2026-07-28", {}),
        ("2026-07-28", {"extensions": [EXTENSION]}),
        ("2026-07-28", None),
        (7, {"extensions": {EXTENSION: None}}),
    )
)
#: So many seconds the last answers may take.
_PATIENCE = 6.0
#: The smallest client of the socket: says what it is told, and prints the answer.
RAW = """
import os, socket, sys
os.chdir(sys.argv[1])
for line in sys.stdin.buffer.read().split(b"\\0"):
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(20)
    one.connect("socket")
    try:
        one.sendall(line)
        one.shutdown(socket.SHUT_WR)
        said = b""
        while piece := one.recv(65536):
            said += piece
    except OSError as error:
        said = repr(error).encode()
    print(said.decode("utf-8", "replace").replace("\\n", " "))
"""


class Hostile:
    """The attacks of one seed."""

    def __init__(self, puppets: Puppets, seed: int) -> None:
        self.puppets = puppets
        self.draw = random.Random(seed)
        self.calls = self.tasks = 0
        self.said: list[str] = []

    # --- by a door --------------------------------------------------------------------------------------

    def by_door(self, count: int) -> None:
        """Say lines to doors; one that ended is opened anew."""
        while count > 0:
            with self.puppets.door(ATTACKER) as door:
                if self.draw.random() < 0.7:
                    door.hello()
                some = min(count, 60)
                ids = [self._say(door) for _ in range(some)]
                count -= some
                self._drain(door, [one for one in ids if one])

    def _say(self, door: Door) -> int:
        self.calls += 1
        kind = self.draw.random()
        if kind < 0.2:
            return door.begin(*self._task())
        if kind < 0.75:
            name, given = self._tool(), self._arguments()
            if name == "wait_for_event" and isinstance(given, dict):
                given["timeout_seconds"] = 0
            return door.begin("tools/call", {"name": name, "arguments": given})
        line = self.draw.choice(self._lines())
        try:
            door.process.stdin.write(line + b"\n")
            door.process.stdin.flush()
        except BrokenPipeError:
            self.said.append("gone")
        return 0

    def _drain(self, door: Door, ids: list[int]) -> None:
        """Take the answers that come: a cancelled call has none, and a door may have ended over what it was told."""
        try:
            door.answer(door.begin("ping"), timeout=60)
            until = time.monotonic() + _PATIENCE
            for one in ids:
                with suppress(AssertionError):
                    self.said.append(json.dumps(door.answer(one, timeout=max(0.01, until - time.monotonic()))))
        except (AssertionError, BrokenPipeError, ValueError) as error:
            self.said.append(str(error))

    def _task(self) -> tuple[str, dict[str, Any]]:
        """Begin a wait as a task, or ask for one that somebody else may have begun."""
        meta = {"_meta": self.draw.choice(METAS)} if self.draw.random() < 0.8 else {}
        if self.draw.random() < 0.3:
            given = self._arguments() if self.draw.random() < 0.5 else {"timeout_seconds": 3600}
            return "tools/call", {"name": "wait_for_event", "arguments": given, **meta}
        self.tasks += 1
        return self.draw.choice(TASK_METHODS), {"taskId": self.draw.choice(TASKS), **meta}

    def _tool(self) -> str:
        return self.draw.choice(TOOLS)

    def _arguments(self) -> Any:
        if self.draw.random() < 0.05:
            return self.draw.choice(ODD)
        return {key: self._value() for key in self.draw.sample(KEYS, self.draw.randint(0, 5))}

    def _value(self) -> Any:
        return self.draw.choice(TEXTS) if self.draw.random() < 0.7 else self.draw.choice(ODD)

    def _lines(self) -> tuple[bytes, ...]:
        number = self.draw.randint(1, 400)
        return (
            b"",
            b"{",
            b"null",
            b"[]",
            b"\xff\xfe\x00",
            *([b"x" * 5_000_000] if self.draw.random() < 0.05 else []),
            b"[" * 5000,
            b'{"jsonrpc":"2.0","method":"tools/call","params":null}',
            b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
            b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
            b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}',
            f'{{"jsonrpc":"2.0","id":{number},"result":{{}}}}'.encode(),
            f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{number}}}}}'.encode(),
            b'{"jsonrpc":"2.0","id":"x","method":"initialize","params":{"protocolVersion":7}}',
            (
                b'{"jsonrpc":"2.0","id":"y","method":"initialize","params":{"protocolVersion":"1900-01-01",'
                b'"capabilities":{},"clientInfo":{"name":"reviewer","version":"1"}}}'
            ),
            b'{"jsonrpc":"2.0","id":"z","method":"roots/list"}',
            b'{"jsonrpc":"2.0","id":"r","method":"resources/read","params":{"uri":"file:///etc/passwd"}}',
            b'{"hello":"swarm-door","agent":"reviewer"}',
        )

    # --- by the socket and by HTTP -------------------------------------------------------------------------

    def by_socket(self, count: int) -> None:
        """Say other names in the first line, or none."""
        names = ("reviewer", VICTIM, "REVIEWER", "user", "../x", "", "developer@other", "x" * 500)
        lines = []
        for _ in range(count):
            told: Any = self.draw.choice(
                ({"hello": "swarm-door", "agent": self.draw.choice(names)}, {"agent": [VICTIM]}, [], {"agent": None})
            )
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
            call["params"] = {"name": "report", "arguments": {"message": "crossed"}}
            lines.append(json.dumps(told).encode() + b"\n" + json.dumps(call).encode() + b"\n")
        folder = self.puppets.lab.root / ".swarm/server"
        made = self.puppets.run(ATTACKER, [sys.executable, "-c", RAW, str(folder)])
        made.stdin.write(b"\0".join(lines))
        made.stdin.close()
        self.said += made.stdout.read().decode().splitlines()
        self.said.append(made.stderr.read().decode())
        assert made.wait() == 0, self.said[-1]
        made.close()
        self.calls += count

    def by_http(self, port: int, count: int) -> None:
        """Ask for the other agent's endpoint, and with the other agent's token."""
        mine, other = token(self.puppets, "developer"), token(self.puppets, "reviewer")
        tokens = (other, mine[:-1], mine + "0", other[:32] + mine[32:], "", "null", mine.upper(), "é")
        paths = ("/", "//", "/agents/reviewer/mcp", "/agents/reviewer%40fx/mcp", "/agents/%2e%2e/mcp", "/agents//mcp")
        asked = []
        for _ in range(count):
            how: dict[str, Any] = {}
            shown, name = self.draw.choice(tokens), self.draw.choice(("developer", "reviewer", VICTIM, ATTACKER))
            if self.draw.random() < 0.3:
                shown, how["path"] = mine, self.draw.choice(paths)
            elif self.draw.random() < 0.3:
                shown, name = mine, self.draw.choice(("reviewer", VICTIM))
            elif self.draw.random() < 0.3:
                shown, name = mine, "developer"
                how["Host"] = self.draw.choice(("evil.example", "localhost", "127.0.0.1", f"[::1]:{port}"))
            elif shown == mine:
                shown = other
            if shown == "é":
                how["Authorization"] = "Bearer \xe9"
            asked.append(request(port, name, shown, **how))
        for begin in range(0, count, 100):
            found = answers(self.puppets, ATTACKER, port, *asked[begin : begin + 100])
            assert all(400 <= status < 500 for status, _ in found), [one for one in found if not 400 <= one[0] < 500]
            self.said += [body for _, body in found]
        self.calls += count

    # --- what must not have happened -----------------------------------------------------------------------

    def check(self, root: Path, waiting: list[str], child: str) -> None:
        """Look for crossings and tracebacks.

        Args:
            waiting: the messages that wait for the other agent.
            child: the agent that the other one has spawned.
        """
        post = self.puppets.lab.swarm.messages
        boxes = ("user", ATTACKER, VICTIM)
        senders = {one.message.sender for box in boxes for one in post.history(box, 100_000)}
        assert senders <= {ATTACKER, "user", "swarm", child}, senders
        states = {post.get(one)[0].stored.state for one in waiting}
        assert states == {"queued"}, states
        crossed = [one[:2000] for one in self.said if any(word in one for word in SECRETS)]
        assert crossed == []
        bad = [one[:2000] for one in self.said if "Traceback" in one or '"code": "BUG"' in one]
        bad += [path.read_text()[-2000:] for path in root.glob(".swarm/swarm-crash-*")]
        assert bad == []
