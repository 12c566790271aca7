"""Names that can be completed, read from files alone: no repository is opened, and git is not run."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from swarm.agents.tasks import read_sections as read_sections  # noqa: PLC0414  # offered here
from swarm.project.find import main_checkout as main_checkout  # noqa: PLC0414  # offered here
from swarm.project.names import PROGRAMS_IN_WORDS as PROGRAMS_IN_WORDS  # noqa: PLC0414  # offered here

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from swarm.project.layout import Layout
    from swarm.project.model import Session
    from swarm.project.sessions import Sessions


def _layout(root: Path) -> Layout:
    from swarm.kit import files
    from swarm.project.layout import Layout

    files.refuse_foreign(root / ".swarm")
    return Layout(root)


def _store(root: Path) -> Sessions:
    from swarm.project.sessions import Sessions

    return Sessions(_layout(root))


def queue_names(root: Path) -> list[str]:
    """Return the names of the task queues."""
    folder = _layout(root).state / "messages" / "queue"
    return sorted(path.name for path in folder.iterdir() if (path / "reader.lock").exists())


def task_ids(root: Path) -> list[str]:
    """Return the ids of the tasks, the newest first."""
    from swarm.tasks.store import Store

    return list(reversed(Store(_layout(root)).ids()))


def bridge_names(root: Path) -> list[str]:
    """Return the names of the bridges that served the repository."""
    from swarm.messages.directory import bridges

    return [bridge.agent for bridge in bridges(str(_layout(root).state))]


def session_names(root: Path) -> tuple[str, ...]:
    """Return the names of the sessions, without reading their records."""
    return tuple(_store(root).names())


def sessions(root: Path) -> list[Session]:
    """Return the records of the sessions; a broken one hides no other."""
    store = _store(root)
    found = []
    for name in store.names():
        with contextlib.suppress(Exception):
            found.append(store.get(name))
    return [session for session in found if session is not None]


def role_names(root: Path) -> tuple[str, ...]:
    """Return the names of the roles."""
    from swarm.project.swarm_dir import dirs
    from swarm.roles.find import RolePlaces
    from swarm.roles.find import role_names as found

    return tuple(found(RolePlaces.standard(root, dirs.find_dir(cwd=root))))


def event_kinds() -> tuple[str, ...]:
    """Return the kinds of events."""
    from swarm.agents.event_values import KINDS

    return KINDS


def settings() -> tuple[str, ...]:
    """Return the keys of all settings."""
    from swarm.project.config.settings import describe

    return tuple(one.key for one in describe())


def override_keys() -> tuple[str, ...]:
    """Return the keys of a role that a start can change."""
    from swarm.roles import overrides

    return overrides.keys()


def read_overrides(words: Sequence[str]) -> dict[str, str]:
    """Return the overrides of ``KEY=VALUE`` words, as ``start`` takes them.

    Raises:
        OverrideProblem: a word has no ``=``, or no key.
    """
    from swarm.roles import overrides

    return overrides.read_words(words)


def pod_templates(root: Path) -> tuple[str, ...]:
    """Return the names of the pod templates."""
    from swarm.project.swarm_dir import dirs
    from swarm.roles.find import RolePlaces
    from swarm.roles.pods import find

    return find.template_names(RolePlaces.standard(root, dirs.find_dir(cwd=root)))


def read_variables(words: Sequence[str]) -> dict[str, str]:
    """Return the variables of ``NAME=VALUE`` words, as ``pods.launch`` takes them.

    Raises:
        UsageProblem
    """
    from swarm.roles.pods import find

    return find.read_words(words)
