"""Changes in folders are noticed, with inotify and without."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from swarm.live.folders import Folders, Watched
from swarm.machine import inotify
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.component
SOON = 0.02


@pytest.fixture(params=["inotify", "looking", "no watches"])
def folders(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folders]:
    if request.param == "looking":
        monkeypatch.setattr(inotify, "begin", lambda: -1)
    if request.param == "no watches":  # all that the user may have are taken
        monkeypatch.setattr(inotify, "add", lambda *_, **__: -1)
    made = Folders()
    yield made
    made.close()


def marks(folders: Folders, mark: tuple[str, ...]) -> None:
    """Wait until a change of a folder is noticed."""
    wait_for(lambda: mark in {one for one, _ in folders.wait(0.5)}, f"a change of {mark}")


def quiet(folders: Folders) -> None:
    """Wait until what was done before is told."""
    wait_for(lambda: not folders.wait(3 * SOON), "the end of changes")


def test_a_file_that_comes_goes_or_takes_the_place_of_another(folders: Folders, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert folders.watch({str(tmp_path / "run"): Watched(("run",), SOON)}) == {("run",)}

    (tmp_path / "new").write_text("1")
    os.replace(tmp_path / "new", tmp_path / "run" / "state.json")
    marks(folders, ("run",))
    quiet(folders)
    (tmp_path / "new").write_text("2")
    os.replace(tmp_path / "new", tmp_path / "run" / "state.json")
    marks(folders, ("run",))
    quiet(folders)
    (tmp_path / "run" / "state.json").unlink()
    marks(folders, ("run",))


def test_a_file_that_grows_in_place(folders: Folders, tmp_path: Path) -> None:
    (tmp_path / "active.log").write_text("a\n")
    folders.watch({str(tmp_path): Watched(("log",), SOON, ("active.log",))})
    quiet(folders)

    with (tmp_path / "active.log").open("a") as file:
        file.write("b\n")
    marks(folders, ("log",))


def test_any_file_of_a_folder_of_which_nothing_is_known(folders: Folders, tmp_path: Path) -> None:
    (tmp_path / "17.json").write_text("a")
    folders.watch({str(tmp_path): Watched(("program",), SOON, None)})
    quiet(folders)

    (tmp_path / "17.json").write_text("ab")
    marks(folders, ("program",))


def test_a_folder_that_comes_later_and_one_that_is_made_anew(folders: Folders, tmp_path: Path) -> None:
    place = tmp_path / "later"
    folders.watch({str(place): Watched(("later",), SOON)})
    quiet(folders)

    for _ in range(2):
        place.mkdir()
        marks(folders, ("later",))
        quiet(folders)
        (place / "file").write_text("a")
        marks(folders, ("later",))
        quiet(folders)
        (place / "file").unlink()
        place.rmdir()
        marks(folders, ("later",))
        quiet(folders)


def test_what_is_not_watched_any_more_is_not_told(folders: Folders, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    both = {str(tmp_path / name): Watched((name,), SOON) for name in ("a", "b")}
    folders.watch(both)
    assert folders.watch({str(tmp_path / "b"): both[str(tmp_path / "b")]}) == set()
    quiet(folders)

    (tmp_path / "a" / "file").write_text("a")
    (tmp_path / "b" / "file").write_text("b")
    marks(folders, ("b",))
    quiet(folders)
    assert folders.watch(both) == {("a",)}


def test_a_wait_is_ended_from_elsewhere(folders: Folders) -> None:
    folders.wake()
    assert folders.wait(3600) == set()
