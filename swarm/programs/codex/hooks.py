"""swarm's hooks in Codex: given on the command line of one run, and trusted by their checksums there.

Codex runs no hook that nobody has looked at.  It has a switch that trusts all of them, those of the project too; so
ours are trusted one by one, as its own list of hooks would note it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import selectors
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.permissions import guard

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: Its events, with their names in its notes about trust.
BEFORE, ASKED = "PreToolUse", "PermissionRequest"
_NOTED = {BEFORE: "pre_tool_use", ASKED: "permission_request"}
#: The name that it gives to settings on the command line.
_FILE = "/<session-flags>/config.toml"
#: A hook that takes longer counts for nothing; our own limit comes long before, and is a refusal.
_SECONDS = 600
#: Codex goes on after any other failure of a hook, such as a Python that is gone.
_OR_REFUSE = (
    '"$@"; s=$?; [ $s = 0 ] && exit; [ $s = 2 ] || echo "swarm cannot enforce the rules of this agent" >&2; exit 2'
)
_PATIENCE, _GRACE = 60.0, 10.0


def command(run_dir: Path) -> str:
    """Return the command of a hook; its words are safe in any shell."""
    judge = [sys.executable, "-I", "-S", guard.__file__, str(run_dir), "codex"]
    return shlex.join(["/bin/sh", "-c", _OR_REFUSE, "sh", *judge])


def settings(run_dir: Path, events: Sequence[str]) -> list[str]:
    """Return the settings, as ``-c`` takes them, with which our hook is run at these events."""
    handler = {"type": "command", "command": command(run_dir), "timeout": _SECONDS}
    made = ["features.hooks=true"]
    made += [f"hooks.{event}=[{{hooks=[{_table(handler)}]}}]" for event in events]
    trusted = {f"{_FILE}:{_NOTED[event]}:0:0": _checksum(_NOTED[event], handler) for event in events}
    states = (f"{_text(key)}={{enabled=true,trusted_hash={_text(sum_)}}}" for key, sum_ in trusted.items())
    return [*made, f"hooks.state={{{','.join(states)}}}"]


def _checksum(event: str, handler: Mapping[str, Any]) -> str:
    """Return the checksum that Codex records for a trusted hook."""
    known = {"event_name": event, "hooks": [{**handler, "async": False}]}
    text = json.dumps(known, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _table(values: Mapping[str, Any]) -> str:
    return "{" + ",".join(f"{key}={_text(value)}" for key, value in values.items()) + "}"


def _text(value: object) -> str:
    """Return a text or number as TOML; JSON's way is a part of that, but for the delete character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


# --- whether they are run -------------------------------------------------------------------------


def are_run(executable: str, environ: Mapping[str, str]) -> bool:
    """Ask the program itself whether it would run our hook: an administrator may allow none, another version differ."""
    with contextlib.suppress(OSError):
        for entry in _listed(executable, environ, settings(Path("/"), [BEFORE])):
            if entry.get("command") == command(Path("/")):
                return bool(entry.get("enabled")) and entry.get("trustStatus") == "trusted"
    return False


def _listed(executable: str, environ: Mapping[str, str], wanted: Sequence[str]) -> list[dict[str, Any]]:
    """Return the hooks that the program has for these settings."""
    asked: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "swarm", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": ["/"]}},
    ]
    argv = [executable, *(word for one in wanted for word in ("-c", one)), "app-server"]
    child = subprocess.Popen(
        argv,
        env=dict(environ),
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert child.stdin is not None  # noqa: S101  # for the type checker
        child.stdin.write("".join(f"{json.dumps(one)}\n" for one in asked).encode())
        child.stdin.flush()  # it stays open: the program would end without having answered
        answer = next((one for one in _lines(child) if one.get("id") == 2), {})
    finally:
        _end(child)
    try:
        return [hook for folder in answer["result"]["data"] for hook in folder["hooks"]]
    except (KeyError, TypeError):
        return []


def _end(child: subprocess.Popen[bytes]) -> None:
    """Let the program end, as it does without further requests."""
    try:
        child.communicate(timeout=_GRACE)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def _lines(child: subprocess.Popen[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the program's answers, until it ends or takes too long."""
    assert child.stdout is not None  # noqa: S101  # for the type checker
    end, data = time.monotonic() + _PATIENCE, b""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while selector.select(max(0.0, end - time.monotonic())):
            piece = os.read(child.stdout.fileno(), 1 << 16)
            *whole, data = (data + piece).split(b"\n")
            for line in whole:
                with contextlib.suppress(ValueError, RecursionError):
                    found = json.loads(line)
                    if isinstance(found, dict):
                        yield found
            if not piece:
                return
