"""What runs at every tool call: it refuses what rules forbid, fails closed, and costs next to nothing elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import swarm.permissions.guard
from swarm.machine import records
from swarm.programs.claude import hooks, rules
from swarm.programs.claude.program import Claude
from swarm.programs.values import Launch
from swarm.roles.options import Permissions, RoleOptions, Unclear

pytestmark = pytest.mark.component

GUARD = swarm.permissions.guard.__file__
HOOK = str(Path(GUARD).parents[1] / "machine" / "hook.py")
DENY = ("Bash(rm *)", "Edit(vault/**)")


def prepared(folder: Path, *deny: str, unclear: Unclear = Unclear.ASK) -> Path:
    """Write down the rules as a start does; return the run folder."""
    run = folder / "run"
    run.mkdir(exist_ok=True)
    options = RoleOptions(permissions=Permissions(deny=deny, unclear=unclear))
    launch = Launch("a", "r", "s", folder, run, run / "r", run / "t", "", "", False, "claude", options)
    (run / swarm.permissions.guard.RULES).write_text(rules.files(launch)[swarm.permissions.guard.RULES])
    return run


def run(run_dir: Path, event: Any, *flags: str, script: str = GUARD) -> subprocess.CompletedProcess[str]:
    text = event if isinstance(event, str) else json.dumps(event)
    argv = [sys.executable, "-I", "-S", *flags, script, str(run_dir)]
    return subprocess.run(argv, input=text, capture_output=True, text=True, check=False, timeout=60)


def bash(command: str, **more: Any) -> dict[str, Any]:
    return {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": command}, **more}


def answer(done: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    assert done.returncode == 0, done.stderr
    if not done.stdout:
        return "", ""
    found = json.loads(done.stdout)["hookSpecificOutput"]
    assert found.pop("hookEventName") == "PreToolUse"
    return found["permissionDecision"], found["permissionDecisionReason"]


def test_it_denies_with_the_reason_asks_in_doubt_and_is_silent_else(tmp_path: Path) -> None:
    folder = prepared(tmp_path, *DENY)
    assert answer(run(folder, bash("ls; sh -c 'rm x'"))) == ("deny", "swarm: denied by the rule Bash(rm *)")
    assert answer(run(folder, bash("$X 'a\u2028\n'")))[0] == "ask"
    assert answer(run(folder, bash("ls"))) == ("", "")
    assert answer(run(folder, {"tool_name": "Write", "tool_input": {"file_path": "vault/x"}}))[0] == "deny"
    assert answer(run(folder, {"tool_name": "Write", "tool_input": {"file_path": "x"}})) == ("", "")
    (tmp_path / "sub").mkdir()
    (tmp_path / "door").symlink_to("vault")
    assert answer(run(folder, bash("touch ../door/x", cwd=str(tmp_path / "sub"))))[0] == "deny"
    assert len((folder / "events.jsonl").read_text().splitlines()) == 6


def test_every_tool_that_is_told_a_command_is_judged_by_it(tmp_path: Path) -> None:
    folder = prepared(tmp_path, *DENY)
    for tool in ("Monitor", "PowerShell", "Terminal", "mcp__shell__run"):
        event = bash("ls; rm x") | {"tool_name": tool}
        assert answer(run(folder, event)) == ("deny", "swarm: denied by the rule Bash(rm *)")
        assert answer(run(folder, bash("ls") | {"tool_name": tool})) == ("", "")
    assert answer(run(folder, {"tool_name": "Terminal", "tool_input": {"cmd": "touch vault/x"}}))[0] == "deny"
    prepared(tmp_path, "WebSearch")
    assert answer(run(folder, bash("rm x"))) == ("", "")


def test_the_hook_is_asked_before_every_tool(tmp_path: Path) -> None:
    (entry,) = hooks.standard(tmp_path, tmp_path, guarded=True)["PreToolUse"]
    assert entry["matcher"] == ""


def test_a_role_may_want_the_doubtful_denied_and_its_own_notes_are_not_edited(tmp_path: Path) -> None:
    folder = prepared(tmp_path, *DENY, unclear=Unclear.DENY)
    assert answer(run(folder, bash("$X")))[0] == "deny"
    own = {"tool_name": "Edit", "tool_input": {"file_path": str(folder / swarm.permissions.guard.RULES)}}
    assert answer(run(folder, own))[0] == "deny"


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"tools": ["Bash"]}', '{"tools": ["Bash"], "deny": [[1]]}'])
def test_rules_that_cannot_be_read_refuse(tmp_path: Path, broken: str) -> None:
    folder = prepared(tmp_path, *DENY)
    (folder / swarm.permissions.guard.RULES).write_text(broken)
    done = run(folder, bash("ls"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot enforce the rules" in done.stderr


def test_no_rules_file_or_no_event_refuses(tmp_path: Path) -> None:
    folder = prepared(tmp_path, *DENY)
    events: tuple[Any, ...] = ("", "{", "[1]", {"tool_input": {}}, {"tool_name": 5})
    for event in events:
        assert run(folder, event).returncode == 2
    (folder / swarm.permissions.guard.RULES).unlink()
    assert run(folder, bash("ls")).returncode == 2


def test_notes_that_cannot_be_written_do_not_matter(tmp_path: Path) -> None:
    folder = prepared(tmp_path, *DENY)
    (folder / "events.jsonl").mkdir()
    assert answer(run(folder, bash("ls"))) == ("", "")
    assert answer(run(folder, bash("rm x")))[0] == "deny"


def limited(run_dir: Path, event: Any, seconds: float, *flags: str) -> subprocess.CompletedProcess[str]:
    """Run the guard with a time of the test's own; nothing of the agent's surroundings could set it."""
    code = (
        "import sys; from importlib.util import module_from_spec, spec_from_file_location as spec;"
        f"sys.argv = ['guard', {str(run_dir)!r}, *{list(flags)!r}];"
        f"one = spec('guard', {GUARD!r}); guard = module_from_spec(one); one.loader.exec_module(guard);"
        f"sys.exit(guard.main({seconds}))"
    )
    argv = [sys.executable, "-I", "-S", "-c", code]
    return subprocess.run(argv, input=json.dumps(event), capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("flags", [(), ("codex",)])
def test_who_takes_too_long_refuses_also_where_files_are_looked_at(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """What looks at files takes an error of the clock for a file that is not there."""
    folder = prepared(tmp_path, *(f"Edit(vault{n}/**)" for n in range(40)))
    (tmp_path / "wide").mkdir()
    for n in range(2000):
        (tmp_path / "wide" / f"f{n}").touch()
    event = bash("touch " + "wide/* " * 20, cwd=str(tmp_path))
    done = limited(folder, event, 0.2, *flags)
    assert (done.returncode, done.stdout) == (2, "")
    assert "took over 0.2 s" in done.stderr
    assert limited(folder, bash("touch wide/f1?", cwd=str(tmp_path)), 60, *flags).returncode == 0


def test_patterns_are_looked_up_where_the_agent_is_and_too_many_names_are_asked_about(tmp_path: Path) -> None:
    folder = prepared(tmp_path, "Edit(wide/secret)", "Edit(*.pem)")
    (tmp_path / "wide").mkdir()
    (tmp_path / "wide" / "secret").touch()
    (tmp_path / "wide" / "other").touch()
    assert answer(run(folder, bash("touch wide/s*", cwd=str(tmp_path))))[0] == "deny"
    assert answer(run(folder, bash("touch wide/[!r-t]*", cwd=str(tmp_path)))) == ("", "")
    assert answer(run(folder, bash("cd ..; touch [^x]ecret", cwd=str(tmp_path / "wide"))))[0] == "ask"
    assert answer(run(folder, bash("touch [^x]ecret", cwd=str(tmp_path / "wide"))))[0] == "deny"
    for n in range(4_100):
        (tmp_path / "wide" / f"x{n}").touch()
    assert answer(run(folder, bash("touch wide/*", cwd=str(tmp_path))))[0] == "ask"


def test_nothing_is_imported_that_is_not_needed(tmp_path: Path) -> None:
    """Each of these costs more than all the rest of the hook."""
    folder = prepared(tmp_path, "WebFetch(domain:x.org)")
    for script in (GUARD, HOOK):
        seen = run(folder, bash("ls"), "-X", "importtime", script=script).stderr
        assert "swarm.machine.hook_events" in seen
        assert not [one for one in ("swarm.kit", "typing", "dataclasses") if one in seen]
    prepared(tmp_path, *DENY)
    seen = run(folder, bash("rm x"), "-X", "importtime").stderr
    assert "swarm.permissions.shell.parts" in seen
    assert not [one for one in ("dataclasses", "typing", "inspect") if one in seen]


def test_only_a_role_with_rules_is_guarded_and_each_event_has_one_entry(tmp_path: Path) -> None:
    plain, guarded = (hooks.standard(tmp_path, tmp_path, guarded=one) for one in (False, True))
    assert all(len(entries) == 1 for entries in guarded.values())
    assert {event: len(entries[0]["hooks"]) for event, entries in guarded.items() if len(entries[0]["hooks"]) != 1} == {
        "Stop": 2  # messages; and what a lead still has open
    }
    assert "guard.py" in guarded["PreToolUse"][0]["hooks"][0]["command"]
    assert "guard.py" not in json.dumps(plain)
    assert {event for event in plain if plain[event] != guarded[event]} == {"PreToolUse"}


def test_a_rule_in_the_further_settings_counts_and_a_broken_one_is_refused() -> None:
    wish = RoleOptions(settings={"permissions": {"deny": ["Bash(rm *)", "Bash(git *"]}})
    assert rules.denied(wish) == ("Bash(rm *)", "Bash(git *")
    (problem,) = Claude().check(wish, {})
    assert "Bash(git *" in problem.message


@pytest.mark.parametrize(
    "text", ["", "{", '{"a"', "[1] 2", "nope", "'x'", '"a\x01"', "[" * 100_000, "{'a': 1}", "\xff"]
)
def test_what_is_no_json_is_refused_also_when_it_is_nested_too_deep(text: str) -> None:
    with pytest.raises(ValueError):
        records.loads(text.encode("latin-1"))


def test_a_line_is_json() -> None:
    record = {"a": "é\n\ud800", "b": 5, "c": True, "d": None, "e": False}
    line = records.line(record)
    assert line.isascii()
    assert line.endswith(b"}\n")
    assert json.loads(line) == record
    assert json.loads(records.line({"x": [1], "y": 1})) == {"y": 1}
