"""The configuration files, read and laid over one another; and the one that `swarm init` writes.

The last one wins: ``~/.swarm/config.yaml``, that of another swarm directory in use, ``.swarm/config.yaml``,
``.swarm/config.local.yaml``, the environment, the flags of the command line.
"""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import TYPE_CHECKING

from swarm.kit import files, textfile
from swarm.kit.errors import SwarmError, raise_all
from swarm.project.config.layers import Entry, Layer, build_settings, environment_layer, flag_layer
from swarm.project.config.settings import SECTIONS, OriginKind, Setting, Settings, describe, find_setting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from swarm.kit import yaml

CONFIG_FILE = "config.yaml"
LOCAL_CONFIG_FILE = "config.local.yaml"
_NO_FLAGS: Mapping[str, object] = MappingProxyType({})


def load_settings(
    project_dir: Path | None,
    *,
    user_dir: Path | None,
    environ: Mapping[str, str],
    swarm_dir: Path | None = None,
    flags: Mapping[str, object] = _NO_FLAGS,
) -> Settings:
    """Return the settings of a project.

    Args:
        project_dir: the project's ``.swarm``; None for no project.
        user_dir: the user's swarm directory, normally ``~/.swarm``; None for none.
        environ: where the ``SWARM_*`` variables are looked up.
        swarm_dir: the swarm directory in use.  It counts outside of the repository alone: agents write inside.
        flags: dotted keys from the command line; None values are not given.

    Raises:
        ConfigProblem, Refused: with every problem of every file that can be read at all.
        NoPermission: a file may not be read.
        SymlinkInTheWay, StateDirProblem: *project_dir* is a link, or another user's; nothing in it is read.
    """
    if project_dir is not None:
        files.refuse_foreign(project_dir)
    layers: list[Layer] = []
    problems: list[SwarmError] = []
    for kind, path in _files(project_dir, user_dir, swarm_dir):
        try:
            layers.append(read_layer(kind, path))
        except SwarmError as error:
            problems.append(error)
    layers += [environment_layer(environ), flag_layer(flags)]
    try:
        settings = build_settings(layers)
    except SwarmError as error:
        problems += getattr(error, "problems", (error,))
        settings = Settings()
    raise_all("the configuration has several problems", problems)
    return settings


def _files(
    project_dir: Path | None, user_dir: Path | None, swarm_dir: Path | None
) -> Iterator[tuple[OriginKind, Path]]:
    # With the home directory as the project both are one file; it counts once.
    if user_dir is not None and not _same(user_dir, project_dir):
        yield OriginKind.USER, user_dir / CONFIG_FILE
    if swarm_dir is not None and not _same(swarm_dir, user_dir) and not _is_inside(swarm_dir, project_dir):
        yield OriginKind.USER, swarm_dir / CONFIG_FILE
    if project_dir is not None:
        yield OriginKind.PROJECT, project_dir / CONFIG_FILE
        yield OriginKind.LOCAL, project_dir / LOCAL_CONFIG_FILE


def _is_inside(folder: Path, project_dir: Path | None) -> bool:
    if project_dir is None:
        return False
    root = os.path.realpath(project_dir.parent)
    return os.path.commonpath((os.path.realpath(folder), root)) == root


def _same(one: Path, other: Path | None) -> bool:
    try:
        return other is not None and os.path.samefile(one, other)
    except OSError:
        return False


def read_layer(kind: OriginKind, path: Path) -> Layer:
    """Read one file; a missing file is an empty layer.

    Raises:
        ConfigProblem: it is not YAML, or no regular file.
        NoPermission: it may not be read.
    """
    data = textfile.read_bytes(path)
    if data is None:
        return Layer(kind, ())
    from swarm.kit import yaml

    return Layer(kind, tuple(_entries(yaml.load(data, str(path)))))


def _entries(table: yaml.Table, prefix: str = "") -> Iterator[Entry]:
    """Flatten the sections; any other value stays whole, also a mapping."""
    from swarm.kit.yaml import Table

    for name, pair in table.pairs.items():
        dotted = prefix + name
        is_section = dotted in SECTIONS and find_setting(dotted) is None
        if is_section and isinstance(pair.value, Table):
            yield from _entries(pair.value, dotted + ".")
        elif not (is_section and pair.value.plain() is None):
            yield Entry(dotted, pair.value.plain(), pair.key.where, pair.value.where)


# --- the default file -------------------------------------------------------------------------

_HEAD = """\
# yaml-language-server: $schema=schema/config.json
# Settings of swarm.  Every key is listed with its default; remove the `# ` before one to change it.
# `swarm validate` checks this file.
"""


def default_config_text() -> str:
    """Return a config.yaml that sets nothing and shows everything."""
    lines = [_HEAD]
    for section, about in SECTIONS.items():
        lines += [f"## {about}", f"{section}:"]
        for setting in describe():
            if setting.section == section:
                lines += _shown(setting)
        lines.append("")
    return "\n".join(lines)


def _shown(setting: Setting) -> list[str]:
    from textwrap import wrap

    words = wrap(f"{setting.help} ({setting.form.name})", 90)
    return [*(f"  ## {line}" for line in words), f"  # {setting.name}: {setting.default_text}"]
