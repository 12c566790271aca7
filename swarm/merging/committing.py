"""Make commits, many by one git."""

from __future__ import annotations

import os
import re
import threading
import time
from typing import TYPE_CHECKING

from swarm.git.errors import GitFailed
from swarm.merging.errors import IdentityMissing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from swarm.git.running.runner import GitRunner
    from swarm.git.running.started import Started

_PERSON = re.compile(r"(.*) <(.*)> (\d+ [+-]\d+)", re.DOTALL)
_UTF8 = b"utf-8"


class Committer:
    """Makes commits in the user's name, and some that are thrown away.

    Args:
        env: where git puts the objects.
        user: what the environment says of the user.
        folder: for scratch files.
    """

    def __init__(self, git: GitRunner, env: Mapping[str, str], user: Mapping[str, str], folder: Path) -> None:
        self._git = git
        self._env = env
        self._user = user
        self._folder = folder
        self._asked: dict[str, bytes] = {}
        self._writer: Started | None = None
        self._guard = threading.Lock()  # worktrees are looked at side by side
        self._at = f"{int(time.time())} +0000".encode("ascii")

    def check_identity(self) -> None:
        """Make sure that git knows whose commits these will be.

        Raises:
            IdentityMissing
        """
        self._person("AUTHOR")
        self._person("COMMITTER")

    def _person(self, what: str) -> bytes:
        """Return the user as git writes them into a commit."""
        if what not in self._asked:
            code, out, err = self._git.attempt("var", f"GIT_{what}_IDENT", env={**self._env, **self._user})
            if code != 0:
                raise IdentityMissing(
                    "cannot make commits: git does not know your name and address",
                    details=err.decode("utf-8", "replace").strip() or None,
                )
            self._asked[what] = out.strip()
        return self._asked[what]

    def commit(
        self, tree: str, parents: Sequence[str], message: bytes, author: bytes = b"", encoding: bytes = _UTF8
    ) -> str:
        """Make a commit of the user's.

        Args:
            author: in git's writing, with the date; else the user.
        """
        return self._write(
            tree, parents, message, author or self._person("AUTHOR"), self._person("COMMITTER"), encoding
        )

    def throw_away(self, tree: str, parents: Sequence[str]) -> str:
        """Make a throw-away commit, which no branch will hold."""
        nobody = b"swarm <swarm@localhost> " + self._at
        return self._write(tree, parents, b"throw-away\n", nobody, nobody, _UTF8)

    def _write(
        self, tree: str, parents: Sequence[str], message: bytes, author: bytes, committer: bytes, encoding: bytes
    ) -> str:
        lines = [f"tree {tree}".encode("ascii"), *(f"parent {parent}".encode("ascii") for parent in parents)]
        lines += [b"author " + author, b"committer " + committer]
        lines += [b"encoding " + encoding] if encoding.lower() != _UTF8 else []
        with self._guard:
            if self._writer is None:
                words = ("hash-object", "-t", "commit", "-w", "--stdin-paths")
                self._writer = self._git.listening(*words, env=self._env, what="cannot make the commit")
            file = self._folder / "commit"
            file.write_bytes(b"\n".join([*lines, b"", message]))
            said = self._writer.say(os.fsencode(file) + b"\n", lambda said: said.endswith(b"\n"))
        return said.decode("ascii").strip()

    def signed(
        self, tree: str, parents: Sequence[str], message: bytes, author: bytes = b"", encoding: bytes = _UTF8
    ) -> str:
        """Make a commit of the user's, and have git sign it."""
        words = [word for parent in parents for word in ("-p", parent)]
        out = self._git.run(
            *("-c", f"i18n.commitEncoding={os.fsdecode(encoding)}", "commit-tree", tree, *words, "-S", "-F", "-"),
            stdin=message,
            env={**self._env, **self._user, **_as_variables(author)},
            what="cannot make the commit",
        )
        return out.decode("ascii").strip()

    def end(self) -> None:
        """End the git that writes."""
        if self._writer is not None:
            self._writer.end()


def _as_variables(author: bytes) -> dict[str, str]:
    if not author:
        return {}
    found = _PERSON.fullmatch(os.fsdecode(author))
    if found is None:
        raise GitFailed("cannot repeat a commit: git cannot read its author")
    name, mail, when = found.groups()
    return {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": mail, "GIT_AUTHOR_DATE": f"@{when}"}
