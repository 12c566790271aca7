"""The private git folder: all of git works in the box, and nothing of it reaches the repository."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from swarm.git.errors import GitBroken
from swarm.kit.errors import SwarmError
from swarm.sandbox import private, steps
from swarm.sandbox.values import STORES
from tests.sandbox.conftest import SESSION, Boxed

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration


def test_git_works_in_the_box_and_the_repository_does_not_change(boxed: Boxed) -> None:
    before = boxed.lab.fingerprint()

    assert boxed.sh("git status --porcelain") == ""
    boxed.sh("echo more >> README; git commit -qam work; git branch side; git stash list; git tag t; git gc -q")

    assert boxed.sh("git log --format=%an:%s -1") == "Lab:work"
    assert boxed.lab.fingerprint() == before
    assert "work" not in boxed.lab.git("log", "--all", "--format=%s")


def test_secrets_of_the_configuration_stay_outside(lab: Lab, boxes: None) -> None:
    for key, value in {
        "credential.helper": "store --file=/SECRET",
        "http.https://host.example.extraheader": "AUTHORIZATION: SECRET",
        "remote.origin.url": "https://user:SECRET@host.example/repo.git",
        "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*",
        "url.https://SECRET@host.example/.insteadof": "gh:",
        "include.path": "/SECRET",
        "core.sshcommand": "ssh -i SECRET",
        "core.fsmonitor": "SECRET",
        "core.hookspath": "/SECRET",
        "alias.x": "!SECRET",
        "remote.origin.proxy": "http://SECRET",
        "sendemail.smtppass": "SECRET",
        'filter.a"b\\c.clean': 'cat "x" \\ y',
    }.items():
        lab.git("config", key, value)
    lab.swarm.create(SESSION, ["developer"])

    boxed = Boxed(lab)

    text = (boxed.base / "git/config").read_text() + (boxed.base / "home/.gitconfig").read_text()
    assert "SECRET" not in text
    assert boxed.sh("git config remote.origin.url") == "https://host.example/repo.git"
    assert boxed.sh("git config --get-all remote.origin.fetch") == "+refs/heads/*:refs/remotes/origin/*"
    assert boxed.sh("git config 'filter.a\"b\\c.clean'") == 'cat "x" \\ y'


def test_hooks_of_the_project_run_in_the_box(lab: Lab, boxes: None) -> None:
    hook = lab.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho ran > hooked\n")
    hook.chmod(0o755)
    lab.swarm.create(SESSION, ["developer"])
    boxed = Boxed(lab)

    boxed.sh("git commit -q --allow-empty -m work; rm .git 2>/dev/null || true; mv .git x 2>/dev/null || true")

    assert (boxed.tree / "hooked").read_text() == "ran\n"
    assert (boxed.tree / ".git").is_file()


def test_objects_of_further_stores_are_there(lab: Lab, boxes: None, tmp_path: Path) -> None:
    lab.git("clone", "-q", "--shared", str(lab.root), str(tmp_path / "clone"))
    found = private.stores(tmp_path / "clone/.git")

    assert found == (tmp_path / "clone/.git/objects", lab.root / ".git/objects")


def test_the_objects_can_be_read_and_not_written(boxed: Boxed) -> None:
    assert boxed.sh("git cat-file -t HEAD") == "commit"
    assert boxed.sh("cat .git").startswith("gitdir: ")

    for store in (STORES, str(boxed.lab.root / ".git/objects/pack/../../../.git/objects")):
        boxed.run("sh", "-c", f"find '{store}' -type f -exec rm -f {{}} + ; touch '{store}/0/x'")

    assert boxed.lab.git("fsck", "--full") == ""


def test_a_link_in_the_private_folder_leads_nowhere_on_the_machine(boxed: Boxed, tmp_path: Path) -> None:
    """bubblewrap follows links in the places at which it mounts, and makes what is missing there."""
    outside = tmp_path / "outside"
    outside.mkdir()
    boxed.sh(
        'cd "$(git rev-parse --git-common-dir)"; rm -rf shared hooks objects/info; '
        f"for one in shared hooks objects/info; do ln -s '/oldroot{outside}' $one; done"
    )

    boxed.run("true")

    assert os.listdir(outside) == []


def test_what_was_exchanged_on_the_machine_is_no_box(boxed: Boxed) -> None:
    (boxed.base / "home").rename(boxed.base / "moved")
    (boxed.base / "home").symlink_to("/")

    with pytest.raises(SwarmError, match="is not what swarm made"):
        boxed.run("true")


def test_a_step_makes_it_and_takes_it_back_whatever_was_done(boxed: Boxed) -> None:
    boxed.step.undo_files(boxed.world)
    boxed.step.undo_files(boxed.world)
    assert not boxed.base.parent.exists()

    boxed.step.do(boxed.world)
    with pytest.raises(OSError, match="exists"):
        boxed.step.do(boxed.world)  # never over one that is there


def test_a_removed_box_comes_back_as_it_was(boxed: Boxed, tmp_path: Path) -> None:
    boxed.sh("git commit -q --allow-empty -m inside")

    for _ in range(2):
        steps.put_aside(boxed.world, "op", SESSION, boxed.agent, tmp_path / "entry")
    assert not boxed.base.exists()
    (back,) = steps.steps_back(boxed.world, "op", SESSION, boxed.agent, boxed.tree, tmp_path / "entry")
    back.do(boxed.world)
    assert boxed.sh("git log -1 --format=%s") == "inside"
    for _ in range(2):
        back.undo_files(boxed.world)
    assert not boxed.base.exists()
    back.do(boxed.world)

    assert boxed.sh("git log -1 --format=%s") == "inside"


def test_a_folder_that_is_no_worktree_gets_no_box(boxed: Boxed, tmp_path: Path) -> None:
    with pytest.raises(GitBroken):
        private.make(boxed.world.git.runner, tmp_path, boxed.world.git.common, tmp_path / "base")
    assert not (tmp_path / "base").exists()
