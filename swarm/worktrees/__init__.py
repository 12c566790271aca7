"""Worktrees: making, examining, saving and removing them; and the documents' functions, which are ``api.functions``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swarm.api.functions import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Find one of the documents' functions when it is first used: this room is below the API."""
    from importlib import import_module

    functions = import_module("swarm.api.functions")
    if name in (*functions.__all__, "__all__"):
        return getattr(functions, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
