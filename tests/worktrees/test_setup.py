"""Worktrees are made ready before the first turn and put away before they go: files, commands, ports, policies."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm import Swarm
from swarm.machine import processes
from swarm.project.errors import Locked
from swarm.testing.lab import Lab, file_digests
from swarm.testing.panes import QUICK, PaneLab
from swarm.testing.terminal import Pane, wait_for
from swarm.worktrees.errors import SetupFailed, TeardownFailed, WorkAtRisk

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.integration


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    made = Lab(tmp_path.resolve())
    made.write({".env": "A=1\n", "node_modules/one/index.js": "1\n", "secret/key": "k\n", "notes": "mine\n"})
    return made


def role(lab: Lab, text: str, name: str = "qa") -> None:
    lab.write({f"roles/{name}.yaml": f"name: {name}\ninstructions: Test.\n{text}"})


def sh(script: str) -> str:
    return json.dumps(["sh", "-c", script])


def number_in(file: Path) -> int:
    wait_for(lambda: file.exists() and file.read_text().strip(), f"a number in {file.name}")
    return int(file.read_text())


def port_in_pane(panes: PaneLab, out: Path) -> int:
    panes.until("qa-1", "idle")
    panes.type("qa-1", f"echo $PORT > {out}")
    return number_in(out)


def gone(pid: int) -> bool:
    return processes.start_of(pid) is None


def commands(swarm_log: Sequence[dict[str, object]], verb: str) -> list[str]:
    return [str(entry["outcome"]) for entry in swarm_log if entry["verb"] == verb]


# --- files ---------------------------------------------------------------------------------------


def test_files_are_given_hidden_and_nobodys_work(lab: Lab) -> None:
    """From configuration, role and `.worktreeinclude`; also what git would show in the worktree."""
    lab.write({".worktreeinclude": "secret/*\n!secret/not\n", "secret/not": "x", "deep/node_modules/m": "1"})
    role(lab, "setup: {link: [node_modules], copy: [README, '*.nothing']}\n")
    before = lab.fingerprint()

    report = lab.open(setup__copy=[".env*", "notes"]).create("fx", "qa:2")

    tree = lab.tree("qa-1", "fx")
    assert not [text for text in report.warnings if "setup" in text]
    assert (tree / ".env").read_text() == "A=1\n"
    assert (tree / "notes").read_text() == "mine\n"
    assert (tree / "secret/key").read_text() == "k\n"
    assert not (tree / "secret/not").exists()
    assert not (tree / "deep").exists()
    assert os.readlink(tree / "node_modules") == "../../node_modules"
    lab.git("add", "--all", cwd=tree)
    assert lab.git("status", "--porcelain", cwd=tree) == ""
    assert "notes" in lab.git("status", "--porcelain"), "it is still seen where it is the user's"

    lab.swarm.cleanup(["fx"])

    assert lab.fingerprint() == before
    assert (lab.root / "node_modules/one/index.js").exists()


def test_what_the_agent_changed_is_work_and_all_of_it_comes_back(lab: Lab) -> None:
    role(lab, f"setup: {{copy: [.env, notes], run: [{sh('echo made > made.log')}]}}\n")
    lab.swarm.create("fx", "qa:2")
    one, two = lab.tree("qa-1", "fx"), lab.tree("qa-2", "fx")
    (one / ".env").write_text("A=2\n")
    (one / "notes").write_text("theirs\n")

    with pytest.raises(WorkAtRisk) as caught:
        lab.swarm.cleanup(["fx"])
    found = caught.value.facts["agents"]
    report = lab.swarm.cleanup(["fx"], force=True)
    lab.swarm.restore("fx")

    assert [(risks.agent, sorted(i for r in risks.risks for i in r.items)) for risks in found] == [("qa-1", [".env"])]
    assert [removed.saved_files for removed in report.removed] == [2, 0]
    assert ((one / ".env").read_text(), (one / "notes").read_text()) == ("A=2\n", "theirs\n")
    assert ((two / ".env").read_text(), (two / "made.log").read_text()) == ("A=1\n", "made\n")
    assert lab.git("status", "--porcelain", cwd=two) == ""
    lab.swarm.worktrees.remove("qa-2", "fx")
    with pytest.raises(WorkAtRisk):
        lab.swarm.worktrees.remove("qa-1", "fx")


def test_a_restored_worktree_has_its_links_again(lab: Lab) -> None:
    """Also where it was the last session, and as it was: one that the agent removed stays away."""
    lab.write({"node_modules/.bin/tool": "#!/bin/sh\n", "deep/cache/x": "1\n"})
    role(lab, "setup: {link: [node_modules, secret, deep/cache]}\n")
    before = lab.fingerprint()
    lab.swarm.create("fx", "qa:2")
    one, two = lab.tree("qa-1", "fx"), lab.tree("qa-2", "fx")
    was = file_digests(one, skip={".git"})
    (two / "node_modules").unlink()
    during = lab.fingerprint()

    report = lab.swarm.cleanup(["fx"])
    gone = lab.fingerprint()
    lab.swarm.restore("fx")

    assert [removed.dropped for removed in report.removed] == [(), ()]
    assert (gone, lab.fingerprint()["exclude"]) == (before, during["exclude"])
    assert file_digests(one, skip={".git"}) == was
    assert (one / "node_modules/.bin/tool").exists()
    assert os.readlink(one / "deep/cache") == "../../../deep/cache"
    assert not os.path.lexists(two / "node_modules")
    assert (two / "secret/key").read_text() == "k\n"
    for tree in (one, two):
        lab.git("add", "--all", cwd=tree)
        assert lab.git("status", "--porcelain", cwd=tree) == ""
    lab.swarm.cleanup(["fx"])
    assert lab.fingerprint() == before
    assert (lab.root / "node_modules/one/index.js").exists()


def test_copies_that_are_not_saved_are_made_again(lab: Lab) -> None:
    """Large ones, and such as can be made again; what the agent changed or removed is not, nor what is gone."""
    modules = {f"node_modules/[{name}].js": name for name in ("kept", "changed", "removed", "gone")}
    lab.write({"large.log": b"x" * (2 << 20), **modules})
    role(lab, "setup: {copy: [large.log, node_modules]}\n")
    lab.swarm.create("fx", "qa")
    tree = lab.tree("qa", "fx")
    (tree / "node_modules/[changed].js").write_text("by the agent")
    (tree / "node_modules/[removed].js").unlink()

    lab.swarm.cleanup(["fx"])
    (lab.root / "node_modules/[gone].js").unlink()
    lab.swarm.restore("fx")

    assert (tree / "large.log").stat().st_size == 2 << 20
    assert sorted(path.name for path in (tree / "node_modules").iterdir()) == ["[kept].js", "one"]
    assert (tree / "node_modules/one/index.js").read_text() == "1\n"
    assert not (tree / "node_modules").is_symlink()
    lab.git("add", "--all", cwd=tree)
    assert lab.git("status", "--porcelain", cwd=tree) == ""
    lab.swarm.worktrees.remove("qa", "fx")


def test_what_cannot_be_given_is_left_out_or_refused(lab: Lab) -> None:
    (lab.root / "secret/away").symlink_to(lab.root.parent)
    (lab.root / "out").symlink_to("/etc/hostname")
    role(lab, "setup: {copy: [secret, out], link: [src], policy: warn}\n")
    role(lab, "setup: {copy: [.env.production], run: [no-such-program-here x]}\n", "strict")
    before = lab.fingerprint()

    with pytest.raises(Exception, match=r"\.env\.production, which is not in the main checkout") as caught:
        lab.swarm.create("fx", "strict")
    report = lab.swarm.create("fx", "qa")

    assert "no-such-program-here, which is not installed" in str(caught.value)
    tree = lab.tree("qa", "fx")
    assert sorted(path.name for path in (tree / "secret").iterdir()) == ["key"]
    assert not os.path.lexists(tree / "out")
    assert not (tree / "src").is_symlink()
    told = "\n".join(report.warnings)
    assert "secret/away is a symbolic link that leads out of the repository" in told
    assert "src holds files that git tracks" in told
    lab.swarm.cleanup(["fx"])
    assert lab.fingerprint() == before


def test_a_file_that_two_lists_name_and_neither_may_give_is_told_of_once(lab: Lab) -> None:
    (lab.root / "secret/away").symlink_to(lab.root.parent)
    lab.write({".worktreeinclude": "secret/*\n"})
    role(lab, "setup: {copy: [secret]}\n")

    report = lab.open(setup__copy=["secret/*"]).create("fx", "qa")

    assert len([text for text in report.warnings if "secret/away" in text]) == 1


def test_a_dry_run_tells_and_no_setup_leaves_it_out(lab: Lab) -> None:
    role(
        lab, f"setup: {{copy: [.env, secret], link: [node_modules], run: [{sh('echo x > made.log')}], ports: [PORT]}}\n"
    )

    steps = "\n".join(lab.swarm.create("fx", "qa", dry_run=True).steps)
    lab.swarm.create("fx", "qa", setup=False)

    assert "link node_modules; copy .env, secret; run `sh -c 'echo x > made.log'` (files: .env, secret/key)" in steps
    assert sorted(os.listdir(lab.tree("qa", "fx"))) == [
        *(".git", ".gitignore", "CLAUDE.local.md", "README", "run.sh", "src")
    ]
    assert lab.swarm.sessions.get("fx").agents[0].ports == ()
    assert lab.swarm.worktrees.setup_of("qa") is None


# --- commands ------------------------------------------------------------------------------------


def test_a_failed_command_takes_everything_back(panes: PaneLab, tmp_path: Path) -> None:
    """Also the command that another agent's setup is at, and what either had started."""
    out = tmp_path / "out"
    out.mkdir()
    slow = f"sleep 600 & echo $! > '{out}/slow'; exec sleep 600"
    bad = (
        f"while [ ! -s '{out}/slow' ]; do sleep 0.01; done; sleep 600 & echo $! > '{out}/bad'; echo oh dear >&2; exit 3"
    )
    role(panes, f"agent_type: demo\nsetup: {{run: [{sh(slow)}]}}\n", "slow")
    role(panes, f"agent_type: demo\nsetup: {{run: ['true', {sh(bad)}]}}\n", "bad")
    before = panes.fingerprint()

    with pytest.raises(SetupFailed, match=r"setup of bad: .* ended with 3: oh dear") as caught:
        panes.swarm.start("fx", "slow,bad", task=QUICK)

    assert caught.value.details == "oh dear"
    assert panes.fingerprint() == before
    assert panes.panes() == []
    assert not (panes.root / ".swarm/sessions/fx").exists()
    assert not (panes.root / ".swarm/salvage").exists()
    wait_for(lambda: gone(number_in(out / "slow")) and gone(number_in(out / "bad")), "the end of what they started")
    assert "oh dear" in (panes.root / ".swarm/setup-failed.log").read_text()
    assert "ended with 3" in commands(panes.swarm.operations(), "setup")[0]


def test_a_warning_is_told_and_the_agent_has_its_ports(panes: PaneLab, tmp_path: Path) -> None:
    role(
        panes,
        f"agent_type: shell\nsetup:\n  ports: [PORT, DEBUG_PORT]\n  policy: warn\n  timeout: 4s\n"
        f"  run: [{sh('echo no luck; exit 2')}, sleep 600, {sh('echo $PORT $SWARM_ACTOR $SWARM_PHASE > said.log')}]\n",
    )
    panes.write({".swarm/config.yaml": "setup: {ports: [MAIN_PORT]}\n"})
    (panes.root / ".swarm").chmod(0o700)

    report = panes.swarm.start("fx", "qa:2")
    ports = {one.name: dict(one.ports) for one in panes.swarm.sessions.get("fx").agents}

    assert len({port for several in ports.values() for port in several.values()}) == 6
    assert set(ports["qa-1"]) == {"MAIN_PORT", "PORT", "DEBUG_PORT"}
    assert sum("no luck" in text for text in report.warnings) == 2
    assert sum("did not end within 4 s" in text for text in report.warnings) == 2
    said = (panes.tree("qa-1", "fx") / "said.log").read_text()
    assert said == f"{ports['qa-1']['PORT']} qa-1 setup\n"
    assert port_in_pane(panes, tmp_path / "first") == ports["qa-1"]["PORT"]
    panes.swarm.restart("qa-1", "fx")
    assert port_in_pane(panes, tmp_path / "second") == ports["qa-1"]["PORT"]
    why = panes.cli("why", "qa-1@fx").stdout
    assert "no luck" in why
    assert f"PORT={ports['qa-1']['PORT']}" in why
    facts = panes.json("why", "qa-1@fx")["data"]
    assert [one["outcome"] for one in facts["setup"]["commands"]] == ["ended with 2", "did not end within 4 s", "done"]
    assert facts["ports"] == ports["qa-1"]


def test_a_port_that_somebody_listens_on_is_not_given_and_ports_come_back(lab: Lab) -> None:
    role(lab, "setup: {ports: [PORT]}\n")
    lab.swarm.create("fx", "qa")
    (port,) = dict(lab.swarm.sessions.get("fx").agents[0].ports).values()
    lab.swarm.cleanup(["fx"])

    lab.swarm.create("fx", "qa")
    again = dict(lab.swarm.sessions.get("fx").agents[0].ports)["PORT"]
    lab.swarm.cleanup(["fx"])
    with socket.create_server(("127.0.0.1", port)):
        lab.swarm.create("fx", "qa")
        other = dict(lab.swarm.sessions.get("fx").agents[0].ports)["PORT"]

    assert again == port
    assert other != port
    lab.swarm.restore("fx/qa") if lab.swarm.cleanup(["fx"]).removed else None
    assert dict(lab.swarm.sessions.get("fx").agents[0].ports)["PORT"] == other


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_start_that_is_stopped_in_a_command_leaves_nothing(lab: Lab, tmp_path: Path, how: signal.Signals) -> None:
    """Killed: by the next command."""
    out = tmp_path / "pid"
    role(lab, f"setup: {{run: [{sh(f'setsid sleep 600 & echo $! > {out}; exec sleep 600')}]}}\n")
    before = lab.fingerprint()
    argv = [sys.executable, "-P", "-m", "swarm", "worktree", "create", "fx", "--roles", "qa:2"]

    with subprocess.Popen(
        argv, cwd=lab.root, env=lab.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        started = number_in(out)
        process.send_signal(how)
        process.communicate(timeout=60)
    if how == signal.SIGKILL:
        assert not gone(started)
        assert lab.swarm.recover().rolled_back == ("create of fx",)

    assert process.returncode == (128 + how if how == signal.SIGTERM else -how)
    wait_for(lambda: gone(started), "the end of what the command started")
    assert lab.fingerprint() == before
    assert not (lab.root / ".swarm/salvage").exists()
    assert not (lab.root / ".swarm/sessions/fx").exists()


def test_who_waits_for_a_setup_is_told_for_whom(lab: Lab, tmp_path: Path) -> None:
    """On a terminal while it waits, and by the error of one who gives up."""
    out, go = tmp_path / "began", tmp_path / "go"
    role(lab, f"setup: {{run: [{sh(f'echo 1 > {out}; while [ ! -e {go} ]; do sleep 0.02; done')}]}}\n")
    swarm = [sys.executable, "-P", "-m", "swarm"]
    create = [*swarm, "worktree", "create", "fx", "--roles", "qa:2"]
    holder = subprocess.Popen(create, cwd=lab.root, env=lab.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    env = {**lab.env, "TERM": "xterm", "SWARM_LOCK_TIMEOUT": "200"}
    try:
        assert number_in(out) == 1
        pane = Pane([*swarm, "recover"], env=env, cwd=lab.root, columns=200)
        whole = f"held by `swarm create fx` (pid {holder.pid}) since "
        pane.see(f"waiting for the lock, {whole}")
        pane.see(": setup of 2 worktrees")
        told: list[str] = []
        lab.env["SWARM_LOCK_TIMEOUT"] = "3"
        with pytest.raises(Locked) as caught:
            Swarm.open(lab.root, environ=lab.env, progress=told.append).recover()
        go.touch()
        assert holder.wait(60) == 0
        assert pane.ended() == 0
        pane.close()
    finally:
        go.touch()
        holder.wait(60)

    assert f"it is {whole}" in str(caught.value)
    assert str(caught.value).endswith(": setup of 2 worktrees")
    assert "export SWARM_LOCK_TIMEOUT=600" in caught.value.hint
    assert set(told) == {"waiting for the lock, " + str(caught.value).partition("it is ")[2]}


# --- teardown -------------------------------------------------------------------------------------


def test_a_teardown_runs_before_anything_is_looked_at(lab: Lab, tmp_path: Path) -> None:
    """What it writes is saved, a server of the setup is no risk and goes, and a failure is a warning."""
    out = tmp_path / "pid"
    dump = "echo $SWARM_PHASE $PORT > dump.log"
    role(
        lab,
        f"setup: {{run: [{sh(f'sleep 600 & echo $! > {out}')}], ports: [PORT]}}\n"
        f"teardown: {{run: [{sh('echo cannot; exit 1')}, {sh(dump)}, sleep 600], timeout: 4s}}\n",
    )
    lab.swarm.create("fx", "qa")
    server = number_in(out)
    port = dict(lab.swarm.sessions.get("fx").agents[0].ports)["PORT"]
    planned = lab.swarm.cleanup(["fx"], dry_run=True)
    assert not gone(server)

    report = lab.swarm.cleanup(["fx"])
    lab.swarm.restore("fx")

    assert [note for one in planned.removed for note in one.notes][1] == f"would run `sh -c '{dump}'` first"
    assert [text.partition("` ")[2] for text in report.warnings] == ["ended with 1: cannot", "did not end within 4 s"]
    assert gone(server)
    assert (lab.tree("qa", "fx") / "dump.log").read_text() == f"teardown {port}\n"
    assert len(commands(lab.swarm.operations(), "teardown")) == 2


def test_a_teardown_may_keep_the_worktree(lab: Lab) -> None:
    """Until it works, is left out, or its role is gone; the role counts as it is now."""
    role(lab, "teardown: {run: ['true']}\n")
    lab.swarm.create("fx", "qa:2")
    lab.swarm.create("fy", "qa")
    role(lab, f"teardown: {{run: [{sh('echo still in use; exit 1')}], policy: abort}}\n")
    before = lab.fingerprint()

    with pytest.raises(TeardownFailed, match=r"nothing was removed: teardown of qa-1@fx: .*: still in use") as caught:
        lab.swarm.cleanup(["fx"])

    assert "--no-teardown" in caught.value.hint
    assert lab.fingerprint() == before
    assert len(lab.swarm.cleanup(["fx"], teardown=False).removed) == 2
    (lab.root / "roles/qa.yaml").unlink()
    assert "its role's commands were skipped" in lab.swarm.cleanup(["fy"]).warnings[0]


def test_what_a_teardown_leaves_open_is_a_reason_to_refuse(lab: Lab) -> None:
    role(lab, f"teardown: {{run: [{sh('echo dump > dump.sql')}]}}\n")
    lab.swarm.create("fx", "qa")

    with pytest.raises(WorkAtRisk):
        lab.swarm.cleanup(["fx"])
    lab.swarm.cleanup(["fx"], force=True)
    lab.swarm.restore("fx")

    assert (lab.tree("qa", "fx") / "dump.sql").read_text() == "dump\n"


# --- the repository's own hook ----------------------------------------------------------------------


def hook(lab: Lab, script: str, folder: str = ".git/hooks", first: str = "#!/bin/sh\n") -> None:
    """Make a post-checkout hook of the repository."""
    path = lab.root / folder / "post-checkout"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{first}{script}\n")
    path.chmod(0o755)


#: Says all that git tells a hook, in a file of the worktree that is ignored.
TELLING = """
printf "%s\\n" "$1" "$2" "$3" "$(pwd -P)" "${GIT_DIR-none}" "$(git rev-parse --abbrev-ref HEAD)" > .env.hook
ls >> .env.hook
"""


@pytest.mark.parametrize("first", ["#!/bin/sh\n", ""], ids=["a script", "without an interpreter"])
def test_the_post_checkout_hook_runs_in_a_new_worktree_as_git_runs_it(lab: Lab, first: str) -> None:
    hook(lab, TELLING, first=first)
    lab.git("worktree", "add", "--quiet", "-b", "plain", "../plain")

    tree = lab.open().create("fx", "developer").paths()["developer"]

    plain = (lab.root.parent / "plain" / ".env.hook").read_text().split("\n")
    told = (tree / ".env.hook").read_text().split("\n")
    assert told[:3] == plain[:3]
    assert told[3:6] == [str(tree), "none", "swarm/developer-fx"]
    assert set(told[6:]) >= set(plain[6:])
    assert lab.swarm.worktrees()[0].dirty is False


def test_a_hook_in_a_folder_that_the_configuration_names_is_that_of_the_main_checkout(lab: Lab) -> None:
    hook(lab, "touch .env.hook", folder=".githooks")
    hook(lab, "touch .env.wrong")
    lab.git("config", "core.hooksPath", ".githooks")
    without = lab.open().create("without", "developer").paths()["developer"]
    lab.git("add", ".githooks")
    lab.git("commit", "--quiet", "-m", "hooks")
    tree = lab.open().create("fx", "developer").paths()["developer"]
    home = Path(lab.env["HOME"])
    hook(lab, "touch .env.home", folder=os.path.relpath(home / "hooks", lab.root))
    lab.git("config", "core.hooksPath", "~/hooks")
    third = lab.open().create("third", "developer").paths()["developer"]

    found = [sorted(path.name for path in one.glob(".env*")) for one in (without, tree, third)]
    assert found == [[".env.hook"], [".env.hook"], [".env.home"]]


def test_a_hook_that_an_agent_wrote_does_not_run_in_a_worktree_made_from_its_branch(lab: Lab) -> None:
    hook(lab, "touch .env.hook", folder=".githooks")
    lab.git("add", ".githooks")
    lab.git("commit", "--quiet", "-m", "hooks")
    lab.git("config", "core.hooksPath", ".githooks")
    theirs = lab.open().create("fx", "developer").paths()["developer"]
    (theirs / ".githooks/post-checkout").write_text("#!/bin/sh\ntouch .env.theirs\n")
    lab.commit("another hook", theirs)
    lab.git("worktree", "add", "--quiet", "--detach", "../plain", "swarm/developer-fx")

    tree = lab.open().create("after", "developer", base="swarm/developer-fx").paths()["developer"]

    found = [sorted(path.name for path in one.glob(".env*")) for one in (lab.root.parent / "plain", tree)]
    assert found == [[".env.hook"], [".env.hook"]]


@pytest.mark.parametrize("how", ["setting", "no setup", "not executable"])
def test_the_post_checkout_hook_can_be_left_out(lab: Lab, how: str) -> None:
    hook(lab, "touch .env.hook; exit 1")
    if how == "not executable":
        (lab.root / ".git/hooks/post-checkout").chmod(0o644)
    swarm = lab.open(setup__post_checkout=how != "setting")

    tree = swarm.create("fx", "developer", setup=how != "no setup").paths()["developer"]

    assert not (tree / ".env.hook").exists()


def test_a_post_checkout_hook_that_fails_or_hangs_is_a_setup_that_fails(lab: Lab) -> None:
    hook(lab, "echo no network >&2; exit 3")
    before = lab.fingerprint()

    with pytest.raises(SetupFailed, match="setup of developer: `post-checkout` ended with 3: no network"):
        lab.open().create("fx", "developer")
    assert lab.fingerprint() == before

    warned = lab.open(setup__policy="warn").create("warned", "developer")
    assert [text for text in warned.warnings if "no network" in text]
    hook(lab, "exec sleep 600")
    with pytest.raises(SetupFailed, match="did not end within 1 s"):
        lab.open(setup__timeout=1).create("fx", "developer")


def test_a_post_checkout_hook_does_not_run_when_a_worktree_is_restored(lab: Lab) -> None:
    tree = lab.open().create("fx", "developer").paths()["developer"]
    lab.swarm.cleanup(["fx"], force=True)
    hook(lab, "touch .env.hook")

    lab.swarm.restore("fx")

    assert tree.is_dir()
    assert not (tree / ".env.hook").exists()
