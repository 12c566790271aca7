"""Answers to Claude Code's questions at its first start in a folder, written to its configuration file.

Three entries of ``.claude.json`` are ours to make: that onboarding is over (only when the program can log in
without it), that the user's own API key may be used, and that the folders swarm made are trusted.  The file is
the user's and the running programs': it is merged, under the lock that they use themselves, and never made anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import TYPE_CHECKING, Any

from swarm.kit import files
from swarm.kit.errors import EnvironmentProblem, SwarmError
from swarm.machine import own, records
from swarm.programs.base import seen_login
from swarm.project.errors import Locked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

#: Settings that come with a project.
_PROJECT_SETTINGS = (".claude/settings.json", ".claude/settings.local.json")
TRUST = "hasTrustDialogAccepted"
_LIMIT = 64 << 20
#: The program's own times: how long it waits for a lock, and the age at which an untouched lock is stale.
_LOCK_WAIT, _LOCK_STALE = 15.0, 10.0
_LOCK_LOOK = 0.02
_KEY_TAIL = 20
#: With one of these variables the program can log in without the user.
_CREDENTIALS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_PROVIDERS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")


def preapprove(file: Path, main: Path, trees: Sequence[Path], environ: Mapping[str, str]) -> None:
    """Answer the first-run questions for some new folders.

    Args:
        file: the configuration file.
        main: the main checkout; when the user trusts that, its worktrees are trusted too.

    Raises:
        SwarmError: the file cannot be read or written; it is as it was.
    """

    def change(config: dict[str, Any]) -> None:
        if can_log_in(file.parent, environ):
            config["hasCompletedOnboarding"] = True
        _approve_key(config, environ.get("ANTHROPIC_API_KEY", ""))
        projects = _mapping(config, "projects")
        for tree in trees:
            if not any(_trusted(projects, folder) for folder in (tree, *tree.parents, main)):
                _mapping(projects, str(tree))[TRUST] = True

    _change(file, change)


def withdraw(file: Path, trees: Sequence[Path]) -> None:
    """Forget that some folders are trusted: they are gone, and the next one of that name may be another's."""

    def change(config: dict[str, Any]) -> None:
        projects = _mapping(config, "projects")
        for tree in trees:
            entry = projects.get(str(tree))
            if isinstance(entry, dict) and entry.pop(TRUST, None) is not None and not entry:
                del projects[str(tree)]

    if files.exists(file):
        _change(file, change)


def asks_for_trust(file: Path, main: Path, folder: str, read: Callable[[str], bytes | None]) -> str:
    """Return the project settings about which the program asks in spite of the entries for its worktrees.

    What a project allows by its settings counts only with an entry for the main checkout. That is the user's to make.

    Args:
        file: the configuration file.
        folder: where in its worktree the agent works; the program reads the settings there alone.
        read: returns a file of the project.
    """
    try:
        projects = _read(file).get("projects")
    except (SwarmError, OSError):
        return ""  # reported when the entries are made
    if isinstance(projects, dict) and _trusted(projects, main):
        return ""
    for name in _PROJECT_SETTINGS:
        path = name if folder == "." else f"{folder}/{name}"
        allowed = _allowed(read(path))
        if allowed:
            return f"{path} {allowed}"
    return ""


def _allowed(settings: bytes | None) -> str:
    """Return the rules that a project's settings allow without asking; an unreadable file allows nothing."""
    try:
        found = json.loads(settings or b"{}")
    except (ValueError, RecursionError):
        return ""
    rules = found.get("permissions") if isinstance(found, dict) else None
    kinds = (("allow", "allows tools"), ("additionalDirectories", "opens more folders"))
    return next((word for key, word in kinds if isinstance(rules, dict) and rules.get(key)), "")


def can_log_in(folder: Path, environ: Mapping[str, str]) -> bool:
    """Whether the program has an account to use; else it must ask for one, and a person must answer."""
    return (
        any(environ.get(name) for name in (*_CREDENTIALS, *_PROVIDERS))
        or files.exists(folder / ".credentials.json")
        or files.exists(folder / ".claude" / ".credentials.json")
    )


def login(folder: Path, config: Path, environ: Mapping[str, str]) -> str:
    """Return where an account is seen; empty: nowhere.

    Args:
        folder: the configuration folder.
        config: the file of first-run answers, which names the account where the machine's own keys hold the login.
    """
    seen = seen_login(environ, (*_CREDENTIALS, *_PROVIDERS), [folder / ".credentials.json"])
    if seen or not config.is_file():
        return seen
    try:
        known = records.read_object(str(config), _LIMIT, follow=True)
    except (OSError, ValueError):
        return ""
    return str(config) if known.get("oauthAccount") else ""


def _approve_key(config: dict[str, Any], key: str) -> None:
    """Let the key of the user's environment be used; one that the user has refused stays refused."""
    tail = key[-_KEY_TAIL:]
    answers = _mapping(config, "customApiKeyResponses") if tail else {}
    approved, rejected = answers.get("approved"), answers.get("rejected")
    if not tail or (isinstance(rejected, list) and tail in rejected):
        return
    answers["approved"] = list(dict.fromkeys([*(approved if isinstance(approved, list) else ()), tail]))
    answers.setdefault("rejected", [])


def _trusted(projects: Mapping[str, Any], folder: Path) -> bool:
    entry = projects.get(str(folder))
    return isinstance(entry, dict) and entry.get(TRUST) is True


def _mapping(parent: dict[str, Any], key: str) -> dict[str, Any]:
    found = parent.get(key)
    if not isinstance(found, dict):
        found = parent[key] = {}
    return found


# --- the file ------------------------------------------------------------------------------------


def _change(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    with files.os_errors(f"cannot prepare Claude Code's configuration {file}"):
        # It may be a link into the user's folder of dot files.  In the home of a box an agent may have put one.
        target = file if own.trusted(os.fspath(file)) else file.resolve()
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(target):
            files.sweep_temporaries(
                target.parent, target.name
            )  # of a swarm that was killed: the file holds the user's account
            old, new = _read(target), _read(target)
            change(new)
            if new != old:
                text = json.dumps(new, indent=2, ensure_ascii=False)
                files.write_atomic(target, text.encode("utf-8", "surrogatepass"), 0o600)


def _read(file: Path) -> dict[str, Any]:
    try:
        boxed = own.trusted(os.fspath(file))
        data = (records.read_bytes(os.fspath(file), _LIMIT) if boxed else files.read_small(file, _LIMIT)).strip()
        found = json.loads(data) if data else {}
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise EnvironmentProblem(
            f"cannot use Claude Code's configuration {file}: it is damaged",
            hint="start `claude` once by hand: it offers to repair the file",
        )
    return found


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Hold the lock that the program itself holds while it writes the file: a folder next to it."""
    lock = file.with_name(f"{file.name}.lock")
    deadline = time.monotonic() + _LOCK_WAIT
    while True:
        try:
            lock.mkdir()
            break
        except FileExistsError:
            if _is_stale(lock):
                with contextlib.suppress(OSError):
                    lock.rmdir()
                continue
        if time.monotonic() > deadline:
            raise Locked(
                f"cannot prepare Claude Code's configuration {file}: another program holds {lock.name}",
                hint="try again in a moment",
            )
        time.sleep(_LOCK_LOOK)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            lock.rmdir()


def _is_stale(lock: Path) -> bool:
    try:
        return time.time() - os.stat(lock).st_mtime > _LOCK_STALE
    except OSError:
        return False
