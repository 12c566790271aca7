"""A link where a folder of swarm's own should be: it is refused by name, and nothing behind it changes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from swarm import SwarmError
from swarm.bus.filebus import FileBus
from swarm.bus.protocol import Keep
from swarm.git.errors import GitFailed
from swarm.git.running.ground import Ground
from swarm.kit.errors import SymlinkInTheWay
from swarm.machine import own
from swarm.testing.lab import Lab, file_digests

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import FrameType

    from swarm.testing.panes import PaneLab

pytestmark = pytest.mark.integration

S = "feature-x"
A = f"developer-{S}"

#: Every folder that swarm writes to or removes from.
PLACES = (
    ".swarm",
    ".swarm/journal",
    ".swarm/trash",
    ".swarm/sessions",
    f".swarm/sessions/{S}",
    f".swarm/sessions/{S}/run",
    f".swarm/sessions/{S}/run/developer",
    ".swarm/messages",
    ".swarm/messages/blobs",
    ".swarm/messages/inbox",
    f".swarm/messages/inbox/{A}",
    f".swarm/messages/inbox/{A}/normal",
    f".swarm/messages/inbox/{A}/reader",
    f".swarm/messages/inbox/{A}/drop",
    f".swarm/messages/inbox/{A}/bad",
    ".swarm/salvage",
    f".swarm/salvage/{S}",
    f".swarm/salvage/{S}/developer",
    ".swarm/approvals",
    ".worktrees",
    ".worktrees/.swarm-trash",
    f".worktrees/{A}",
    ".git/worktrees",
    f".git/worktrees/{A}",
    f".git/worktrees/{A}/logs",
)


def _take(lab: Lab) -> None:
    with closing(FileBus(lab.root / ".swarm/messages")) as bus:
        claim = bus.receive(f"inbox.{A}")
        assert claim is not None
        bus.ack(claim)
        bus.prune(f"inbox.{A}", Keep(0, 0))


def _refusal(verb: Callable[[Lab], object], lab: Lab) -> str:
    try:
        verb(lab)
    except SwarmError as error:
        return error.message
    return ""


VERBS: dict[str, Callable[[Lab], object]] = {
    "create": lambda lab: lab.swarm.create("other", "developer"),
    "add": lambda lab: lab.swarm.create(S, "researcher"),
    "recover": lambda lab: lab.swarm.recover(),
    "send": lambda lab: lab.swarm.send("developer", "hello", attach=[lab.root / "README"]),
    "take": _take,
    "restore": lambda lab: lab.swarm.restore("saved"),
    "drop": lambda lab: lab.person.salvage.drop(everything=True),
    "cleanup": lambda lab: lab.swarm.cleanup([S], force=True),
    "discard": lambda lab: lab.person.cleanup([S], force=True, discard=True),
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Give a repository in which every place is there, with something in it that swarm would remove."""
    lab = Lab(tmp_path_factory.mktemp("links").resolve())
    swarm = lab.swarm
    swarm.create(S, "developer")
    swarm.create("saved", "developer")
    lab.write({"src/app.py": "work\n", "new.txt": "new\n", ".env": "A=1\n"}, cwd=lab.tree("developer", "saved"))
    swarm.cleanup(["saved"], force=True)
    lab.write({"src/app.py": "print('mine')\n", "idea.txt": "new\n"}, cwd=lab.tree("developer"))
    swarm.send("developer", "one")
    swarm.send("developer", "two", attach=[lab.root / "README"])
    swarm.recover()  # nothing is deleted any more while it is copied
    for place in PLACES:
        folder = lab.root / place
        folder.mkdir(0o700, parents=True, exist_ok=True)
        # What a killed command leaves, and what looks like it.
        lab.write(dict.fromkeys((".x.json.0a1b2c3d.tmp", ".session.json.0a1b2c3d.tmp"), "left"), cwd=folder)
    lab.write({"op-1/developer.tree/file": "x", "op-1/log": "x"}, cwd=lab.root / ".swarm/trash")
    lab.write({"op-1/developer.tree/file": "x"}, cwd=lab.root / ".worktrees/.swarm-trash")
    lab.write({"hello.txt": "dropped"}, cwd=lab.root / f".swarm/messages/inbox/{A}/drop")
    lab.write({"launch.json": "{}", "label.lock": ""}, cwd=lab.root / f".swarm/sessions/{S}/run/developer")
    shutil.copytree(lab.root, lab.root.parent / "as it was", symlinks=True)
    return lab


def put_back(lab: Lab) -> None:
    while lab.root.exists():  # swarm's own deletion in the background may still be at it
        shutil.rmtree(lab.root, ignore_errors=True)
    shutil.copytree(lab.root.parent / "as it was", lab.root, symlinks=True)


def replace_by_link(path: Path, outside: Path) -> None:
    """Let what was there lie elsewhere, so that through the link everything looks as it should."""
    path.rename(outside)
    path.symlink_to(outside)


#: What every change needs, or what every new worktree does: with a link there not even another session can be made.
FOR_ALL = (".swarm", ".swarm/journal", ".swarm/trash", ".swarm/sessions", ".worktrees", ".git/worktrees")


@pytest.mark.parametrize("place", PLACES)
def test_behind_a_link_nothing_changes_and_it_blocks_only_what_needs_the_place(original: Lab, place: str) -> None:
    lab = original
    outside = lab.root.parent / "outside"
    for name, verb in VERBS.items():
        put_back(lab)
        shutil.rmtree(outside, ignore_errors=True)
        replace_by_link(lab.root / place, outside)
        before = file_digests(outside)
        said = _refusal(verb, lab)
        assert not said or ("symbolic link" in said and (place in said or A in place)), (
            f"{name} says no more than: {said}"
        )
        assert file_digests(outside) == before, f"{name} changed what is behind {place}"
        if place not in FOR_ALL:
            lab.swarm.create("third", "developer")
            assert file_digests(outside) == before


#: Files that swarm, or its git, adds to or writes in place.
FILES = (
    ".swarm/lock",
    ".swarm/journal/history.jsonl",
    f".swarm/sessions/{S}/session.json",
    f".swarm/messages/inbox/{A}/normal/active.log",
    f".swarm/messages/inbox/{A}/reader.turn",
    f".git/worktrees/{A}/index",
    f".git/worktrees/{A}/logs/HEAD",
    f".git/worktrees/{A}/ORIG_HEAD",
)


@pytest.mark.parametrize("dangling", [False, True], ids=["there", "dangling"])
@pytest.mark.parametrize("file", FILES)
def test_what_a_link_in_place_of_a_file_leads_to_is_neither_changed_nor_made(
    original: Lab, file: str, *, dangling: bool
) -> None:
    lab = original
    outside = lab.root.parent / "outside"
    for name in ("create", "add", "recover", "send", "take", "cleanup"):
        put_back(lab)
        shutil.rmtree(outside, ignore_errors=True)
        outside.mkdir()
        path = lab.root / file
        if path.exists() and not dangling:
            shutil.copy(path, outside / "target")
        path.unlink(missing_ok=True)
        path.symlink_to(outside / "target")
        before = file_digests(outside)
        _refusal(VERBS[name], lab)
        assert file_digests(outside) == before, f"{name} wrote through {file}"


def test_git_starts_in_the_folder_that_was_opened_whatever_becomes_of_its_path(original: Lab) -> None:
    put_back(original)
    tree, aside = original.tree("developer"), original.root.parent / "aside"
    own.trust(str(tree.parent))
    ground = Ground(tree)
    try:
        with ground.held() as start:
            tree.rename(aside)
            tree.symlink_to(original.root.parent)
            told = subprocess.run(["pwd", "-P"], cwd=start, capture_output=True, text=True, check=True).stdout
        assert told == f"{aside}\n"
        with pytest.raises(SymlinkInTheWay, match=re.escape(str(tree))):
            ground.check()
        tree.unlink()
        tree.mkdir()
        with pytest.raises(GitFailed, match="exchanged"):
            ground.check()
    finally:
        shutil.rmtree(aside)


def test_a_line_of_the_history_is_on_the_disk_when_the_command_ends(lab: Lab) -> None:
    synced: list[str] = []

    def seen(frame: FrameType, event: str, function: object) -> None:
        if event == "c_call" and function is os.fsync:
            synced.append(os.readlink(f"/proc/self/fd/{frame.f_locals['fd']}"))

    sys.setprofile(seen)
    try:
        lab.swarm.create(S, "developer")
    finally:
        sys.setprofile(None)

    assert str(lab.root / ".swarm/journal/history.jsonl") in synced
    assert str(lab.root / ".swarm/journal") in synced


@pytest.mark.parametrize("place", [".swarm/sessions", f".swarm/sessions/{S}", f".swarm/sessions/{S}/run"])
def test_start_leaves_no_environment_behind_a_link(panes: PaneLab, place: str) -> None:
    """What a program is told holds the whole environment, tokens included."""
    outside = panes.root.parent / "outside"
    outside.mkdir(0o700)
    (panes.root / place).parent.mkdir(0o700, parents=True)
    for folder in (panes.root / place).relative_to(panes.root).parents[:-1]:
        (panes.root / folder).chmod(0o700)
    (panes.root / place).symlink_to(outside)

    with pytest.raises(SymlinkInTheWay, match=re.escape(place)):
        panes.swarm.start(S, "developer", program="shell")

    assert os.listdir(outside) == []
    assert not (panes.root / ".worktrees").exists()
