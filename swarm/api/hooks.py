"""The namespace ``swarm.hooks``: events and requests from the hooks of agents' programs, and the answers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.api.door import Door
from swarm.kit import files

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm.api.swarm import Swarm
    from swarm.delivery.turns import Turns


class Hooks(Door):
    """Events that agents' programs report through their hooks, and errors of hooks."""

    def collect(self, event: dict[str, Any], agent: str, session: str | None = None) -> None:
        """Record an event from a hook of an agent's program."""
        from swarm.machine import hook_events

        found, one = self._find(agent, session)
        self._refuse_strangers("hooks.collect", found, one)
        with files.os_errors(f"cannot note an event of {agent}"):
            hook_events.note(str(self._world.layout.run_folder(found.name, one.name)), event)

    @staticmethod
    def collect_own(event: dict[str, Any]) -> None:
        """Note an event of the agent in whose pane this process runs."""
        from swarm.machine import hook_events

        hook_events.note(os.environ["SWARM_RUN_DIR"], event)

    def note_trouble(self, hook: str, trouble: str, agent: str, session: str | None = None) -> None:
        """Record the failure of a hook of an agent's program; ``trouble`` returns it."""
        from swarm.machine.run_folder import hooklog

        found, one = self._find(agent, session)
        self._refuse_strangers("hooks.note_trouble", found, one)
        hooklog.note(str(self._world.layout.run_folder(found.name, one.name)), hook, trouble)

    @staticmethod
    def note_own_trouble(hook: str, trouble: str) -> None:
        """Record the failure of a hook of the agent in whose pane this process runs; elsewhere do nothing."""
        from swarm.machine.run_folder import hooklog

        hooklog.note(os.environ.get("SWARM_RUN_DIR", ""), hook, trouble)

    def trouble(self, agent: str, session: str | None = None) -> tuple[int, str] | None:
        """Return the last failure of a hook of an agent's program, with its time (seconds), or None."""
        from swarm.machine.run_folder import hooklog

        found, one = self._find(agent, session)
        return hooklog.last(str(self._world.layout.run_folder(found.name, one.name)))


def words_at_turn_end(swarm: Swarm) -> str:
    """Return what the calling agent is told of its tree as its turn ends; empty when there is nothing new."""
    from swarm.tree import ending

    with files.os_errors("cannot look at the tree"):
        return ending.words(swarm._world)  # noqa: SLF001  # of the library


def turns_of_this_program(read_event: Callable[[], dict[str, Any]]) -> Turns | None:
    """Return the delivery of messages to the program whose hook runs this process; None outside of a hook.

    Args:
        read_event: gives what the program told its hook.
    """
    from swarm.delivery.turns import Turns, program_lives
    from swarm.messages.office.post import Post
    from swarm.programs.processes import idle_since

    post = Post.find()
    me = post.me() if post is not None else None
    if post is None or me is None or me.who is None:
        return None
    lives, folder = program_lives(me.who.program_pid, me.who.program_start), me.who.run_dir
    return Turns(post, folder, read_event(), lives, lambda: idle_since(Path(folder)))
