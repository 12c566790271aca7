"""A lab in which the real agent programs run against a scripted model API."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.testing.api import Api
from swarm.testing.panes import PaneLab
from swarm.testing.terminal import wait_for
from tests.support.procs import PROJECT

if TYPE_CHECKING:
    from swarm import Swarm
    from swarm.sessions.values import AgentStatus

#: The machine may be busy, and the programs are big.
DEADLINE = 150.0


def cache() -> Path:
    """Return where `scripts/agents` puts the programs."""
    return PROJECT / (os.environ.get("SWARM_AGENT_CACHE") or ".cache/agents")


@functools.cache
def lacking() -> str:
    """Say why the programs cannot run here; nothing if they can."""
    done = subprocess.run([PROJECT / "scripts/agents", "--check"], capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


class AgentLab(PaneLab):
    """A lab with a fresh home for the programs, and an API of its own.

    Attributes:
        api: the scripted API.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.api = Api()
        self.home = Path(self.env["HOME"])
        self.env |= {
            "PATH": f"{cache() / 'bin'}{os.pathsep}{self.env['PATH']}",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
        }

    def role(self, name: str, text: str, **fields: Any) -> None:
        """Write a role file."""
        body = json.dumps({"name": name, "description": "a role of the test", "instructions": text, **fields})
        self.write({f"roles/{name}.yaml": body})

    def at_home(self, name: str, content: str | dict[str, Any]) -> None:
        """Write a file into the user's home."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))

    def begin(self, program: str, roles: str, task: str, session: str = "fx") -> Swarm:
        """Start agents of a program."""
        swarm = self.swarm
        swarm.start(session, roles, task=task, program=program)
        return swarm

    def until(self, agent: str, *states: str, session: str | None = None, deadline: float = DEADLINE) -> AgentStatus:
        """Wait until an agent is in one of these states."""
        return super().until(agent, *states, session=session, deadline=deadline)

    def shows(self, agent: str, words: str, session: str | None = None) -> str:
        """Wait until an agent's pane shows words; return all that it shows."""
        shown: list[str] = []

        def there() -> bool:
            shown[:] = ["\n".join(self.swarm.peek(agent, session, lines=200))]
            return words in shown[0]

        try:
            wait_for(there, f"{words!r} of {agent}", DEADLINE)
        except AssertionError as error:
            lines = "\n".join(line.rstrip() for line in shown[0].splitlines() if line.strip())
            raise AssertionError(f"{error}; it shows:\n{lines}\nasked: {self.api.requests(main=False)}") from None
        return shown[0]

    def say(self, agent: str, line: str, session: str | None = None) -> None:
        """Paste a line, and send it once the program shows it; one that does not listen yet drops it."""
        pane = self.one(agent, session).pane

        def pasted() -> bool:
            self.tmux("set-buffer", "-b", "said", "--", line)
            self.tmux("paste-buffer", "-d", "-p", "-r", "-b", "said", "-t", pane)
            end = time.monotonic() + 10
            while time.monotonic() < end:
                if line in "\n".join(self.swarm.peek(agent, session, lines=200)):
                    return True
                time.sleep(0.1)
            return False

        wait_for(pasted, f"{line!r} on the screen of {agent}", DEADLINE)
        asked = len(self.api.requests())

        def sent() -> bool:
            self.tmux("send-keys", "-t", pane, "Enter")
            end = time.monotonic() + 5
            while time.monotonic() < end and len(self.api.requests()) == asked:
                time.sleep(0.05)
            return len(self.api.requests()) > asked

        wait_for(sent, f"{line!r} sent by {agent}", DEADLINE)

    def keys(self, agent: str, *keys: str, session: str | None = None) -> None:
        """Press keys in an agent's pane, as tmux names them."""
        self.tmux("send-keys", "-t", self.one(agent, session).pane, *keys)

    def close(self) -> None:
        """End the panes, then the API."""
        try:
            super().close()
        finally:
            self.api.close()


class ClaudeLab(AgentLab):
    """The same with what a user of Claude Code has: an API key in the environment, and nothing else."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.env |= {
            "ANTHROPIC_BASE_URL": self.api.url,
            "ANTHROPIC_API_KEY": self.api.token,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "2",
        }

    def written(self, words: str) -> None:
        """Wait until a conversation on disk holds some words: the program writes them a moment after it shows them."""

        def there() -> bool:
            return any(words in path.read_text() for path in (self.home / ".claude/projects").glob("*/*.jsonl"))

        wait_for(there, f"a conversation with {words!r}", DEADLINE)

    def config(self) -> dict[str, Any]:
        """Return the user's configuration file."""
        found: dict[str, Any] = json.loads((self.home / ".claude.json").read_text())
        return found
