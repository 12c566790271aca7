"""Session records: a session exists when its record does."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.machine import session_record
from swarm.project import codec

if TYPE_CHECKING:
    from swarm.project.layout import Layout
    from swarm.project.model import Session

_LIMIT = 16 << 20


class Sessions:
    """The records of one repository. Reading never creates anything."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def names(self) -> tuple[str, ...]:
        """Return the names of the folders that hold a record, sorted."""
        try:
            found = sorted(os.listdir(self._layout.sessions))
        except (FileNotFoundError, NotADirectoryError):
            return ()
        return tuple(name for name in found if self._layout.session_file(name).is_file())

    def all(self) -> tuple[Session, ...]:
        """Return every session.

        Raises:
            RecordProblem: a record cannot be read; guessing around it could lose work.
        """
        return tuple(session for name in self.names() if (session := self.get(name)) is not None)

    def scan(self) -> tuple[tuple[Session, ...], tuple[SwarmError, ...]]:
        """Return the sessions with readable records, and the problems of the others, for read-only verbs."""
        sessions: list[Session] = []
        problems: list[SwarmError] = []
        for name in self.names():
            try:
                session = self.get(name)
            except SwarmError as problem:
                problems.append(problem)
            except OSError as error:
                problems.append(files.translate(error, f"cannot read session {name}"))
            else:
                sessions += [session] if session is not None else []
        return tuple(sessions), tuple(problems)

    def get(self, name: str) -> Session | None:
        """Return one session by name, compared without case."""
        stored = name if self._layout.session_file(name).is_file() else self._same_name(name)
        if stored is None:
            return None
        path = self._layout.session_file(stored)
        try:
            return codec.session_from_bytes(files.read_small(path, _LIMIT), str(path))
        except FileNotFoundError:
            return None

    def _same_name(self, name: str) -> str | None:
        wanted = name.casefold()
        return next((stored for stored in self.names() if stored.casefold() == wanted), None)

    def write(self, session: Session) -> None:
        """Put the record in place; this is the moment at which the session exists."""
        folder = self._layout.session_file(session.name).parent
        files.make_private_dir(self._layout.sessions)
        if not folder.is_dir():
            files.make_private_dir(folder)
            files.sync_folder(self._layout.sessions)
        files.write_atomic(self._layout.session_file(session.name), codec.session_to_bytes(session))

    def forget(self, name: str) -> None:
        """Remove the record; other files of the session's folder stay."""
        path = self._layout.session_file(name)
        files.unlink_if_there(path)
        if path.parent.is_dir():
            self._drop_temporaries(name)
            files.sync_folder(path.parent)
            files.remove_empty(path.parent)

    def sweep(self) -> None:
        """Remove leftovers of a kill: temporary files, and folders without a record."""
        try:
            found = os.listdir(self._layout.sessions)
        except (FileNotFoundError, NotADirectoryError):
            return
        for name in found:
            folder = self._layout.sessions / name
            files.sweep_temporaries(folder, session_record.FILE)
            if folder.is_dir():
                files.remove_empty(folder)

    def _drop_temporaries(self, name: str) -> None:
        folder = self._layout.session_file(name).parent
        files.sweep_temporaries(folder)
