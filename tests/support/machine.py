"""A bare machine for the project's own scripts: nothing is installed but what a test puts there."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from tests.support.procs import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

_BASE = ("bash", "cat", "chmod", "cp", "dirname", "env", "git", "grep", "ln", "mkdir", "mktemp", "mv", "readlink", "rm")
PROGRAMS = (*_BASE, "sh", "tail")


class Machine:
    """A copy of some of this project's files, and a PATH on which only a few programs are.

    Attributes:
        bin: the one folder on that PATH.
        root: where the copies are.
        env: the environment of what is run.
    """

    def __init__(self, folder: Path, *files: str) -> None:
        self.bin, self.root = folder / "bin", folder / "my project"
        self.bin.mkdir()
        self.env = {"PATH": str(self.bin)}
        for name in PROGRAMS:
            program = shutil.which(name)
            assert program
            (self.bin / name).symlink_to(program)
        for name in files:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROJECT / name, self.root / name)

    def add(self, name: str, script: str) -> None:
        """Put a small shell program on the PATH."""
        program = self.bin / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def run(self, script: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run one of the copies; nobody sits at a terminal."""
        return subprocess.run(
            [str(self.root / script), *words],
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=60,
        )
