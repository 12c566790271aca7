"""A role's options in words, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.api.words import show_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm import RoleOptions


def pairs_of(options: RoleOptions) -> list[tuple[str, str]]:
    """Return title and value of everything that is set."""
    return [(title, value) for title, value in (*_program(options), *_rules(options), *_rest(options)) if value]


def _program(options: RoleOptions) -> Iterator[tuple[str, str]]:
    yield "agent", " ".join(options.command) or options.agent_type
    yield "permission mode", str(options.permission_mode)
    yield "print mode", "yes" if options.print else ""
    yield "root dir", "" if options.root_dir == "." else options.root_dir
    yield "works in", "" if options.worktree.subdir == "." else options.worktree.subdir
    yield "claude config", options.claude_config_dir


def _rules(options: RoleOptions) -> Iterator[tuple[str, str]]:
    rules = options.permissions
    yield "allow", ", ".join(rules.allow)
    yield "deny", ", ".join(rules.deny)
    yield "  unclear", str(rules.unclear) if rules.deny else ""
    yield "may", ", ".join(options.may)
    reviewer = rules.reviewer
    yield "reviewer", f"{reviewer.model}, {show_seconds(reviewer.timeout)}" if reviewer.enabled else "disabled"


def _rest(options: RoleOptions) -> Iterator[tuple[str, str]]:
    env, beat, limits = options.env, options.heartbeat, options.limits
    yield "env pass", ("only " + (", ".join(env.keep) or "what is needed")) if env.narrow else ""
    yield "env drop", ", ".join(env.drop)
    yield "env set", ", ".join(env.set)
    yield "heartbeat", f"after {show_seconds(beat.idle_timeout)}: {beat.message}" if beat else ""
    yield "  if", beat.condition if beat else ""
    yield "hooks", ", ".join(dict.fromkeys(hook.event for hook in options.hooks))
    yield "settings", ", ".join(options.settings)
    setup = options.setup
    yield "setup copy", ", ".join(setup.copy)
    yield "setup link", ", ".join(setup.link)
    yield "setup run", "; ".join(setup.run)
    yield "setup ports", ", ".join(setup.ports)
    yield "teardown", "; ".join(options.teardown.run)
    yield "telemetry", "" if options.telemetry is None else str(options.telemetry).lower()
    found = {"tokens": limits.tokens, "cost": limits.cost, "minutes": limits.minutes, "agents": limits.agents}
    yield "limits", ", ".join(f"{name} {value:g}" for name, value in found.items() if value)
