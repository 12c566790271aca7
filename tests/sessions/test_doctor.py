"""``doctor``: finds what is wrong, names the command that mends it, and changes nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm.kit.errors import SwarmError
from swarm.testing.panes import QUICK, PaneLab
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from swarm.sessions.reports import Check

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def checks(lab: PaneLab) -> dict[str, Check]:
    """Return what is not fine, by name."""
    return {one.name: one for one in lab.swarm.doctor() if one.state != "ok"}


def mend(lab: PaneLab, check: Check) -> None:
    """Type the command that it names."""
    words = check.hint.split()
    assert words[0] == "swarm", check
    done = lab.cli(*words[1:])
    assert done.returncode == 0, (check, done.stderr)


def test_a_fresh_repository(panes: PaneLab) -> None:
    before = panes.fingerprint()

    found = checks(panes)

    assert set(found) == {"agent programs"}
    assert "--agent demo" in found["agent programs"].hint
    assert panes.fingerprint() == before
    assert not (panes.root / ".swarm").exists()


def test_what_an_init_writes_is_private(panes: PaneLab) -> None:
    assert panes.cli("role", "init", "checker").returncode == 0
    assert panes.cli("pod", "init", "web").returncode == 0

    assert "state" not in checks(panes)


def test_a_git_that_is_too_old_for_anything_is_bad(panes: PaneLab) -> None:
    """A stand-in says an old version; everything else is the real git."""
    real = shutil.which("git")
    panes.program(
        "git", f'#!/bin/sh\ncase " $* " in *" version "*) echo "git version 2.17.1";; *) exec "{real}" "$@";; esac\n'
    )

    found = checks(panes)["git"]

    assert (found.state, found.hint) == ("bad", "install git 2.38 or newer")
    assert "git 2.17.1 is too old: nothing of swarm works without git 2.20" in found.text
    assert panes.cli("doctor").returncode == 1


def test_a_missing_identity_is_named_with_what_mends_it(panes: PaneLab) -> None:
    Path(panes.env["GIT_CONFIG_GLOBAL"]).write_text("[user]\n\tuseConfigOnly = true\n")

    found = checks(panes)["identity"]

    assert (found.state, "your name and address" in found.text) == ("warn", True)
    subprocess.run(["bash", "-c", found.hint], env=panes.env, cwd=panes.root, check=True)
    assert "identity" not in checks(panes)


def test_a_missing_first_commit_is_named_with_what_mends_it(panes: PaneLab) -> None:
    panes.git("update-ref", "-d", "HEAD")

    found = checks(panes)["commits"]

    assert (found.state, "has no commit yet" in found.text) == ("bad", True)
    subprocess.run(["bash", "-c", found.hint], env=panes.env, cwd=panes.root, check=True)
    assert "commits" not in checks(panes)


def test_agents_at_work_are_fine(panes: PaneLab) -> None:
    panes.env["SWARM_AGENTS_PROGRAM"] = "demo"
    panes.start()
    panes.all_until("idle")

    assert checks(panes) == {}
    assert panes.cli("doctor").returncode == 0


@pytest.mark.parametrize(
    ("order", "words", "hint"),
    [
        ("fail 3", "developer@fx failed: exit status 3", "swarm restart developer@fx"),
        ("ask Why?", "developer@fx waits for you: Why?", "swarm attach developer@fx"),
    ],
)
def test_agents_that_need_a_look(panes: PaneLab, order: str, words: str, hint: str) -> None:
    panes.start("developer", task=f"{QUICK}demo: {order}\n")
    panes.until("developer", "failed", "waiting")

    found = [one for one in panes.swarm.doctor() if one.name == "agents"]

    assert (found[0].text, found[0].hint) == (words, hint)


def test_a_worktree_that_is_locked_for_nobody(panes: PaneLab) -> None:
    panes.start("developer")
    panes.until("developer", "idle")
    panes.tmux.kill()
    panes.until("developer", "stopped")

    found = [one for one in panes.swarm.doctor() if "still locked" in one.text]
    assert len(found) == 1
    mend(panes, found[0])

    assert not [one for one in panes.swarm.doctor() if "still locked" in one.text]


def test_a_server_that_lost_its_socket_gets_it_back(panes: PaneLab) -> None:
    panes.start("developer")
    panes.until("developer", "idle")
    server = panes.tmux.pid()
    Path(panes.tmux.socket).unlink()

    found = checks(panes)["panes"]
    with pytest.raises(SwarmError) as raised:
        panes.swarm.peek("developer")

    assert (found.state, found.hint) == ("bad", f"kill -USR1 {server}")
    assert "swarm doctor" in raised.value.hint
    assert os.system(found.hint) == 0
    wait_for(lambda: panes.tmux.pid() == server, "the server on its socket")
    assert "panes" not in checks(panes)
    assert panes.one("developer").pane


def test_panes_that_belong_to_no_session(panes: PaneLab) -> None:
    panes.start()
    panes.all_until("idle")
    panes.swarm.stop(["fx"])
    (panes.root / ".swarm/sessions/fx/session.json").unlink()

    found = checks(panes)["panes"]

    assert "belongs to no session" in found.text
    assert panes.tmux.socket in found.hint, "of a private server, so it must name it"
    for one in [one for one in panes.swarm.doctor() if one.name == "panes"]:
        assert os.system(f"{one.hint} 2>/dev/null") == 0
    assert "panes" not in checks(panes)


def test_without_tmux(panes: PaneLab, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    git = next(Path(folder, "git") for folder in panes.env["PATH"].split(":") if Path(folder, "git").exists())
    (tools / "git").symlink_to(git)
    panes.swarm.create("fx", "developer")
    panes.env["PATH"] = str(tools)

    found = checks(panes)

    assert found["tmux"].state == "bad"
    assert panes.cli("doctor").returncode == 1
    assert panes.cli("status").returncode == 0
    assert panes.cli("list", "--json").returncode == 0
    assert panes.cli("cleanup", "--all").returncode == 0


def test_a_foreign_session_files_for_all_and_a_lost_worktree(panes: PaneLab) -> None:
    panes.swarm.create("fx", "researcher,developer")
    panes.tmux("new-session", "-d", "-s", "swarm", sys.executable, "-c", "import time; time.sleep(600)")
    (panes.root / ".swarm/sessions/fx/session.json").chmod(0o644)
    panes.tree("developer", "fx").rename(panes.root.parent / "elsewhere")

    found = checks(panes)

    assert found["tmux"].state == "bad"
    assert "tmux.session" in found["tmux"].hint
    assert "session.json" in found["state"].text
    assert "developer@fx" in found["worktrees"].text
    mend(panes, found["worktrees"])
    assert os.system(f"cd '{panes.root}' && {found['state'].hint}") == 0
    panes.tmux.kill()
    wait_for(lambda: panes.tmux.pid() == 0, "no server")
    assert set(checks(panes)) <= {"agent programs", "branches"}


def test_one_look_that_fails_does_not_hide_the_others(panes: PaneLab) -> None:
    panes.swarm.create("fx", "developer")
    (panes.root / ".swarm/sessions/fx/session.json").write_text("{")

    found = [one for one in panes.swarm.doctor() if one.state == "bad"]

    assert any("session.json" in one.text for one in found)
    assert any(one.name == "git" for one in panes.swarm.doctor())


def test_what_was_no_message_is_pointed_at(panes: PaneLab) -> None:
    panes.swarm.create("fx", "developer")
    panes.swarm.send("developer", "makes the inbox")
    drop = panes.root / ".swarm/messages/inbox/developer-fx/drop"
    (drop / "x.txt").write_bytes(b"\xff\xfe")
    panes.swarm.messages.take("developer@fx")

    (found,) = [check for check in panes.swarm.doctor() if check.name == "messages"]

    assert found.text == "inbox developer-fx: 1 message set aside as damaged or refused"
    assert found.hint.startswith("ls '")


def test_one_record_that_cannot_be_read_is_named_and_the_rest_is_looked_at(panes: PaneLab) -> None:
    panes.swarm.create("fx", "developer")
    panes.swarm.create("gx", "reviewer")
    (panes.root / ".swarm/sessions/fx/session.json").write_text("{")

    states = {(check.name, check.state) for check in panes.swarm.doctor()}

    assert ("sessions", "bad") in states
    assert ("messages", "ok") in states


def test_an_interrupted_operation(panes: PaneLab) -> None:
    panes.swarm.create("fx", "developer")
    from swarm.worktrees import transaction

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction, "_tidy", lambda *_: None)
        panes.swarm.create("gx", "developer")

    found = checks(panes)["operations"]
    assert found.hint == "swarm recover"
    mend(panes, found)

    assert "operations" not in checks(panes)


@pytest.mark.parametrize(
    ("program", "variable", "file"),
    [
        ("claude", "ANTHROPIC_API_KEY", ".claude/.credentials.json"),
        ("codex", "CODEX_API_KEY", ".codex/auth.json"),
        ("gemini", "GEMINI_API_KEY", ".gemini/oauth_creds.json"),
        ("opencode", "OPENROUTER_API_KEY", ".local/share/opencode/auth.json"),
    ],
)
def test_whether_the_default_program_is_logged_in_is_seen_without_asking(
    panes: PaneLab, program: str, variable: str, file: str
) -> None:
    panes.program(program, "#!/bin/sh\nexit 9\n")
    panes.env["SWARM_AGENTS_PROGRAM"] = program

    found = checks(panes)["logins"]
    assert found.state == "warn"
    assert f"no login of {program} is seen" in found.text
    assert program in found.hint

    def seen() -> str:
        (one,) = (check for check in panes.swarm.doctor() if check.name == "logins")
        return f"{one.state}: {one.text}"

    path = Path(panes.env["HOME"]) / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    assert seen() == f"ok: {program}: {path}"
    panes.env[variable] = "secret"
    assert seen() == f"ok: {program}: {variable}"
