"""The environment of an agent's processes, as its role narrows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarm.project.world import World
    from swarm.roles.options import Env

#: Variables that a pane must not inherit: they redirect git (``git rev-parse --local-env-vars``), tmux or swarm.
_NOT_INHERITED = frozenset(
    {
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX"),
        *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH", "GIT_NAMESPACE"),
        *("GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_GRAFT_FILE", "GIT_SHALLOW_FILE", "GIT_REPLACE_REF_BASE"),
        *("GIT_NO_REPLACE_OBJECTS", "GIT_INTERNAL_SUPER_PREFIX"),
        *("COLUMNS", "LINES"),  # of another terminal
    }
)
_NOT_INHERITED_PREFIXES = ("TMUX", "SWARM_")
#: What goes along even when a role lets nothing else through: a terminal and its programs need it.
_NEEDED = frozenset({"HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER", "COLORTERM"})
_NEEDED_PREFIXES = ("LC_", "TERM")


def environ_of(world: World, role: Env) -> dict[str, str]:
    """Return an agent's environment: its part of the caller's, the role's own variables, and swarm's paths."""
    return {
        **{key: value for key, value in world.environ.items() if inherits(key, role)},
        **role.set,
        **places_of(world),
    }


def places_of(world: World) -> dict[str, str]:
    """Return the variables that say where the swarm directory in use is, and where the repository's state."""
    return {"SWARM_DIR": str(world.swarm_dir), "SWARM_STATE_DIR": str(world.layout.state)}


def inherits(key: str, role: Env) -> bool:
    """Whether a variable of the caller's environment goes along."""
    if key in _NOT_INHERITED or key.startswith(_NOT_INHERITED_PREFIXES):
        return False
    needed = key in _NEEDED or key.startswith(_NEEDED_PREFIXES)
    return not role.drops(key) if needed else role.passes(key)
