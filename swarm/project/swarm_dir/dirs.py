"""Find, check and make the swarm directory.

A swarm directory is a folder with the marker ``.swarm-dir.txt``.  The one in use is, in this order:

1. ``$SWARM_DIR``, which must be one;
2. ``$SWARM_ROOT`` (for services); the first change makes it into one if it is missing or empty;
3. the nearest folder D, from the current one upwards, where D or ``D/.swarm`` is one;
4. ``~/.swarm``;
5. the ``.swarm`` of a repository around us.

The last holds the state of that repository and is made with its first session.  So it must not hide the directories
farther out, which hold the user's roles.  swarm still looks there first for roles, workflows and settings.

Every function takes ``environ``, ``cwd`` and ``home`` for use as a library and in tests; left out,
they are the process's own, and the answer is remembered for as long as the process lives.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from swarm.kit import files
from swarm.kit.errors import SwarmError, SymlinkInTheWay, UsageProblem
from swarm.project.config.file import CONFIG_FILE
from swarm.project.errors import SwarmDirExists, SwarmDirNotFound, SwarmDirProblem
from swarm.project.swarm_dir.marker import (
    MARKER,
    OPEN_DIRS,
    PRIVATE_DIRS,
    is_swarm_dir,
    looks_like_swarm_dir,
    make_swarm_dir,
    read_marker_version,
    write_marker,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

PROJECT_DIR = ".swarm"


_lock = threading.RLock()
_remembered: Path | None = None


class _Around(NamedTuple):
    """Facts about the process; None means: ask it."""

    environ: Mapping[str, str] | None = None
    cwd: Path | None = None
    home: Path | None = None

    def variable(self, name: str) -> str:
        return (os.environ if self.environ is None else self.environ).get(name, "")

    def absolute(self, path: str | Path) -> Path:
        whole = Path(path) if Path(path).is_absolute() else self.current() / path
        return Path(os.path.normpath(whole))

    def current(self) -> Path:
        if self.cwd is not None:
            return Path(os.path.abspath(self.cwd))  # links stay as they are
        try:
            return Path.cwd()
        except OSError as error:
            raise SwarmDirProblem(
                "cannot look for a swarm directory: the current directory is gone",
                hint="change to another directory, or set SWARM_DIR",
            ) from error

    def home_dir(self) -> Path:
        home = self.home
        if home is None:
            with contextlib.suppress(RuntimeError, KeyError):
                home = Path(self.variable("HOME") or _home_of_account())
        if home is None or not home.is_absolute():
            raise SwarmDirNotFound("cannot determine the home directory", hint="set HOME or SWARM_DIR")
        return home


def _home_of_account() -> str:
    import pwd

    return pwd.getpwuid(os.getuid()).pw_dir


# --- which one is in use ----------------------------------------------------------------------


def resolve_dir(
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    home: Path | None = None,
) -> Path:
    """Return the swarm directory in use, absolute.

    Without arguments the first answer is kept until `reset_cache`; threads share it.

    Raises:
        SwarmDirProblem: a variable or a marker is wrong; nothing else is tried then.
        SwarmDirNotFound: there is none.
    """
    around = _Around(environ, cwd, home)
    if any(given is not None for given in around):
        return _resolve(around)
    global _remembered  # noqa: PLW0603  # one answer per process is the point
    with _lock:
        if _remembered is None:
            _remembered = _resolve(around)
        return _remembered


def find_dir(
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    home: Path | None = None,
) -> Path | None:
    """Return the swarm directory in use, or None. Makes nothing, and remembers nothing.

    Raises:
        SwarmDirProblem: as `resolve_dir` does for a wrong variable or a broken marker.
    """
    try:
        return _resolve(_Around(environ, cwd, home), make=False)
    except SwarmDirNotFound:
        return None


def make_root(environ: Mapping[str, str], cwd: Path) -> None:
    """Make the folder of ``SWARM_ROOT`` into a swarm directory, where that is the one in use."""
    if environ.get("SWARM_ROOT") and not environ.get("SWARM_DIR"):
        resolve_dir(environ=environ, cwd=cwd)


def user_dir(environ: Mapping[str, str] | None = None, *, home: Path | None = None) -> Path | None:
    """Return ``~/.swarm``, even if it is missing; None without a home directory."""
    try:
        return _Around(environ, home=home).home_dir() / PROJECT_DIR
    except SwarmDirNotFound:
        return None


def reset_cache() -> None:
    """Forget the remembered directory."""
    global _remembered  # noqa: PLW0603  # see resolve_dir
    with _lock:
        _remembered = None


def config_dir() -> Path:
    """Return the swarm directory in use, or end the process with the reason on stderr."""
    try:
        return resolve_dir()
    except SwarmError as error:
        _abort(error)


def _abort(error: SwarmError) -> NoReturn:
    hint = f" - hint: {error.hint}" if error.hint else ""
    sys.stderr.write(f"error[{error.code}]: {error.message}{hint}\n")
    raise SystemExit(error.exit_code) from error


def _resolve(around: _Around, *, make: bool = True) -> Path:
    named = around.variable("SWARM_DIR")
    if named:
        return _strict(named, around)
    root = around.variable("SWARM_ROOT")
    if root:
        return _service_root(root, around, make=make)
    foreign: list[Path] = []
    states: list[Path] = []
    found = _walk(around.current(), foreign, states)
    if found is not None:
        return found
    try:
        return _fallback(around, foreign)
    except SwarmDirNotFound:
        if states:
            return states[0]
        raise


def _strict(named: str, around: _Around) -> Path:
    path = around.absolute(named)
    try:
        read_marker_version(path)
    except SwarmDirNotFound:
        inner = path / PROJECT_DIR
        better = f"set SWARM_DIR={inner}" if is_swarm_dir(inner) else f"run `swarm init {path}`"
        raise SwarmDirProblem(
            f"SWARM_DIR={named}: {path} is not a swarm directory (missing {MARKER})",
            hint=f"{better}, or unset SWARM_DIR",
        ) from None
    except SwarmDirProblem as error:
        raise SwarmDirProblem(f"SWARM_DIR={named}: {error.message}", hint=error.hint) from None
    return path


def _service_root(named: str, around: _Around, *, make: bool) -> Path:
    path = around.absolute(named)
    if is_swarm_dir(path):
        return path
    try:
        entries = set(os.listdir(path))  # one call, which distinguishes missing
    except FileNotFoundError:
        entries = set()
    except NotADirectoryError:
        what = f"SWARM_ROOT={named}: {path} is not a folder"
        raise SwarmDirProblem(what, hint="set SWARM_ROOT to a folder of its own") from None
    except OSError as error:
        raise files.translate(error, f"SWARM_ROOT={named}: cannot look into it") from error
    if not all(_may_be_ours(name) for name in entries):
        raise SwarmDirProblem(
            f"SWARM_ROOT={named}: {path} is not empty and not a swarm directory (missing {MARKER})",
            hint=f"run `swarm init {path}`, or set SWARM_ROOT to a folder of its own",
        )
    if not make:
        return path  # in use already; the first change makes it ready
    # Another service may be doing the same at this moment; either way it is ready then.
    with contextlib.suppress(SwarmDirExists):
        make_swarm_dir(path, 0o755)
    return path


def _may_be_ours(name: str) -> bool:
    """Whether an init that was cut short may have left this."""
    made = {one.partition("/")[0] for one in (*OPEN_DIRS, *PRIVATE_DIRS)} | {CONFIG_FILE}
    return name in made or files.is_temporary(name, CONFIG_FILE) or files.is_temporary(name, MARKER)


def _walk(start: Path, foreign: list[Path], states: list[Path]) -> Path | None:
    """Return the nearest one; those of others, and those that hold a repository's state, are put into the lists."""
    for directory in (start, *start.parents):
        for candidate in (directory, directory / PROJECT_DIR):
            if not files.exists(candidate / MARKER):
                continue
            if not _is_trusted(candidate):
                foreign.append(candidate)
                continue
            read_marker_version(candidate)  # a broken one must not let a farther one answer
            if candidate == directory or not files.exists(directory / ".git"):
                return candidate
            states.append(candidate)
    return None


def _is_trusted(directory: Path) -> bool:
    """Whether a marker found by chance may decide where our state and our roles are.

    Anyone can put a marker into ``/tmp``; it must not catch whoever works below.
    """
    try:
        folder, marker = directory.stat(), (directory / MARKER).lstat()
    except OSError:
        return False
    uid = os.geteuid()
    if uid == 0:  # containers run as root on folders of other users
        return not folder.st_mode & stat.S_IWOTH or marker.st_uid == 0
    return folder.st_uid in (uid, 0) and marker.st_uid in (uid, 0)


def _fallback(around: _Around, foreign: list[Path]) -> Path:
    path = around.home_dir() / PROJECT_DIR
    if files.exists(path / MARKER):
        read_marker_version(path)
        return path
    if looks_like_swarm_dir(path):
        write_marker(path)
        return path
    ignored = f" ({foreign[0]} belongs to another user)" if foreign else ""
    raise SwarmDirNotFound(f"no swarm directory found{ignored}; run `swarm init` to create one")


# --- making one -------------------------------------------------------------------------------


def init_dir(
    target: str | Path | None = None,
    *,
    global_: bool = False,
    mode: int = 0o755,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    home: Path | None = None,
) -> Path:
    """Make *target* (default: the current directory) a swarm directory and return it, absolute.

    The marker is written last: an init that was cut short leaves no swarm directory and can simply
    be run again.  What is already there, also a config.yaml, stays as it is.

    Args:
        target: the folder; made with its parents if missing.
        global_: take ``~/.swarm`` instead of *target*.
        mode: of the folder, if it is made.
        environ: as for `resolve_dir`.
        cwd: as for `resolve_dir`.
        home: as for `resolve_dir`.

    Raises:
        SwarmDirExists: it is one already; nothing was changed.
        StateDirProblem, SymlinkInTheWay: something else stands where a folder must be.
        NoPermission, NoSpace, EnvironmentProblem: the system does not allow it.
    """
    around = _Around(environ, cwd, home)
    if global_ and target is not None:
        raise UsageProblem("a directory and --global exclude each other", hint="give one of them")
    path = around.home_dir() / PROJECT_DIR if global_ else around.absolute(target or ".")
    if path.name == PROJECT_DIR and path.is_symlink() and not global_:
        raise SymlinkInTheWay(f"cannot make {path}: it is a symbolic link, which no swarm command would follow")
    make_swarm_dir(path, mode)
    reset_cache()
    return path


# --- content ----------------------------------------------------------------------------------


def _below(base: str | Path | None, *parts: str) -> Path:
    return (resolve_dir() if base is None else Path(base)).joinpath(*parts)


def roles_dir(base: str | Path | None = None) -> Path:
    """Return the folder of role files."""
    return _below(base, "roles")


def sessions_dir(base: str | Path | None = None) -> Path:
    """Return the folder of session records."""
    return _below(base, "sessions")


def claude_config_dir(base: str | Path | None = None) -> Path:
    """Return the default configuration folder for agents' programs."""
    return _below(base, "claude-config", "default")


def projects_dir(base: str | Path | None = None) -> Path:
    """Return the conventional folder for checkouts."""
    return _below(base, "projects")


def project_path(root_dir: str | Path, base: str | Path | None = None) -> Path:
    """Return where a role's ``root_dir`` is: a relative one is below the swarm directory, ``.`` the current one."""
    from swarm.project import layout

    here = _Around().current()
    return layout.root_dir(str(root_dir), cwd=here, swarm_dir=_below(base), home=os.environ.get("HOME", ""))


def worktrees_dir(base: str | Path | None = None) -> Path:
    """Return the folder of the worktrees of single agents."""
    return _below(base, "worktrees")


def pod_roles_dir(base: str | Path | None = None) -> Path:
    """Return the folder of the roles that only pods use."""
    return _below(base, "pods", "roles")


def pod_templates_dir(base: str | Path | None = None) -> Path:
    """Return the folder of pod templates."""
    return _below(base, "pods", "templates")


def sockets_dir(base: str | Path | None = None, *, environ: Mapping[str, str] | None = None) -> Path:
    """Return a folder for sockets whose path is short enough for the kernel.

    That is ``<swarm dir>/sockets``, or a short link to it in a folder that only we can write to;
    the link, and the folder it leads to, are made then.

    Raises:
        SymlinkInTheWay, StateDirProblem: someone else's file stands where the link should be.
    """
    from swarm.project.swarm_dir import socket_dir

    real = socket_dir.folder_of(_below(base))
    if socket_dir.fits(real):
        return real
    with files.os_errors("cannot make a short path for sockets"):
        return socket_dir.short(real, os.environ if environ is None else environ)
