"""The commands that are interrupted."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from swarm.project.layout import Layout
from swarm.worktrees import deletion
from tests.support.crash import Scenario, build_user, grant

if TYPE_CHECKING:
    from pathlib import Path

    from swarm import Swarm
    from swarm.bus.protocol import Claim
    from swarm.testing.lab import Lab

ROLES = ["researcher", "developer", "reviewer"]
SESSION = "fx"
POOL: dict[str, Any] = {"worktrees.pool": 4, "cleanup.background": True}
SETUP: dict[str, Any] = {"setup.copy": ["notes"], "setup.link": ["secret"]}


def user(folder: Path) -> Lab:
    return build_user(folder)


def packed(folder: Path) -> Lab:
    return build_user(folder, packed=True)


def unusual(folder: Path) -> Lab:
    """A repository with a setting that has no effect, but for which git has to make the worktrees itself."""
    lab = build_user(folder)
    lab.git("config", "includeIf.gitdir:/nowhere/.path", "nothing")
    return lab


def failing_filter(folder: Path) -> Lab:
    """A repository in which the files of the reviewer's worktree cannot be written."""
    lab = build_user(folder)
    script = folder / "smudge"
    script.write_text("#!/bin/sh\ncase $PWD in *reviewer*) exit 1 ;; esac\nexec cat\n")
    script.chmod(0o755)
    lab.git("stash", "push", "--quiet", "--include-untracked")
    lab.write({".gitattributes": "*.pick filter=picky\n", "one.pick": "1\n", "two.txt": "2\n"})
    lab.commit("filtered")
    lab.git("config", "filter.picky.smudge", f"'{script}'")
    lab.git("config", "filter.picky.clean", "cat")
    lab.git("config", "filter.picky.required", "true")
    return lab


def with_files(folder: Path) -> Lab:
    """A repository whose untracked files the worktrees get, and which has a role that runs a command in them."""
    lab = build_user(folder)
    lab.write({".worktreeinclude": ".env\n", ".env": "A=1\n"})
    run = "[sh, -c, 'echo $SWARM_ACTOR > made.log && cat .env >> made.log']"
    text = f"name: tester\ninstructions: Test.\nsetup: {{run: [{run}]}}\nteardown: {{run: [cat .env]}}\n"
    lab.write({"roles/tester.yaml": text})
    return lab


def with_set_up_session(folder: Path) -> Lab:
    """The same with a session, in which an agent has changed what it was given."""
    lab = with_files(folder)
    lab.open(**{key.replace(".", "__"): value for key, value in SETUP.items()}).create(SESSION, ["tester:2"])
    lab.write({".env": "A=2\n"}, lab.tree("tester-1", SESSION))
    return lab


def with_session(folder: Path) -> Lab:
    """Two agents who have committed, and have nothing uncommitted."""
    lab = build_user(folder)
    lab.swarm.create(SESSION, ROLES[:2])
    for agent in ROLES[:2]:
        lab.write({f"{agent}.txt": "work\n"}, lab.tree(agent, SESSION))
        lab.commit(f"work of {agent}", cwd=lab.tree(agent, SESSION))
    return lab


def with_clean_trash(folder: Path) -> Lab:
    """Two worktrees without work that were just removed; the process that parks and deletes did not start."""
    lab = build_user(folder)
    lab.swarm.create(SESSION, ROLES[:2])
    lab.write({"work.txt": "work\n"}, lab.tree(ROLES[0], SESSION))
    lab.commit("work", cwd=lab.tree(ROLES[0], SESSION))
    start, deletion.start = deletion.start, lambda layout: None
    try:
        lab.open(**{key.replace(".", "__"): value for key, value in POOL.items()}).cleanup([SESSION])
    finally:
        deletion.start = start
    return lab


def _park(swarm: Swarm) -> None:
    """Do what the process does that outlives a cleanup; an error of the disk ends it silently."""
    with contextlib.suppress(OSError):
        deletion.run(Layout(swarm.root))


def with_pool(folder: Path) -> Lab:
    """The same, parked: one with another commit than the next start wants, one with the same."""
    lab = with_clean_trash(folder)
    deletion.run(Layout(lab.root))
    lab.open(**{key.replace(".", "__"): value for key, value in POOL.items()}).recover()  # its empty folder goes
    return lab


def with_uncommitted(folder: Path) -> Lab:
    """The same, with files that one of them changed, made and deleted since."""
    lab = with_session(folder)
    tree = lab.tree("developer", SESSION)
    lab.write({"README": "modified\n", "new/file.txt": "untracked\n"}, tree)
    (tree / "src/app.py").unlink()
    return lab


def with_packed_session(folder: Path) -> Lab:
    """The same, after the user packed all refs and made settings for a branch of an agent."""
    lab = with_session(folder)
    lab.git("config", f"branch.swarm/developer-{SESSION}.description", "what the agent does")
    lab.git("pack-refs", "--all")
    return lab


def with_plain_work(folder: Path) -> Lab:
    """Two agents, one of them with work that needs no second look before its tree is in the trash."""
    lab = with_session(folder)
    lab.write({"README": "modified\n", "new.txt": "untracked\n"}, lab.tree(ROLES[0], SESSION))
    (lab.tree(ROLES[0], SESSION) / "src/app.py").unlink()
    return lab


def with_work(folder: Path) -> Lab:
    """Three agents with work of every kind in their trees."""
    lab = build_user(folder)
    lab.swarm.create(SESSION, ROLES)
    one, two, three = (lab.tree(agent, SESSION) for agent in ROLES)
    lab.write({"README": "modified\n", "new.txt": "untracked\n", ".env": "TOKEN=1\n", "debug.log": "ignored\n"}, one)
    lab.write({"README": "staged\n"}, one)
    lab.git("add", "README", cwd=one)
    lab.write({"README": "staged, then modified\n"}, one)
    (one / "run.sh").chmod(0o644)
    (one / "link").symlink_to("README")
    (one / "src/app.py").unlink()
    lab.git("init", "--quiet", str(one / "nested"))
    lab.write({"inside": "its own\n"}, one / "nested")
    lab.commit("nested", cwd=one / "nested")
    # a rebase that stopped at a conflict, after an amended commit
    lab.write({"src/app.py": "first\n"}, two)
    lab.commit("to be amended", cwd=two)
    lab.git("commit", "--quiet", "--amend", "--allow-empty", "-m", "amended", cwd=two)
    lab.git("switch", "--quiet", "-c", "users/side", "main", cwd=two)
    lab.write({"src/app.py": "other\n"}, two)
    lab.commit("the other side", cwd=two)
    lab.git("switch", "--quiet", f"swarm/developer-{SESSION}", cwd=two)
    lab.git("rebase", "users/side", cwd=two, check=False)
    # a detached commit, and a lock of the user's
    lab.git("switch", "--quiet", "--detach", cwd=three)
    lab.write({"detached.txt": "on no branch\n"}, three)
    lab.commit("on no branch", cwd=three)
    lab.git("update-index", "--assume-unchanged", "README", cwd=three)
    lab.write({"README": "hidden\n"}, three)
    lab.git("worktree", "lock", "--reason", "mine", str(three))
    return lab


#: What the agents of ``with_messages`` have in their inboxes, and how it stands.
MESSAGES = {
    "researcher": {"done": "acked", "in-hand": "claimed", "urgent": "queued", "waits": "queued"},
    "developer": {"dead": "dead", "late": "queued"},
}


def with_messages(folder: Path) -> Lab:
    """Two agents with messages of every kind in their inboxes, some with an attachment; so has the user one."""
    lab = with_session(folder)
    attached = folder / "attached.txt"
    attached.write_text("attached\n")
    one, two = (f"{agent}@{SESSION}" for agent in ROLES[:2])
    bus = lab.swarm.messages._post.bus
    lab.swarm.send("user", "hello", id="hello")  # whom swarm tells of what was not read
    bus.ack(_taken(lab, "user"))
    lab.swarm.send(one, "done", id="done")
    bus.ack(_taken(lab, one))
    lab.swarm.send(one, "in hand, for the second time", id="in-hand", attach=[attached])
    bus.nack(_taken(lab, one))
    _taken(lab, one)
    lab.swarm.send(one, "waits", id="waits", attach=[attached])
    lab.swarm.send(one, "urgent", id="urgent", priority="interrupt")
    lab.swarm.send(two, "dead", id="dead", attach=[attached])
    bus.fail(_taken(lab, two), reason="no way")
    lab.swarm.send(two, "late", id="late")
    bus.close()
    return lab


def _taken(lab: Lab, inbox: str) -> Claim:
    taken = lab.swarm.messages.take(inbox, lease=86_400)
    assert taken is not None
    return taken.claim


def with_new_role(folder: Path) -> Lab:
    """Two agents, and a role whose text was changed since."""
    lab = with_session(folder)
    lab.write({"roles/researcher/CLAUDE.md": "# Researcher\n\nRead first.\n"})
    return lab


def with_two_sessions(folder: Path) -> Lab:
    """Two sessions, and a branch of swarm's without a worktree."""
    lab = with_session(folder)
    lab.swarm.create("other", ["architect"], instructions=False)
    lab.swarm.create("gone", ["developer"])
    lab.swarm.cleanup(["gone"], keep_branches=True)
    lab.swarm.recover()  # until its files are deleted
    lab.write({"note": "untracked\n"}, lab.tree("architect", "other"))
    return lab


def after_cleanup(folder: Path) -> Lab:
    """What ``with_work`` leaves behind when it is cleaned up."""
    lab = with_work(folder)
    lab.swarm.cleanup([SESSION], force=True)
    lab.swarm.recover()  # until its files are deleted
    return lab


def after_plain_cleanup(folder: Path) -> Lab:
    """What ``with_plain_work`` leaves behind: worktrees that begin as new ones do when they come back."""
    lab = with_plain_work(folder)
    lab.swarm.cleanup([SESSION], force=True)
    lab.swarm.recover()  # until its files are deleted
    return lab


def after_cleanup_with_grant(folder: Path) -> Lab:
    """The same, for what only a person does, or a program with a grant."""
    lab = after_cleanup(folder)
    grant(lab)
    return lab


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("create", user, lambda swarm: swarm.create(SESSION, ROLES)),
        Scenario("create-git", unusual, lambda swarm: swarm.create(SESSION, ROLES)),
        Scenario("create-packed", packed, lambda swarm: swarm.create(SESSION, ROLES[:2])),
        Scenario("create-fails", failing_filter, lambda swarm: swarm.create(SESSION, ROLES)),
        Scenario("create-more", with_session, lambda swarm: swarm.create(SESSION, ["reviewer"])),
        Scenario("fork", with_uncommitted, lambda swarm: swarm.fork("developer", "bold", SESSION)),
        Scenario(
            "create-hidden",
            packed,
            lambda swarm: swarm.create(SESSION, ROLES[:2]),
            flags={"worktrees.instructions_file": "CLAUDE.md", "worktrees.base_path": "work/trees"},
        ),
        Scenario("create-setup", with_files, lambda swarm: swarm.create(SESSION, ["tester:2"]), flags=SETUP),
        Scenario(
            "cleanup-setup",
            with_set_up_session,
            lambda swarm: swarm.cleanup([SESSION], force=True),
            goes_on=True,
            undo=lambda swarm: swarm.restore(SESSION),
            flags=SETUP,
        ),
        Scenario(
            "cleanup",
            with_session,
            lambda swarm: swarm.cleanup([SESSION]),
            goes_on=True,
            undo=lambda swarm: swarm.restore(SESSION),
        ),
        Scenario(
            "cleanup-packed",
            with_packed_session,
            lambda swarm: swarm.cleanup([SESSION]),
            goes_on=True,
            undo=lambda swarm: swarm.restore(SESSION),
        ),
        Scenario(
            "cleanup-messages",
            with_messages,
            lambda swarm: swarm.cleanup([SESSION], force=True),
            goes_on=True,
            undo=lambda swarm: swarm.restore(SESSION),
        ),
        Scenario(
            "cleanup-force",
            with_work,
            lambda swarm: swarm.cleanup([SESSION], force=True),
            goes_on=True,
            undo=lambda swarm: swarm.restore(SESSION),
        ),
        Scenario(
            "cleanup-later",
            with_plain_work,
            lambda swarm: swarm.cleanup([SESSION], force=True),
            goes_on=True,
            undo=lambda swarm: swarm.restore(SESSION),
            flags={"cleanup.background": True},
        ),
        Scenario("pool-park", with_clean_trash, _park, goes_on=True, flags=POOL),
        Scenario("pool-take", with_pool, lambda swarm: swarm.create("next", ROLES[:2]), flags=POOL),
        Scenario(
            "cleanup-all", with_two_sessions, lambda swarm: swarm.cleanup(everything=True, force=True), goes_on=True
        ),
        Scenario(
            "remove",
            with_work,
            lambda swarm: swarm.worktrees.remove("researcher", SESSION, force=True),
            goes_on=True,
            undo=lambda swarm: swarm.restore(f"{SESSION}/researcher"),
        ),
        Scenario(
            "merge",
            with_session,
            lambda swarm: swarm.merge(SESSION, into="users/topic"),
            may_log="refs/heads/users/topic",
        ),
        Scenario("restore", after_cleanup, lambda swarm: swarm.restore(SESSION)),
        Scenario("restore-plain", after_plain_cleanup, lambda swarm: swarm.restore(SESSION)),
        Scenario(
            "lock", with_session, lambda swarm: swarm.worktrees.lock("developer", SESSION, reason="busy"), goes_on=True
        ),
        Scenario(
            "update-role",
            with_new_role,
            lambda swarm: swarm.worktrees.update_role("researcher", SESSION),
            goes_on=True,
        ),
        Scenario(
            "salvage-drop",
            after_cleanup_with_grant,
            lambda swarm: swarm.salvage.drop(everything=True, now=True),
            goes_on=True,
            drops=True,
        ),
    )
}
