"""Deny rules as Gemini CLI is given them, judged as it judges: expressions on the arguments as JSON."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest

from swarm.permissions.decide import Rules
from swarm.programs import role_effects
from swarm.programs.gemini.translate import translate
from swarm.roles.options import Permissions, RoleOptions

pytestmark = pytest.mark.unit


def met(policy: str, tool: str, given: dict[str, Any]) -> bool:
    """Whether a rule of a policy is about a call."""
    pairs = (f"\0{json.dumps(key)}:{json.dumps(value, ensure_ascii=False)}\0" for key, value in sorted(given.items()))
    arguments = "{" + ",".join(pairs) + "}"
    return any(
        tool in (one["toolName"] if isinstance(one["toolName"], list) else [one["toolName"]])
        and re.search(one.get("argsPattern", ""), arguments)
        for one in tomllib.loads(policy).get("rule", ())
    )


def denied(rule: str, tool: str, **given: Any) -> bool:
    return met(translate(Rules.parse(deny=[rule])).denied, tool, given)


def allowed(rule: str, tool: str, **given: Any) -> bool:
    return met(translate(Rules.parse(allow=[rule]), "/work/a tree").allowed, tool, given)


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


@pytest.mark.parametrize(
    "command",
    [
        *("git  push", "git\tpush x", "git \\\n  push", "git\\\npush", "git push\torigin", "git push>log"),
        *(
            ">log git push",
            "2>log  git push x",
            "< x git push",
            "A=b\tgit push",
            "env\tgit  push",
            "bash  -c 'git  push'",
        ),
        *("/usr/bin/git  push", "A=b >log git push", "eval\tgit push"),
    ],
)
def test_commands_whose_words_stand_apart_otherwise(command: str) -> None:
    for rule in ("Bash(git push *)", "Bash(git push:*)", "Bash(git  push*)"):
        assert denied(rule, "run_shell_command", command=command)
    assert denied('Bash(a "(" b *)', "run_shell_command", command='a  "("\tb c')


@pytest.mark.parametrize("command", ["gitn push", "git npush", "git -x push", "git \\npush", ">log echo git-push"])
def test_letters_are_no_white_space(command: str) -> None:
    assert not denied("Bash(git push *)", "run_shell_command", command=command)


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


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("src/api/keys", "keys"),
        ("src/api/keys", "keys/a"),
        ("src/*/keys", "keys"),
        ("s?c/**/keys", "a/keys"),
        ("s?c/**/keys", "keys"),
        ("src/**", "a/b"),
        ("src", "a"),
        ("src/api/", "./a"),
        (".env", ".env"),
        ("src/api/keys", "/work/a tree/src/api/keys"),
        ("docs/**", "../../docs/a"),
    ],
)
def test_files_of_an_agent_that_works_in_a_folder_of_its_worktree(rule: str, path: str) -> None:
    for folder in ("src/api", "./src/api/"):
        said = translate(Rules.parse(deny=[f"Edit({rule})"]), "/work/a tree", folder)
        assert met(said.denied, "write_file", {"file_path": path})


def test_other_files_of_an_agent_that_works_in_a_folder() -> None:
    rules = Rules.parse(["Edit(lib/**)"], ["Edit(src/api/keys)", "Edit(lib/keys)", "Edit(srv/**)"])
    said = translate(rules, "/work/a tree", "src/api")

    assert not met(said.denied, "write_file", {"file_path": "a/keys2"})
    assert not met(said.denied, "write_file", {"file_path": "keys2"})
    assert not met(said.allowed, "write_file", {"file_path": "lib/a"})
    assert met(said.allowed, "write_file", {"file_path": "/work/a tree/lib/a"})


def test_tools_by_name() -> None:
    assert denied("Read", "grep_search", pattern="x")
    assert denied("WebFetch(domain:*.x.org)", "web_fetch", prompt="get https://a.x.org/b")
    assert not denied("WebFetch(domain:x.org)", "web_fetch", prompt="get https://xxorg")
    assert denied("Skill(pdf)", "activate_skill", name="pdf")
    (one,) = tomllib.loads(translate(Rules.parse(deny=["mcp__srv__tool"])).denied)["rule"]
    assert (one["mcpName"], one["toolName"], one["decision"]) == ("srv", "tool", "deny")


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("git *", "git"),
        ("git *", "git log -3 'a b' \"c\" x=y {a,b} ~/x *.py #1"),
        ("git:*", "git status"),
        ("npm run * --fix", "npm run lint --fix"),
        ("make", "make"),
    ],
)
def test_allowed_commands(rule: str, command: str) -> None:
    assert allowed(f"Bash({rule})", "run_shell_command", command=command, description="x", dir_path="sub")


@pytest.mark.parametrize(
    "command",
    [
        *("git push; rm x", "git push && rm x", "git push | sh", "git push & rm x", "git log > x", "git log < x"),
        *("git log $(rm x)", "git log `rm x`", "git log $X", "git log\nrm x", "git (rm x)", "git log \\\n rm x"),
        *("gitk", "A=b git log", " git log", "/tmp/git log", "rm x # git log", "sudo git log"),
    ],
)
def test_commands_that_a_rule_does_not_allow(command: str) -> None:
    for rule in ("Bash(git *)", "Bash(git:*)"):
        assert not allowed(rule, "run_shell_command", command=command, description='"command":"git log"')
    assert allowed("Bash", "run_shell_command", command=command)


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("src/**", "src/a/b.py"),
        ("src/**", "/work/a tree/src/a"),
        ("/src/", "src/a"),
        ("./x.py", "x.py"),
        ("src/*.p?", "src/a.py"),
        ("*.py", "a/b/c.py"),
        ("**/docs/**", "a/docs/b/c"),
        ("docs", "docs/a/b"),
        ("**", "a/b"),
        ("**", "/work/a tree/b"),
    ],
)
def test_allowed_files(rule: str, path: str) -> None:
    assert allowed(f"Edit({rule})", "replace", file_path=path, new_string="x")
    assert allowed(f"Write({rule})", "write_file", file_path=path, content="x")
    assert allowed(f"Read({rule})", "read_file", file_path=path)
    assert not allowed(f"Write({rule})", "replace", file_path=path)
    assert not allowed(f"Read({rule})", "write_file", file_path=path)


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("src/**", "src/../x"),
        ("src/**", "a/src/b"),
        ("src/**", "src"),
        ("src/**", "/src/a"),
        ("./x.py", "a/x.py"),
        ("src/*.py", "src/a/b.py"),
        ("*.py", "/etc/a.py"),
        ("*.py", "a.pyc"),
        ("*.py", "~/a.py"),
        ("**", "/etc/passwd"),
        ("**", "../x"),
        ("//etc/**", "/etc/x"),
        ("~/x", "/home/me/x"),
        ("src/**/x.py", "src/a/x.py"),
    ],
)
def test_files_that_a_rule_does_not_allow(rule: str, path: str) -> None:
    assert not allowed(f"Edit({rule})", "write_file", file_path=path, content='"file_path":"src/a.py"')


def test_allow_rules_by_name() -> None:
    assert allowed("Skill(pdf*)", "activate_skill", name="pdf-forms")
    assert not allowed("Skill(pdf)", "activate_skill", name="pdf-forms")
    assert allowed("Agent(helper)", "invoke_agent", agent_name="helper", prompt="x")
    assert not allowed("WebFetch(domain:x.org)", "web_fetch", prompt="https://x.org")
    (one,) = tomllib.loads(translate(Rules.parse(["mcp__srv__tool"])).allowed)["rule"]
    assert (one["mcpName"], one["toolName"], one["decision"]) == ("srv", "tool", "allow")
    assert "plan" not in one["modes"]


def test_every_expression_is_one_that_the_program_takes() -> None:
    """It refuses a repeated group that holds a repetition, and then all of the file."""
    given = ["Bash(a * b:*)", "Bash(*x*)", "Edit(a/**/b*/c)", "Read(**/*.x)", "WebFetch(domain:x.org)", "Skill(a*)"]
    said = translate(Rules.parse([*given, "Edit(src/**)", "Bash(a (b? *)"], given), "/work/a (tree?)")
    for policy in (said.denied, said.allowed):
        for one in tomllib.loads(policy)["rule"]:
            assert re.search(r"\([^)]*[*+?{].*\)[*+?{]", one["argsPattern"]) is None
    assert [gap.rule for gap in said.gaps.allow if "length or form" in gap.why] == ["Bash(a (b? *)"]


def test_what_is_not_held_is_said() -> None:
    long = f"Bash({'/' * 990})".replace("/", ".")
    allow = ("Bash(ls *)", "WebFetch(domain:x.org)", "Edit(//etc/x)", "MultiEdit(a)", "mcp__a__b*")
    options = RoleOptions(permissions=Permissions(allow, ("Edit(a)", "Agent(x)", "WebSearch", "KillShell", long)))

    said = [f"{note.key} {note.text}" for note in role_effects.notes(options, ("gemini",))]

    more = "it would be allowed more than the rule says, so it is asked about"
    assert said == [
        f"permissions.allow is not enforced by gemini for WebFetch(domain:x.org), Edit(//etc/x), mcp__a__b*: {more}",
        "permissions.allow is not enforced by gemini for MultiEdit(a): it has no such tool",
        "permissions.deny is held by gemini for Edit(a) only by its own tools, not by what a command writes",
        "permissions.deny is not enforced by gemini for KillShell: it has no such tool",
        f"permissions.deny is not enforced by gemini for {long}: it takes no rule of that length or form",
    ]
