"""The table of what agents may do covers the whole library."""

from __future__ import annotations

from inspect import isfunction

import pytest

from swarm import Swarm
from swarm.api import functions
from swarm.messages.queues import Queue
from swarm.roles.rights import VERBS, Right
from tests.support.library import namespaces, verbs_of

pytestmark = pytest.mark.unit


def test_every_public_name_of_the_library_says_what_it_asks_of_an_agent() -> None:
    objects = {"": Swarm, "queue.": Queue}
    documents = {name for name, one in vars(functions).items() if isfunction(one) and name[0] != "_"}
    there = {prefix + name for prefix, kind in objects.items() for name in verbs_of(kind) if name != "__call__"}
    for name, kind in namespaces().items():
        there |= {name if verb == "__call__" else f"{name}.{verb}" for verb in verbs_of(kind)}

    options = {"cleanup.discard", "merge.nested"}  # they ask for more than their verbs do
    assert VERBS.keys() - options == (there | documents) - {"queue.name"}


def test_every_right_is_asked_for_by_a_verb() -> None:
    assert {need for need in VERBS.values() if isinstance(need, Right)} == set(Right)
