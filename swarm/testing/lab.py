"""A scratch repository to try things in, isolated from the machine it runs on."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm import Swarm
from swarm.testing import guardian
from swarm.testing.terminal import at_terminal

if TYPE_CHECKING:
    from collections.abc import Mapping

CONFIG = """\
[user]
\tname = Lab
\temail = lab@localhost
[init]
\tdefaultBranch = main
[commit]
\tgpgsign = false
[protocol "file"]
\tallow = always
"""


def environment(home: Path) -> dict[str, str]:
    """Return a process environment in which nothing of the user's own configuration counts.

    What is started in it is ended when this process is ended by a signal.
    """
    guardian.watch(home)
    home.mkdir(parents=True, exist_ok=True)
    config = home / "gitconfig"
    if not config.exists():
        config.write_text(CONFIG)
    kept = {k: v for k, v in os.environ.items() if k in {"PATH", "LANG", "TMPDIR", "LD_LIBRARY_PATH"}}
    return {
        **kept,
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "GIT_CONFIG_GLOBAL": str(config),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TERM": "dumb",
    }


#: The repository that this process's first lab has made. The others are copies of it: that takes a third of the time.
_first: dict[str, Path] = {}


def _keep(root: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="swarm-lab-"))
    folder.chmod(0o711)  # labs of another user are copies of it, too
    guardian.watch(folder, str(folder))  # which removes it after this process
    _first["repository"] = shutil.copytree(root, folder / "repository", symlinks=True)


class Lab:
    """One scratch repository with one commit of a few files.

    Attributes:
        root: the main checkout.
        env: the environment for every git and swarm of this lab.
    """

    def __init__(self, folder: Path, name: str = "my project") -> None:
        self.env = environment(folder / "home")
        self.root = folder / name
        first = _first.get("repository")
        if first and os.path.isdir(first):  # and may be read by the user that the process has become
            shutil.copytree(first, self.root, symlinks=True)
            self.git("update-index", "-q", "--refresh")  # the index knows files by their numbers, and these are others
        else:
            self._make()
            _keep(self.root)

    def _make(self) -> None:
        self.root.mkdir(parents=True)
        self.git("init", "--quiet")
        self.write({"README": "hello\n", "src/app.py": "print('app')\n", "run.sh": "#!/bin/sh\n"})
        (self.root / "run.sh").chmod(0o755)
        self.write({".gitignore": "*.log\n.env*\nnode_modules/\nsecret/\n"})
        self.commit("first")

    # --- git -----------------------------------------------------------------------------------

    def git(self, *args: str, cwd: Path | None = None, check: bool = True, env: Mapping[str, str] | None = None) -> str:
        """Run git as the user would and return its output, without the last newline."""
        done = subprocess.run(
            ["git", *args],
            cwd=cwd or self.root,
            env={**self.env, **(env or {})},
            capture_output=True,
            check=False,
        )
        out = os.fsdecode(done.stdout)
        if check and done.returncode != 0:
            raise AssertionError(f"git {args} failed ({done.returncode}): {os.fsdecode(done.stderr)}{out}")
        return out.removesuffix("\n")

    def write(self, files: Mapping[str, str | bytes], cwd: Path | None = None) -> None:
        """Write files, folders made as needed."""
        for name, content in files.items():
            path = (cwd or self.root) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def commit(self, message: str, cwd: Path | None = None) -> str:
        """Commit everything and return the commit's id."""
        self.git("add", "--all", cwd=cwd)
        self.git("commit", "--quiet", "--allow-empty", "-m", message, cwd=cwd)
        return self.git("rev-parse", "HEAD", cwd=cwd)

    # --- swarm -----------------------------------------------------------------------------------

    def open(self, root: Path | None = None, **flags: Any) -> Swarm:
        """Open the lab's repository afresh; flags are settings with ``__`` for the dot."""
        settings = {key.replace("__", "."): value for key, value in flags.items()}
        return Swarm.open(root or self.root, environ=self.env, flags=settings)

    @property
    def swarm(self) -> Swarm:
        """A fresh ``Swarm`` on the lab's repository."""
        return self.open()

    @property
    def person(self) -> Person:
        """The lab's repository as a person at a terminal sees it."""
        return Person(self)

    def tree(self, agent: str, session: str = "feature-x") -> Path:
        """Return where an agent's worktree is."""
        return self.root / ".worktrees" / f"{agent}-{session}"

    # --- what must not change --------------------------------------------------------------------

    def fingerprint(self) -> dict[str, Any]:
        """Return everything about the user's own repository that swarm may not change.

        That is: refs other than swarm's, the stash, HEAD, index and configuration, ``info/exclude``, the
        files of the main checkout (``.swarm/`` and ``.worktrees/`` aside), and registered worktrees.
        """
        git_dir = self.root / ".git"
        return {
            "refs": self._refs(),
            "head": (git_dir / "HEAD").read_text(),
            "index": self.git("ls-files", "--stage", "-v"),
            "config": (git_dir / "config").read_text(),
            "exclude": _text(git_dir / "info" / "exclude"),
            "stash": self.git("stash", "list"),
            "files": file_digests(self.root, skip={".git", ".swarm", ".worktrees"}),
            "status": self.git("status", "--porcelain", "--untracked-files=all"),
            "worktrees": self.git("worktree", "list", "--porcelain"),
            "admin": sorted(p.name for p in (git_dir / "worktrees").glob("*")),
            "locks": sorted(str(p.relative_to(git_dir)) for p in git_dir.rglob("*.lock")),
        }

    def _refs(self) -> str:
        out = self.git("for-each-ref", "--format=%(refname) %(objectname)")
        return "\n".join(line for line in out.splitlines() if not line.startswith("refs/swarm/salvage/"))


class Person:
    """Calls a ``Swarm`` from a terminal of its own: ``lab.person.approvals.approve(…)``."""

    def __init__(self, lab: Lab, verb: str = "") -> None:
        self._lab = lab
        self._verb = verb

    def __getattr__(self, name: str) -> Person:
        return Person(self._lab, f"{self._verb}.{name}".lstrip("."))

    def __call__(self, *args: Any, **how: Any) -> Any:
        """Call the verb."""
        return at_terminal(lambda: attrgetter(self._verb)(self._lab.swarm)(*args, **how))


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def file_digests(top: Path, skip: set[str] | frozenset[str] = frozenset()) -> dict[str, str]:
    """Return relative path → kind, mode and content of everything below a folder."""
    found: dict[str, str] = {}
    for where, folders, files in os.walk(top):
        here = Path(where)
        left_out = skip if here == top else set()
        folders[:] = [name for name in folders if name not in left_out]
        for name in (*folders, *(name for name in files if name not in left_out)):
            path = here / name
            info = path.lstat()
            content = (
                os.readlink(path)
                if path.is_symlink()
                else hashlib.sha256(path.read_bytes()).hexdigest()
                if path.is_file()
                else ""
            )
            mode = "" if path.is_symlink() else f"{info.st_mode:o}"
            found[str(path.relative_to(top))] = f"{mode} {content}"
    return found
