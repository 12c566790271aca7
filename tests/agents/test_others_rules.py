"""The rules of a role, held by programs that have rules of their own: denied, allowed, asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from swarm.testing.api import Turn, call, say
from tests.agents.test_others import ready

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.agents import AgentLab

pytestmark = pytest.mark.timeout(600)
DENY = ["Bash(touch secret*)", "Edit(vault/**)", "Read(keys.txt)"]
RULES = {"allow": ["Bash(touch *)", "Edit(open/**)"], "deny": DENY}
#: What the program tells the model of a call that its configuration denies.
REFUSED = "specified a rule which prevents you"


def run(command: str) -> Turn:
    return call("bash", command=command, description="x")


def write(path: Path) -> Turn:
    return call("write", filePath=str(path), content="x")


def shell(command: str) -> Turn:
    return call("run_shell_command", command=command, description="x")


def prepare(agents: AgentLab, mode: str, program: str = "opencode") -> Path:
    """Make a project with files that rules are about; return the agent's worktree."""
    ready(agents, program)
    agents.write({"vault/keep": "x\n", "open/keep": "x\n", "keys.txt": "KEY=QUINCE\n"})
    agents.git("add", "-Af")
    agents.commit("files")
    agents.role("builder", "You build.", permission_mode=mode, permissions=RULES)
    return agents.root / ".worktrees" / "builder-fx"


def forbidden_calls(tree: Path) -> list[Turn]:
    return [
        run("touch secret-one"),
        run("touch plain && env touch secret-two"),
        write(tree / "vault" / "in.txt"),
        call("read", filePath=str(tree / "keys.txt")),
    ]


def check_refused(agents: AgentLab, tree: Path, words: str = REFUSED) -> None:
    """Check that nothing forbidden was done, and that the model was told so each time."""
    assert not list(tree.glob("secret*"))
    assert [path.name for path in (tree / "vault").iterdir()] == ["keep"]
    heard = agents.api.requests("under rules")[-1].text
    assert heard.count(words) == 4, heard[-4000:]
    assert "QUINCE" not in heard


def test_opencode_refuses_what_is_denied_runs_what_is_allowed_and_asks_about_the_rest(agents: AgentLab) -> None:
    tree = prepare(agents, "default")
    agents.at_home(".config/opencode/opencode.jsonc", {"permission": {"bash": {"touch *": "allow"}, "*": "allow"}})
    allowed = [run("touch plain"), write(tree / "open" / "in.txt"), say("All tried.")]
    asked = [run("touch plain > more"), say("More made."), write(tree / "free.txt"), say("Written.")]
    agents.api.script("under rules", *forbidden_calls(tree), *allowed, *asked)
    agents.begin("opencode", "builder", "work under rules")
    agents.shows("builder", "All tried.")
    agents.until("builder", "idle")

    check_refused(agents, tree)
    assert (tree / "plain").exists()
    assert (tree / "open" / "in.txt").exists()

    for name, done in (("more", "More made."), ("free.txt", "Written.")):
        agents.say("builder", f"now make {name}")
        agents.until("builder", "waiting")
        assert not (tree / name).exists()
        agents.keys("builder", "Enter")
        agents.shows("builder", done)
        agents.until("builder", "idle")
        assert (tree / name).exists()


@pytest.mark.parametrize("print_mode", [False, True])
def test_gemini_refuses_what_is_denied_also_when_nothing_is_asked(agents: AgentLab, *, print_mode: bool) -> None:
    tree = prepare(agents, "bypassPermissions", "gemini")
    agents.at_home(".gemini/policies/mine.toml", '[[rule]]\ntoolName = "*"\ndecision = "allow"\npriority = 999\n')
    agents.api.script(
        "under rules",
        shell("touch secret-one"),
        shell("touch plain && env touch secret-two"),
        call("write_file", file_path=str(tree / "vault" / "in.txt"), content="x"),
        call("read_file", file_path="keys.txt"),
        call("write_file", file_path="open/in.txt", content="x"),
        shell("touch plain"),
        say("All tried."),
    )
    agents.swarm.start("fx", "builder", task="work under rules", program="gemini", print_mode=print_mode)
    agents.shows("builder", "All tried.")

    check_refused(agents, tree, "Denied by the rule")
    assert (tree / "plain").exists()
    assert (tree / "open" / "in.txt").exists()


@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
def test_opencode_in_print_mode_too_whatever_its_own_configuration_allows(agents: AgentLab, mode: str) -> None:
    tree = prepare(agents, mode)
    everything = {"bash": "allow", "edit": {"vault/*": "allow"}, "read": "allow"}
    agents.at_home(
        ".config/opencode/opencode.jsonc",
        {"permission": {**everything, "*": "allow"}, "agent": {"build": {"permission": {**everything, "*": "allow"}}}},
    )
    agents.env["OPENCODE_PERMISSION"] = '{"read": "allow", "*": "allow"}'
    allowed = [run("touch plain"), write(tree / "open" / "in.txt"), say("All tried.")]
    agents.api.script("under rules", *forbidden_calls(tree), *allowed)
    agents.swarm.start("fx", "builder", task="work under rules", program="opencode", print_mode=True)
    agents.until("builder", "done")

    agents.shows("builder", "All tried.")
    check_refused(agents, tree)
    assert (tree / "plain").exists()
    assert (tree / "open" / "in.txt").exists()
