"""The reason with which swarm locks the worktree of a running agent."""

from __future__ import annotations


def running_reason(agent: str, session: str) -> str:
    """Return the lock reason of the worktree of an agent that runs."""
    return f"swarm: agent {agent} of {session} runs here"


def is_running_reason(reason: str | None) -> bool:
    """Whether a worktree's lock is swarm's own for a running agent."""
    return reason is not None and reason.startswith("swarm: agent ")
