"""Several processes that begin at the same moment."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swarm.testing.lab import Lab

PROJECT = Path(__file__).resolve().parents[2]
_HEAD = """\
import json, os, subprocess, sys
import filelock, yaml
import swarm.sessions.create.create, swarm.sessions.cleanup.cleanup, swarm.sessions.restore
from swarm import Swarm, SwarmError
root, number = sys.argv[1], int(sys.argv[2])
said = []

def attempt(act):
    try:
        act()
        said.append("DONE")
    except SwarmError as error:
        said.append(error.code)
        print(error, error.details or "", file=sys.stderr)  # shown when the test fails

def git(*args, cwd=root):
    return subprocess.run(["git", *args], cwd=cwd, capture_output=True, text=True)

print("ready", flush=True)
sys.stdin.readline()
"""
_TAIL = "\nprint(json.dumps(said))\n"


class Crew:
    """Processes that are ready and wait for the word."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._members: list[subprocess.Popen[str]] = []

    def add(self, script: str) -> None:
        """Start one; it has ``root``, ``number``, ``attempt`` and ``git``, and its list ``said`` is its result."""
        # All of them want the lock; on a slow machine the last one waits for long.
        env = {"SWARM_LOCK_TIMEOUT": "60", **self._lab.env, "PYTHONPATH": str(PROJECT)}
        argv = [sys.executable, "-c", _HEAD + script + _TAIL, str(self._lab.root), str(len(self._members))]
        pipe = subprocess.PIPE
        self._members.append(subprocess.Popen(argv, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True))

    def go(self, timeout: float = 100) -> list[list[Any]]:
        """Let all begin at once; return what each said."""
        for member in self._members:
            assert member.stdout is not None
            assert member.stdout.readline() == "ready\n", member.communicate()
        for member in self._members:
            assert member.stdin is not None
            member.stdin.write("go\n")
            member.stdin.flush()
        results = []
        try:
            for member in self._members:
                out, err = member.communicate(timeout=timeout)
                assert member.returncode == 0, err
                results.append(json.loads(out.splitlines()[-1]))
                sys.stderr.write(err)
        finally:
            for member in self._members:
                if member.poll() is None:
                    member.kill()
                    member.wait()
        return results
