"""The machine around the repository: programs, rights, disks, variables, threads, and what the library leaves alone."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from swarm import Swarm, SwarmError
from swarm.kit import files
from swarm.testing.lab import Lab, file_digests
from swarm.testing.terminal import wait_for
from swarm.worktrees import trash
from tests.support import odd
from tests.support.odd import AGENTS, NOTES, PROJECT, SESSION, as_plain_user, fill_up, refused, small_disk, whole_life

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.integration


# --- variables -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        ("GIT_INDEX_FILE",),
        ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"),
    ],
    ids="+".join,
)
def test_variables_that_name_another_repository_do_not_count(lab: Lab, names: tuple[str, ...]) -> None:
    other = Lab(lab.root.parent / "other")
    git_dir = other.root / ".git"
    places = {
        "GIT_DIR": git_dir,
        "GIT_COMMON_DIR": git_dir,
        "GIT_WORK_TREE": other.root,
        "GIT_INDEX_FILE": git_dir / "index",
        "GIT_OBJECT_DIRECTORY": git_dir / "objects",
        "GIT_NAMESPACE": "elsewhere",
    }
    before = file_digests(other.root)

    whole_life(lab, environ={name: str(places[name]) for name in names})

    assert file_digests(other.root) == before


@pytest.mark.parametrize(
    "variable",
    [
        *("GIT_OBJECT_DIRECTORY=objects", "GIT_COMMON_DIR=.", "GIT_SHALLOW_FILE=shallow", "GIT_CONFIG_COUNT=1"),
        *("GIT_CONFIG_PARAMETERS=bad", "GIT_PYTHON_GIT_EXECUTABLE=no/such/git", "GIT_PYTHON_REFRESH=bad"),
    ],
)
def test_variables_that_break_other_gits_are_no_matter_to_what_is_told_of_commits(lab: Lab, variable: str) -> None:
    other = Lab(lab.root.parent / "other")
    lab.swarm.create(SESSION, ["developer"])
    tree = lab.tree("developer")
    lab.write({"part.txt": "part\n"}, tree)
    tip = lab.commit("ein Stück Arbeit", cwd=tree)
    name, _, value = variable.partition("=")
    if name in {"GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_SHALLOW_FILE"}:
        value = str(other.root / ".git" / value)

    def told(*words: str, **variables: str) -> dict[str, Any]:
        env = {**lab.env, "PYTHONPATH": str(PROJECT), **variables}
        command = [sys.executable, "-P", "-m", "swarm", *words, "--json"]
        done = subprocess.run(command, cwd=lab.root, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr + done.stdout
        found: dict[str, Any] = json.loads(done.stdout)["data"]
        return found

    for words in (("worktree", "show", "developer"), ("diff", "developer")):
        found = told(*words, **{name: value})
        assert found == told(*words)
        (commit,) = found["commits"]
        assert (commit["id"], commit["subject"]) == (tip, "ein Stück Arbeit")


def test_almost_no_variables_are_enough(lab: Lab) -> None:
    swarm = Swarm.open(lab.root, environ={"PATH": lab.env["PATH"]}, flags={"worktrees.durable": False})

    assert list(swarm.create(SESSION, AGENTS).paths()) == list(AGENTS)
    assert len(swarm.cleanup([SESSION]).removed) == 2


def test_a_plain_locale_does_not_break_names_of_any_bytes(tmp_path: Path) -> None:
    lab = Lab(tmp_path.resolve(), os.fsdecode(b"caf\xe9 \xc3\xa9"))
    env = {**lab.env, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    script = 'print(json.dumps(outcome(lambda: Swarm.open(".").create("s", "developer"))))'
    code = f"import os; os.chdir({os.fsencode(lab.root)!r}); import sys; sys.path.insert(0, {str(odd.PROJECT)!r})\n"

    done = subprocess.run([sys.executable, "-c", code + odd._CHILD + script], env=env, capture_output=True, check=False)

    assert done.stderr == b""
    assert b'"code": "DONE"' in done.stdout
    assert (lab.root / ".worktrees" / "developer-s" / "README").exists()


# --- programs --------------------------------------------------------------------------------------


def test_without_git_it_is_said_how_to_get_it(lab: Lab) -> None:
    with refused(lab.root.parent, "GIT_MISSING", says="not installed", hint="apt-get install git", exit_code=5):
        Swarm.open(lab.root, environ={**lab.env, "PATH": "/nowhere"})


def test_git_that_vanishes_after_opening_is_said_too(lab: Lab) -> None:
    folder = lab.root.parent / "bin"
    odd.program(folder, "git", f'exec "{shutil.which("git")}" "$@"')
    swarm = Swarm.open(lab.root, environ={**lab.env, "PATH": str(folder)})
    (folder / "git").unlink()

    with refused(lab.root.parent, "GIT_MISSING", says="not installed", hint="apt-get install git", exit_code=5):
        swarm.create(SESSION, AGENTS)


@pytest.mark.parametrize("version", ["1.8.3.1", "2.7.4", "2.19.9", "2.19.9.windows.1"])
def test_an_old_git_is_refused_by_its_number(lab: Lab, version: str) -> None:
    """A stand-in says an old version; everything else is the real git."""
    real = shutil.which("git")
    odd.program(
        lab.root.parent / "bin",
        "git",
        f'case " $* " in *" version "*) echo "git version {version}";; *) exec "{real}" "$@";; esac',
    )
    env = odd.first_on_path(lab, lab.root.parent / "bin")

    with refused(
        lab.root.parent, "GIT_TOO_OLD", says=f"2.20 or newer.*this is {version[:5]}", hint="2.38", exit_code=5
    ):
        Swarm.open(lab.root, environ=env).create(SESSION, AGENTS)


def test_a_git_that_cannot_be_run_is_said_so(lab: Lab) -> None:
    path = odd.program(lab.root.parent / "bin", "git", "exit 0")
    path.chmod(0o644)

    with refused(lab.root.parent, "PERMISSION|GIT_MISSING", says="git", exit_code=5):
        Swarm.open(lab.root, environ={**lab.env, "PATH": str(path.parent)})


def test_a_git_that_dies_is_said_so(lab: Lab) -> None:
    odd.program(lab.root.parent / "bin", "git", "kill -9 $$")

    with refused(lab.root.parent, "GIT_BROKEN", says="ended by signal 9", exit_code=5):
        Swarm.open(lab.root, environ=odd.first_on_path(lab, lab.root.parent / "bin"))


# --- owners and rights -----------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository away")
def test_a_repository_of_another_user_is_refused_until_it_is_trusted(lab: Lab) -> None:
    for path in [lab.root, *lab.root.rglob("*")]:
        os.chown(path, 65534, 65534, follow_symlinks=False)

    with refused(lab.root.parent, "REPO_OWNER", says="dubious ownership", hint="safe.directory", exit_code=5):
        lab.swarm.create(SESSION, AGENTS)

    lab.git("config", "--global", "safe.directory", str(lab.root), cwd=lab.root.parent)
    whole_life(lab)


CREATE = """
def act():
    swarm = Swarm.open(sys.argv[1], environ=dict(os.environ), flags={"worktrees.durable": False})
    swarm.create("feature-x", "researcher,developer")

print(json.dumps(outcome(act)))
"""
CLEANUP = """
swarm = Swarm.open(sys.argv[1], environ=dict(os.environ), flags={"worktrees.durable": False})
print(json.dumps(outcome(lambda: swarm.cleanup(["feature-x"], force=True))))
"""


@contextlib.contextmanager
def without_write(*folders: Path) -> Iterator[None]:
    """Take the right to write from folders for a while."""
    modes = {folder: folder.stat().st_mode for folder in folders}
    for folder in folders:
        folder.chmod(0o555)
    try:
        yield
    finally:
        for folder, mode in modes.items():
            folder.chmod(mode)


READ_ONLY: dict[str, tuple[str, ...]] = {
    "the-checkout": (".",),
    "git-dir": (".git",),
    "refs": (".git/refs", ".git/refs/heads"),
    "info": (".git/info",),
    "objects": (".git/objects",),
    "everything": (".", ".git", ".git/refs", ".git/refs/heads", ".git/info", ".git/logs/refs/heads"),
}


@pytest.mark.parametrize("parts", READ_ONLY.values(), ids=READ_ONLY.keys())
def test_what_cannot_be_written_is_said_and_nothing_is_left(lab: Lab, parts: tuple[str, ...]) -> None:
    before = odd.state(lab)

    with without_write(*(lab.root / part for part in parts)):
        error = as_plain_user(CREATE, str(lab.root), env=lab.env)

    assert (error["code"], error["exit_code"]) == ("PERMISSION", 5), error
    assert "Permission denied" in error["message"] or "not writable" in error["message"]
    assert "chmod u+rwx" in error["hint"]
    odd.same(before, odd.state(lab))
    assert not (lab.root / ".worktrees").exists()
    assert lab.swarm.worktrees() == ()
    assert lab.swarm.operations.unfinished() == ()
    whole_life(lab)


def test_a_checkout_that_cannot_be_entered_is_said_so(lab: Lab) -> None:
    lab.root.chmod(0o000)
    try:
        error = as_plain_user(CREATE, str(lab.root), env=lab.env)
    finally:
        lab.root.chmod(0o755)

    assert (error["code"], error["exit_code"]) == ("PERMISSION", 5), error


def test_a_cleanup_that_may_not_write_loses_nothing(lab: Lab) -> None:
    swarm = lab.open(worktrees__durable=False)
    tree = swarm.create(SESSION, AGENTS).paths()["developer"]
    (tree / odd.WORK).write_text("not to be lost\n")

    with without_write(lab.root / ".git" / "objects", lab.root / ".git" / "refs", lab.root / ".git"):
        error = as_plain_user(CLEANUP, str(lab.root), env=lab.env)

    assert error["exit_code"] in (1, 5), error
    assert (tree / odd.WORK).read_text() == "not to be lost\n"
    assert len(lab.swarm.worktrees()) == 2
    lab.swarm.cleanup([SESSION], force=True)
    lab.swarm.restore(SESSION)
    assert (tree / odd.WORK).read_text() == "not to be lost\n"


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o027])
def test_the_umask_decides_about_the_trees_and_not_about_swarm_s_state(lab: Lab, umask: int) -> None:
    old = os.umask(umask)
    try:
        swarm = lab.open(worktrees__durable=False)
        tree = swarm.create(SESSION, ["developer"]).paths()["developer"]
    finally:
        os.umask(old)

    assert (tree / "README").stat().st_mode & 0o777 == 0o666 & ~umask
    assert (tree / "run.sh").stat().st_mode & 0o777 == 0o777 & ~umask
    for path in [lab.root / ".swarm", *(lab.root / ".swarm").rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


# --- disks -----------------------------------------------------------------------------------------


def test_too_little_room_is_seen_before_anything_is_made(tmp_path: Path) -> None:
    with small_disk(tmp_path.resolve() / "disk", "size=10m") as folder:
        lab = Lab(folder)

        with refused(
            folder, "NO_SPACE", says=r"2 worktrees need at least \d+ MiB, \d MiB are free", hint="cleanup", exit_code=5
        ):
            lab.swarm.create(SESSION, AGENTS)

        assert not (lab.root / ".swarm").exists()


def test_too_few_inodes_are_seen_before_anything_is_made(tmp_path: Path) -> None:
    with small_disk(tmp_path.resolve() / "disk", "size=64m,nr_inodes=1000") as folder:
        lab = Lab(folder)
        lab.write({f"many/{n}": "x\n" for n in range(60)})
        lab.commit("many")
        while os.statvfs(folder).f_favail > 100:
            (folder / f"ballast{os.statvfs(folder).f_favail}").touch()

        with refused(
            folder, "NO_SPACE", says=r"2 worktrees need \d+ inodes, \d+ are free", hint="cleanup", exit_code=5
        ):
            lab.swarm.create(SESSION, AGENTS)


@pytest.mark.parametrize("kind", ["size=80m", "size=64m,nr_inodes=700"], ids=["blocks", "inodes"])
def test_a_disk_that_fills_up_on_the_way_leaves_nothing(tmp_path: Path, kind: str) -> None:
    """The look ahead cannot know how big the files of another commit are."""
    with small_disk(tmp_path.resolve() / "disk", kind) as folder:
        lab = Lab(folder)
        if "inodes" in kind:
            lab.write({f"many/{n}/{m}": "" for n in range(100) for m in range(4)})
        else:
            lab.write({f"big{n}": os.urandom(4 << 20) for n in range(7)})
        lab.commit("big")
        lab.git("tag", "big")
        lab.git("rm", "-rq", "many" if "inodes" in kind else "big*")
        lab.commit("small again")

        with refused(
            folder, "NO_SPACE", says="No space left|disk is full", hint="free some disk space", exit_code=5, left=NOTES
        ):
            lab.open(worktrees__durable=False).create(SESSION, AGENTS, base="big")

        assert lab.swarm.worktrees() == ()
        assert lab.swarm.operations.unfinished() == ()
        whole_life(lab)


@pytest.mark.parametrize("leave", [0, 4096, 20_000, 60_000])
def test_a_full_disk_at_cleanup_loses_nothing(tmp_path: Path, leave: int) -> None:
    with small_disk(tmp_path.resolve() / "disk", "size=40m") as folder:
        lab = Lab(folder)
        swarm = lab.open(worktrees__durable=False)
        tree = swarm.create(SESSION, AGENTS).paths()["developer"]
        work = {f"work{n}": os.urandom(9000) for n in range(4)}
        lab.write(work, tree)
        fill_up(folder, leave)

        try:
            swarm.cleanup([SESSION], force=True)
        except SwarmError as error:
            odd.reads_well(error, "NO_SPACE", "SALVAGE_FAILED")
        (folder / "ballast").unlink()
        lab.swarm.recover()
        if not tree.exists():
            lab.swarm.restore(SESSION)

        assert {name: (tree / name).read_bytes() for name in work} == work
        lab.swarm.cleanup([SESSION], force=True)
        assert lab.swarm.worktrees() == ()


def test_a_limit_on_the_size_of_files_is_like_a_full_disk(lab: Lab) -> None:
    lab.write({"big": b"x" * 200_000})
    lab.commit("big")
    script = (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
    )
    before = odd.state(lab)

    error = as_plain_user(script + CREATE, str(lab.root), env=lab.env)

    assert error["code"] in {"NO_SPACE", "GIT_FAILED"}, error
    odd.same(before, odd.state(lab))
    assert lab.swarm.worktrees() == ()


# --- one process, several at work -------------------------------------------------------------------


def test_two_repositories_in_one_process_keep_apart(tmp_path: Path) -> None:
    one, two = Lab(tmp_path.resolve() / "1"), Lab(tmp_path.resolve() / "2")
    a, b = one.open(worktrees__durable=False), two.open(worktrees__durable=False, worktrees__base_path="trees")

    a.create(SESSION, ["developer"])
    b.create(SESSION, ["developer"])
    b.create("other", ["researcher"])
    a.cleanup([SESSION])

    assert a.worktrees() == ()
    assert [info.path for info in b.worktrees()] == [
        two.root / "trees" / f"developer-{SESSION}",
        two.root / "trees" / "researcher-other",
    ]


def _all_at_once(acts: list[Callable[[], object]]) -> list[object]:
    results: list[object] = [None] * len(acts)
    gate = threading.Barrier(len(acts))

    def run(number: int, act: Callable[[], object]) -> None:
        gate.wait()
        try:
            results[number] = act()
        except SwarmError as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=item) for item in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


@pytest.mark.parametrize("shared", [True, False], ids=["one-object", "an-object-each"])
def test_of_several_threads_that_want_the_same_session_one_wins(lab: Lab, shared: bool) -> None:
    same = lab.open(worktrees__durable=False, lock__timeout=60)

    def act() -> object:
        swarm = same if shared else lab.open(worktrees__durable=False, lock__timeout=60)
        return swarm.create(SESSION, AGENTS)

    results = _all_at_once([act] * 4)

    errors = [result for result in results if isinstance(result, SwarmError)]
    assert len(errors) == 3, results
    assert {error.code for error in errors} == {"WORKTREE_EXISTS"}
    for error in errors:
        odd.reads_well(error)
    assert [info.agent for info in lab.swarm.worktrees()] == list(AGENTS)
    for agent in AGENTS:
        odd.check_tree(lab, lab.tree(agent), agent=agent, base=lab.git("rev-parse", "HEAD"))


@pytest.mark.parametrize("shared", [True, False], ids=["one-object", "an-object-each"])
def test_threads_with_sessions_of_their_own_all_succeed(lab: Lab, shared: bool) -> None:
    same = lab.open(worktrees__durable=False, lock__timeout=60)

    def act(name: str) -> object:
        swarm = same if shared else lab.open(worktrees__durable=False, lock__timeout=60)
        swarm.create(name, ["developer"])
        return swarm.cleanup([name]) if name == "s0" else None

    results = _all_at_once([lambda n=n: act(f"s{n}") for n in range(4)])  # type: ignore[misc]

    assert not [result for result in results if isinstance(result, SwarmError)], results
    assert sorted(info.session for info in lab.swarm.worktrees()) == ["s1", "s2", "s3"]
    assert lab.swarm.operations.unfinished() == ()


# --- what the library leaves alone ------------------------------------------------------------------


def _process() -> dict[str, Any]:
    old = os.umask(0)
    os.umask(old)
    return {
        "environ": dict(os.environ),
        "cwd": os.getcwd(),
        "umask": old,
        "signals": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "path": list(sys.path),
    }


def test_the_library_never_prints_and_leaves_the_process_as_it_was(
    lab: Lab, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lab.root / "src")
    for name, value in lab.env.items():
        monkeypatch.setenv(name, value)
    before, threads = _process(), threading.enumerate()

    swarm = Swarm.open(flags={"worktrees.durable": False})
    tree = swarm.create(SESSION, AGENTS).paths()["developer"]
    (tree / odd.WORK).write_text("work\n")
    with pytest.raises(SwarmError):
        swarm.create(SESSION, AGENTS)
    with pytest.raises(SwarmError):
        swarm.cleanup([SESSION])
    swarm.worktrees()
    swarm.worktrees.show("developer")
    swarm.cleanup([SESSION], force=True)
    swarm.restore(SESSION)
    swarm.roles()
    swarm.recover()

    assert capfd.readouterr() == ("", "")
    assert _process() == before
    # The thread that waits for the process that deletes ends with it; threads of an earlier test may have ended, too.
    wait_for(lambda: set(threading.enumerate()) <= set(threads), "no thread of ours")
    assert swarm.root == lab.root


def test_the_current_directory_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(tmp_path.resolve(), "two\nlines \udcff\n")
    monkeypatch.chdir(lab.root / "src")

    assert Swarm.open(environ=lab.env).root == lab.root


def test_a_current_directory_that_is_gone_is_said_so(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = lab.root / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    with refused(lab.root.parent, "ENVIRONMENT|NOT_A_REPO", exit_code=5):
        Swarm.open(environ=lab.env)


def test_a_repository_that_vanishes_after_opening_is_said_so(lab: Lab) -> None:
    swarm = lab.swarm
    lab.root.rename(lab.root.parent / "moved")

    for act in (swarm.worktrees, lambda: swarm.create(SESSION, AGENTS), lambda: swarm.restore(SESSION)):
        with pytest.raises(SwarmError) as caught:
            act()
        odd.reads_well(caught.value)
    assert not lab.root.exists()


def test_a_repository_below_a_ceiling_is_not_found_above_it(lab: Lab) -> None:
    """What the user tells git about where to look still counts."""
    deep = lab.root / "src"

    with refused(lab.root.parent, "NOT_A_REPO|GIT_BROKEN", exit_code=5):
        Swarm.open(deep, environ={**lab.env, "GIT_CEILING_DIRECTORIES": str(lab.root)})


# --- worktrees on another file system ------------------------------------------------------------------


@pytest.fixture
def elsewhere(lab: Lab) -> Iterator[Path]:
    """Give the folder of the worktrees, which no file can be renamed into."""
    with small_disk(lab.root / ".worktrees", "size=50m") as folder:
        yield folder


def test_worktrees_on_another_file_system_have_a_whole_life(lab: Lab, elsewhere: Path) -> None:
    whole_life(lab)

    assert list(elsewhere.iterdir()) == []


def test_what_is_moved_out_of_another_file_system_comes_back(lab: Lab, elsewhere: Path) -> None:
    swarm = lab.open(worktrees__durable=False, cleanup__large_file=1000)
    swarm.create(SESSION, ["developer"])
    tree = lab.tree("developer")
    lab.write({"big.bin": os.urandom(5000), "inner/file": "in a repository\n"}, tree)
    (tree / "big.bin").chmod(0o640)
    lab.git("init", "--quiet", str(tree / "inner"))
    (tree / "inner/link").symlink_to("nowhere")
    before = file_digests(tree, skip={".git"})

    swarm.cleanup([SESSION], force=True)
    assert list(elsewhere.iterdir()) == []
    swarm.restore(SESSION)

    assert file_digests(tree, skip={".git"}) == before


def test_a_failed_create_on_another_file_system_leaves_nothing(lab: Lab, elsewhere: Path) -> None:
    lab.write({".gitattributes": "*.bad filter=bad\n", "some.bad": "x\n"})
    lab.commit("a filter")
    lab.git("config", "filter.bad.smudge", "false")
    lab.git("config", "filter.bad.required", "true")

    with pytest.raises(SwarmError):
        lab.swarm.create(SESSION, AGENTS)

    assert list(elsewhere.iterdir()) == []
    assert lab.git("branch", "--list", "swarm/*") == ""
    assert not (lab.root / ".swarm/salvage").exists()


def test_a_cleanup_killed_on_another_file_system_is_finished(
    lab: Lab, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.swarm.create(SESSION, AGENTS)
    real = trash.put

    def killed(*args: Any) -> None:
        real(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(trash, "put", killed)
        with pytest.raises(KeyboardInterrupt):
            lab.swarm.cleanup([SESSION])
    assert (elsewhere / ".swarm-trash").is_dir()
    assert not [path for path in lab.swarm.worktrees() if path.path.parent != elsewhere]
    lab.swarm.recover()

    assert list(elsewhere.iterdir()) == []
    assert lab.swarm.sessions() == ()


def test_a_folder_moved_to_another_file_system_is_whole_or_not_there(
    lab: Lab, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = elsewhere / "source", lab.root / "target"
    lab.write({"a": "1", "b/c": "2"}, source)
    (source / "link").symlink_to("a")
    os.mkfifo(source / "pipe")
    before = {name: text for name, text in file_digests(source).items() if name != "pipe"}
    real = files.remove_tree

    def killed(path: Path) -> None:
        if path == source:
            (source / "a").unlink()
            raise KeyboardInterrupt
        real(path)

    with monkeypatch.context() as patch:
        patch.setattr(files, "remove_tree", killed)
        with pytest.raises(KeyboardInterrupt):
            files.rename_if_there(source, target)
    assert file_digests(target) == before
    assert files.rename_if_there(source, target)

    assert file_digests(target) == before
    assert not source.exists()
    assert not files.rename_if_there(source, target)
