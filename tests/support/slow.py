"""A repository in which git stops in the middle of writing a worktree until the test says go."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarm.testing.lab import Lab


class Slow:
    """A filter of git's that tells when it begins, and waits.

    Attributes:
        begun: the pipe in which it says so.
    """

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.begun, self._go = lab.root.parent / "begun", lab.root.parent / "go"
        os.mkfifo(self.begun)
        os.mkfifo(self._go)
        lab.write({".gitattributes": "*.slow filter=slow\n", "big.slow": "content\n"})
        lab.commit("something slow")
        script = lab.root.parent / "filter.sh"
        script.write_text(f'#!/bin/sh\necho begun >"{self.begun}"\nread go <"{self._go}"\ncat\n')
        script.chmod(0o755)
        lab.git("config", "filter.slow.smudge", f'"{script}"')
        lab.git("config", "filter.slow.clean", "cat")
        lab.git("config", "filter.slow.required", "true")

    def wait(self) -> None:
        """Return when git is in the middle of writing a worktree."""
        assert self.begun.read_text() == "begun\n"

    def go(self) -> None:
        """Let the filter that waits go on, and every later one."""
        self.lab.git("config", "filter.slow.smudge", "cat")
        self._go.write_text("go\n")
