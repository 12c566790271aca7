"""What the deny rules of a role forbid is refused by swarm's own hook in a real Claude Code, in every mode.

The commands and files are such that the program's own rules do not see them.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from swarm.testing.api import call, say
from swarm.testing.terminal import wait_for
from tests.support.agents import cache

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.agents import ClaudeLab

pytestmark = [pytest.mark.agents, pytest.mark.timeout(300)]
DENY = ["Bash(touch secret*)", "Edit(vault/**)"]
WORDS = ["denied by the rule Bash(touch secret*)", *["denied by the rule Edit(vault/**)"] * 2]


def prepare(claude: ClaudeLab, mode: str = "default") -> Path:
    """Make a project with a forbidden folder, a link to it, and a role; return the agent's worktree."""
    claude.env["IS_SANDBOX"] = "1"  # root may not bypass permissions elsewhere
    claude.write({"vault/keep": "x\n"})
    (claude.root / "door").symlink_to("vault")
    claude.git("add", "-A")
    claude.commit("vault")
    claude.role("builder", "You build.", permission_mode=mode, permissions={"allow": ["Bash(touch *)"], "deny": DENY})
    return claude.root / ".worktrees" / "builder-fx"


def forbidden_calls(tree: Path) -> list[Any]:
    return [
        call("Bash", command="true && env sh -c 'touch secret-one'", description="x"),
        call("Write", file_path=str(tree / "door" / "in.txt"), content="x"),
        call("Bash", command="cd vault && echo x > in.txt", description="x"),
        call("Bash", command="touch plain", description="x"),
        say("All tried."),
    ]


def check_refused(claude: ClaudeLab, tree: Path, *more: str) -> None:
    """Check that nothing forbidden was done, and that the model was told why; the harmless call was made."""
    assert (tree / "plain").exists()
    assert not (tree / "secret-one").exists()
    assert os.listdir(tree / "vault") == ["keep"]
    said = claude.api.requests("under rules")[-1].said
    assert [text.partition("swarm: ")[2] for text in said if "swarm: " in text] == [*WORDS, *more]


def printed(claude: ClaudeLab, folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run the program in print mode by hand, without swarm."""
    return subprocess.run(
        argv,
        cwd=folder,
        env={**claude.env, "DISABLE_AUTOUPDATER": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
def test_hidden_commands_and_linked_files_are_refused_in_the_pane(claude: ClaudeLab, mode: str) -> None:
    """What nobody can tell is asked, also where the program asks nothing."""
    tree = prepare(claude, mode)
    claude.api.script("under rules", *forbidden_calls(tree), call("Bash", command="$X y"), say("Then not."))
    swarm = claude.begin("claude", "builder", "work under rules")
    claude.shows("builder", "All tried.")
    check_refused(claude, tree)
    claude.until("builder", "idle")

    claude.say("builder", "go on")

    wait_for(lambda: len(swarm.approvals()) == 1, "the question", 90)
    assert claude.state("builder") == "waiting"
    claude.person.approvals.deny(swarm.approvals()[0].question.id, reason="nobody knows what that is")
    claude.shows("builder", "Then not.")
    assert "nobody knows" in claude.api.heard("nobody knows").text


def test_in_print_mode_too_whatever_the_users_own_settings_say(claude: ClaudeLab) -> None:
    tree = prepare(claude)
    claude.at_home(".claude/settings.json", {"disableAllHooks": True})
    claude.begin("claude", "builder", "begin with nothing")
    claude.shows("builder", "All done.")
    settings = claude.run("builder") / ".claude" / "settings.json"
    argv = [str(cache() / "bin" / "claude"), "--print", "--settings", str(settings), "--permission-mode"]
    for mode in ("bypassPermissions", "acceptEdits", "auto"):
        for name in ("plain", "secret-one", "vault/in.txt"):
            (tree / name).unlink(missing_ok=True)
        *calls, last = forbidden_calls(tree)
        claude.api.script(f"in mode {mode}", *calls, call("Bash", command="$X y"), last)
        done = printed(claude, tree, *argv, mode, "--", f"work in mode {mode} under rules")
        assert done.returncode == 0, (mode, done.stderr)
        assert "All tried." in done.stdout
        check_refused(claude, tree, "the command cannot be understood, and there are rules about commands")


def test_the_programs_own_deny_list_holds_without_the_hook(claude: ClaudeLab) -> None:
    """What swarm writes into its settings is enough for calls that say plainly what they do, in every mode."""
    tree = prepare(claude)
    claude.begin("claude", "builder", "begin with nothing")
    claude.shows("builder", "All done.")
    settings = json.loads((claude.run("builder") / ".claude" / "settings.json").read_text())
    assert [rule for rule in settings["permissions"]["deny"] if rule not in ("SendMessage", "ListAgents")] == DENY
    assert "guard.py" in json.dumps(settings["hooks"].pop("PreToolUse"))
    alone = claude.root.parent / "without-the-hook.json"
    for mode in ("default", "bypassPermissions", "auto"):
        (tree / "plain").unlink(missing_ok=True)
        claude.api.script(
            f"in mode {mode}",
            call("Bash", command="touch secret-one", description="x"),
            call("Write", file_path=str(tree / "vault" / "in.txt"), content="x"),
            call("Bash", command="touch plain", description="x"),
            say("All tried."),
        )
        alone.write_text(json.dumps(settings))
        argv = [str(cache() / "bin" / "claude"), "--print", "--settings", str(alone), "--permission-mode", mode]
        done = printed(claude, tree, *argv, "--", f"work in mode {mode} under rules")
        assert (done.returncode, "All tried." in done.stdout) == (0, True), (mode, done.stderr, done.stdout)
        assert (tree / "plain").exists(), mode
        assert not (tree / "secret-one").exists(), mode
        assert os.listdir(tree / "vault") == ["keep"], mode
        said = [text for text in claude.api.requests(f"in mode {mode}")[-1].said if "denied" in text]
        assert len(said) == 2, (mode, said)
        assert not any("swarm" in text for text in said), said


def test_a_role_with_a_rule_that_is_none_is_not_started(claude: ClaudeLab) -> None:
    claude.role("builder", "You build.", permissions={"deny": ["Bash(rm *"]})
    done = claude.cli("start", "fx", "--roles", "builder", "--agent", "claude")
    assert done.returncode == 2
    assert "permissions.deny" in done.stderr
    assert not (claude.root / ".worktrees").exists()
    assert not (claude.home / ".claude.json").exists()


#: What the program takes, numbers with fractions among them, of keys that swarm knows nothing of.
FURTHER = {
    "cleanupPeriodDays": 30,
    "attribution": {"commit": "", "pr": ""},
    "spinnerVerbs": {"mode": "replace", "verbs": ["Digging"]},
    "feedbackSurveyRate": 0.25,
    "notKnown": 1.5,
}


@pytest.mark.parametrize("print_mode", [False, True])
def test_rules_and_hooks_hold_beside_further_settings(claude: ClaudeLab, *, print_mode: bool) -> None:
    tree = prepare(claude)
    claude.role("builder", "You build.", settings=FURTHER, permissions={"allow": ["Bash(touch *)"], "deny": DENY})
    claude.api.script("under rules", *forbidden_calls(tree))
    claude.swarm.start("fx", "builder", task="work under rules", program="claude", print_mode=print_mode)
    claude.shows("builder", "All tried.")
    check_refused(claude, tree)
    settings = json.loads((claude.run("builder") / ".claude" / "settings.json").read_text())
    assert settings["feedbackSurveyRate"] == 0.25


def test_settings_that_would_have_the_rules_dropped_are_refused_before_anything_is_made(claude: ClaudeLab) -> None:
    """Each is tried alone, as the program sees it; what swarm knows itself is not asked."""
    for key, value in {"attribution": "x", "spinnerVerbs": {"mode": 5}, "sandbox": {"enabled": "yes"}}.items():
        claude.role("builder", "You build.", settings={**FURTHER, key: value}, permissions={"deny": DENY})
        for command in (("start", "fx", "--roles", "builder", "--agent", "claude"), ("role", "check", "builder")):
            done = claude.cli(*command)
            assert done.returncode == 2, (key, done)
            assert f"settings.{key}" in done.stderr + done.stdout
    assert not (claude.root / ".worktrees").exists()
    assert not (claude.home / ".claude.json").exists()


def test_one_wrong_value_makes_the_program_drop_the_rules(claude: ClaudeLab) -> None:
    """What the check is for: if this fails, the program holds them now, and need not be asked."""
    wrong = {"attribution": "x", "permissions": {"allow": ["Bash(touch *)"], "deny": ["Bash(touch secret*)"]}}
    claude.api.script("no rules", call("Bash", command="touch secret-one", description="x"), say("Done."))
    argv = [str(cache() / "bin" / "claude"), "--print", "--permission-mode", "acceptEdits", "--settings"]
    done = printed(claude, claude.root, *argv, json.dumps(wrong), "--", "work with no rules")
    assert "Done." in done.stdout, done
    assert (claude.root / "secret-one").exists()


def test_rules_that_the_program_would_skip_open_no_dialog_and_are_held(claude: ClaudeLab) -> None:
    """It takes no colon before a star in a rule about files."""
    claude.write({"a:b": "QUINCE\n"})
    claude.git("add", "-A")
    claude.commit("a file")
    claude.role("builder", "You build.", permissions={"allow": ["foo-bar", "Write(open/**)"], "deny": ["Read(a:*)"]})
    tree = claude.root / ".worktrees" / "builder-fx"
    claude.api.script(
        "under rules",
        call("Read", file_path=str(tree / "a:b")),
        call("Write", file_path=str(tree / "open" / "in.txt"), content="x"),
        say("All tried."),
    )

    claude.begin("claude", "builder", "work under rules")

    claude.shows("builder", "All tried.")
    assert (tree / "open" / "in.txt").exists()
    said = claude.api.requests("under rules")[-1].said
    assert any("swarm: denied by the rule Read(a:*)" in text for text in said)
    assert not any("QUINCE" in text for text in said)
