"""Rules with Codex: what its tools are in the words of rules, how its hooks are given and asked about."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import swarm.permissions.guard
from swarm.programs import role_effects
from swarm.programs.codex import hooks
from swarm.programs.codex.calls import calls
from swarm.programs.codex.program import Codex
from swarm.programs.errors import RulesNotEnforced
from swarm.programs.values import Launch
from swarm.roles.options import PermissionMode, Permissions, RoleOptions

pytestmark = pytest.mark.component

PATCH = """*** Begin Patch
*** Update File: docs/a.md
*** Move to: docs/b.md
@@
-*** Add File: no.md
+x
  *** Delete File: /abs/c.md
*** End Patch"""


def options(allow: tuple[str, ...] = (), deny: tuple[str, ...] = (), **more: Any) -> RoleOptions:
    return RoleOptions(permissions=Permissions(allow, deny), **more)


def started(folder: Path, wish: RoleOptions) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return what is given with ``-c``, and all words; the files of the start are written."""
    run = folder / "run"
    run.mkdir(exist_ok=True)
    (run / "role").write_text("You build.")
    launch = Launch("a", "r", "s", folder, run, run / "role", run / "t", "", "", False, "codex", wish)
    spec = Codex().launch(launch)
    for name, text in spec.files.items():
        (run / name).write_text(text)
    words = list(spec.argv)
    given = (words[at + 1] for at, word in enumerate(words) if word == "-c")
    return {key: value for key, _, value in (one.partition("=") for one in given)}, spec.argv


def ask(folder: Path, event: str, tool: str, given: object) -> tuple[int, str, str]:
    """Run the hook as Codex does: by a shell, with the event on its standard input."""
    text = json.dumps({"hook_event_name": event, "tool_name": tool, "tool_input": given, "cwd": str(folder)})
    argv = ["/bin/sh", "-c", hooks.command(folder / "run")]
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


def test_patches_write_files_and_commands_may_have_patches() -> None:
    files = ["docs/a.md", "docs/b.md", "/abs/c.md"]
    wanted = {("Write", path) for path in files}

    found = calls("apply_patch", {"command": PATCH})
    assert {(tool, given["file_path"]) for tool, given in found if isinstance(given, dict)} == wanted
    command = f"cd sub && apply_patch <<'EOF'\n{PATCH}\nEOF"
    own, *patched = calls("Bash", {"command": command})
    assert own == ("Bash", {"command": command})
    assert {given["file_path"] for _, given in patched if isinstance(given, dict)} == {
        *files,
        "sub/docs/a.md",
        "sub/docs/b.md",
    }
    assert ("Bash", None) in calls("Bash", {"command": f"cd $X && apply_patch <<'EOF'\n{PATCH}\nEOF"})


@pytest.mark.parametrize(
    "given",
    [{"command": PATCH}, {"input": PATCH}, {"patch": PATCH}, {"command": ["apply_patch", PATCH]}, PATCH, [PATCH]],
)
def test_a_patch_is_found_wherever_it_is_told(given: object) -> None:
    found = [one["file_path"] for _, one in calls("apply_patch", given) if isinstance(one, dict)]
    assert found == ["docs/a.md", "/abs/c.md", "docs/b.md"]


@pytest.mark.parametrize(
    "given",
    [
        *(None, {}, [], "", {"command": 5}, {"command": "*** begin patch\n*** update file: vault/a"}),
        {"input": "*** Begin Patch\n***  Update File: vault/a\n*** End Patch"},
        {"input": PATCH.replace("*** Move to:", "*** Moved to:")},
    ],
)
def test_a_patch_of_no_known_form_may_write_anything(tmp_path: Path, given: object) -> None:
    started(tmp_path, options(("Edit", "Edit(**)"), ("Edit(vault/**)",)))
    assert ask(tmp_path, "PermissionRequest", "apply_patch", given) == (0, "", "")
    status, out, err = ask(tmp_path, "PreToolUse", "apply_patch", given)
    assert (status, out) == (2, "")
    assert "cannot be understood" in err
    started(tmp_path, options(("Edit",), ("Edit",)))
    assert ask(tmp_path, "PreToolUse", "apply_patch", given)[0] == 2


def test_a_patch_that_no_rule_allows_is_not_allowed(tmp_path: Path) -> None:
    started(tmp_path, options(("Bash(ls)",), ("Edit(vault/**)",)))
    patch = {"input": "*** Begin Patch\n*** Update File: vault/a\n@@\n-S\n+x\n*** End Patch"}
    assert ask(tmp_path, "PermissionRequest", "apply_patch", patch) == (0, "", "")
    assert ask(tmp_path, "PreToolUse", "apply_patch", patch)[0] == 2
    patch["input"] = patch["input"].replace("vault", "open")
    assert ask(tmp_path, "PermissionRequest", "apply_patch", patch) == (0, "", "")
    assert ask(tmp_path, "PreToolUse", "apply_patch", patch)[0] == 0


@pytest.mark.parametrize("given", [{"command": "git push"}, {"cmd": "git push"}, {"command": ["git", "push"]}])
@pytest.mark.parametrize("tool", ["shell", "exec_command", "local_shell", "Bash"])
def test_its_other_names_of_a_shell_are_judged(tmp_path: Path, tool: str, given: dict[str, object]) -> None:
    started(tmp_path, options(("Bash",), ("Bash(git push *)",)))
    assert ask(tmp_path, "PreToolUse", tool, given)[0] == 2
    assert ask(tmp_path, "PermissionRequest", tool, given) == (0, "", "")


def test_other_tools() -> None:
    assert calls("view_image", {"path": "a.png"}) == (("Read", {"path": "a.png"}),)
    assert calls("multi_agent_v1spawn_agent", {"agent_type": "worker"}) == (("Agent", {"subagent_type": "worker"}),)
    assert calls("mcp__srv__say", {"x": 1}) == (("mcp__srv__say", {"x": 1}),)
    assert calls("Bash", None) == (("Bash", None),)


def test_the_hook_refuses_what_is_denied_by_its_status(tmp_path: Path) -> None:
    wish = options(deny=("Bash(rm *)", "Edit(docs/**)", "Read(keys.txt)", "Agent(worker)", "mcp__srv__say"))
    started(tmp_path, wish)
    refused: list[tuple[str, object]] = [
        ("Bash", {"command": "ls; env sh -c 'rm x'"}),
        ("Bash", {"command": "cat keys.txt"}),
        ("Bash", {"command": "$X"}),
        ("Bash", {}),
        ("apply_patch", {"command": PATCH}),
        ("view_image", {"path": "keys.txt"}),
        ("spawn_agent", {"agent_type": "worker"}),
        ("mcp__srv__say", {}),
    ]
    for tool, given in refused:
        status, out, err = ask(tmp_path, "PreToolUse", tool, given)
        assert (status, out) == (2, ""), (tool, given)
        assert err.startswith("swarm: ")
    for tool, given in [("Bash", {"command": "ls"}), ("spawn_agent", {}), ("mcp__srv__other", {}), ("get_goal", {})]:
        assert ask(tmp_path, "PreToolUse", tool, given) == (0, "", "")


def test_the_hook_allows_what_is_allowed_and_says_nothing_else(tmp_path: Path) -> None:
    started(tmp_path, options(("Bash(npm *)", "Edit(src/**)", "mcp__srv__say"), ("Bash(npm publish *)",)))
    patch = PATCH.replace("docs", "src").replace("/abs", "src")
    for tool, given in [("Bash", {"command": "npm test"}), ("mcp__srv__say", {}), ("apply_patch", {"command": patch})]:
        status, out, _ = ask(tmp_path, "PermissionRequest", tool, given)
        assert status == 0
        assert json.loads(out)["hookSpecificOutput"]["decision"] == {"behavior": "allow"}
    for command in ("npm publish x", "npm test; rm x", "npm $X"):
        assert ask(tmp_path, "PermissionRequest", "Bash", {"command": command}) == (0, "", "")
    assert ask(tmp_path, "PermissionRequest", "apply_patch", {"command": PATCH}) == (0, "", "")
    assert ask(tmp_path, "PermissionRequest", "Bash", {"command": f"apply_patch <<'EOF'\n{patch}\nEOF"})[1] == ""


def test_what_goes_wrong_is_a_refusal_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codex would go on after a hook that ends with any other status, and after one that says nothing."""
    started(tmp_path, options(deny=("Bash(rm *)",)))
    (tmp_path / "run" / swarm.permissions.guard.RULES).write_text("{")
    status, _, err = ask(tmp_path, "PreToolUse", "Bash", {"command": "ls"})
    assert (status, "cannot enforce the rules" in err) == (2, True)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "gone"))
    status, _, err = ask(tmp_path, "PreToolUse", "Bash", {"command": "ls"})
    assert (status, "cannot enforce the rules" in err) == (2, True)


def test_what_it_is_started_with(tmp_path: Path) -> None:
    plain, _ = started(tmp_path, options())
    assert not [key for key in plain if "hooks" in key or "unified" in key]

    given, argv = started(tmp_path, options(("Bash(ls)",), ("Bash(rm *)", "WebSearch")))
    assert "--dangerously-bypass-hook-trust" not in argv
    (entry,) = tomllib.loads(f"x={given['hooks.PreToolUse']}")["x"]
    assert shlex.split(entry["hooks"][0]["command"])[-1] == "codex"
    states = tomllib.loads(f"x={given['hooks.state']}")["x"]
    assert sorted(key.split(":")[1] for key in states) == ["permission_request", "pre_tool_use"]
    assert (given["features.hooks"], given["features.unified_exec_tty"]) == ("true", "false")
    assert given["web_search"] == '"disabled"'

    plan, _ = started(tmp_path, options(("Bash(ls)",), ("Bash(rm *)",), permission_mode=PermissionMode.PLAN))
    assert "hooks.PermissionRequest" not in plan
    assert "web_search" not in plan


def fake_codex(folder: Path, **entry: object) -> dict[str, str]:
    """Make a program that answers with a list of hooks; return an environment in which it is found."""
    told = {"command": hooks.command(Path("/")), "enabled": True, "trustStatus": "trusted", **entry}
    answer = json.dumps({"id": 2, "result": {"data": [{"hooks": [told]}]}})
    program = folder / "codex"
    program.write_text(f"#!/bin/sh\nread a; read b; read c\necho noise\necho {shlex.quote(answer)}\ncat >/dev/null\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def test_a_program_that_would_not_run_the_hook_is_refused(tmp_path: Path) -> None:
    wish = options(deny=("Bash(rm *)",))
    assert list(Codex().check(wish, fake_codex(tmp_path))) == []
    for entry in ({"trustStatus": "modified"}, {"enabled": False}, {"command": "another"}):
        environ = fake_codex(tmp_path, **entry)
        (problem,) = Codex().check(wish, environ)
        assert isinstance(problem, RulesNotEnforced)
        assert "would not run swarm's hook" in problem.message
        assert list(Codex().check(options(("Bash(ls)",)), environ)) == []
    environ = fake_codex(tmp_path)
    (tmp_path / "codex").write_text("#!/bin/sh\nexit 1\n")
    assert len(list(Codex().check(wish, environ))) == 1


def test_what_is_not_held_is_said() -> None:
    wish = options(("Bash(ls *)", "Read", "Skill(a)"), ("Edit(a)", "Read", "Read(b)", "Skill(x)", "WebSearch", "Glob"))

    said = [f"{note.key} {note.text}" for note in role_effects.notes(wish, ("codex",))]

    where = "where it asks, so not in print mode, nor in the modes plan and dontAsk"
    assert said == [
        f"permissions.allow is held by codex for Bash(ls *) only {where}",
        "permissions.allow is not enforced by codex for Skill(a): it has no such tool",
        "permissions.deny is held by codex for Read only by its image viewer: it reads files by commands",
        "permissions.deny is not enforced by codex for Skill(x), Glob: it has no such tool",
    ]
