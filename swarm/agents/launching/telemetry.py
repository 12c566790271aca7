"""Environment variables that tell an agent's program where to send its OpenTelemetry data.

The headers, which may hold an access token, come from a file that only its owner may read.  They reach the
program with the rest of its environment, in the private file that its launcher removes: never an argument,
never tmux, never the journal.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.kit.errors import ConfigProblem, SwarmError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from swarm.programs.base import Program
    from swarm.programs.values import Launch
    from swarm.project.config.sections import Telemetry
    from swarm.project.world import World
    from swarm.roles.options import RoleOptions

_HEADER = re.compile(r"([A-Za-z0-9!#$%&'*+.^_`|~-]+)\s*[:=]\s*(\S.*)")
_LARGEST = 64 * 1024
#: What stays as it is in a header's value; the rest has a meaning in the variable. Not every program decodes it.
_PLAIN = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) not in "%,;")
_ATTRIBUTES = "OTEL_RESOURCE_ATTRIBUTES"
#: Our own attributes begin so; those that an outer swarm gave are not the agent's.
_OURS = "swarm."


def is_on(world: World, options: RoleOptions) -> bool:
    """Whether an agent of a role sends measurements: the role decides, else the setting."""
    return world.settings.telemetry.enabled if options.telemetry is None else options.telemetry


def problems(world: World, options: RoleOptions) -> Iterator[SwarmError]:
    """Yield the problems of the settings."""
    if is_on(world, options):
        try:
            _headers(world.settings.telemetry, world.environ)
        except SwarmError as problem:
            yield problem


def variables(world: World, program: Program, launch: Launch) -> dict[str, str]:
    """Return the variables that one agent gets; the role's ``env: drop:`` counts for them, too."""
    if not is_on(world, launch.options):
        return {}
    wish = world.settings.telemetry
    found = {
        "OTEL_METRICS_EXPORTER": "otlp",
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_PROTOCOL": wish.protocol,
        _ATTRIBUTES: _attributes(world, launch),
        **program.telemetry(wish),
    }
    if wish.endpoint:
        found["OTEL_EXPORTER_OTLP_ENDPOINT"] = wish.endpoint
    headers = _headers(wish, world.environ)
    if headers:
        found["OTEL_EXPORTER_OTLP_HEADERS"] = headers
    return {name: value for name, value in found.items() if not launch.options.env.drops(name)}


def switches(world: World, program: Program, options: RoleOptions) -> frozenset[str]:
    """Return the variables that an agent must not inherit, because they turn on telemetry that its role turns off."""
    return frozenset(program.telemetry(world.settings.telemetry)) if options.telemetry is False else frozenset()


def _attributes(world: World, launch: Launch) -> str:
    """Return the attributes of the measurements: the caller's own, then session, agent, role and repository."""
    caller = world.environ.get(_ATTRIBUTES, "").split(",")
    kept = [one.strip() for one in caller if one.strip() and not one.strip().startswith(_OURS)]
    ours = {
        "session": launch.session,
        "agent": launch.agent,
        "role": launch.role,
        "repository": _encoded(world.layout.root.name, ""),
    }
    return ",".join((*kept, *(f"{_OURS}{name}={value}" for name, value in ours.items())))


def _headers(wish: Telemetry, environ: Mapping[str, str]) -> str:
    """Return the headers as the variable spells them; empty when there are none.

    Raises:
        ConfigProblem: the file is not there, not private, or holds something else.  Its text is never quoted.
    """
    if not wish.headers_file:
        return ""
    path = _place(wish.headers_file, environ)
    try:
        mode = path.stat().st_mode
        text = files.read_small(path, _LARGEST).decode("utf-8")
    except OSError as error:
        raise _refused(path, error.strerror or str(error), f"write it, one `name: value` a line: {path}") from error
    except (SwarmError, UnicodeDecodeError) as error:
        raise _refused(path, "it is not a small text file", "write one `name: value` a line") from error
    if stat.S_IMODE(mode) & 0o077:
        raise _refused(path, "others may read it", f"chmod 600 {shlex.quote(str(path))}")
    return ",".join(_header(path, number, line) for number, line in _lines(text))


def _place(text: str, environ: Mapping[str, str]) -> Path:
    home = Path(environ.get("HOME") or "~").expanduser()
    return home / text[2:] if text.startswith("~/") else Path(text)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line.strip()


def _header(path: Path, number: int, line: str) -> str:
    match = _HEADER.fullmatch(line)
    if match is None or not line.isprintable():
        raise _refused(path, f"line {number} is not a header", "write one `name: value` a line")
    # In small letters: that is how gRPC wants names.
    return f"{match[1].lower()}={_encoded(match[2], _PLAIN)}"


def _encoded(text: str, plain: str) -> str:
    from urllib.parse import quote

    return quote(os.fsencode(text), safe=plain)


def _refused(path: Path, reason: str, hint: str) -> ConfigProblem:
    return ConfigProblem(f"cannot use telemetry.headers_file {path}: {reason}", hint=hint)
