"""Files by which the user's service manager starts a server at login, and again after a crash: systemd and launchd.

Both by themselves end all that a service has started when it ends; these files have them leave tasks and agents alone,
so that the next server finds them at work.
"""

from __future__ import annotations

import os
import plistlib
import re
import shlex
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.kit import files
from swarm.kit.errors import UsageProblem
from swarm.services.values import UnitFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: The first line of files of ours: no other is ever replaced.
MARK = "Written by swarm."
_LARGEST = 1 << 16
#: Time for a shutdown that waits for a task.
_STOP_SECONDS = 60
#: What a server needs of the environment; logins and tokens lie in the swarm directory.
_NEEDED = ("PATH", "SWARM_ROOT", "SWARM_DIR", "LANG")
#: Ends after which another start would end the same way.
_FINAL = (2, 3, 4)
_LINGER = Path("/var/lib/systemd/linger")
_SYSTEMD, _LAUNCHD = ".config/systemd/user", "Library/LaunchAgents"


def write(what: str, argv: Sequence[str], folder: Path, environ: Mapping[str, str], platform: str) -> UnitFile:
    """Write the file of a server, for the service manager of this machine.

    Args:
        what: the server, such as ``agent-reviewer``.
        argv: its command.
        folder: where it works; it tells servers of one name apart.
        platform: as ``sys.platform`` calls it.

    Raises:
        UsageProblem: a file of somebody else's has its name, or something cannot stand in such a file.
    """
    env = {name: environ[name] for name in _NEEDED if environ.get(name)}
    bad = next((one for one in (*argv, *env.values(), str(folder)) if not one.isprintable()), None)
    if bad is not None:
        raise UsageProblem(f"cannot write a unit file: {ascii(bad)[:80]} has characters that cannot stand there")
    commands: tuple[str, ...]
    label = f"swarm-{what}-{sha256(os.fsencode(folder)).hexdigest()[:8]}"
    if platform == "darwin":
        path = _home(environ) / _LAUNCHD / f"{label}.plist"
        text = _plist(label, argv, folder, env)
        commands = (f"launchctl bootstrap gui/$(id -u) {_word(path)}",)
    else:
        path = _systemd_folder(environ) / f"{label}.service"
        text = _unit(what, argv, folder, env)
        commands = (
            "systemctl --user daemon-reload",
            f"systemctl --user enable --now {label}",
            "loginctl enable-linger   # it runs also while you are not logged in",
        )
    if files.exists(path) and not is_ours(path):
        raise UsageProblem(
            f"cannot write {path}: the file there is none of swarm's", hint=f"move it away: {_word(path)}"
        )
    files.make_folders(path.parent, 0o755)
    files.write_atomic(path, text, 0o600)
    return UnitFile(path, commands)


def is_ours(path: Path) -> bool:
    """Whether swarm wrote a file."""
    try:
        return MARK.encode() in files.read_small(path, _LARGEST)[:400]
    except OSError:
        return False


def all_of(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the files of swarm's, of both service managers."""
    found: list[Path] = []
    for folder, ending in ((_systemd_folder(environ), ".service"), (_home(environ) / _LAUNCHD, ".plist")):
        if folder.is_dir():
            found += sorted(one for one in folder.glob(f"swarm-*{ending}") if is_ours(one))
    return tuple(found)


def troubles(path: Path, user: str) -> Iterator[tuple[str, str]]:
    """Give what is wrong with a file of swarm's, each with what mends it."""
    data = files.read_small(path, _LARGEST)
    if path.suffix == ".plist":
        said = plistlib.loads(data)
        if said.get("AbandonProcessGroup") is not True:
            yield f"{path.name}: launchd ends tasks and agents with the server", "set AbandonProcessGroup to true"
        program = str((said.get("ProgramArguments") or [""])[0])
    else:
        text = data.decode("utf-8", "replace")
        if re.search(r"^KillMode=process$", text, re.MULTILINE) is None:
            yield f"{path.name}: systemd ends tasks and agents with the server", "set KillMode=process"
        found = re.search(r'^ExecStart="((?:[^"\\]|\\.)*)"', text, re.MULTILINE)
        program = re.sub(r"\\(.)", r"\1", found[1]).replace("%%", "%").replace("$$", "$") if found is not None else ""
        if sys.platform == "linux" and not (_LINGER / user).exists():
            yield f"{path.name}: systemd ends it when you log out", "loginctl enable-linger"
    if not os.access(program, os.X_OK):
        yield f"{path.name}: its program is gone: {program}", "write it again: swarm agent serve --name NAME --unit"


def _unit(what: str, argv: Sequence[str], folder: Path, env: Mapping[str, str]) -> bytes:
    lines = [
        f"# {MARK} `swarm doctor` checks it.",
        "[Unit]",
        f"Description=swarm {what.replace('-', ' ', 1)} of {str(folder).replace('%', '%%')}",
        "",
        "[Service]",
        f"WorkingDirectory={str(folder).replace('%', '%%')}",
        *(f"Environment={_quoted(f'{name}={value}')}" for name, value in env.items()),
        f"ExecStart={' '.join(_quoted(one.replace('$', '$$')) for one in argv)}",
        "# What the server has started outlives it, and the next server finds it.",
        "KillMode=process",
        f"TimeoutStopSec={_STOP_SECONDS}",
        "Restart=on-failure",
        "RestartSec=2",
        f"RestartPreventExitStatus={' '.join(map(str, _FINAL))}",
        "UMask=0077",
        "",
        "[Install]",
        "WantedBy=default.target",
        "",
    ]
    return "\n".join(lines).encode()


def _quoted(text: str) -> str:
    """Return a word as systemd reads it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _plist(label: str, argv: Sequence[str], folder: Path, env: Mapping[str, str]) -> bytes:
    said: dict[str, Any] = {
        "Label": label,
        "ProgramArguments": list(argv),
        "WorkingDirectory": str(folder),
        "EnvironmentVariables": dict(env),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
        "AbandonProcessGroup": True,
        "ExitTimeOut": _STOP_SECONDS,
        "Umask": 0o077,
    }
    head, _, rest = plistlib.dumps(said).partition(b"\n")
    return head + f"\n<!-- {MARK} `swarm doctor` checks it. -->\n".encode() + rest


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or os.path.expanduser("~"))


def _systemd_folder(environ: Mapping[str, str]) -> Path:
    configured = environ.get("XDG_CONFIG_HOME", "")
    return Path(configured) / "systemd/user" if configured.startswith("/") else _home(environ) / _SYSTEMD


def _word(path: Path) -> str:
    return shlex.quote(str(path))
