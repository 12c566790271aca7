"""Overrides: which keys, which values, and the role that comes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from swarm.kit.errors import SwarmError
from swarm.project.names import expand_roles
from swarm.roles.options import Heartbeat, RoleOptions, WorktreeOptions
from swarm.roles.overrides import adjusted, assign, keys, read_words
from swarm.roles.role import Role, RoleKind

pytestmark = pytest.mark.unit


def role(**options: Any) -> Role:
    return Role("qa", "", "x", Path("qa.yaml"), RoleKind.PROJECT, RoleOptions(**options))


def test_the_keys_are_those_of_the_users_design() -> None:
    assert set(keys()) == {
        *("root_dir", "agent_type", "model", "claude_config_dir"),
        *("worktree.enabled", "worktree.branch_from", "worktree.use_detached_head"),
        *("heartbeat.idle_timeout", "heartbeat.message", "heartbeat.condition"),
    }


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["model=opus"], {"model": "opus"}),
        (["model=a", "model=b"], {"model": "b"}),
        (["model=7"], {"model": "7"}),
        (["agentType=claude_code"], {"agent_type": "claude"}),
        (["worktree.enabled=FALSE"], {"worktree": WorktreeOptions(enabled=False)}),
        (["worktree.useDetachedHead=True"], {"worktree": WorktreeOptions(use_detached_head=True)}),
        (["worktree.branch_from=a=b"], {"worktree": WorktreeOptions(branch_from="a=b")}),
        (
            ["heartbeat.idle_timeout=10m", "heartbeat.message=true", "heartbeat.condition=test 1 = 1"],
            {"heartbeat": Heartbeat(600, "true", "test 1 = 1")},
        ),
        (["claude_config_dir=~/.other"], {"claude_config_dir": "~/.other"}),
    ],
)
def test_what_words_make_of_a_plain_role(words: list[str], options: dict[str, Any]) -> None:
    given = assign(expand_roles("qa"), read_words(words))

    assert adjusted(role(), given["qa"]).options == RoleOptions(**options)


def test_the_rest_of_a_block_stays() -> None:
    before = role(heartbeat=Heartbeat(60, "Go on", "true"), worktree=WorktreeOptions(subdir="a"))
    given = (("heartbeat.idle_timeout", "2m"), ("worktree.enabled", "true"))

    after = adjusted(before, given).options

    assert after.heartbeat == Heartbeat(120, "Go on", "true")
    assert after.worktree == WorktreeOptions(enabled=True, subdir="a")


def test_a_program_wins_over_the_command_of_the_file() -> None:
    after = adjusted(role(command=("aider",)), (("agent_type", "demo"),)).options

    assert (after.agent_type, after.command) == ("demo", ())


def test_an_agent_or_a_role_alone() -> None:
    specs = expand_roles("developer:2,lead=architect")
    given = {"model": "a", "developer:model": "b", "developer-2:model": "c", "architect:worktree.enabled": True}

    assert assign(specs, given) == {
        "developer-1": (("model", "b"),),
        "developer-2": (("model", "c"),),
        "lead": (("model", "a"), ("worktree.enabled", "true")),
    }


@pytest.mark.parametrize(
    ("word", "why", "hint"),
    [
        ("model", "it must be KEY=VALUE", "model=opus"),
        ("=x", "it must be KEY=VALUE", "model=opus"),
        ("modle=x", "'modle': is no key of a role", "did you mean model?"),
        ("worktree.enabeld=true", "worktree has no such key", "did you mean worktree.enabled?"),
        ("worktree=true", "this key cannot be overridden", "worktree.enabled"),
        ("name=x", "this key cannot be overridden", "role's file"),
        ("instructions=x", "this key cannot be overridden", "role's file"),
        ("permissions=x", "this key cannot be overridden", "role's file"),
        ("permissions.allow=Bash", "this key cannot be overridden", "role's file"),
        ("hooks=x", "this key cannot be overridden", "role's file"),
        ("settings=x", "this key cannot be overridden", "role's file"),
        ("may=stop", "this key cannot be overridden", "role's file"),
        ("env.set=A", "this key cannot be overridden", "role's file"),
        ("model.x=1", "model has no such key", "did you mean model?"),
        ("worktree.enabled=yes", "'yes': must be true or false", ""),
        ("worktree.enabled=", "must be true or false", ""),
        ("heartbeat.idle_timeout=soon", "must be a number of seconds", ""),
        ("heartbeat.idle_timeout=0", "must be from 1s", ""),
        ("agent_type=clod", "must be one of claude", ""),
        ("model=a b", "must be one word", ""),
        ("tester:model=x", "there is no agent or role 'tester'", "qa"),
    ],
)
def test_what_is_refused(word: str, why: str, hint: str) -> None:
    with pytest.raises(SwarmError) as raised:
        assign(expand_roles("qa"), read_words([word]))

    assert (raised.value.code, raised.value.exit_code) == ("OVERRIDE", 2)
    assert why in raised.value.message
    assert hint in raised.value.hint
    assert word.partition("=")[0] in raised.value.message


def test_all_that_is_wrong_at_once() -> None:
    with pytest.raises(SwarmError) as raised:
        assign(expand_roles("qa"), {"modle": "x", "worktree.enabled": "yes"})

    assert "modle" in raised.value.message
    assert "worktree.enabled" in raised.value.message


def test_half_a_heartbeat_is_none() -> None:
    with pytest.raises(
        SwarmError, match=r"heartbeat\.idle_timeout of role qa: heartbeat\.message: is missing"
    ) as raised:
        adjusted(role(), (("heartbeat.idle_timeout", "10m"),))

    assert raised.value.hint == "override heartbeat.message, too"
