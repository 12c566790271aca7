"""A working tree that git was writing when it was ended: what in it is somebody else's, and how fast that is known."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from swarm.testing.lab import Lab
from swarm.worktrees.trees import halfmade

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

CONVERTING = "*.txt text eol=crlf\n*.id ident\n*.utf working-tree-encoding=UTF-16LE\n*.up filter=up\n*.bin -text\n"


@pytest.fixture
def converting(tmp_path: Path) -> Lab:
    """Give a repository in which most files are another thing in a worktree than in git."""
    lab = Lab(tmp_path)
    lab.git("config", "filter.up.smudge", "tr a-z A-Z")
    lab.git("config", "filter.up.clean", "tr A-Z a-z")
    lab.write({".gitattributes": CONVERTING, "sub/.gitattributes": "*.more eol=crlf\n"})
    lab.write({"a.txt": "one\ntwo\n", "b.id": "$Id$\n", "c.utf": "wide\n".encode("utf-16-le"), "d.up": "loud\n"})
    lab.write({"e.bin": b"\0\r\n\n", "sub/f.more": "one\ntwo\n", "ü ö.txt": "x\ny\n", "odd\nname": "z\n"})
    (lab.root / "link").symlink_to("a.txt")
    lab.commit("files of all kinds")
    return lab


def checked_out(lab: Lab) -> tuple[Path, str]:
    """Return a tree as git writes it, and its commit."""
    half = lab.root.parent / "half"
    half.mkdir()
    lab.git("--work-tree", str(half), "checkout", "--force", "HEAD", "--", ".")
    return half, lab.git("rev-parse", "HEAD")


def told(lab: Lab, half: Path, commit: str) -> tuple[str, ...]:
    return lab.swarm._world.trees.foreign(half, commit, ())


def test_what_git_wrote_is_known_although_it_is_no_blob(converting: Lab) -> None:
    half, commit = checked_out(converting)
    assert (half / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert (half / "d.up").read_text() == "LOUD\n"

    assert told(converting, half, commit) == ()


def test_what_git_had_begun_to_write_is_known(converting: Lab) -> None:
    half, commit = checked_out(converting)
    for path in (
        half / "a.txt",
        half / "c.utf",
        half / "d.up",
        half / "README",
        half / "e.bin",
        half / ".gitattributes",
    ):
        path.write_bytes(path.read_bytes()[:3])
    (half / "ü ö.txt").unlink()

    assert told(converting, half, commit) == ()


def test_every_other_file_is_somebodys(converting: Lab) -> None:
    half, commit = checked_out(converting)
    mine = {
        "a.txt": b"one\r\n2\r\n",
        "d.up": b"LOUDER\n",
        "README": b"hello\nand more\n",
        "odd\nname": b"y",
        "new": b"",
    }
    converting.write(mine, half)
    (half / "link").unlink()
    (half / "link").symlink_to("b.id")
    (half / "sub/.gitattributes").write_text("*.more -text\n")

    assert told(converting, half, commit) == tuple(sorted([*mine, "link", "sub/.gitattributes"]))


def test_a_bare_repository_is_somebodys_unless_git_tracks_it(lab: Lab) -> None:
    lab.git("init", "--quiet", "--bare", "fixtures/x.git")
    lab.write({"fixtures/x.git/objects/.keep": "", "fixtures/x.git/refs/.keep": ""})
    lab.commit("a fixture")
    half, commit = checked_out(lab)
    lab.git("init", "--quiet", "--bare", str(half / "y.git"))

    assert told(lab, half, commit) == ("y.git",)


def test_a_filter_that_hangs_is_not_waited_for(converting: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    half, commit = checked_out(converting)
    converting.git("config", "filter.up.smudge", "sleep 600")
    monkeypatch.setattr(halfmade, "_FILTER_SECONDS", 0.2)

    assert told(converting, half, commit) == ("d.up",)  # nobody knows; it is kept


def test_it_takes_no_git_for_each_file(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.write({f"d{n % 7}/file {n}": f"{n}\n" for n in range(300)})
    lab.commit("many files")
    half, commit = checked_out(lab)
    for n in range(0, 300, 3):
        (half / f"d{n % 7}/file {n}").write_text("")
    started: list[Any] = []
    real = subprocess.Popen

    def counted(args: Any, **words: Any) -> Any:
        started.append(args)
        return real(args, **words)

    trees = lab.swarm._world.trees
    monkeypatch.setattr(subprocess, "Popen", counted)

    assert trees.foreign(half, commit, ()) == ()
    assert 0 < len(started) < 10
