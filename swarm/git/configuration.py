"""The configuration of a repository and of its worktrees."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.git import gitdir
from swarm.git.base import Base
from swarm.git.errors import GitFailed
from swarm.kit.errors import ConfigProblem, SwarmError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from swarm.project.model import AdminDir


class Configuration(Base):
    """Settings of git: of branches, of the repository, of one worktree."""

    def hook(self, name: str) -> str:
        """Return the repository's hook of a name, seen from a worktree; empty without one.

        One whose path is not absolute belongs to the files of a worktree, and may not be there.
        """
        look = self._look
        known = look.says("core.hookspath") if look is not None else None
        if known is None or len(known) > 1:  # the last one is that of our own gits
            asked = ("config", "-z", "--type=path", "--get-all", "core.hooksPath")
            known = tuple(os.fsdecode(self.runner.attempt(*asked)[1]).split("\0")[:-1])
        folder = known[-2] if len(known) > 1 else str(self.common / "hooks")
        path = os.path.join(folder, name)
        return path if folder and (not os.path.isabs(path) or os.access(path, os.X_OK)) else ""

    def branch_config(self, branch: str) -> tuple[tuple[str, str], ...]:
        """Return the ``branch.<name>.*`` settings of the repository's own configuration."""
        if not gitdir.may_configure(self.common, branch):
            return ()
        code, out, _ = self.runner.attempt(
            "config", "--local", "-z", "--get-regexp", rf"^branch\.{re.escape(branch)}\.[a-z0-9-]+$"
        )
        pairs = (item.partition("\n") for item in os.fsdecode(out).split("\0") if item) if code == 0 else ()
        return tuple((key, value) for key, _, value in pairs)

    def drop_branch_config(self, branch: str) -> None:
        """Remove the ``branch.<name>`` section, if any."""
        if not self.branch_config(branch):
            return
        self._remove_section(f"branch.{branch}", lambda: bool(self.branch_config(branch)))

    def _remove_section(self, name: str, there: Callable[[], bool]) -> None:
        # The exit code says nothing here: git calls it an error when the section is gone meanwhile, and a
        # success when the new file could not be written. So look.
        error: SwarmError | None = None
        try:
            self.runner.run("config", "--local", "--remove-section", name)
        except SwarmError as caught:
            error = caught
        if there():
            raise error or GitFailed(f"cannot remove section {name} from the configuration: git could not write it")

    def add_config(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Add settings to the repository's own configuration."""
        for key, value in pairs:
            self.runner.run("config", "--local", "--add", key, value)

    def uses_worktree_config(self) -> bool:
        """Whether worktrees may have their own configuration."""
        code, out, _ = self.runner.attempt("config", "--local", "--type=bool", "extensions.worktreeConfig")
        return code == 0 and out.strip() == b"true"

    def use_worktree_config(self, *, wanted: bool) -> None:
        """Turn git's per-worktree configuration on, or off again with nothing left of it.

        Raises:
            ConfigProblem: the repository has settings that would have to move first.
        """
        if wanted and not self.uses_worktree_config():
            # With the extension on, these two would suddenly count for every worktree.
            for key, harmless in (("core.worktree", b""), ("core.bare", b"false")):
                code, out, _ = self.runner.attempt("config", "--local", key)
                if code == 0 and out.strip() != harmless:
                    raise ConfigProblem(
                        f"cannot hide a file in single worktrees: the repository sets {key}",
                        hint="set worktrees.instructions_file back to CLAUDE.local.md",
                    )
            self.runner.run("config", "--local", "extensions.worktreeConfig", "true")
        elif not wanted and self.uses_worktree_config():
            self.runner.run("config", "--local", "--unset", "extensions.worktreeConfig")
            if self.runner.attempt("config", "--local", "--get-regexp", r"^extensions\.")[0] != 0:
                self._drop_empty_extensions()

    def _drop_empty_extensions(self) -> None:
        """Take away the heading that a git leaves when its last setting goes; newer ones do so themselves."""

        def there() -> bool:
            return "[extensions]" in (self.common / "config").read_text(encoding="utf-8", errors="surrogateescape")

        if there():
            self._remove_section("extensions", there)

    def exclude_in_worktree(self, admin: AdminDir, *files: str) -> None:
        """Hide *files* in one worktree, with those hidden before; the user's own global excludes still count."""
        exclude = admin.path / "swarm-exclude"
        old = exclude.read_bytes() if exclude.is_file() else self._user_excludes()
        new = dict.fromkeys(b"/" + re.sub(rb"([\\*?\[ ])", rb"\\\1", os.fsencode(file)) + b"\n" for file in files)
        exclude.write_bytes(old + b"".join(line for line in new if line not in old.splitlines(keepends=True)))
        self.runner.run("config", "--file", str(admin.path / "config.worktree"), "core.excludesFile", str(exclude))

    def _user_excludes(self) -> bytes:
        code, out, _ = self.runner.attempt("config", "--type=path", "core.excludesFile")
        path = (
            Path(os.fsdecode(out.removesuffix(b"\n"))) if code == 0 and out.strip() else self.runner.default_excludes()
        )
        try:
            text = path.read_bytes()
        except OSError:
            return b""
        return text if not text or text.endswith(b"\n") else text + b"\n"
