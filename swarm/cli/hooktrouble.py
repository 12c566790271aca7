"""Record a hook's failure instead of failing the program that runs it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from swarm import Hooks, SwarmError
from swarm.api.words import split_agent

if TYPE_CHECKING:
    from swarm.cli.verb import Run


def hook_failed(run: Run, agent: str, hook: str, error: Exception) -> tuple[str, ...]:
    """Log a hook's failure in its agent's run folder, if the agent is known; return the lines to print.

    Args:
        agent: whom the command named; empty: it is the one whose pane this is.
    """
    text = str(error) if isinstance(error, SwarmError) else f"{type(error).__name__}: {error}"
    if not agent:
        Hooks.note_own_trouble(hook, text)
    else:
        with suppress(SwarmError):
            run.open().hooks.note_trouble(hook, text, *split_agent(agent))
    return (f"{hook}: {text}",)
