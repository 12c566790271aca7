"""The demo agent's worktree: reading it, and committing its own files to its branch."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

_TIMEOUT = 60
_TRIES = 5
_TRAILER = "Swarm-Demo"
_MOST_COMMITS = 1000
_QUIET = ("-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.quotePath=false")


class Trouble(Exception):
    """A git command failed; the message is one line."""


class Repo:
    """One worktree.

    Args:
        actor: signs the commits where git knows no identity.
    """

    def __init__(self, actor: str) -> None:
        self._actor = actor
        self.root = Path(self.ask("rev-parse", "--show-toplevel").removesuffix("\n"))
        self._identity: tuple[str, ...] | None = None
        self._keys: set[str] = set()

    def ask(self, *args: str) -> str:
        """Run a git command and return its output.

        Raises:
            Trouble: it failed.
        """
        done = self._git(*args)
        if done.returncode != 0:
            raise Trouble(_reason(done))
        return os.fsdecode(done.stdout)

    def try_ask(self, *args: str) -> str:
        """Run a git command and return its output; empty if it fails."""
        done = self._git(*args)
        return os.fsdecode(done.stdout) if done.returncode == 0 else ""

    @property
    def branch(self) -> str:
        """The branch checked out."""
        return self.try_ask("symbolic-ref", "--short", "--quiet", "HEAD").strip()

    def files(self) -> list[str]:
        """Return the tracked files."""
        return [name for name in self.try_ask("ls-files", "-z").split("\0") if name]

    def is_ignored(self, path: str) -> bool:
        """Whether git would not take a file of this name."""
        return self._git("check-ignore", "--quiet", "--", f"./{path}", literal=False).returncode == 0

    def place(self, path: str) -> Path:
        """Return where a file of the worktree is.

        Raises:
            Trouble: it would be outside, git's own, or not a plain file.
        """
        full = (self.root / path).resolve()
        inside = full.relative_to(self.root.resolve()) if full.is_relative_to(self.root.resolve()) else None
        if inside is None or not inside.parts or inside.parts[0] == ".git":
            raise Trouble(f"{path} is not a file of this worktree")
        if full.exists() and not full.is_file():
            raise Trouble(f"{path} is not a plain file")
        return full

    def append(self, path: str, text: str) -> None:
        """Add text to a file, which is made if need be.

        Raises:
            Trouble: it cannot be written.
        """
        full = self.place(path)
        try:
            full.parent.mkdir(parents=True, exist_ok=True)
            with full.open("a", encoding="utf-8", errors="replace") as file:
                file.write(text)
        except OSError as error:
            raise Trouble(f"cannot write {path}: {error.strerror}") from error

    def commit(self, paths: list[str], subject: str, key: str = "") -> str:
        """Commit these files and nothing else from the index; return the short id.

        Args:
            key: by which ``has`` knows it again.

        Raises:
            Trouble: git did not take it.
        """
        if self._identity is None:
            self._identity = self._find_identity()
        self._change("add", "--", *paths)
        message = ("-m", subject, *(("-m", f"{_TRAILER}: {key}") if key else ()))
        # A commit must not wait for a passphrase or an editor that nobody sees.
        self._change(*self._identity, "-c", "commit.gpgSign=false", "commit", "--quiet", *message, "--", *paths)
        self._keys = set()  # read anew when asked
        return self.ask("rev-parse", "--short", "HEAD").strip()

    def has(self, key: str) -> bool:
        """Whether a commit of this key is on the branch; an empty one is not."""
        if not self._keys:
            form = f"--format=%(trailers:key={_TRAILER},valueonly)"
            self._keys = {"", *self.try_ask("log", form, "-n", str(_MOST_COMMITS)).split()}
        return bool(key) and key in self._keys

    def _change(self, *args: str) -> None:
        for left in reversed(range(_TRIES)):
            done = self._git(*args)
            if done.returncode == 0:
                return
            if b".lock': File exists" not in done.stderr or not left:
                raise Trouble(_reason(done))
            time.sleep(0.1)  # somebody else's git is at work in this tree

    def _find_identity(self) -> tuple[str, ...]:
        known = {
            "name": ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"),
            "email": ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"),
        }
        ours = {"name": f"{self._actor} (swarm demo)", "email": f"{self._actor}@demo.invalid"}
        found: list[str] = []
        for what, variables in known.items():
            if (
                not all(os.environ.get(name) for name in variables)
                and not self.try_ask("config", f"user.{what}").strip()
            ):
                found += ["-c", f"user.{what}={ours[what]}"]
        return tuple(found)

    def _git(self, *args: str, literal: bool = True) -> subprocess.CompletedProcess[bytes]:
        environment = {**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
        environment["GIT_LITERAL_PATHSPECS"] = str(int(literal))  # check-ignore dies of it
        try:
            return subprocess.run(
                ["git", "--no-pager", *_QUIET, *args],
                cwd=getattr(self, "root", None),
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=_TIMEOUT,
            )
        except FileNotFoundError as error:
            raise Trouble("git is not installed, or the worktree is gone") from error
        except subprocess.TimeoutExpired as error:
            raise Trouble(f"git {args[0]} did not end within {_TIMEOUT} s") from error


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    told = os.fsdecode(done.stderr or done.stdout).strip().splitlines()
    lines = [line for line in told if not line.startswith("hint:")]
    return lines[-1] if lines else f"git ended with {done.returncode}"
