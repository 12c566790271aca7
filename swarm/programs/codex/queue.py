"""A text for a running Codex by ``codex queue``: it begins a turn, and its pane is not touched.

Versions without that verb take the word for a prompt, so its help is looked at first.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.machine import foreign, processes
from swarm.machine.run_folder import runfiles

if TYPE_CHECKING:
    from collections.abc import Sequence

_SECONDS = 20.0
#: The first line of a conversation has at most so many bytes.
_LONGEST = 1 << 20


def hand_over(run_dir: Path, pid: int, text: str) -> str:
    """Put a text into the conversation of a running program; return how, and nothing where that is not possible."""
    source = runfiles.read(str(run_dir), runfiles.RECORD) or {}
    home, cwd = source.get("home"), source.get("cwd")
    if not isinstance(home, str) or not isinstance(cwd, str):
        return ""
    thread = newest(Path(home), cwd)
    environ = _environment(pid)
    program = shutil.which("codex", path=environ.get("PATH"))
    if not thread or program is None or not _knows(program, environ):
        return ""
    done = _run([program, "queue", "--thread", thread, "--message", text], environ, cwd)
    return f"codex queue --thread {thread}" if done is not None and done.returncode == 0 else ""


def newest(home: Path, cwd: str) -> str:
    """Return the id of the newest conversation of a folder; empty without one."""
    found = (Path(one) for one in foreign.below(str(home / "sessions")))
    for path in sorted((one for one in found if one.match("rollout-*.jsonl")), reverse=True):
        try:
            with files.open_regular(path) as lines:
                head = _payload(lines.readline(_LONGEST).decode("utf-8", "replace"))
        except (OSError, SwarmError):
            continue  # gone meanwhile, or a pipe that an agent has put there
        if head.get("cwd") == cwd:
            return str(head.get("id") or "")
    return ""


def has(home: Path, conversation: str) -> bool:
    """Whether there is a conversation of this id in which somebody was answered."""
    for path in home.glob(f"sessions/*/*/*/rollout-*-{glob.escape(conversation)}.jsonl"):
        try:
            with files.open_regular(path) as lines:
                return any(b'"role":"user"' in line or b'"user_message"' in line for line in lines)
        except (OSError, SwarmError):
            continue
    return False


def _payload(line: str) -> dict[str, Any]:
    """Return what the first line of a conversation tells of it."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    payload = found.get("payload") if isinstance(found, dict) else None
    return payload if isinstance(payload, dict) else {}


def _environment(pid: int) -> dict[str, str]:
    """Return the environment of the program: its home and its settings are the conversation's."""
    words = processes.environment(pid).split(b"\0")
    return dict(os.fsdecode(word).partition("=")[::2] for word in words if b"=" in word)


def _knows(program: str, environ: dict[str, str]) -> bool:
    done = _run([program, "queue", "--help"], environ, "/")
    return done is not None and done.returncode == 0 and "--thread" in done.stdout


def _run(argv: Sequence[str], environ: dict[str, str], cwd: str) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            argv,
            env=environ,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
            check=False,
            start_new_session=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
