"""What the library consists of: the verbs of ``Swarm`` and its namespaces."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import swarm
from swarm import Swarm
from swarm.api.design import Design

if TYPE_CHECKING:
    from collections.abc import Iterator


def namespaces() -> dict[str, type]:
    """Return the namespaces of a ``Swarm``: the properties that give a public class of ``swarm.api``."""
    found = {}
    for name, member in inspect.getmembers_static(Swarm):
        if name[0] != "_" and isinstance(member, property) and member.fget is not None:
            kind = getattr(swarm, str(inspect.signature(member.fget).return_annotation), None)
            if inspect.isclass(kind) and kind.__module__.startswith("swarm.api."):
                found[name] = kind
    return found


def verbs_of(kind: type) -> Iterator[str]:
    """Give the names of the public members of a class; ``__call__`` where the namespace itself is a verb."""
    yield from (name for name in dir(kind) if name[0] != "_" or (name == "__call__" and kind is not Swarm))


def documents(one: Swarm) -> Design:
    """Return the documents' functions for an open repository, with its environment."""
    return Design(one._opened)
