"""Ask git ahead of time for the facts that a new worktree needs.

The questions are begun before anything is refused and their answers are needed last, so nobody waits for
them.  No threads: what they would wait for is each other.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from swarm.git.shortcuts import copying, objects, ordinary
from swarm.kit.errors import SwarmError

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.git.running.runner import GitRunner
    from swarm.git.running.started import Started
    from swarm.git.shortcuts.copying import Source


class Look:
    """The questions that were asked, and their answers.

    Args:
        source: the main checkout's index; None where it is of no plain kind.
        stamp: by what somebody can tell whether it is still worth anything.

    Attributes:
        ahead: what the first files hold, for ``copying.copy``.
    """

    def __init__(self, git: GitRunner, common: Path, source: Source | None, stamp: object) -> None:
        self.source = source
        self.stamp = stamp
        self._git = git
        self._objects = common / "objects"
        self._registers: bool | None = None if ordinary.has_usual_files(common) else False
        self._converted: frozenset[bytes] | None = None
        self._attributes_known = False
        self._settings: Started | None = None
        self._said: bytes | None = None
        self._attributes: Started | None = None
        self._presence: objects.Presence | None = None
        self.ahead: tuple[bytes | None, ...] = ()

    def begin(self) -> None:
        """Ask."""
        if self._registers is None:
            self._settings = ordinary.ask_settings(self._git)
        if self._settings is not None and self.source is not None:
            self._attributes = ordinary.ask_attributes(self._git, (entry.path for entry in self.source.entries))

    def registers(self) -> bool:
        """Whether a worktree here is registered by the well-known files and nothing else."""
        if self._registers is None:
            self._registers = self._settings is not None and ordinary.is_plain(self._listed())
        return self._registers

    def says(self, setting: str) -> tuple[str, ...] | None:
        """Return each value of a setting, the one that counts last; None where that was not asked."""
        listed = self._listed()
        if listed is None:
            return None
        pairs = (item.partition("\n") for item in os.fsdecode(listed).split("\0"))
        return tuple(value for key, _, value in pairs if key == setting)

    def _listed(self) -> bytes | None:
        if self._settings is not None and self._said is None:
            self._said = _answer(self._settings)
        return self._said

    def converted(self) -> frozenset[bytes] | None:
        """Return the files that have other bytes in a worktree than as blobs; None: all files are left to git."""
        if not self._attributes_known:
            asked = self._attributes if self.registers() else None
            self._converted = ordinary.converted(_answer(asked)) if asked is not None else None
            self._attributes_known = True
        return self._converted

    def read_ahead(self, main: Path) -> None:
        """Look for the objects, and read the first files of the main checkout, if they are going to be copied."""
        if self.source is not None and not self.ahead and self.converted() is not None:
            self._look_for_objects()
            self.ahead = copying.first_contents(self.source, main)

    def missing(self) -> tuple[str, ...]:
        """Return the objects that a damaged repository does not have any more."""
        found = self._look_for_objects()
        return found.missing() if found is not None else ()

    def _look_for_objects(self) -> objects.Presence | None:
        if self._presence is None and self.source is not None and self.registers():
            names = [*self.source.trees, *(entry.blob for entry in self.source.entries)]
            self._presence = objects.Presence(self._git, self._objects, names)
        return self._presence

    def end(self) -> None:
        """End processes whose results are no longer needed."""
        presence = self._presence.asked if self._presence is not None else None
        for asked in (self._settings, self._attributes, presence):
            if asked is not None:
                asked.end()


def _answer(asked: Started) -> bytes | None:
    try:
        return asked.result()
    except SwarmError:
        return None
