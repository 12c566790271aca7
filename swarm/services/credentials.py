"""What is secret in a swarm directory: the token of its servers, tokens of the agents' programs, and the file ``.env``.

    credentials/api-token       requests by TCP name it; made at the first start
    credentials/otlp-token      programs of tasks name it when they report of themselves; it is good for nothing else
    credentials/<program>-token a login, given to that program of served agents by its own variable
    credentials/github-token    given to programs as GH_TOKEN and GITHUB_TOKEN
    .env                        further variables; the real environment comes before them
    git-config                  name and email for commits; no secret

A file that others can read is refused: nobody knows who has read it.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shlex
import stat
from typing import TYPE_CHECKING

from swarm.kit import files, yaml
from swarm.kit.errors import ConfigProblem, raise_all
from swarm.kit.forms import Field, Form, filled, mapping, text
from swarm.machine import own
from swarm.programs import registry
from swarm.project.names import PROGRAMS
from swarm.services.errors import LooseMode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FOLDER, TOKEN, OTLP = "credentials", "api-token", "otlp-token"
_LARGEST = 1 << 16
_TOKEN = re.compile(rb"[A-Za-z0-9_-]{32,200}")
_LINE = re.compile(r"(?:export +)?([A-Za-z_][A-Za-z0-9_]*)=(.*)")
_GITHUB = ("GH_TOKEN", "GITHUB_TOKEN")
#: It opens the web view, and is nothing for programs.
_NOT_GIVEN = "SWARM_WEB_TOKEN"
_WORD = text(filled, "text", least=1)
_IDENTITY: Form[dict[str, str]] = mapping(
    {"name": Field(_WORD, "Name of the author."), "email": Field(_WORD, "Address of the author.")}, dict
)


def token(root: Path, name: str = TOKEN) -> bytes:
    """Return the token of a swarm directory's servers; make it if there is none.

    Args:
        name: its file.

    Raises:
        LooseMode: others can read it.
        ConfigProblem: the file holds none.
    """
    path = root / FOLDER / name
    found = _secret(path)
    if found is None:
        files.make_private_dir(path.parent)
        aside = path.with_name(f"{name}.{secrets.token_hex(6)}")
        files.write_new(aside, secrets.token_urlsafe(32).encode("ascii") + b"\n", 0o600)
        with contextlib.suppress(FileExistsError):  # another server may do the same at this moment
            own.link(os.fspath(aside), os.fspath(path))
        files.unlink_if_there(aside)
        found = _secret(path) or b""
    if _TOKEN.fullmatch(found.strip()) is None:
        raise ConfigProblem(f"{path}: this is no token", hint=f"remove it, and swarm makes one: rm {_shown(path)}")
    return found.strip()


def known_token(root: Path) -> bytes:
    """Return the token if there is one; empty otherwise.

    Raises:
        LooseMode
    """
    return (_secret(root / FOLDER / TOKEN) or b"").strip()


def environment(root: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a server: the given one, and below it what the swarm directory adds.

    Raises:
        LooseMode, ConfigProblem
    """
    found = _dotenv(root / ".env")
    known = {f"{name}-token": registry.program(name).token_variable for name in PROGRAMS}
    for name, variables in {**{file: (one,) for file, one in known.items() if one}, "github-token": _GITHUB}.items():
        value = _secret(root / FOLDER / name)
        if value is not None:
            found |= dict.fromkeys(variables, value.decode("utf-8", "replace").strip())
    found |= _identity(root / "git-config")
    merged = {**found, **environ}
    merged.pop(_NOT_GIVEN, None)
    return merged


def check(root: Path) -> None:
    """Refuse credentials that others can read.

    Raises:
        LooseMode
    """
    folder = root / FOLDER
    names = sorted(os.listdir(folder)) if folder.is_dir() else ()
    for path in (*(folder / name for name in names), root / ".env"):
        _secret(path)


def _dotenv(path: Path) -> dict[str, str]:
    data = _secret(path)
    found: dict[str, str] = {}
    for number, line in enumerate((data or b"").decode("utf-8", "replace").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        pair = _LINE.fullmatch(line.strip())
        if pair is None:
            raise ConfigProblem(f"{path}:{number}:1: this is no NAME=value", hint="a line each, such as NAME=value")
        try:
            words = shlex.split(pair[2], comments=True)
        except ValueError as problem:
            raise ConfigProblem(f"{path}:{number}:1: {pair[1]}: {problem}") from None
        found[pair[1]] = " ".join(words)
    return found


def _identity(path: Path) -> dict[str, str]:
    if not files.exists(path):
        return {}
    table = yaml.load(path)
    try:
        found = _IDENTITY.read(table.plain())
    except ValueError as error:
        raise_all(f"{path} cannot be used", table.problems(error))
        raise AssertionError from error  # a ValueError always names a problem
    pairs = (("AUTHOR", "COMMITTER"), ("name", "email"))
    return {f"GIT_{who}_{what.upper()}": found[what] for who in pairs[0] for what in pairs[1] if what in found}


def _secret(path: Path) -> bytes | None:
    """Return the content of a file that only this user can read; None: it is not there."""
    try:
        fd = own.open(os.fspath(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid():
            raise LooseMode(
                f"cannot use {path}: it is no plain file of yours", hint=f"look at it: ls -l {_shown(path)}"
            )
        if info.st_mode & 0o077:
            raise LooseMode(
                f"cannot use {path}: others can read it (mode {stat.S_IMODE(info.st_mode):04o})",
                hint=f"chmod 600 {_shown(path)}; and if others have read it, replace what it holds",
            )
        return os.read(fd, _LARGEST)
    finally:
        os.close(fd)


def _shown(path: Path) -> str:
    return shlex.quote(str(path))
