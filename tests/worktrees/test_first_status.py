"""A fresh worktree is settled: its first ``git status`` believes the index and reads no file."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from swarm.testing.lab import file_digests

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration

SESSION, AGENTS = "feature-x", ["developer", "reviewer"]


def entries(lab: Lab, tree: Path) -> dict[str, dict[str, str]]:
    """Return what the index notes of each file."""
    found: dict[str, dict[str, str]] = {}
    name = ""
    for line in lab.git("-c", "core.quotePath=false", "ls-files", "--debug", cwd=tree).splitlines():
        if not line.startswith("  "):
            name = line
            found[name] = {}
        for key, value in re.findall(r"(\w+): ([\d:]+)", line if line.startswith("  ") else ""):
            found[name][key] = value
    return found


def index_of(lab: Lab, tree: Path) -> Path:
    return tree / lab.git("rev-parse", "--git-path", "index", cwd=tree)


def fill(lab: Lab) -> None:
    lab.write({f"src/part{n % 7}/file {n} ü.txt": f"{n}\n" * (n % 50) for n in range(150)})
    lab.write({"deep/" + "d" * 120 + "/" + "n" * 200: "long name\n"})
    (lab.root / "link").symlink_to("src/app.py")
    (lab.root / "dangling").symlink_to("nowhere")
    lab.commit("many files")


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("agents", [AGENTS, AGENTS[:1]], ids=["two", "one"])
def test_no_file_has_to_be_read_again(lab: Lab, agents: list[str], workers: int) -> None:
    fill(lab)

    made = lab.open(git__jobs=workers).create(SESSION, agents).paths()

    for tree in made.values():
        noted = entries(lab, tree)
        written = index_of(lab, tree).stat().st_mtime_ns // 10**9
        assert len(noted) == len(lab.git("ls-files", "-z").split("\0")) - 1
        for name, facts in noted.items():
            info = os.lstat(tree / name)
            assert int(facts["mtime"].split(":")[0]) < written, f"{name} is racily clean"
            assert facts["mtime"] == f"{info.st_mtime_ns // 10**9}:{info.st_mtime_ns % 10**9}"
            assert facts["ctime"] == f"{info.st_ctime_ns // 10**9}:{info.st_ctime_ns % 10**9}"
            assert int(facts["ino"]) == info.st_ino & 0xFFFFFFFF
            assert int(facts["size"]) == info.st_size


def test_the_index_is_as_git_would_have_written_it(lab: Lab) -> None:
    fill(lab)
    plain = lab.root.parent / "plain"
    lab.git("worktree", "add", "--quiet", "--detach", str(plain))

    tree = lab.swarm.create(SESSION, ["developer"], instructions=False).paths()["developer"]

    assert lab.git("ls-files", "--stage", "-v", cwd=tree) == lab.git("ls-files", "--stage", "-v", cwd=plain)
    assert file_digests(tree, skip={".git"}) == file_digests(plain, skip={".git"})
    assert index_of(lab, tree).stat().st_mode == index_of(lab, plain).stat().st_mode
    assert lab.git("status", "--porcelain", cwd=tree) == ""
    lab.git("fsck", "--strict")


def test_nothing_has_to_be_saved_of_a_fresh_worktree(lab: Lab) -> None:
    fill(lab)
    lab.swarm.create(SESSION, AGENTS, instructions=False)

    report = lab.swarm.cleanup([SESSION])

    assert [removed.saved_files for removed in report.removed] == [0, 0]


def test_an_edit_of_the_same_size_is_seen_at_once(lab: Lab) -> None:
    tree = lab.swarm.create(SESSION, ["developer"]).paths()["developer"]

    (tree / "README").write_text("jello\n")

    assert lab.git("status", "--porcelain", cwd=tree) == " M README"


@pytest.mark.parametrize(
    "settings",
    [
        {"index.version": "4"},
        {"core.splitIndex": "true"},
        {"index.skipHash": "true"},
        {"feature.manyFiles": "true"},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_an_index_of_another_kind_is_left_to_git(lab: Lab, settings: dict[str, str]) -> None:
    fill(lab)
    for key, value in settings.items():
        lab.git("config", key, value)

    tree = lab.swarm.create(SESSION, ["developer"]).paths()["developer"]

    assert lab.git("status", "--porcelain", cwd=tree) == ""
    assert lab.git("diff-files", "--name-only", cwd=tree) == ""
    written = index_of(lab, tree).stat().st_mtime_ns // 10**9
    assert all(int(facts["mtime"].split(":")[0]) < written for facts in entries(lab, tree).values())
