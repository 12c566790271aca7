"""The installed program, from a shell, in a repository with a blank in its path."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarm.testing.lab import Lab

PROJECT = Path(__file__).resolve().parents[2]


class Shell:
    """Types commands into a shell."""

    def __init__(self, lab: Lab, program: Path) -> None:
        self.lab = lab
        self.program = program
        self.env = {**lab.env, "TMPDIR": str(lab.root.parent), "PATH": f"{program.parent}{os.pathsep}{lab.env['PATH']}"}

    def __call__(self, line: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", line],
            cwd=cwd or self.lab.root,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Start the program itself, so that signals reach it and no shell."""
        return subprocess.Popen(
            [self.program, *args],
            cwd=self.lab.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def installed(folder: Path) -> Path:
    """Return the `swarm` that pip has put beside this Python; without one, make the same few lines in *folder*."""
    found = Path(sys.executable).parent / "swarm"
    if found.exists():
        return found
    made = folder / "swarm"
    words = f"import sys; sys.path.insert(0, {str(PROJECT)!r}); from swarm.cli.main import main; sys.exit(main())"
    made.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(words)} "$@"\n')
    made.chmod(0o755)
    return made
