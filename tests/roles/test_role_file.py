"""What a role's file may say: every key, its type and limits, and the place of every mistake."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from swarm.kit import yaml
from swarm.kit.errors import ConfigProblem, Refused
from swarm.programs import role_effects
from swarm.programs.registry import program
from swarm.project.names import PROGRAMS
from swarm.roles.find import check_file
from swarm.roles.options import (
    Env,
    Heartbeat,
    Hook,
    Limits,
    PermissionMode,
    Permissions,
    Policy,
    Reviewer,
    RoleOptions,
    Setup,
    Teardown,
    WorktreeOptions,
    plain,
)
from swarm.roles.template import TEMPLATE

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.roles.role import Role

pytestmark = pytest.mark.unit

HEAD = "name: qa\ninstructions: x\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def role(folder: Path, text: str, head: str = HEAD) -> Role:
    path = folder / "qa.yaml"
    path.write_text(head + text)
    return check_file(path)


def problems(folder: Path, text: str) -> list[str]:
    """Return every problem without the path."""
    with pytest.raises((ConfigProblem, Refused)) as caught:
        role(folder, text)
    found = caught.value.problems if isinstance(caught.value, Refused) else (caught.value,)
    return [one.message.removeprefix(f"{folder / 'qa.yaml'}:") for one in found]


FULL = """\
description: |
  Tests
  it all.
system_prompt: You test.
agent_type: claude
model: opus
permission_mode: acceptEdits
root_dir: ./projects/my-app/
claude_config_dir: ~/.claude-work
permissions:
  allow: [Read, "Bash(git *)"]
  deny:
    - Bash(rm *)
  agent: {instructions: Be careful., model: sonnet, timeout: 30s}
hooks:
  PostToolUse:
    - {matcher: Bash, command: ./after, timeout: 10}
    - matcher: Edit
      hooks: [{type: command, command: ./one}, {type: command, command: ./two, timeout: 1m}]
  Stop: {command: ./stop}
settings: {enabledPlugins: {}, spinnerTipsEnabled: false, number: 3, share: [0.25, -1e3, "0.5", 1.10.0]}
env:
  pass: [ANTHROPIC_*, SSH_AUTH_SOCK]
  drop: [AWS_*]
  set: {CI: "1", COUNT: 2}
heartbeat: {idle_timeout: 10m, message: What is left, condition: test -e TODO}
setup:
  copy: [.env.example, conf/*.local]
  link: node_modules
  run: [npm ci, npm ci]
  ports: [PORT, DB_PORT]
  timeout: 5m
  policy: warn
teardown: {run: docker compose down, policy: abort}
limits: {tokens: 2000000, cost: 2.50, minutes: 90, agents: 3}
worktree: {enabled: true, branch_from: main, use_detached_head: false, subdir: ./services/api/}
telemetry: true
print: true
"""


def test_everything_at_once(folder: Path) -> None:
    found = role(folder, FULL)

    assert found.description == "Tests it all."
    assert found.options == RoleOptions(
        agent_type="claude",
        model="opus",
        permission_mode=PermissionMode.ACCEPT_EDITS,
        root_dir="projects/my-app",
        claude_config_dir="~/.claude-work",
        system_prompt="You test.",
        permissions=Permissions(("Read", "Bash(git *)"), ("Bash(rm *)",), Reviewer(True, "Be careful.", "sonnet", 30)),
        hooks=(
            Hook("PostToolUse", "./after", "Bash", 10),
            Hook("PostToolUse", "./one", "Edit"),
            Hook("PostToolUse", "./two", "Edit", 60),
            Hook("Stop", "./stop"),
        ),
        settings={
            "enabledPlugins": {},
            "spinnerTipsEnabled": False,
            "number": 3,
            "share": [0.25, -1000.0, "0.5", "1.10.0"],
        },
        env=Env(True, ("ANTHROPIC_*", "SSH_AUTH_SOCK"), ("AWS_*",), {"CI": "1", "COUNT": "2"}),
        heartbeat=Heartbeat(600, "What is left", "test -e TODO"),
        setup=Setup(
            (".env.example", "conf/*.local"),
            ("node_modules",),
            ("npm ci", "npm ci"),
            ("PORT", "DB_PORT"),
            300,
            Policy.WARN,
        ),
        teardown=Teardown(("docker compose down",), 60, Policy.ABORT),
        limits=Limits(2_000_000, 2.5, 90, 3),
        worktree=WorktreeOptions(True, "main", False, "services/api"),
        telemetry=True,
        print=True,
    )


def test_options_survive_json(folder: Path) -> None:
    for options in (role(folder, FULL).options, role(folder, "").options, role(folder, "command: a 'b c'\n").options):
        for whole in (True, False):
            assert RoleOptions.from_plain(json.loads(json.dumps(plain(options, whole=whole)))) == options
    assert plain(RoleOptions()) == {}


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("agent: claude_code\n", {"agent_type": "claude"}),
        ("agent_harness: codex\nagent_model: o5\n", {"agent_type": "codex", "model": "o5"}),
        ("working_dir: src\n", {"root_dir": "src"}),
        ("root_dir: /srv//app/\n", {"root_dir": "/srv/app"}),
        ("worktree: {subdir: .}\n", {}),
        ("permissionMode: plan\nsystemPrompt: x\n", {"permission_mode": "plan", "system_prompt": "x"}),
        ("claude_permission_mode: auto\n", {"permission_mode": "auto"}),
        (
            "permissions: {reviewer: {instructions: x}}\n",
            {"permissions": {"reviewer": {"enabled": True, "instructions": "x"}}},
        ),
        (
            "permissions: {agent: {enabled: false, instructions: x}}\n",
            {"permissions": {"reviewer": {"instructions": "x"}}},
        ),
        ("permissions: {allow: Read}\n", {"permissions": {"allow": ["Read"]}}),
        ("heartbeat: {idleTimeout: 90, message: x}\n", {"heartbeat": {"idle_timeout": 90, "message": "x"}}),
        (
            "setup: {symlink: [a], commands: [b], on_failure: warn}\n",
            {"setup": {"link": ["a"], "run": ["b"], "policy": "warn"}},
        ),
        ("env: {pass: []}\n", {"env": {"narrow": True}}),
        ("env: {drop: [X]}\n", {"env": {"drop": ["X"]}}),
        ("command: [aider, --model, x]\n", {"command": ["aider", "--model", "x"]}),
        ("command: aider 'a b'\n", {"command": ["aider", "a b"]}),
        ("model:\nhooks:\nheartbeat:\n", {}),
        ("model: ''\nclaude_config_dir: ''\n", {}),
        ("root_dir: .\nhooks: {}\nsettings: {}\nclaude_config_dir:\n", {}),
    ],
)  # fmt: skip
def test_other_spellings(folder: Path, text: str, options: dict[str, Any]) -> None:
    assert plain(role(folder, text).options) == options


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("modle: x", "3:1: modle: unknown key"),
        ("model: true", "3:8: model: must be text"),
        ("model: a b", "3:8: model 'a b': must be one word"),
        ("model: --danger", "3:8: model '--danger': must be one word that begins with a letter or digit"),
        ('model: "a\\nb"', "3:8: model: must be one line"),
        ("model: a\nagent_model: b", "4:1: agent_model: means the same as model above"),
        ("model: a\nmodel: b", "4:1: the key 'model' is there twice, first in line 3"),
        ("agent_type: clod", "3:13: agent_type 'clod': must be one of claude"),
        ("agent_type: claude\ncommand: x", "4:1: command: stands beside agent_type"),
        ("command: []", "3:10: command: must name a program"),
        ("command: \"'\"", "3:10: command: cannot be read"),
        ("permission_mode: delegate", "3:18: permission_mode 'delegate': must be one of default"),
        ("permission_mode: yolo", "3:18: permission_mode 'yolo': must be one of default"),
        ('root_dir: " "', "3:11: root_dir ' ': must be a path: absolute, from ~/, or relative"),
        ("worktree: {subdir: /etc}", "worktree.subdir '/etc': must be a path in the repository"),
        ("worktree: {subdir: a/../../b}", "must not lead out"),
        ("worktree: {subdir: .git/hooks}", "must not lead out"),
        ("claude_config_dir: conf", "3:20: claude_config_dir 'conf': must be an absolute path"),
        ("permissions: x", "3:14: permissions: must be a mapping"),
        ("permissions: {ask: [Read]}", "3:15: permissions.ask: unknown key"),
        ("permissions:\n  allow:\n  - Read\n  - Baash(x)", "6:5: permissions.allow 'Baash(x)': names no tool; did"),
        ("permissions: {deny: [Read, Read]}", "3:28: permissions.deny: 'Read' is there twice"),
        ("permissions: {deny: [{a: b}]}", "3:22: permissions.deny: must be text"),
        ("permissions: {deny: {a: b}}", "3:21: permissions.deny: must be a list"),
        ("permissions: {agent: {enabled: true}}", "permissions.agent.instructions: are missing"),
        ("permissions: {agent: {enabled: sure, instructions: x}}", "permissions.agent.enabled 'sure': must be true or"),
        ("permissions: {agent: {instructions: x, timeout: 60s}}", "must be from 1s to 55s, not 60s"),
        ("hooks: {PostTool: {command: x}}", "3:9: hooks 'PostTool': must be one of PreToolUse"),
        ("hooks: {Stop: [{matcher: x}]}", "3:16: hooks.Stop.command: is missing"),
        ("hooks: {Stop: [{command: x, type: http}]}", "must be one of command"),
        ("hooks: {Stop: [{matcher: x, hooks: y}]}", "hooks.Stop.hooks: must be a list"),
        ("hooks: {Stop: [x]}", "3:16: hooks.Stop: must be a mapping"),
        ("hooks: [x]", "3:8: hooks: must be a mapping of events"),
        ("settings: {permissions: {}}", "3:12: settings.permissions: cannot stand here"),
        ("settings: {far: .inf}", "3:17: settings.far: must be a finite number"),
        ("settings: {a: [-.INF]}", "3:16: settings.a: must be a finite number"),
        ("settings: {none: .nan}", "3:18: settings.none: must be a finite number"),
        ("settings: {disableAllHooks: true}", "3:12: settings.disableAllHooks: cannot stand here"),
        ("env: {pass: [A-B]}", "3:14: env.pass 'A-B': must be the name of a variable"),
        ("env: {set: {SWARM_DIR: x}}", "3:13: env.set 'SWARM_DIR': is a variable that swarm keeps"),
        ("env: {set: {GIT_DIR: x}}", "is a variable that swarm keeps"),
        ("env: {set: {TMUX: x}}", "is a variable that swarm keeps"),
        ("env: {set: {a b: x}}", "must be the name of a variable"),
        ("env: {set: {A: true}}", "env.set.A: must be text"),
        ("env: {set: [A]}", "env.set: must be a mapping"),
        ("heartbeat: {message: x}", "3:12: heartbeat.idle_timeout: is missing"),
        ("heartbeat: {idle_timeout: 10m}", "3:12: heartbeat.message: is missing"),
        ("heartbeat: {idle_timeout: soon, message: x}", "3:27: heartbeat.idle_timeout: must be a number of seconds"),
        ("heartbeat: {idle_timeout: 0, message: x}", "must be from 1s to"),
        ("heartbeat: {idle_timeout: 1m, message: ' '}", "heartbeat.message: must not be empty"),
        ("setup: {copy: [/etc/passwd]}", "3:16: setup.copy '/etc/passwd': must be a path in the repository"),
        ("setup: {link: [../x]}", "must not lead out"),
        ("setup: {ports: [1]}", "3:17: setup.ports '1': must be the name of a variable"),
        ("setup: {policy: ignore}", "3:17: setup.policy 'ignore': must be one of abort, warn"),
        ("setup: {run: ['']}", "setup.run: must not be empty"),
        ("teardown: {copy: [x]}", "3:12: teardown.copy: unknown key"),
        ("limits: {tokens: many}", "3:18: limits.tokens 'many': must be a whole number"),
        ("limits: {cost: -1}", "limits.cost -1: must be a number such as 5 or 2.50"),
        ("limits: {agents: 1000}", "limits.agents: must be from 1 to 256, not 1000"),
        ("worktree: true", "3:11: worktree: must be a mapping"),
        ("worktree: {branch_from: -x}", "must be one word"),
        ("instructions_file: x.md", "3:1: instructions_file: stands beside instructions"),
        ("description: " + "x" * 501, "3:14: description: has more than 500 characters"),
    ],
)  # fmt: skip
def test_mistakes_name_their_place(folder: Path, text: str, problem: str) -> None:
    found = problems(folder, text + "\n")

    assert len(found) == 1
    assert problem in found[0]


def test_all_mistakes_at_once_in_the_order_of_the_file(folder: Path) -> None:
    text = "model: []\nhooks:\n  Nope: {command: x}\n  Stop: [{}]\npermissions:\n  allow: [Baash, Bash()]\nzzz: 1\n"

    found = problems(folder, text)

    assert [one.partition(": ")[0] for one in found] == ["3:8", "5:3", "6:10", "8:11", "8:18", "9:1"]


def test_a_slip_of_a_key_is_guessed(folder: Path) -> None:
    with pytest.raises(ConfigProblem) as caught:
        role(folder, "permisions: {}\n")

    assert caught.value.hint == "did you mean permissions?"


def test_a_hint_for_a_mode_that_is_gone(folder: Path) -> None:
    with pytest.raises(ConfigProblem) as caught:
        role(folder, "permission_mode: delegate\n")

    assert "acceptEdits" in caught.value.hint


def test_the_seeds_minimal_role(folder: Path) -> None:
    text = """permissions:
  allow:
    - "Read"
    - "Bash"
  agent:
    instructions: |
      ALLOW: all standard dev tools
"""
    assert role(folder, text).options.permissions.reviewer == Reviewer(True, "ALLOW: all standard dev tools\n")


def test_the_template_is_a_role_and_so_is_all_that_it_comments_out(folder: Path) -> None:
    text = TEMPLATE.replace("NAME", "qa")
    assert plain(role(folder, text, head="").options) == {}

    # A comment that is a key of YAML, behind one number sign and a space, is part of the file now.
    lines = []
    for line in text.splitlines():
        bare = line.removeprefix("# ")
        is_key = bare.lstrip(" -{").partition(":")[0].replace("_", "").isalnum() and ":" in bare
        lines.append(bare if is_key and "swarm role check" not in bare and "---" not in bare else line)
    whole = "\n".join(line for line in lines if not line.startswith("command:")) + "\n"
    found = yaml.load(whole.encode()).pairs
    options = role(folder, whole, head="").options

    assert set(found) >= {"model", "permissions", "env", "heartbeat", "hooks", "settings", "setup", "limits"}
    assert options.permissions.deny == ("Bash(git push *)", "Read(.env)")
    assert options.limits.cost == 5
    assert options.setup.run == ("npm ci",)


# --- what has no effect is said -------------------------------------------------------------------


def test_every_key_is_obeyed_by_swarm_or_a_program_or_said_to_have_no_effect(folder: Path) -> None:
    """A key that is added must come into one of the three."""
    by_swarm = {"agent_type", "command", "root_dir", "env", "setup", "teardown", "may", "sandbox", "network"}
    known = by_swarm | set(role_effects.ONLY_RUN) | set().union(*(program(name).obeys for name in PROGRAMS))

    for key in RoleOptions.__dataclass_fields__:
        assert key in known or any(one.startswith(f"{key}.") for one in known), key
    assert {note.key for note in role_effects.notes(role(folder, FULL).options, ("nothing",))} == (
        known - by_swarm - {"worktree.enabled", "worktree.use_detached_head"}
    )


def test_what_a_program_does_not_enforce(folder: Path) -> None:
    text = "permissions: {deny: [Bash]}\nmodel: x\n"

    notes = {note.key: note for note in role_effects.notes(role(folder, text).options)}
    assert notes["permissions.deny"].programs == ("shell", "demo")
    assert notes["permissions.deny"].text == "is not enforced by shell, demo"
    assert role_effects.notes(role(folder, text + "agent_type: claude\n").options) == ()
    assert [note.programs for note in role_effects.notes(role(folder, text + "command: x\n").options)] == [
        ("command",),
        ("command",),
    ]


def test_who_has_a_print_mode_and_what_has_no_effect_in_it(folder: Path) -> None:
    have = {name for name in PROGRAMS if program(name).prints}
    assert {name for name in PROGRAMS if "print" in program(name).obeys} == have

    text = "print: true\nheartbeat: {idle_timeout: 10m, message: Go on}\n"
    assert [str(note.text) for note in role_effects.notes(role(folder, text).options, ("claude", "shell"))] == [
        "has no effect in print mode: such an agent is never idle",
        "has no effect with shell",
    ]


def test_a_tool_nobody_knows_is_noted(folder: Path) -> None:
    notes = role_effects.notes(role(folder, "permissions: {deny: [Frobnicate]}\n").options, ("claude",))

    assert [note.key for note in notes] == ["permissions.deny"]
    assert "Frobnicate is no tool" in notes[0].text
