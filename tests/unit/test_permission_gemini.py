"""Deny rules as Gemini CLI is given them, judged as it judges: expressions on the arguments as JSON."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest

from swarm.domain import role_effects
from swarm.domain.permission_gemini import translate
from swarm.domain.permissions import Rules
from swarm.domain.role_fields import Permissions, RoleOptions


def denied(rule: str, tool: str, **given: Any) -> bool:
    pairs = (f"\0{json.dumps(key)}:{json.dumps(value, ensure_ascii=False)}\0" for key, value in sorted(given.items()))
    arguments = "{" + ",".join(pairs) + "}"
    return any(
        tool in (one["toolName"] if isinstance(one["toolName"], list) else [one["toolName"]])
        and re.search(one.get("argsPattern", ""), arguments)
        for one in tomllib.loads(translate(Rules.parse(deny=[rule])).policy)["rule"]
    )


@pytest.mark.parametrize(
    "command",
    [
        *("git push", "git push origin main", "/usr/bin/git push", "A=b git push x", "sudo -E git push"),
        *("bash -c 'git push'", 'sh -c "git push"', "timeout 5 env git push x", "eval git push"),
    ],
)
def test_commands(command: str) -> None:
    for rule in ("Bash(git push *)", "Bash(git push:*)", "Bash(git pu*)", "Bash"):
        assert denied(rule, "run_shell_command", command=command, description="x")


@pytest.mark.parametrize("command", ["git pushd", "git status", "echo hi"])
def test_other_commands(command: str) -> None:
    assert not denied("Bash(git push *)", "run_shell_command", command=command, description="env git push x")


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("docs/**", "docs/a/b"),
        ("docs/**", "/work/tree/docs/a"),
        ("/docs", "./docs/a"),
        ("docs/", "a/docs/b"),
        ("*.lock", "a/b.lock"),
        ("src/**/x.py", "src/x.py"),
        ("src/**/x.py", "src/a/b/x.py"),
        ("**/x.py", "a/x.py"),
        ("//etc/**", "/etc/passwd"),
        ("~/.ssh/**", "/home/me/.ssh/id"),
        ('a"b', 'x/a"b'),
    ],
)
def test_files(rule: str, path: str) -> None:
    assert denied(f"Edit({rule})", "write_file", file_path=path, content="x")
    assert denied(f"Write({rule})", "replace", file_path=path, new_string="x")
    assert denied(f"Read({rule})", "read_file", file_path=path)


def test_other_files() -> None:
    assert not denied("Edit(docs/**)", "write_file", file_path="src/a", content='"file_path":"docs/a"')
    assert not denied("Edit(src/*.py)", "write_file", file_path="src/a/b.py")
    assert not denied("Read(.env)", "read_file", file_path="a.env")


def test_tools_by_name() -> None:
    assert denied("Read", "grep_search", pattern="x")
    assert denied("WebFetch(domain:*.x.org)", "web_fetch", prompt="get https://a.x.org/b")
    assert not denied("WebFetch(domain:x.org)", "web_fetch", prompt="get https://xxorg")
    assert denied("Skill(pdf)", "activate_skill", name="pdf")
    (one,) = tomllib.loads(translate(Rules.parse(deny=["mcp__srv__tool"])).policy)["rule"]
    assert (one["mcpName"], one["toolName"], one["decision"]) == ("srv", "tool", "deny")


def test_every_expression_is_one_that_the_program_takes() -> None:
    """It refuses a repeated group that holds a repetition."""
    rules = ["Bash(a * b:*)", "Bash(*x*)", "Edit(a/**/b*/c)", "Read(**/*.x)", "WebFetch(domain:x.org)", "Skill(a*)"]
    for one in tomllib.loads(translate(Rules.parse(deny=rules)).policy)["rule"]:
        assert re.search(r"\)[*+?{]", one["argsPattern"]) is None


def test_what_is_not_held_is_said() -> None:
    long = f"Bash({'/' * 990})".replace("/", ".")
    options = RoleOptions(permissions=Permissions(("Bash(ls *)",), ("Edit(a)", "Agent(x)", "WebSearch", long)))

    said = [f"{note.key} {note.text}" for note in role_effects.notes(options, ("gemini",))]

    assert said == [
        "permissions.allow is not enforced by gemini",
        "permissions.deny is held by gemini for Edit(a) only by its own tools, not by what a command writes",
        "permissions.deny is not enforced by gemini for Agent(x): it has no such tool",
        f"permissions.deny is not enforced by gemini for {long}: it takes no rule of that length",
    ]
