"""The rules of a role, held by programs that have rules of their own: denied, allowed, asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from swarm.testing.api import Turn, call, code, say
from tests.programs.real.test_others import ready

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.agents import AgentLab

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]
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


def check_refused(agents: AgentLab, tree: Path, words: str = REFUSED, times: int = 4) -> None:
    """Check that nothing forbidden was done, and that the model was told so."""
    assert not list(tree.glob("secret*"))
    assert [path.name for path in (tree / "vault").iterdir()] == ["keep"]
    heard = agents.api.requests("under rules")[-1].text
    assert heard.count(words) == times, heard[-4000:]
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


#: Ways to write a command that a person reads as the same.
SPACED = [
    *("touch  secret-b", "touch\tsecret-c", "touch \\\n  secret-d", "touch\\\n secret-e", "touch \t secret-l"),
    *(">made touch secret-f", "2>made touch  secret-g", "< /dev/null touch secret-z", "A=b >made touch secret-x"),
    *("A=b  touch\tsecret-h", "env  touch  secret-i", "env\ttouch secret-j", "/usr/bin/touch  secret-k"),
    *("sh  -c 'touch secret-m'", "(touch  secret-n)", "{ touch\tsecret-o; }", "! touch secret-p", "  touch secret-u"),
    *("if true; then touch  secret-q; fi", "for i in 1; do touch\tsecret-r; done", "true;touch  secret-v"),
    *("touch secret-s>made", "echo x | xargs\ttouch secret-t", "touch    secret-w", "time  touch secret-y"),
]


@pytest.mark.parametrize("program", ["opencode", "gemini"])
def test_a_command_is_refused_however_its_words_stand_apart(agents: AgentLab, program: str) -> None:
    tree = prepare(agents, "bypassPermissions", program)
    how = run if program == "opencode" else shell
    agents.api.script("under rules", *map(how, SPACED), how("touch  plain"), how("touch a 'secret'"), say("All tried."))

    agents.swarm.start("fx", "builder", task="work under rules", program=program, print_mode=True)

    agents.until("builder", "done")
    agents.shows("builder", "All tried.")
    assert sorted(path.name for path in tree.glob("secret*")) == ["secret"]
    assert (tree / "plain").exists()


#: The user's own policies: what they deny, no rule of a role allows.
MINE = '[[rule]]\ntoolName = "run_shell_command"\ncommandPrefix = "touch mine"\ndecision = "deny"\npriority = 1\n'


def gemini_calls(tree: Path) -> list[Turn]:
    """Return calls that rules, or the user's own policies, deny or allow."""
    return [
        shell("touch secret-one"),
        shell("touch plain && env touch secret-two"),
        call("write_file", file_path=str(tree / "vault" / "in.txt"), content="x"),
        call("read_file", file_path="keys.txt"),
        shell("touch mine"),
        shell('touch "plain"'),
        call("write_file", file_path="open/in.txt", content="x"),
        call("write_file", file_path=str(tree / "open" / "more.txt"), content="x"),
        say("All tried."),
    ]


def test_gemini_runs_what_is_allowed_and_asks_about_the_rest(agents: AgentLab) -> None:
    tree = prepare(agents, "default", "gemini")
    agents.at_home(".gemini/policies/mine.toml", MINE)
    asked = [shell("touch plain; touch more"), say("More made."), call("write_file", file_path="free.txt", content="x")]
    agents.api.script("under rules", *gemini_calls(tree), *asked, say("Written."))
    agents.begin("gemini", "builder", "work under rules")
    agents.shows("builder", "All tried.")
    agents.until("builder", "idle")

    check_refused(agents, tree, "Denied by the rule")
    assert not (tree / "mine").exists()
    assert (tree / "plain").exists()
    assert sorted(path.name for path in (tree / "open").iterdir()) == ["in.txt", "keep", "more.txt"]

    for name, done in (("more", "More made."), ("free.txt", "Written.")):
        agents.say("builder", f"now make {name}")
        agents.until("builder", "waiting")
        assert not (tree / name).exists()
        agents.keys("builder", "Enter")
        agents.shows("builder", done)
        agents.until("builder", "idle")
        assert (tree / name).exists()


def test_gemini_in_print_mode_runs_what_is_allowed_and_nothing_else(agents: AgentLab) -> None:
    """The user's settings name the policies elsewhere, with a comment."""
    tree = prepare(agents, "default", "gemini")
    agents.at_home("elsewhere/mine.toml", MINE)
    settings = agents.home / ".gemini" / "settings.json"
    named = f'{{ // mine\n"policyPaths": ["{agents.home / "elsewhere"}"],'
    settings.write_text(settings.read_text().replace("{", named, 1))
    more = [shell("touch plain; touch more"), call("write_file", file_path="free.txt", content="x")]
    agents.api.script("under rules", *more, *gemini_calls(tree))
    agents.swarm.start("fx", "builder", task="work under rules", program="gemini", print_mode=True)
    agents.until("builder", "done")

    check_refused(agents, tree, "Denied by the rule", 3)  # of two commands together none allows the whole
    assert not {"mine", "more", "free.txt"} & {path.name for path in tree.iterdir()}
    assert (tree / "plain").exists()
    assert sorted(path.name for path in (tree / "open").iterdir()) == ["in.txt", "keep", "more.txt"]


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


def execute(command: str, **more: Any) -> Turn:
    return call("exec_command", cmd=command, **more)


def patch(path: str) -> str:
    return f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch"


def outside(command: str) -> Turn:
    """Ask to run a command outside of the sandbox, which the program does only with leave."""
    return execute(command, sandbox_permissions="require_escalated", justification="to make it")


def codex_calls() -> list[Turn]:
    """Return calls that rules deny, some of which only a look at the files can tell; then some that are allowed."""
    return [
        execute("touch secret-one"),
        execute("touch plain && env sh -c 'touch secret-two'"),
        execute(f"apply_patch <<'EOF'\n{patch('vault/in.txt')}\nEOF"),
        execute(f"cd vault && apply_patch <<'EOF'\n{patch('in.txt')}\nEOF"),
        execute("touch in.txt", workdir="vault"),
        execute("cat door/../keys.txt"),
        execute("$X y"),
        execute("cat", tty=True),
        execute(f"apply_patch <<'EOF'\n{patch('open/in.txt')}\nEOF"),
        execute("touch plain"),
    ]


def check_codex(agents: AgentLab, tree: Path) -> None:
    """Check that what rules deny was not done, that the model was told each time, and that the rest was done."""
    assert not list(tree.glob("secret*"))
    assert [path.name for path in (tree / "vault").iterdir()] == ["keep"]
    heard = agents.api.requests("under rules")[-1].text
    assert heard.count("swarm: denied by the rule") == 6, heard[-6000:]
    assert heard.count("no person can be asked here") == 1
    assert heard.count("TTY execution is disabled") == 1
    assert "QUINCE" not in heard
    assert (tree / "plain").exists()
    assert (tree / "open" / "in.txt").exists()


def test_codex_refuses_what_is_denied_allows_what_is_allowed_and_asks_about_the_rest(agents: AgentLab) -> None:
    """Its user has hooks of their own that nobody has looked at, and has switched off ours: neither matters."""
    tree = prepare(agents, "default", "codex")
    config = agents.home / ".codex" / "config.toml"
    off = '[hooks.state."/<session-flags>/config.toml:pre_tool_use:0:0"]\nenabled=false\n'
    config.write_text(f"{config.read_text()}\n[features]\nhooks=false\n{off}")
    asked = [outside("touch more > free"), say("More made.")]
    agents.api.script("under rules", *codex_calls(), outside("touch allowed"), say("All tried."), *asked)
    agents.begin("codex", "builder", "work under rules")
    agents.shows("builder", "All tried.")
    agents.until("builder", "idle")

    check_codex(agents, tree)
    assert (tree / "allowed").exists()
    assert agents.git("status", "--porcelain", "--", ".codex", cwd=tree) == ""

    agents.say("builder", "now make more")
    agents.until("builder", "waiting")
    assert not (tree / "more").exists()
    agents.keys("builder", "Enter")
    agents.shows("builder", "More made.")
    assert (tree / "more").exists()


@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
def test_codex_in_print_mode_too(agents: AgentLab, mode: str) -> None:
    tree = prepare(agents, mode, "codex")
    agents.api.script("under rules", *codex_calls(), say("All tried."))
    agents.swarm.start("fx", "builder", task="work under rules", program="codex", print_mode=True)
    agents.until("builder", "done")

    agents.shows("builder", "All tried.")
    check_codex(agents, tree)


def test_codex_refuses_also_what_a_program_of_the_model_does(agents: AgentLab) -> None:
    """Its newer models write programs that use the tools."""
    tree = prepare(agents, "bypassPermissions", "codex")
    agents.role("builder", "You build.", model="gpt-5.6-sol", permission_mode="bypassPermissions", permissions=RULES)
    commands = ["touch secret-one", "touch plain", "cat keys.txt"]
    made = [code("exec", f"text(await tools.exec_command({{cmd: {one!r}}}))") for one in commands]
    patches = [
        code("exec", f"text(await tools.apply_patch({patch(name)!r}))") for name in ("vault/in.txt", "open/in.txt")
    ]
    agents.api.script("under rules", *made, *patches, say("All tried."))
    agents.swarm.start("fx", "builder", task="work under rules", program="codex", print_mode=True)
    agents.until("builder", "done")

    agents.shows("builder", "All tried.")
    check_refused(agents, tree, "swarm: denied by the rule", 3)
    assert (tree / "plain").exists()
    assert (tree / "open" / "in.txt").exists()
