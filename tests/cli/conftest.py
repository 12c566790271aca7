"""Run the command line in this process or as a program, in a lab."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm.cli.main import main
from swarm.testing.terminal import at_terminal
from tests.support.shell import Shell, installed

if TYPE_CHECKING:
    from swarm.testing.lab import Lab

PROJECT = Path(__file__).resolve().parents[2]
ENVELOPE = {"schema", "command", "status", "exit_code", "data", "errors"}


@dataclass
class Said:
    """What a command printed, and its exit status."""

    code: int
    out: str
    err: str

    def json(self) -> dict[str, Any]:
        """The one envelope on stdout, checked for its form."""
        lines = self.out.splitlines()
        assert len(lines) == 1, self.out
        found: dict[str, Any] = json.loads(lines[0])
        assert set(found) == ENVELOPE
        assert found["schema"] == 1
        assert found["exit_code"] == self.code
        assert found["status"] in {"ok", "partial", "error"}
        assert (found["status"] == "ok") == (self.code == 0)
        assert bool(found["errors"]) == (self.code != 0)
        for error in found["errors"]:
            assert set(error) == {"code", "message", "hint", "details"}
        return found

    def data(self) -> dict[str, Any]:
        """The envelope's data."""
        found: dict[str, Any] = self.json()["data"]
        return found


class Cli:
    """Calls ``main`` in this process, which stands in the lab's repository with the lab's environment."""

    def __init__(self, lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.lab = lab
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        for name in set(os.environ) - set(lab.env):
            if not name.startswith("PYTEST_"):
                monkeypatch.delenv(name)
        for name, value in lab.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("tempfile.tempdir", str(lab.root.parent))
        monkeypatch.chdir(lab.root)

    def __call__(self, *args: str, cwd: Path | None = None) -> Said:
        self._monkeypatch.chdir(cwd or self.lab.root)
        self._capsys.readouterr()
        code = main(args)
        said = self._capsys.readouterr()
        return Said(code, said.out, said.err)

    def ok(self, *args: str, cwd: Path | None = None) -> Said:
        """Run what must succeed."""
        said = self(*args, cwd=cwd)
        assert said.code == 0, said
        return said

    def typed(self, *args: str) -> Said:
        """Run it as a person does who types it in a terminal."""
        said: Said = at_terminal(lambda: self(*args))
        return said

    def program(self, *args: str, cwd: Path | None = None, **env: str) -> Said:
        """Run the program in a process of its own."""
        done = subprocess.run(
            [sys.executable, "-m", "swarm", *args],
            cwd=cwd or self.lab.root,
            env={**self.lab.env, "PYTHONPATH": str(PROJECT), **env},
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return Said(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def cli(lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(lab, monkeypatch, capsys)


@pytest.fixture
def team(cli: Cli) -> Cli:
    """A command line in a repository with session feature-x of a researcher and a developer."""
    cli.ok("worktree", "create", "feature-x", "--roles", "researcher,developer")
    return cli


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("bin"))


@pytest.fixture
def shell(lab: Lab, program: Path) -> Shell:
    """A shell that finds the installed program."""
    return Shell(lab, program)
