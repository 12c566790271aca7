"""The swarm directory: which one is found, how one is made, and what is refused."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm.kit.errors import NoPermission, StateDirProblem, SymlinkInTheWay, UsageProblem
from swarm.project.config.file import load_settings
from swarm.project.errors import SwarmDirExists, SwarmDirNotFound, SwarmDirProblem
from swarm.project.swarm_dir import dirs, marker, socket_dir
from swarm.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.unit


class Lab:
    """A home, a project and a place to stand."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = folder / "work/project"
        self.deep = self.project / "src/deep"
        self.deep.mkdir(parents=True)
        self.home.mkdir()

    def resolve(self, cwd: Path | None = None, **environ: str) -> Path:
        return dirs.resolve_dir(environ=environ, cwd=cwd or self.deep, home=self.home)

    @staticmethod
    def mark(folder: Path, line: str = "v0.1.0\n") -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / marker.MARKER).write_text(line)
        return folder


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    dirs.reset_cache()
    yield Lab(tmp_path)
    dirs.reset_cache()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- the marker (DIR-02..04) ------------------------------------------------------------------


def test_marker_is_one_line_with_the_version(tmp_path: Path) -> None:
    marker.write_marker(tmp_path)

    assert (tmp_path / ".swarm-dir.txt").read_text() == f"v{__version__}\n"
    assert marker.read_marker_version(tmp_path) == __version__
    assert marker.is_swarm_dir(tmp_path)
    assert os.listdir(tmp_path) == [".swarm-dir.txt"]


@pytest.mark.parametrize(
    ("line", "version"),
    [("v0.1.0", "0.1.0"), ("0.1.0\n", "0.1.0"), ("v2.0.0-rc.1\r\nmore", "2.0.0-rc.1"), ("v3", "3")],
)
def test_markers_of_other_versions(tmp_path: Path, line: str, version: str) -> None:
    assert marker.read_marker_version(Lab.mark(tmp_path, line)) == version


@pytest.mark.parametrize("line", ["", "\nv0.1.0", "hello", "v", "vv1", "v1 2", "\0", "x" * 5000])
def test_a_broken_marker_is_told_clearly(tmp_path: Path, line: str) -> None:
    Lab.mark(tmp_path, line)

    assert not marker.is_swarm_dir(tmp_path)
    with pytest.raises(SwarmDirProblem, match="is broken") as caught:
        marker.read_marker_version(tmp_path)
    assert caught.value.message.isprintable()


@pytest.mark.parametrize("kind", ["folder", "fifo", "dangling"])
def test_a_marker_is_a_regular_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / marker.MARKER
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("nothing")

    assert not marker.is_swarm_dir(tmp_path)
    with pytest.raises(SwarmDirProblem):
        marker.read_marker_version(tmp_path)


def test_no_marker_no_directory(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", "a\0b"):
        assert not marker.is_swarm_dir(path)
    with pytest.raises(SwarmDirNotFound, match=r"missing \.swarm-dir\.txt"):
        marker.read_marker_version(tmp_path)


def test_a_marker_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(NoPermission):
        marker.write_marker(tmp_path)


# --- which one (DIR-05..11, C-02, C-03) -------------------------------------------------------


def test_swarm_dir_wins(lab: Lab, tmp_path: Path) -> None:
    named = lab.mark(tmp_path / "named")
    lab.mark(lab.project)

    assert lab.resolve(SWARM_DIR=str(named), SWARM_ROOT="/nowhere") == named
    assert lab.resolve(cwd=tmp_path, SWARM_DIR="x/../named/") == named


def test_swarm_dir_is_strict(lab: Lab, tmp_path: Path) -> None:
    lab.mark(lab.project)
    (tmp_path / "plain").mkdir()

    with pytest.raises(SwarmDirProblem) as caught:
        lab.resolve(cwd=tmp_path, SWARM_DIR="plain")

    for part in ("SWARM_DIR=plain", str(tmp_path / "plain"), "missing .swarm-dir.txt"):
        assert part in caught.value.message


def test_swarm_dir_with_a_broken_marker_or_one_level_too_high(lab: Lab, tmp_path: Path) -> None:
    with pytest.raises(SwarmDirProblem, match=r"SWARM_DIR=.* is broken"):
        lab.resolve(SWARM_DIR=str(lab.mark(tmp_path / "b", "?")))
    lab.mark(lab.project / ".swarm")
    with pytest.raises(SwarmDirProblem) as caught:
        lab.resolve(SWARM_DIR=str(lab.project))
    assert f"SWARM_DIR={lab.project}/.swarm" in caught.value.hint


def test_an_empty_variable_is_not_set(lab: Lab) -> None:
    lab.mark(lab.project)

    assert lab.resolve(SWARM_DIR="", SWARM_ROOT="") == lab.project


@pytest.mark.parametrize("left", [None, (), ("roles", "sockets", ".config.yaml.0123ab12.tmp")])
def test_swarm_root_is_made_ready(lab: Lab, tmp_path: Path, left: tuple[str, ...] | None) -> None:
    root = tmp_path / "service/root"
    if left is not None:
        root.mkdir(parents=True)
        for name in left:
            (root / name).mkdir()

    assert lab.resolve(SWARM_ROOT=str(root)) == root
    assert marker.is_swarm_dir(root)
    assert lab.resolve(SWARM_ROOT=str(root)) == root


@pytest.mark.parametrize("there", [False, True])
def test_looking_does_not_make_swarm_root(lab: Lab, tmp_path: Path, there: bool) -> None:
    root = tmp_path / "service"
    if there:
        root.mkdir()

    assert dirs.find_dir(environ={"SWARM_ROOT": str(root), "HOME": str(tmp_path)}, cwd=tmp_path) == root
    assert root.exists() == there
    assert not there or not os.listdir(root)

    made = lab.resolve(SWARM_ROOT=str(root))
    assert dirs.find_dir(environ={"SWARM_ROOT": str(root), "HOME": str(tmp_path)}, cwd=tmp_path) == made


def test_swarm_root_with_other_things_is_refused(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").touch()

    with pytest.raises(SwarmDirProblem, match="not empty"):
        lab.resolve(SWARM_ROOT=str(tmp_path / "other"))
    with pytest.raises(SwarmDirProblem, match="not a folder"):
        lab.resolve(SWARM_ROOT=str(tmp_path / "other/file"))
    assert os.listdir(tmp_path / "other") == ["file"]


def test_the_nearest_marker_wins_also_in_dot_swarm(lab: Lab) -> None:
    for folder in (lab.home / ".swarm", lab.project.parent, lab.project / ".swarm", lab.project):
        lab.mark(folder)
        assert lab.resolve() == folder
    lab.mark(lab.deep / ".swarm")
    assert lab.resolve() == lab.deep / ".swarm"


def test_a_dot_swarm_without_marker_is_passed(lab: Lab) -> None:
    (lab.deep / ".swarm").mkdir()
    lab.mark(lab.project / ".swarm")

    assert lab.resolve() == lab.project / ".swarm"


def test_the_state_of_a_repository_hides_no_directory_farther_out(lab: Lab) -> None:
    (lab.project / ".git").mkdir()
    state = lab.mark(lab.project / ".swarm")
    assert lab.resolve() == state  # there is no other

    user = lab.mark(lab.home / ".swarm")
    assert lab.resolve() == user
    team = lab.mark(lab.project.parent)
    assert lab.resolve() == team
    assert lab.resolve(SWARM_DIR=str(state)) == state  # that was named

    linked = lab.project / ".worktrees/developer-fx"
    linked.mkdir(parents=True)
    (linked / ".git").write_text("gitdir: elsewhere\n")
    assert lab.resolve(cwd=linked) == team
    inner = lab.mark(lab.deep)  # a folder that has the marker itself is one on purpose
    assert lab.resolve() == inner


def test_a_broken_marker_on_the_way_lets_no_other_answer(lab: Lab) -> None:
    lab.mark(lab.project / ".swarm", "")
    lab.mark(lab.home / ".swarm")

    with pytest.raises(SwarmDirProblem, match=r"project/\.swarm/.*is broken: it is empty"):
        lab.resolve()


def test_a_marker_of_another_user_decides_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.mark(lab.project)
    if os.geteuid() == 0:  # what belongs to root is trusted
        os.chown(lab.project, 4711, -1)
        os.chown(lab.project / marker.MARKER, 4711, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 4712)

    with pytest.raises(SwarmDirNotFound, match="belongs to another user"):
        lab.resolve()
    assert lab.resolve(SWARM_DIR=str(lab.project)) == lab.project


def test_root_trusts_a_folder_of_another_user_unless_anyone_can_write_to_it(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.mark(lab.project)
    if os.geteuid() == 0:
        os.chown(lab.project / marker.MARKER, 4711, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    assert lab.resolve() == lab.project
    lab.project.chmod(0o1777)
    with pytest.raises(SwarmDirNotFound, match="belongs to another user"):
        lab.resolve()


def test_old_directory_in_the_home_is_taken_over(lab: Lab) -> None:
    old = lab.home / ".swarm"
    for name in ("roles", "sessions"):
        (old / name).mkdir(parents=True)
    assert not marker.looks_like_swarm_dir(old)
    with pytest.raises(SwarmDirNotFound):
        lab.resolve()

    (old / "sockets").mkdir()
    assert marker.looks_like_swarm_dir(old)
    assert lab.resolve() == old
    assert marker.read_marker_version(old) == __version__


def test_old_directory_elsewhere_is_not(lab: Lab) -> None:
    for name in ("roles", "sessions", "sockets"):
        (lab.project / name).mkdir()

    with pytest.raises(SwarmDirNotFound):
        lab.resolve()


def test_nothing_found(lab: Lab) -> None:
    with pytest.raises(SwarmDirNotFound, match=r"no swarm directory found.*swarm init"):
        lab.resolve()


def test_no_home(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise KeyError

    monkeypatch.setattr(dirs, "_home_of_account", unknown)
    with pytest.raises(SwarmDirProblem, match="cannot determine the home directory"):
        dirs.resolve_dir(environ={}, cwd=lab.deep)
    with pytest.raises(SwarmDirProblem, match="cannot determine the home directory"):
        dirs.resolve_dir(environ={"HOME": "relative"}, cwd=lab.deep)


def test_looking_without_an_error(lab: Lab) -> None:
    assert dirs.find_dir(environ={}, cwd=lab.deep, home=lab.home) is None
    lab.mark(lab.project)
    assert dirs.find_dir(environ={}, cwd=lab.deep, home=lab.home) == lab.project
    with pytest.raises(SwarmDirProblem):
        dirs.find_dir(environ={"SWARM_DIR": "none"}, cwd=lab.deep, home=lab.home)


def test_the_users_directory_need_not_be_there(lab: Lab) -> None:
    assert dirs.user_dir({"HOME": str(lab.home)}) == lab.home / ".swarm"
    assert dirs.user_dir({"HOME": "relative"}) is None
    assert dirs.find_dir(environ={"HOME": "relative"}, cwd=lab.deep) is None


def test_current_directory_is_gone(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lab.deep)
    lab.deep.rmdir()

    with pytest.raises(SwarmDirProblem, match="current directory is gone"):
        dirs.resolve_dir(environ={}, home=lab.home)


def test_the_process_remembers_its_answer(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SWARM_DIR", "SWARM_ROOT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(lab.home))
    monkeypatch.chdir(lab.deep)
    one, other = lab.mark(lab.project), lab.home / ".swarm"

    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(dirs.resolve_dir())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [one] * 8

    monkeypatch.setenv("SWARM_DIR", str(lab.mark(other)))
    assert dirs.resolve_dir() == dirs.config_dir() == one
    assert dirs.resolve_dir(home=lab.home) == other
    dirs.reset_cache()
    assert dirs.resolve_dir() == other


def test_config_dir_ends_the_process_with_the_reason(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SWARM_DIR", str(lab.project))

    with pytest.raises(SystemExit) as caught:
        dirs.config_dir()

    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith(f"error[SWARM_DIR]: SWARM_DIR={lab.project}: ")


# --- init (DIR-13..15, DIR-19) ----------------------------------------------------------------

TREE = ["claude-config/default", "config.yaml", "pods/roles", "pods/templates", "projects"]
TREE += ["roles", "sessions", "sockets", "worktrees", ".swarm-dir.txt"]


def test_init_makes_everything(lab: Lab) -> None:
    old = os.umask(0o022)
    try:
        made = dirs.init_dir("new/place", cwd=lab.deep)
    finally:
        os.umask(old)

    assert made == lab.deep / "new/place"
    assert all((made / name).exists() for name in TREE)
    assert mode(made) == mode(made / "pods/roles") == 0o755
    assert mode(made / "sessions") == mode(made / "sockets") == 0o700
    assert marker.is_swarm_dir(made)
    assert load_settings(None, user_dir=made, environ={}) == load_settings(None, user_dir=None, environ={})


def test_init_here_and_global(lab: Lab) -> None:
    assert dirs.init_dir(cwd=lab.deep) == lab.deep
    assert dirs.init_dir(global_=True, home=lab.home) == lab.home / ".swarm"
    with pytest.raises(UsageProblem):
        dirs.init_dir("x", global_=True)


def test_init_twice_changes_nothing(lab: Lab) -> None:
    lab.mark(lab.project, "v0.0.1\n")

    with pytest.raises(SwarmDirExists, match=str(lab.project)) as caught:
        dirs.init_dir(lab.project)

    assert caught.value.exit_code == 3
    assert (lab.project / marker.MARKER).read_text() == "v0.0.1\n"
    assert sorted(os.listdir(lab.project)) == [marker.MARKER, "src"]


def test_init_keeps_what_is_there(lab: Lab) -> None:
    (lab.project / "config.yaml").write_text("git: {jobs: 1}")
    (lab.project / "sockets").mkdir(mode=0o755)

    dirs.init_dir(lab.project)

    assert (lab.project / "config.yaml").read_text() == "git: {jobs: 1}"
    assert mode(lab.project / "sockets") == 0o700


@pytest.mark.parametrize("at", range(12))
def test_a_half_made_init_is_none_and_can_be_run_again(lab: Lab, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    calls = iter(range(100))
    real = marker._make

    def fail(*args: object, **kwargs: object) -> None:
        if next(calls) == at:
            raise OSError(28, "No space left on device")
        real(*args, **kwargs)  # type: ignore[arg-type]

    target = lab.project / "made"
    with monkeypatch.context() as patch:
        patch.setattr(marker, "_make", fail)
        if at < 11:
            with pytest.raises(Exception, match="No space left") as caught:
                dirs.init_dir(target)
            assert getattr(caught.value, "code", "") == "NO_SPACE"
            assert not marker.is_swarm_dir(target)

    assert dirs.init_dir(target) == target
    assert marker.is_swarm_dir(target)


@pytest.mark.parametrize("name", ["roles", "pods", "sockets"])
def test_init_refuses_what_stands_in_the_way(lab: Lab, name: str) -> None:
    (lab.project / name).touch()
    with pytest.raises(StateDirProblem, match="not a folder"):
        dirs.init_dir(lab.project)

    (lab.project / name).unlink()
    (lab.project / name).symlink_to(lab.home)
    with pytest.raises(SymlinkInTheWay):
        dirs.init_dir(lab.project)
    assert not marker.is_swarm_dir(lab.project)


def test_init_onto_a_file(lab: Lab) -> None:
    (lab.project / "file").touch()

    with pytest.raises(StateDirProblem):
        dirs.init_dir(lab.project / "file")


# --- what is in it (DIR-12, DIR-16..18) -------------------------------------------------------


def test_everything_is_below_the_directory_in_use(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    base = dirs.init_dir(lab.project)
    monkeypatch.setenv("SWARM_DIR", str(base))
    expected = {
        dirs.roles_dir: "roles",
        dirs.sessions_dir: "sessions",
        dirs.claude_config_dir: "claude-config/default",
        dirs.projects_dir: "projects",
        dirs.worktrees_dir: "worktrees",
        dirs.pod_roles_dir: "pods/roles",
        dirs.pod_templates_dir: "pods/templates",
    }

    for function, name in expected.items():
        assert function() == base / name
        assert function("/else/where") == Path("/else/where", name)
    assert dirs.project_path("projects/my-app") == base / "projects/my-app"
    assert dirs.project_path("/abs/x/../y") == Path("/abs/y")


@pytest.fixture
def short() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="s"))
    yield folder
    shutil.rmtree(folder)


def test_a_short_directory_keeps_its_sockets(short: Path) -> None:
    assert dirs.sockets_dir(short) == short / "sockets"
    assert os.listdir(short) == []


def deep(folder: Path, name: str = "x") -> Path:
    path = folder / (name * 80)
    path.mkdir()
    return path


def test_a_long_one_gets_a_short_link(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_dir, "_SHARED_TEMPORARY", short)
    one, other = deep(short), deep(short, "y")

    link = dirs.sockets_dir(one, environ={})

    assert link.parent == short / f"swarm-{os.geteuid()}"
    assert mode(link.parent) == 0o700
    assert link.resolve() == one / "sockets"
    assert mode(one / "sockets") == 0o700
    assert len(os.fsencode(link)) < 50
    assert dirs.sockets_dir(one, environ={}) == link
    assert dirs.sockets_dir(other, environ={}) != link


def test_the_users_runtime_directory_comes_first(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_dir, "_SHARED_TEMPORARY", short)
    runtime = short / "run"
    runtime.mkdir(mode=0o700)
    base = deep(short)

    link = dirs.sockets_dir(base, environ={"XDG_RUNTIME_DIR": str(runtime)})
    assert link.parent == runtime
    assert link.name.startswith("swarm-")

    runtime.chmod(0o777)
    for unusable in (str(runtime), "relative", str(short / "none"), str(deep(short, "z"))):
        link = dirs.sockets_dir(base, environ={"XDG_RUNTIME_DIR": unusable})
        assert link.parent == short / f"swarm-{os.geteuid()}"


def test_a_foreign_link_is_refused(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_dir, "_SHARED_TEMPORARY", short)
    base = deep(short)
    link = dirs.sockets_dir(base, environ={})

    link.unlink()
    link.symlink_to(short)
    with pytest.raises(SymlinkInTheWay):
        dirs.sockets_dir(base, environ={})

    link.unlink()
    link.mkdir()
    with pytest.raises(StateDirProblem):
        dirs.sockets_dir(base, environ={})


def test_a_foreign_folder_for_links_is_refused(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_dir, "_SHARED_TEMPORARY", short)
    ours = short / f"swarm-{os.geteuid()}"
    base = deep(short)

    ours.mkdir()
    ours.chmod(0o777)
    with pytest.raises(StateDirProblem, match="others can write"):
        dirs.sockets_dir(base, environ={})

    ours.rmdir()
    ours.symlink_to(short)
    with pytest.raises(SymlinkInTheWay):
        dirs.sockets_dir(base, environ={})
