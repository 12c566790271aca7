"""A link where a folder of swarm's own should be: it is refused by name, and nothing behind it changes."""

from __future__ import annotations

import shutil
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from swarm import SwarmError
from swarm.domain.bus import Keep
from swarm.store.bus import FileBus
from swarm.testing.lab import Lab, file_digests

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
    "drop": lambda lab: lab.swarm.drop_salvage(everything=True),
    "cleanup": lambda lab: lab.swarm.cleanup([S], force=True),
    "discard": lambda lab: lab.swarm.cleanup([S], force=True, discard=True),
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
    shutil.rmtree(lab.root)
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
