"""Folders of swarm's own that somebody exchanges for a link, before or in the middle of an operation."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest

from swarm.kit import files
from swarm.kit.errors import SymlinkInTheWay
from swarm.machine import own
from swarm.testing.lab import file_digests

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.component

#: What an operation does to the file system, step by step.
_STEPS = {os.open, os.mkdir, os.rmdir, os.unlink, os.rename, os.replace, os.link, os.symlink, os.scandir, os.listdir}
_STEPS |= {os.lstat, os.chmod, os.utime, os.stat, os.mkfifo, os.readlink}

#: Each is given the folder that is exchanged, with ``tree``, ``file`` and ``log`` in ``a/`` of it.
OPERATIONS: dict[str, Callable[[Path], object]] = {
    "remove a tree": lambda top: files.remove_tree(top / "a" / "tree"),
    "remove the folder": lambda top: files.remove_tree(top / "a"),
    "remove a file": lambda top: files.unlink_if_there(top / "a" / "file"),
    "remove an empty folder": lambda top: files.remove_empty(top / "a" / "empty"),
    "sweep": lambda top: files.sweep_temporaries(top / "a", "file"),
    "write": lambda top: files.write_atomic(top / "a" / "file", b"new"),
    "write anew": lambda top: files.write_new(top / "a" / "another", b"new"),
    "append": lambda top: files.append_line(top / "a" / "log", b"new"),
    "make a folder": lambda top: files.make_private_dir(top / "a" / "new"),
    "make folders": lambda top: files.make_folders(top / "a" / "x" / "y" / "z"),
    "rename": lambda top: files.rename_if_there(top / "a" / "tree", top / "a" / "moved"),
    "rename to a free name": lambda top: files.rename_new(top / "a" / "tree", top / "a" / "moved"),
    "copy": lambda top: files.copy_tree(top / "a" / "tree", top / "a" / "copy"),
    "copy into a folder that is there": lambda top: files.copy_tree(top / "a" / "tree", top / "a" / "empty"),
    "set the mode": lambda top: files.set_mode(top / "a" / "file", 0o400),
    "link": lambda top: own.link(str(top / "a" / "file"), str(top / "a" / "second")),
    "make a link": lambda top: own.symlink("x", str(top / "a" / "a-link")),
    "set the time": lambda top: own.utime(str(top / "a" / "file"), (0, 0)),
}


def make(folder: Path) -> None:
    """Fill a folder with what the operations are about."""
    inner = folder / "a" / "tree" / "deep" / "deeper"
    inner.mkdir(parents=True)
    (folder / "a" / "empty").mkdir()
    for path in (inner / "one", inner.parent / "two", folder / "a" / "file", folder / "a" / "log"):
        path.write_text("text\n")
    (folder / "a" / ".file.0a1b2c3d.tmp").write_text("left\n")
    (inner / "link").symlink_to("/")
    os.mkfifo(folder / "a" / "tree" / "pipe")
    (folder / "a" / "tree" / "deep").chmod(0o500)


def run(act: Callable[[], object], before_step: Callable[[int], object]) -> int:
    """Do something that may fail, and return how many steps it took."""
    steps = 0

    def seen(_frame: object, event: str, function: Any) -> None:
        nonlocal steps
        if event == "c_call" and function in _STEPS:
            before_step(steps)
            steps += 1

    sys.setprofile(seen)
    try:
        act()
    except (OSError, SymlinkInTheWay):
        pass
    finally:
        sys.setprofile(None)
    return steps


@pytest.mark.parametrize("exchanged", ["top", "top/a", "top/a/tree/deep"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_folder_exchanged_for_a_link_at_any_step_leads_nowhere(tmp_path: Path, name: str, exchanged: str) -> None:
    top, outside, place = tmp_path / "top", tmp_path / "outside", tmp_path / exchanged
    make(outside)
    before, times = file_digests(outside), os.stat(outside / "a" / "file").st_mtime_ns
    own.trust(str(top))

    def exchange_at(wanted: int) -> Callable[[int], None]:
        def exchange(now: int) -> None:
            if now == wanted and place.exists():
                place.chmod(0o700)  # only root may move a folder that it may not write to
                place.rename(tmp_path / "aside")
                place.symlink_to(outside / os.path.relpath(place, top))

        return exchange

    step, steps = 0, 1
    while step < steps:
        for made in (top, tmp_path / "aside"):
            files.remove_tree(made)
        make(top)
        steps = run(lambda: OPERATIONS[name](top), exchange_at(step))
        assert file_digests(outside) == before, f"at step {step}"
        assert os.stat(outside / "a" / "file").st_mtime_ns == times
        step += 1
    assert step > 1


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_link_in_the_way_is_named(tmp_path: Path, name: str) -> None:
    top = tmp_path / "top"
    make(top)
    own.trust(str(top))
    shutil.move(top / "a", tmp_path / "elsewhere")
    (top / "a").symlink_to(tmp_path / "elsewhere")
    if name in ("remove the folder", "sweep"):  # the link itself goes, or nothing at all
        OPERATIONS[name](top)
        return

    with pytest.raises(OSError, match="symbolic link") as caught:
        OPERATIONS[name](top)

    assert caught.value.errno == errno.ELOOP
    assert files.translate(caught.value, "cannot do it").message == f"cannot do it: {top / 'a'} is a symbolic link"


def test_what_is_missing_is_named_though_another_path_was_open(tmp_path: Path) -> None:
    own.trust(str(tmp_path))
    (tmp_path / "there").mkdir()

    with pytest.raises(FileNotFoundError) as caught:
        files.rename_new(tmp_path / "there", tmp_path / "gone/there")

    assert caught.value.filename == str(tmp_path / "gone")


def test_a_tree_with_folders_that_forbid_everything_is_removed(tmp_path: Path) -> None:
    make(tmp_path / "top")
    own.trust(str(tmp_path / "top"))
    for folder in ("top/a/tree/deep/deeper", "top/a/tree/deep", "top/a/tree"):
        (tmp_path / folder).chmod(0)

    files.remove_tree(tmp_path / "top" / "a")

    assert os.listdir(tmp_path / "top") == []


def test_below_no_folder_of_swarms_own_paths_are_used_as_the_system_does(tmp_path: Path) -> None:
    make(tmp_path / "real")
    (tmp_path / "linked").symlink_to(tmp_path / "real")

    files.write_atomic(tmp_path / "linked" / "a" / "file", b"new")

    assert (tmp_path / "real" / "a" / "file").read_bytes() == b"new"


def test_no_path_leads_upwards(tmp_path: Path) -> None:
    make(tmp_path / "top")
    own.trust(str(tmp_path / "top"))

    with pytest.raises(OSError, match="upwards"):
        own.unlink(f"{tmp_path}/top/a/../../top/a/file")
