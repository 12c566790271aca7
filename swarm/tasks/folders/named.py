"""Folders of the user's that a task names: where it works, and where its sessions are."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.callers.caller import AGENT, caller
from swarm.callers.errors import NotForAgents
from swarm.kit.errors import UsageProblem
from swarm.sandbox import wish

if TYPE_CHECKING:
    from swarm.project.world import World

_OTHERS_WRITE = 0o022


def workdir(world: World, text: str) -> str:
    """Return the folder in which a task is to work; empty: it is to have one of its own.

    Raises:
        UsageProblem: the user has not allowed it, or it is not what it seems.
    """
    if not text:
        return ""
    path = _plain(world, "workdir", text)
    roots = [Path(os.path.realpath(_absolute(world, one))) for one in world.settings.tasks.workdirs]
    if not any(path.is_relative_to(root) for root in roots):
        raise UsageProblem(
            f"workdir: {path} is in no folder in which tasks may work",
            hint="allow one in ~/.swarm/config.yaml: tasks: {workdirs: [FOLDER]}",
        )
    if not path.is_dir():
        raise UsageProblem(f"workdir: {path} is no folder", hint=f"mkdir -p {path}")
    _check_owner("workdir", path)
    return str(path)


def session_dir(world: World, text: str) -> str:
    """Return the folder in which the folders of sessions are to be; empty: swarm's own. It need not be there yet.

    Raises:
        UsageProblem: it cannot be used so.
        NotForAgents: an agent asks.
    """
    if not text:
        return ""
    if caller(world).kind == AGENT:
        raise NotForAgents("cannot choose a session_dir: only people can, or the file of a served agent")
    path = _plain(world, "session_dir", text)
    if os.path.lexists(path):
        if not path.is_dir():
            raise UsageProblem(f"session_dir: {path} is no folder", hint="name another one")
        _check_owner("session_dir", path)
    elif not path.parent.is_dir():
        raise UsageProblem(f"session_dir: {path.parent} is no folder", hint=f"mkdir -p {path.parent}")
    return str(path)


def overlap(one: str, other: str) -> bool:
    """Whether one folder is the other one, or lies in it."""
    return Path(one).is_relative_to(other) or Path(other).is_relative_to(one)


def _absolute(world: World, text: str) -> str:
    home = world.environ.get("HOME", "")
    return f"{home}/{text[2:]}" if text.startswith("~/") and home else text


def _plain(world: World, what: str, text: object) -> Path:
    """Return a path to which no link leads, and behind which is nothing of swarm's or git's."""
    if not isinstance(text, str) or not text.isprintable() or len(text) > os.pathconf("/", "PC_PATH_MAX") // 2:
        raise UsageProblem(f"{what} must be the path of a folder, in one printable line")
    whole = _absolute(world, text)
    if not os.path.isabs(whole):
        raise UsageProblem(f"{what}: {text} is no absolute path", hint=f"for example: {what}: /srv/work")
    path = Path(os.path.normpath(whole))
    real = Path(os.path.realpath(path))
    if path != real or ".." in Path(whole).parts:
        raise UsageProblem(f"{what}: {text} leads by a link, or by .., to {real}", hint=f"name that one: {real}")
    why = wish.trouble_with(world, path, writes=True)
    if why:
        raise UsageProblem(f"{what}: {why}", hint="name another folder")
    return path


def _check_owner(what: str, path: Path) -> None:
    info = os.lstat(path)
    if info.st_uid != os.geteuid() or stat.S_IMODE(info.st_mode) & _OTHERS_WRITE:
        raise UsageProblem(f"{what}: others can write to {path}", hint=f"chmod go-w {path}; it must be yours, too")
