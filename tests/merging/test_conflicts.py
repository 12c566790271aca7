"""The forecast finds what git's own merge finds, touches nothing, and never calls what failed clean."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm.merging.values import ConflictReport, Forecast, PairForecast
from swarm.project.errors import SessionNotFound
from swarm.testing.lab import Lab

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.integration

ONE, TWO = "researcher", "developer"


def team(lab: Lab, roles: str = f"{ONE},{TWO}", session: str = "feature-x") -> None:
    lab.swarm.create(session, roles)


def pair(report: ConflictReport) -> PairForecast:
    assert len(report.pairs) == 1
    return report.pairs[0]


def base_files(lab: Lab) -> None:
    lab.write({"text": "one\ntwo\nthree\n", "bin": b"a\0b", "dir/file": "f\n", "moved": "long enough\n" * 5})
    lab.commit("base")


# --- seeded conflicts: what each of two agents does, and what comes of it ------------------------------


def wrote(**files: str | bytes) -> Callable[[Lab, Path], None]:
    def act(lab: Lab, tree: Path) -> None:
        lab.write({name.replace("__", "/"): content for name, content in files.items()}, tree)

    return act


def removed(name: str) -> Callable[[Lab, Path], None]:
    return lambda lab, tree: (tree / name).unlink()


def renamed(old: str, new: str) -> Callable[[Lab, Path], None]:
    def act(lab: Lab, tree: Path) -> None:
        (tree / old).rename(tree / new)

    return act


def executable(name: str, content: str) -> Callable[[Lab, Path], None]:
    def act(lab: Lab, tree: Path) -> None:
        lab.write({name: content}, tree)
        (tree / name).chmod(0o755)

    return act


def linked(name: str, target: str) -> Callable[[Lab, Path], None]:
    def act(lab: Lab, tree: Path) -> None:
        (tree / name).unlink(missing_ok=True)
        (tree / name).symlink_to(target)

    return act


def folder_into_file(lab: Lab, tree: Path) -> None:
    (tree / "dir" / "file").unlink()
    (tree / "dir").rmdir()
    lab.write({"dir": "now a file\n"}, tree)


CONFLICTS: dict[str, tuple[Any, Any, str, str]] = {
    "content": (wrote(text="ONE\ntwo\nthree\n"), wrote(text="1\ntwo\nthree\n"), "text", "content"),
    "add/add": (wrote(new="one\n"), wrote(new="other\n"), "new", "add/add"),
    "modify/delete": (wrote(text="ONE\ntwo\nthree\n"), removed("text"), "text", "modify/delete"),
    "rename/delete": (renamed("moved", "here"), removed("moved"), "here", "rename/delete"),
    "rename/rename": (renamed("moved", "here"), renamed("moved", "there"), "here", "rename/rename"),
    "binary": (wrote(bin=b"a\0c"), wrote(bin=b"a\0d"), "bin", "binary"),
    "mode": (wrote(tool="same\n"), executable("tool", "same\n"), "tool", "mode"),
    "type": (linked("new", "text"), wrote(new="a file\n"), "new", "distinct types"),
    "file/directory": (folder_into_file, wrote(dir__more="m\n"), "dir", "file/directory"),
}
CLEAN: dict[str, tuple[Any, Any, Forecast]] = {
    "different files": (wrote(text="ONE\ntwo\nthree\n"), wrote(new="n\n"), Forecast.CLEAN),
    "both ends of a file": (wrote(text="ONE\ntwo\nthree\n"), wrote(text="one\ntwo\nTHREE\n"), Forecast.OVERLAP),
    "rename and modify": (renamed("moved", "here"), wrote(moved="long enough\n" * 5 + "more\n"), Forecast.OVERLAP),
    "the same change": (wrote(text="same\n"), wrote(text="same\n"), Forecast.OVERLAP),
    "mode and content": (executable("text", "one\ntwo\nthree\n"), wrote(text="ONE\ntwo\nthree\n"), Forecast.OVERLAP),
    "nothing at all": (lambda lab, tree: None, wrote(text="x\n"), Forecast.CLEAN),
}


def git_agrees(lab: Lab, conflicts: bool) -> bool:
    """Whether a real ``git merge`` of the two branches, elsewhere, says the same."""
    clone = lab.root.parent / "judge"
    lab.git("clone", "--quiet", "--branch", f"swarm/{ONE}-feature-x", str(lab.root), str(clone))
    done = subprocess.run(
        ["git", "merge", "--quiet", "-m", "judge", f"origin/swarm/{TWO}-feature-x"],
        cwd=clone,
        env=lab.env,
        capture_output=True,
        check=False,
    )
    return (done.returncode != 0) == conflicts


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "uncommitted"])
@pytest.mark.parametrize("kind", CONFLICTS)
def test_seeded_conflicts_are_found(lab: Lab, kind: str, committed: bool) -> None:
    one, two, path, said = CONFLICTS[kind]
    base_files(lab)
    team(lab)
    for name, deed in ((ONE, one), (TWO, two)):
        deed(lab, lab.tree(name))
        if committed:
            lab.commit(f"work of {name}", cwd=lab.tree(name))

    found = pair(lab.swarm.conflicts())

    assert found.status is Forecast.CONFLICT
    assert path in {file.path for file in found.conflicts}
    assert said in {kind for file in found.conflicts if file.path == path for kind in file.kinds}
    assert not committed or git_agrees(lab, True)


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "uncommitted"])
@pytest.mark.parametrize("what", CLEAN)
def test_what_goes_together_is_not_called_a_conflict(lab: Lab, what: str, committed: bool) -> None:
    one, two, status = CLEAN[what]
    base_files(lab)
    team(lab)
    for name, deed in ((ONE, one), (TWO, two)):
        deed(lab, lab.tree(name))
        if committed:
            lab.commit(f"work of {name}", cwd=lab.tree(name))

    report = lab.swarm.conflicts()

    if what == "nothing at all":
        assert report.pairs == ()
        assert [agent.landed for agent in report.agents] == [True, False]
    else:
        assert pair(report).status is status
        assert pair(report).conflicts == ()
        assert bool(pair(report).overlap) == (status is Forecast.OVERLAP)
    assert not committed or git_agrees(lab, False)


def test_submodule_pointers_conflict(lab: Lab) -> None:
    inner = Lab(lab.root.parent / "other", "inner")
    commits = [inner.commit(f"inner {n}") for n in range(2)]
    inner.git("branch", "side", commits[0])
    lab.git("submodule", "--quiet", "add", str(inner.root), "lib")
    lab.commit("a submodule")
    team(lab)
    for number, name in enumerate((ONE, TWO)):
        inner.git("checkout", "--quiet", "-B", f"b{number}", commits[0])
        pointer = inner.commit(f"for {name}")
        lab.git("update-index", "--cacheinfo", f"160000,{pointer},lib", cwd=lab.tree(name))
        lab.git("commit", "--quiet", "-m", "pointer", cwd=lab.tree(name))

    found = pair(lab.swarm.conflicts())

    assert found.status is Forecast.CONFLICT
    assert [(file.path, file.kinds[0]) for file in found.conflicts] == [("lib", "submodule")]


def test_staged_and_untracked_work_counts_and_ignored_files_do_not(lab: Lab) -> None:
    team(lab)
    lab.write({"new": "one\n", "debug.log": "one\n"}, lab.tree(ONE))
    lab.write({"new": "other\n", "debug.log": "other\n"}, lab.tree(TWO))
    lab.git("add", "new", cwd=lab.tree(ONE))

    report = lab.swarm.conflicts("feature-x")

    assert [file.path for file in pair(report).conflicts] == ["new"]
    assert [agent.uncommitted for agent in report.agents] == [("new",), ("new",)]
    assert [(file.path, file.agents) for file in report.hot] == [
        ("new", (f"{ONE}@feature-x", f"{TWO}@feature-x")),
    ]
    assert [step.conflicts_with for step in report.order] == [(), (f"{ONE}@feature-x",)]


def test_the_base_branch_is_forecast_too(lab: Lab) -> None:
    team(lab)
    lab.write({"README": "mine\n"}, lab.tree(ONE))
    lab.write({"other": "mine\n"}, lab.tree(TWO))
    lab.write({"README": "theirs\n"})
    lab.commit("main went on")

    one, two = lab.swarm.conflicts().agents

    assert (one.into, one.status) == ("main", Forecast.CONFLICT)
    assert [file.path for file in one.conflicts] == ["README"]
    assert two.status is Forecast.CLEAN
    assert [step.agent for step in lab.swarm.conflicts().order] == [two.name, one.name]


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_what_has_landed_is_in_nobody_s_way(lab: Lab, how: str) -> None:
    team(lab)
    lab.write({"README": "one\n"}, lab.tree(ONE))
    lab.commit("one", cwd=lab.tree(ONE))
    lab.write({"README": "two\n"}, lab.tree(TWO))
    lab.write({"unrelated": "x\n"})
    lab.commit("main went on")

    lab.swarm.merge(f"feature-x/{ONE}", how=how)
    report = lab.swarm.conflicts()

    assert [agent.landed for agent in report.agents] == [True, False]
    assert report.pairs == ()
    assert report.agents[1].status is Forecast.CONFLICT


def test_agents_of_several_sessions_meet(lab: Lab) -> None:
    team(lab, "developer", "one")
    team(lab, "developer", "two")
    for session in ("one", "two"):
        lab.write({"README": session}, lab.tree("developer", session))

    assert pair(lab.swarm.conflicts()).status is Forecast.CONFLICT
    assert lab.swarm.conflicts("one").pairs == ()
    with pytest.raises(SessionNotFound):
        lab.swarm.conflicts("three")


def test_an_agent_in_the_middle_of_a_merge_is_taken_as_it_will_be(lab: Lab) -> None:
    base_files(lab)
    team(lab)
    lab.write({"text": "main\ntwo\nthree\n"})
    lab.commit("main went on")
    for name in (ONE, TWO):
        lab.write({name: "work\n"}, lab.tree(name))
        lab.commit("work", cwd=lab.tree(name))
        lab.git("merge", "--no-commit", "--quiet", "main", cwd=lab.tree(name))

    report = lab.swarm.conflicts()

    assert pair(report).status is Forecast.CLEAN  # not an overlap: what main did is nobody's work
    assert [agent.touched for agent in report.agents] == [(ONE,), (TWO,)]


def test_eight_agents(lab: Lab) -> None:
    team(lab, "developer:8")
    for number in range(1, 9):
        lab.write({"README": f"{number // 4}\n", f"own-{number}": "x\n"}, lab.tree(f"developer-{number}"))

    report = lab.swarm.conflicts()

    assert len(report.pairs) == 28
    assert {agent.status for agent in report.agents} == {Forecast.CLEAN}
    groups = [(int(p.one[10]) // 4, int(p.other[10]) // 4) for p in report.pairs]
    assert [p.status is Forecast.CONFLICT for p in report.pairs] == [one != other for one, other in groups]
    assert [step.agent[10] for step in report.order][:4] == ["4", "5", "6", "7"]
    assert report.hot[0].path == "README"
    assert len(report.hot[0].agents) == 8


def test_a_sha256_repository(tmp_path: Path) -> None:
    lab = sha256_lab(tmp_path)
    team(lab)
    lab.write({"README": "one\n"}, lab.tree(ONE))
    lab.write({"README": "two\n"}, lab.tree(TWO))

    assert pair(lab.swarm.conflicts()).status is Forecast.CONFLICT


def sha256_lab(folder: Path) -> Lab:
    made = Lab(folder.resolve())
    made.root = folder.resolve() / "sha256: odd"  # a colon parts git's lists of folders
    made.root.mkdir()
    made.git("init", "--quiet", "--object-format=sha256")
    made.write({"README": "hello\n"})
    made.commit("first")
    return made


# --- what cannot be found out ---------------------------------------------------------------------------


def test_a_worktree_that_cannot_be_read_is_unknown_and_never_clean(lab: Lab) -> None:
    team(lab)
    lab.write({"README": "one\n"}, lab.tree(TWO))
    (lab.root / ".git" / "worktrees" / f"{ONE}-feature-x" / "index").write_bytes(b"broken")

    report = lab.swarm.conflicts()

    assert report.agents[0].status is Forecast.UNKNOWN
    assert "index" in report.agents[0].reason
    assert pair(report).status is Forecast.UNKNOWN
    assert report.agents[0].name in pair(report).reason
    assert report.unknown == (report.agents[0], report.pairs[0])
    assert report.order[-1].agent == report.agents[0].name


def test_histories_that_have_nothing_in_common_are_unknown(lab: Lab) -> None:
    team(lab)
    lab.git("checkout", "--quiet", "--orphan", "elsewhere", cwd=lab.tree(ONE))
    lab.commit("an orphan", cwd=lab.tree(ONE))
    lab.write({"README": "one\n"}, lab.tree(TWO))

    report = lab.swarm.conflicts()

    assert [agent.status for agent in report.agents] == [Forecast.UNKNOWN, Forecast.CLEAN]
    assert "unrelated" in report.agents[0].reason
    assert pair(report).status is Forecast.UNKNOWN


def test_a_missing_worktree_is_judged_by_its_branch(lab: Lab) -> None:
    team(lab)
    lab.write({"README": "one\n"}, lab.tree(ONE))
    lab.commit("one", cwd=lab.tree(ONE))
    lab.write({"README": "two\n"}, lab.tree(TWO))
    lab.tree(ONE).rename(lab.root.parent / "gone")

    assert pair(lab.swarm.conflicts()).status is Forecast.CONFLICT


# --- what must not change -------------------------------------------------------------------------------


def everything(lab: Lab) -> dict[str, Any]:
    """Return every worktree's index and files with their times, every ref, and the number of objects."""
    git = lab.root / ".git"
    trees = [lab.root, *(lab.root / ".worktrees").iterdir()]
    return {
        "indexes": {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in git.rglob("index")},
        "files": {
            os.path.join(where, name): (info.st_mtime_ns, info.st_ctime_ns, info.st_ino, info.st_mode)
            for tree in trees
            for where, folders, names in os.walk(tree)
            for name in (*names, *folders)
            if "/objects" not in where and name != "objects"
            for info in [os.lstat(os.path.join(where, name))]
        },
        "refs": lab.git("for-each-ref", "--format=%(refname) %(objectname)"),
        "objects": lab.git("count-objects", "--verbose"),
        "object files": sorted(str(path) for path in (git / "objects").rglob("*")),
        "swarm": sorted(str(path) for path in (lab.root / ".swarm").rglob("*")),
        "temporary": sorted(Path(os.environ.get("TMPDIR", "/tmp")).glob("swarm-*")),
    }


def test_nothing_is_written_anywhere(lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    base_files(lab)
    team(lab)
    for name in (ONE, TWO):
        lab.write({"text": f"{name}\n", "untracked": name, "staged": name}, lab.tree(name))
        (lab.tree(name) / "bin").unlink()
        lab.git("add", "staged", cwd=lab.tree(name))
        os.utime(lab.tree(name) / "dir" / "file")  # only another time: git would like to note that
    before = everything(lab)

    report = lab.swarm.conflicts()
    diff = lab.swarm.diff(ONE)

    assert pair(report).status is Forecast.CONFLICT
    assert {file.path for file in diff.uncommitted} == {"text", "staged", "bin"}
    assert everything(lab) == before


def test_nobody_waits_for_a_lock(lab: Lab) -> None:
    team(lab)
    lab.write({"README": "one\n"}, lab.tree(ONE))
    with lab.swarm._locked("test"):
        assert lab.open(lock__timeout=0).conflicts().agents[0].uncommitted == ("README",)


def test_filters_run_and_unusual_names_are_taken(lab: Lab) -> None:
    lab.git("config", "filter.upper.clean", "tr a-z A-Z")
    lab.write({".gitattributes": "*.up filter=upper\n", "x.up": "x\n"})
    lab.commit("filtered")
    team(lab)
    odd = 'new\nline\t"quoted" ünï'
    for name in (ONE, TWO):
        lab.write({"x.up": "same WORD\n" if name == ONE else "SAME word\n", odd: name}, lab.tree(name))

    found = pair(lab.swarm.conflicts())

    assert set(found.overlap) == {"x.up", odd}
    assert [file.path for file in found.conflicts] == [odd]


def test_repositories_inside_and_special_files_are_no_trouble(lab: Lab) -> None:
    team(lab)
    nested = lab.tree(ONE) / "nested"
    nested.mkdir()
    lab.git("init", "--quiet", cwd=nested)
    os.mkfifo(lab.tree(ONE) / "pipe")
    lab.write({"README": "one\n"}, lab.tree(ONE))

    report = lab.swarm.conflicts()

    assert report.agents[0].uncommitted == ("README",)
    assert report.agents[0].status is Forecast.CLEAN
