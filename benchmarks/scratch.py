"""A made-up repository of a given size, always the same, away from the user's configuration."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SEED = 20260101
_MEDIAN, _SPREAD, _LARGEST = 2048, 1.0, 200_000
#: The size of the file that is mounted; it takes only what is written to it.
_DISK = 6 << 30
_CONFIG = """\
[user]
\tname = Bench
\temail = bench@localhost
[init]
\tdefaultBranch = main
[gc]
\tauto = 0
"""


def environment(home: Path) -> dict[str, str]:
    """Return a process environment in which no configuration of the user counts."""
    home.mkdir(parents=True, exist_ok=True)
    config = home / "gitconfig"
    config.write_text(_CONFIG, encoding="utf-8")
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GIT_CONFIG_GLOBAL": str(config),
        "GIT_CONFIG_NOSYSTEM": "1",
        "LC_ALL": "C",
    }


@contextmanager
def folder() -> Iterator[Path]:
    """Give a fresh folder, in memory where there is room, and remove it in the end."""
    memory = Path("/dev/shm")  # a fresh private folder is made in it
    roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 1 << 30
    parent = memory if roomy else None
    fresh = Path(tempfile.mkdtemp(prefix="swarm-bench-", dir=parent)).resolve()
    try:
        yield fresh
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


@contextmanager
def disk() -> Iterator[tuple[Path, str]]:
    """Give a fresh folder on ext4 with a journal, and say what it is; where none may be mounted, on the disk."""
    with folder() as top:
        image, place = top / "image", top / "disk"
        place.mkdir()
        with image.open("wb") as file:
            file.truncate(_DISK)
        made = shutil.which("mkfs.ext4") is not None and _succeeds("mkfs.ext4", "-q", "-F", str(image))
        if made and _succeeds("mount", "-o", "loop", str(image), str(place)):
            try:
                yield place, "ext4 with a journal, in a file in memory"
            finally:
                subprocess.run(["umount", "--lazy", str(place)], check=False)
            return
    fresh = Path(tempfile.mkdtemp(prefix=".swarm-bench-", dir=Path.cwd()))
    try:
        yield fresh, "the disk of the project's folder"
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _succeeds(*words: str) -> bool:
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


class Counter:
    """Counts the gits that run by a PATH that begins with its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = folder / "log"
        folder.mkdir(parents=True)
        program = folder / "git"
        program.write_text(f'#!/bin/sh\necho >>"{self._log}"\nexec "{shutil.which("git")}" "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        self.forget()

    def forget(self) -> None:
        """Count anew."""
        self._log.write_bytes(b"")

    def count(self) -> int:
        """Return how many ran."""
        return len(self._log.read_bytes())


def git(repository: Path, env: dict[str, str], *args: str) -> str:
    """Run git as a user would; return what it prints."""
    done = subprocess.run(["git", *args], cwd=repository, env=env, capture_output=True, check=True)
    return os.fsdecode(done.stdout)


def repository(path: Path, env: dict[str, str], files: int) -> list[str]:
    """Make a repository with one commit of *files* files; return their names.

    Sizes are log-normal around 2 kB; one in twenty is executable, one in fifty a symbolic link.
    """
    rng = random.Random(_SEED)  # the same files every time
    path.mkdir(parents=True)
    git(path, env, "init", "--quiet")
    names: list[str] = []
    for number in range(files):
        name = f"{rng.choice(('src', 'lib', 'tests', 'docs'))}/part{rng.randrange(max(1, files // 25))}/f{number}.txt"
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if number % 50 == 49:
            target.symlink_to(f"f{number - 1}.txt")
        else:
            size = min(_LARGEST, int(rng.lognormvariate(0, _SPREAD) * _MEDIAN))
            target.write_bytes(rng.randbytes(size // 2).hex().encode("ascii"))
            target.chmod(0o755 if number % 20 == 0 else 0o644)
        names.append(name)
    git(path, env, "add", "--all")
    git(path, env, "commit", "--quiet", "-m", "start")
    _settle(path, env, names)
    return names


def _settle(path: Path, env: dict[str, str], names: list[str]) -> None:
    """Make it look as if it had been there for an hour: git believes the index and re-reads nothing."""
    then = time.time_ns() - 3600 * 10**9
    for name in names:
        os.utime(path / name, ns=(then, then), follow_symlinks=False)
    git(path, env, "update-index", "-q", "--refresh")
