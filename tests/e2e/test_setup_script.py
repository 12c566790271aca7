"""``scripts/setup`` on a machine where something is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]


class Machine:
    """A copy of the script, and a PATH on which only a few programs are."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.root = folder / "bin", folder / "my project"
        self.bin.mkdir()
        (self.root / "scripts").mkdir(parents=True)
        shutil.copy(PROJECT / "scripts/setup", self.root / "scripts")
        for name in ("bash", "dirname", "env", "sh", "git"):
            program = shutil.which(name)
            assert program
            (self.bin / name).symlink_to(program)

    def add(self, name: str, script: str) -> None:
        program = self.bin / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def setup(self) -> subprocess.CompletedProcess[str]:
        argv = [str(self.root / "scripts/setup")]
        return subprocess.run(argv, env={"PATH": str(self.bin)}, capture_output=True, text=True, check=False)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def _told(done: subprocess.CompletedProcess[str], machine: Machine, why: str) -> str:
    """Check that one line says what is missing; return the hint."""
    *_, error, empty, hint = done.stderr.splitlines()
    assert done.returncode == 5
    assert (done.stdout, empty) == ("", "")
    assert error == (
        f"error: cannot set up {machine.root}: missing tmux 3.2 or newer (found: none), "
        f"python 3.11 or newer with its venv module, ps; {why}"
    )
    assert os.listdir(machine.root) == ["scripts"]
    return hint


def test_without_apt_it_says_what_is_missing(machine: Machine) -> None:
    machine.add("id", "echo 0")

    hint = _told(machine.setup(), machine, "there is no apt-get to install it with")

    assert hint.startswith("hint: install it with your system's package manager")


@pytest.mark.parametrize(("sudo", "by"), [(True, "sudo sh"), (False, "su")])
def test_who_is_not_root_is_told_what_root_has_to_do(machine: Machine, sudo: bool, by: str) -> None:
    machine.add("id", "echo 1000")
    machine.add("apt-get", "echo must not run; touch ran")
    if sudo:
        machine.add("sudo", "exit 1")  # asks for a password

    hint = _told(machine.setup(), machine, "only root may install it")

    assert hint == f"hint: {by} -c 'apt-get update && apt-get install git tmux python3 python3-venv procps'"


def test_root_installs_it_and_is_told_when_that_was_not_enough(machine: Machine) -> None:
    machine.add("id", "echo 0")
    machine.add("apt-get", 'echo "apt-get $DEBIAN_FRONTEND $*" >&2; exit 100')

    done = machine.setup()

    assert _told(done, machine, "apt-get did not bring it").startswith("hint: see above, ")
    assert "apt-get noninteractive update\n" in done.stderr
    assert (
        "apt-get noninteractive install -y --no-install-recommends git tmux python3 python3-venv procps\n"
        in done.stderr
    )
