"""What of a deny rule a box can hold, and what holds each rule with which program."""

from __future__ import annotations

import pytest

from swarm.permissions.boxed import HOME, MACHINE, TREE, InBox, in_box
from swarm.permissions.rules import parse_rule
from swarm.programs.rule_holds import rule_holds
from swarm.roles.options import Permissions, RoleOptions

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ("Edit(docs/**)", (TREE, "docs", True, True)),
        ("Write(/docs)", (TREE, "docs", True, True)),
        ("Edit(./a/b.py)", (TREE, "a/b.py", True, True)),
        ("Read(.env)", (TREE, ".env", False, True)),
        ("Grep(a/b/)", (TREE, "a/b", False, True)),
        ("Read(*.pem)", (TREE, "", False, False)),
        ("Edit(**/x)", (TREE, "", True, False)),
        ("Edit(a/*/b)", (TREE, "", True, False)),
        ("Read(**)", (TREE, "", False, False)),
        ("Read(~/.ssh/**)", (HOME, ".ssh", False, True)),
        ("Read(~/*.key)", (HOME, "", False, True)),
        ("Read(//etc/pass*)", (MACHINE, "etc", False, True)),
        ("Edit(//etc/passwd)", (MACHINE, "etc/passwd", True, True)),
        ("Bash(rm *)", ("", "", False, False)),
        ("Edit", ("", "", False, False)),
        ("mcp__x", ("", "", False, False)),
    ],
)
def test_a_box_holds_files_that_are_named(rule: str, wanted: tuple[str, str, bool, bool]) -> None:
    found = in_box(parse_rule(rule))

    assert (found.base, found.path, found.edits, found.holds) == wanted
    assert found.holds or found.note


def test_a_box_holds_hosts() -> None:
    assert in_box(parse_rule("WebFetch(domain:*.Example.org)")) == InBox(host="*.example.org", holds=True)


def test_what_holds_a_rule_depends_on_the_program() -> None:
    deny = ("Bash(git push *)", "WebFetch(domain:example.com)")
    found = rule_holds(RoleOptions(permissions=Permissions(deny=deny)))

    by = {(one.rule, name): one.by for one in found for name in one.programs}
    assert by[deny[0], "claude"] == ("guard", "program")
    assert by[deny[0], "codex"] == ("guard",)
    assert by[deny[0], "gemini"] == by[deny[0], "opencode"] == ("program",)
    assert by[deny[0], "shell"] == ()
    assert {one.rule: one.box for one in found} == {deny[0]: False, deny[1]: True}
    assert [one.rule for one in found] == sorted((one.rule for one in found), key=deny.index)


def test_rules_in_the_settings_of_claude_count_too() -> None:
    options = RoleOptions(agent_type="claude", settings={"permissions": {"deny": ["Read(.env)"]}})

    assert [(one.rule, one.programs, one.by) for one in rule_holds(options)] == [
        ("Read(.env)", ("claude",), ("guard", "program"))
    ]


def test_a_rule_that_a_program_does_not_know_is_held_by_nothing_of_it() -> None:
    options = RoleOptions(agent_type="gemini", permissions=Permissions(deny=("Skill(x)", "Monitor")))

    for one in rule_holds(options):
        assert one.by == () or one.note == "" or one.by == ("program",)
