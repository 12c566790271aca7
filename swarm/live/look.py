"""Look at parts of a project: what `status` looks at whole, a few agents at a time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from swarm.approvals import decide
from swarm.kit.errors import SwarmError
from swarm.live.folders import Watched
from swarm.machine import session_record
from swarm.machine.hook_events import EVENTS
from swarm.machine.run_folder import runfiles
from swarm.messages.inboxes import inbox_folder
from swarm.programs.reading import notes
from swarm.programs.status import State
from swarm.sessions import listing
from swarm.sessions import status as agents

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from swarm.approvals.values import Approval
    from swarm.project.model import Agent, Session
    from swarm.project.world import World
    from swarm.sessions.values import AgentStatus, WorktreeInfo

    Pair = tuple[str, str]

#: What may have changed: the first word of a folder's mark.
SESSIONS, STATE, TREE, INBOX, APPROVALS, OPERATIONS, PROGRAM = (
    *("sessions", "state", "tree", "inbox", "approvals", "operations", "program"),
)
#: Notes in a run folder that no state follows from; swarm writes some of them after each look.
_NO_NEWS = frozenset(
    {runfiles.CALLED, runfiles.SCREEN, runfiles.TOLD, runfiles.NUDGE, runfiles.HEARTBEAT, runfiles.GIVEN}
)
_LANES = ("interrupt", "high", "normal", "low", "reader", "drop")
_GIT = frozenset({"", "HEAD", "index"})
#: How often the folders of what people wait for are looked at without inotify, and those of all else, in seconds.
_SOON, _LATER = 0.1, 1.0
#: States that are judged by the screen or the terminal: nothing tells when they change.
_UNTOLD = frozenset({"screen", "terminal"})


def is_news(mark: tuple[str, ...], name: str) -> bool:
    """Whether a change of an entry in a marked folder can matter."""
    what = mark[0]
    if name.startswith(".") or name in _NO_NEWS:
        return False
    if what == TREE:
        return name in _GIT
    if what == SESSIONS and len(mark) > 1:
        return name in ("", session_record.FILE)
    return what not in (APPROVALS, OPERATIONS) or name == "" or name.endswith(".json")


def is_untold(one: AgentStatus) -> bool:
    """Whether nobody tells when an agent's state changes, so that one has to look."""
    if not one.status.runs:
        return False
    decided = next((item.source for item in one.status.evidence if item.decides), "")
    return decided in _UNTOLD or one.status.state is State.UNKNOWN


class Look:
    """Looks at one repository. For one thread."""

    def __init__(self, world: World) -> None:
        self._world = world

    def sessions(self) -> tuple[dict[str, Session], list[str]]:
        """Return the records that can be read, and the problems of the others."""
        found, problems = self._world.sessions.scan()
        return {one.name: one for one in found}, [problem.message for problem in problems]

    def states(self, sessions: Mapping[str, Session], pairs: Collection[Pair]) -> dict[Pair, AgentStatus]:
        """Return how agents stand, without their worktrees and messages."""
        found = agents.status(self._world, _parts(sessions, pairs), look=False, unread=False, trees=False)
        return {(group.session.name, one.agent.name): one for group in found for one in group.agents}

    def trees(self, sessions: Mapping[str, Session], pairs: Collection[Pair], *, ask: bool) -> dict[Pair, WorktreeInfo]:
        """Return what is checked out in worktrees; with *ask* git is asked for changes and commits, too."""
        found = listing.recorded(self._world, _parts(sessions, pairs), look=ask)
        return {(one.session, one.agent): one for one in found}

    def unread(self, pairs: Collection[Pair]) -> dict[Pair, int | None]:
        """Return how many messages wait for each agent."""
        return agents.count_unread(self._world, list(pairs))

    def approvals(self) -> dict[str, Approval]:
        """Return the open requests, oldest first, by their ids."""
        found = decide.look_in(self._world.layout.state, problems=[])
        return {one.question.id: one for one in found}

    def answer(self, question: str) -> dict[str, Any]:
        """Return what came of a request that waits no more."""
        from swarm.approvals.store import Approvals
        from swarm.approvals.values import Approval as Ended

        try:
            asked, answer = Approvals(self._world.layout.approvals).get(question)
        except (SwarmError, OSError):  # its agent is gone, and its files with it
            return {"state": "gone", "by": "", "reason": ""}
        ended = Ended(asked, answer, waits=False)
        return {
            "state": str(ended.standing),
            "by": answer.by if answer else "",
            "reason": answer.reason if answer else "",
        }

    def operations(self) -> dict[str, dict[str, Any]]:
        """Return the unfinished operations, oldest first."""
        found = {}
        for operation in self._world.journal.unfinished():
            try:
                record = self._world.journal.read(operation)
            except (SwarmError, OSError):  # it has ended meanwhile; or `swarm doctor` says what is wrong with it
                continue
            found[operation] = {"verb": str(record.get("verb", "")), "session": str(record.get("session", ""))}
        return found

    def screen(self, pane: str, lines: int) -> list[str]:
        """Return the last lines of a pane."""
        return self._world.terminal.capture(pane, lines)

    # --- what to watch ------------------------------------------------------------------------------

    def folders(self, sessions: Mapping[str, Session], *, git: bool) -> dict[str, Watched]:
        """Return the folders in which something happens before any of this changes."""
        layout = self._world.layout
        found = {
            os.fspath(layout.sessions): Watched((SESSIONS,), _SOON),
            os.fspath(layout.approvals): Watched((APPROVALS,), _SOON),
            os.fspath(layout.journal): Watched((OPERATIONS,), _SOON),
        }
        for name in _names(layout.sessions):  # also where no record is yet
            found[os.fspath(layout.session_file(name).parent)] = Watched((SESSIONS, name), _SOON)
        for session in sessions.values():
            for agent in session.agents:
                found |= self._folders_of(session, agent, git=git)
        return found

    def config_of(self, pair: Pair) -> str:
        """Return the folder in which an agent's program keeps its own notes; empty without one."""
        return notes.read(self._world.layout.run_folder(*pair)).get("config", "")

    def _folders_of(self, session: Session, agent: Agent, *, git: bool) -> dict[str, Watched]:
        one = (session.name, agent.name)
        inbox = os.fspath(inbox_folder(self._world, *one))
        found = {os.fspath(self._world.layout.run_folder(*one)): Watched((STATE, *one), _SOON, (EVENTS,))}
        found |= {f"{inbox}/{lane}": Watched((INBOX, *one), _LATER, ("active.log",)) for lane in _LANES}
        if config := self.config_of(one):  # its program's own word about its state
            found[os.path.join(config, "sessions")] = Watched((PROGRAM, config), _SOON, None)
        if git and not agent.shared:
            admin = self._world.git.own_folder(self._world.layout.root / agent.worktree)
            if admin is not None:
                found[os.fspath(admin)] = Watched((TREE, *one), _LATER)
                found[os.fspath(admin / "logs")] = Watched((TREE, *one), _LATER, ("HEAD",))
        return found


def _names(folder: Path) -> list[str]:
    """Return what is in a folder; nothing of one that is not there."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _parts(sessions: Mapping[str, Session], pairs: Collection[Pair]) -> Sequence[Session]:
    """Return sessions with those of their agents that are asked for."""
    wanted = set(pairs)
    found = []
    for session in sessions.values():
        group = tuple(one for one in session.agents if (session.name, one.name) in wanted)
        if group:
            found.append(session._replace(agents=group))
    return found


def subject(pair: Pair) -> str:
    """Return an agent's address."""
    return f"{pair[1]}@{pair[0]}"


def pairs_of(sessions: Iterable[Session]) -> Iterator[Pair]:
    """Yield every agent of some sessions."""
    return ((one.name, agent.name) for one in sessions for agent in one.agents)
