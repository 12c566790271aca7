"""Rules as opencode is given them, judged as it judges: the last pattern that fits counts."""

from __future__ import annotations

import re

import pytest

from swarm.permissions.decide import Rules
from swarm.programs import role_effects
from swarm.programs.opencode.program import Opencode
from swarm.programs.opencode.translate import translate
from swarm.roles.options import Permissions, RoleOptions

pytestmark = pytest.mark.unit


def fits(pattern: str, text: str) -> bool:
    form = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".").replace(r"\ ", " ")
    if form.endswith(" .*"):
        form = form[:-3] + "( .*)?"
    return re.fullmatch(form, text, re.DOTALL) is not None


def judge(tool: str, text: str, allow: tuple[str, ...] = (), deny: tuple[str, ...] = ()) -> str:
    permission = translate(Rules.parse(allow, deny)).permission
    found = "none"
    for name, patterns in permission.items():
        if fits(name, tool):
            for pattern, action in patterns.items():
                found = action if fits(pattern, text) else found
    return found


@pytest.mark.parametrize(
    ("rule", "tool", "text"),
    [
        ("Bash(git push *)", "bash", "git push"),
        ("Bash(git push:*)", "bash", "git push origin main"),
        ("Bash(rm *)", "bash", "sudo rm -rf x"),
        ("Bash(rm *)", "bash", "/bin/rm x"),
        ("Bash(rm *)", "bash", "'rm' x"),
        ("Bash(rm *)", "bash", "A=b rm x"),
        ("Bash(rm *)", "bash", "bash -c 'rm x'"),
        ("Bash(rm *)", "bash", "timeout 5 env rm x"),
        ("Bash(rm *)", "bash", "rm\tx"),
        ("Bash(rm *)", "bash", "rm \\\n  x"),
        ("Bash(rm *)", "bash", "rm>log x"),
        ("Bash(rm *)", "bash", ">log rm x"),
        ("Bash(rm *)", "bash", "sudo\trm x"),
        ("Bash(rm *)", "bash", "bash  -c 'rm x'"),
        ("Bash(git push *)", "bash", "git  push"),
        ("Bash(git push *)", "bash", "git\tpush x"),
        ("Bash(git push *)", "bash", "A=b git \t push x"),
        ("Bash(git push *)", "bash", "/bin/git \\\n push x"),
        ("Bash(git push *)", "bash", "git\\\npush --force"),
        ("Bash(git push *)", "bash", "git push\tx"),
        ("Bash(git push --force *)", "bash", "git  push   --force"),
        ("Bash(git push --force *)", "bash", "git push\t--force x"),
        ("Bash", "bash", "anything"),
        ("Edit", "edit", "a/b"),
        ("Write(docs/**)", "edit", "docs/a/b"),
        ("Edit(/docs)", "edit", "docs/a"),
        ("Edit(src/**/x.py)", "edit", "src/x.py"),
        ("Edit(src/**/x.py)", "edit", "src/a/b/x.py"),
        ("Edit(*.lock)", "edit", "a/b.lock"),
        ("Edit(docs/)", "edit", "a/docs/b"),
        ("Edit(//etc/**)", "edit", "../../../etc/passwd"),
        ("Read(~/.ssh/**)", "read", "../../home/me/.ssh/id"),
        ("Read(.env)", "read", "a/.env"),
        ("Read", "grep", "x"),
        ("WebFetch(domain:x.org)", "webfetch", "https://a.x.org/b"),
        ("WebFetch(domain:*.x.org)", "webfetch", "https://a.x.org"),
        ("Agent(explore)", "task", "explore"),
        ("mcp__srv", "srv_tool", "*"),
        ("mcp__srv__tool", "srv_tool", "*"),
    ],
)
def test_denied_also_where_another_rule_allows(rule: str, tool: str, text: str) -> None:
    same = rule if rule.startswith(("Bash", "Read", "Web", "Agent", "mcp")) else "Edit"
    assert judge(tool, text, (same, "Bash", "Edit", "Read"), (rule,)) == "deny"
    assert judge(tool, text) == "none"


@pytest.mark.parametrize("text", ["gitk push", "git -x push", "git commit -m 'push it'", "echo x >log", "git pushd"])
def test_what_only_looks_alike_is_not_denied(text: str) -> None:
    assert judge("bash", text, ("Bash",), ("Bash(git push *)",)) == "allow"


@pytest.mark.parametrize(
    ("rule", "tool", "text", "answer"),
    [
        ("Bash(git status *)", "bash", "git status --short", "allow"),
        ("Bash(git status *)", "bash", "git status > x", "ask"),
        ("Bash(git status *)", "bash", "git status $X", "ask"),
        ("Bash(git status *)", "bash", "sudo git status", "none"),
        ("Bash", "bash", "a > b", "allow"),
        ("Edit(docs/**)", "edit", "docs/a/b", "allow"),
        ("Edit(docs/**)", "edit", "x/docs/a", "none"),
        ("Edit(src/*.py)", "edit", "src/a.py", "none"),
        ("Edit(//etc/**)", "edit", "../etc/x", "none"),
        ("Write", "edit", "x", "none"),
        ("WebFetch(domain:x.org)", "webfetch", "https://x.org/a", "allow"),
        ("WebFetch(domain:x.org)", "webfetch", "https://x.org.evil.net/a", "none"),
        ("WebFetch(domain:*.x.org)", "webfetch", "https://evil.net/.x.org/", "none"),
    ],
)
def test_allowed_no_more_than_the_rule_says(rule: str, tool: str, text: str, answer: str) -> None:
    assert judge(tool, text, (rule,)) == answer


def test_tools_of_servers() -> None:
    allow, deny = ("mcp__srv__send", "mcp__srv"), ("mcp__srv__send", "mcp__other")

    assert judge("srv_send", "*", allow, deny) == "deny"
    assert judge("srv_take", "*", allow, deny) == "allow"
    assert judge("other_x", "*", ("mcp__other__x",), deny) == "deny"
    assert judge("srv_senx", "*", ("mcp__srv__send",)) == "none"


def test_what_is_not_held_is_said() -> None:
    allow = ("Bash(ls *)", "Write", "Edit(a/*.py)")
    deny = ("Read(.env)", "Read(.key)", "KillShell", "Bash(cd *)", "WebSearch")
    options = RoleOptions(permissions=Permissions(allow, deny))

    reads = "by its read tool, not by searches and commands"
    more = "it would be allowed more than the rule says, so it is asked about"
    said = [f"{note.key} {note.text}" for note in role_effects.notes(options, ("opencode",))]

    assert said == [
        f"permissions.allow is not enforced by opencode for Write, Edit(a/*.py): {more}",
        f"permissions.deny is held by opencode for Read(.env), Read(.key) only {reads}",
        "permissions.deny is not enforced by opencode for KillShell: it has no such tool",
        "permissions.deny is not enforced by opencode for Bash(cd *): it asks for no permission there",
    ]


def test_more_than_its_environment_can_carry_is_refused() -> None:
    few = tuple(f"Bash(git push --option {number} *)" for number in range(10))
    many = tuple(f"Bash(git push --option {number} *)" for number in range(60))
    assert list(Opencode().check(RoleOptions(permissions=Permissions(deny=few)), {})) == []
    (refused,) = Opencode().check(RoleOptions(permissions=Permissions(deny=many)), {})
    assert "too many" in refused.message
