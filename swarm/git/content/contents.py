"""Ask one git process for the checkout bytes of many files."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.git.errors import GitTimeout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from swarm.git.running.runner import GitRunner


class Checkout:
    """The bytes that git would write into some files.

    Args:
        env: its work tree is where git finds the attributes.
        oids: path → blob.
    """

    def __init__(self, git: GitRunner, env: Mapping[str, str], oids: Mapping[str, str]) -> None:
        self._git = git
        self._env = env
        self._folder = Path(env["GIT_WORK_TREE"])
        self.oids = oids

    def filtered(self) -> set[str]:
        """Return the files for which git would run a filter program."""
        lines = b"".join(os.fsencode(path) + b"\0" for path in self.oids)
        told = self._git.ask("check-attr", "--stdin", "-z", "filter", stdin=lines, env=self._env, cwd=self._folder)
        words = told.split(b"\0")
        facts = zip(words[::3], words[2::3], strict=False)  # path, attribute, value; path, …
        return {os.fsdecode(path) for path, value in facts if value not in (b"unset", b"unspecified")}

    def raw(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Return the blobs that exist."""
        return self._contents(paths, ())

    def written(self, paths: Sequence[str], until: float | None = None) -> dict[str, bytes]:
        """Return the content that git would write; nothing if git cannot tell in time."""
        return self._contents(paths, ("--filters",), until)

    def _contents(self, paths: Sequence[str], flags: tuple[str, ...], until: float | None = None) -> dict[str, bytes]:
        # git reports the size of a blob, not of its filtered content; so each begins with a marker of ours.
        mark = secrets.token_hex(16)
        lines = "".join(f"{self.oids[path]} {path}\n" for path in paths if "\n" not in path)
        left = None if until is None else max(0.01, until - time.monotonic())
        try:
            code, out, _ = self._git.attempt(
                *("cat-file", "--buffer", f"--batch={mark} %(rest)", *flags),
                stdin=os.fsencode(lines),
                env=self._env,
                cwd=self._folder,
                timeout=left,
            )
        except GitTimeout:
            return {}
        parts = out.split(f"{mark} ".encode("ascii"))[1:] if code == 0 else ()
        found = (part.partition(b"\n") for part in parts)
        return {os.fsdecode(path): data.removesuffix(b"\n") for path, _, data in found}
