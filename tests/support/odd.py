"""What must be true of swarm in an odd repository: all of a set or nothing of it, and nothing lost."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm import Swarm, SwarmError
from swarm.testing.lab import Lab, file_digests

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

AGENTS = ("researcher", "developer")
SESSION = "feature-x"
WORK = "notes of an agent.txt"
#: After a rollback swarm's own notes stay: the log of what was done. Nothing else does.
NOTES = (r"^(my project/)?\.swarm(/(\.gitignore|\.swarm-dir\.txt|lock|journal(/history\.jsonl)?))?$",)
PROJECT = Path(__file__).resolve().parents[2]
#: Parts of a git directory that swarm may add to: objects, and what it saved.
_GROWS = re.compile(r"(modules/[^/]+/|worktrees/[^/]+/modules/[^/]+/)?(objects|refs/swarm|logs|reftable)(/|$)")


# --- refusals ---------------------------------------------------------------------------------------


@dataclass
class Caught:
    """The error that a block raised; there after the block."""

    error: SwarmError | None = None

    @property
    def text(self) -> str:
        """Its message."""
        assert self.error is not None
        return self.error.message


@contextlib.contextmanager
def refused(
    top: Path, code: str, *, says: str = "", hint: str = "", exit_code: int | None = None, left: Sequence[str] = ()
) -> Iterator[Caught]:
    """Expect a refusal with this code, cause and hint, and that not one byte below *top* changes.

    Args:
        top: everything below it is compared, git directories included.
        says: a pattern that the message must contain.
        hint: a pattern that the hint must contain.
        left: paths that may have come about all the same, such as swarm's own notes after a rollback.
    """
    before = file_digests(top)
    caught = Caught()
    with pytest.raises(SwarmError) as raised:
        yield caught
    error = caught.error = raised.value
    assert re.fullmatch(code, error.code), f"{error.code}: {error.message} ({error.details})"
    assert re.search(says, error.message), error.message
    assert re.search(hint, error.hint), error.hint
    assert exit_code is None or error.exit_code == exit_code
    reads_well(error)
    now = file_digests(top)
    same({"": _without(before, left)}, {"": _without(now, left)})


def _without(found: dict[str, str], left: Sequence[str]) -> dict[str, str]:
    return {path: what for path, what in found.items() if not any(re.search(pattern, path) for pattern in left)}


def reads_well(error: SwarmError, *codes: str) -> None:
    """Check what every error owes its reader: one plain line, a hint, and a shape that JSON can hold.

    Args:
        codes: one of these it must be; none means any.
    """
    assert not codes or error.code in codes, f"{error.code}: {error.message}"
    assert error.message
    assert error.message.isprintable() or not error.message.isascii(), ascii(error.message)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e]", error.message + error.hint)
    assert len(error.message) < 6000
    assert error.hint, f"no hint: {error.message}"
    assert "Traceback" not in error.message
    assert error.exit_code in {1, 2, 3, 4, 5, 6, 75}
    json.dumps(error.as_dict(), default=str)


# --- a whole life -------------------------------------------------------------------------------------


def state(lab: Lab, root: Path | None = None) -> dict[str, Any]:
    """Return everything of a repository that must be the same before a set was made and after it is gone."""
    root = root or lab.root
    common = Path(lab.git("rev-parse", "--path-format=absolute", "--git-common-dir", cwd=root))
    skip = {".swarm", ".worktrees"} | ({common.name} if common.parent == root else set())
    inside = {path: what for path, what in file_digests(common).items() if not _GROWS.match(path)}
    if (common / "info" / "exclude").is_file() and not (common / "info" / "exclude").read_bytes():
        del inside["info/exclude"]  # an empty one is as good as none
    inside.pop("info", None)
    refs = lab.git("for-each-ref", "--format=%(refname) %(objectname)", cwd=root, env={"LC_ALL": "C"})
    return {
        "files": file_digests(root, skip=skip),
        "git": inside,
        "refs": [line for line in refs.splitlines() if not line.startswith("refs/swarm/salvage/")],
        "worktrees": lab.git("worktree", "list", "--porcelain", cwd=root),
        "stash": lab.git("stash", "list", cwd=root),
    }


def same(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Check that everything is as it was, and say what is not."""
    found = []
    for part, was in before.items():
        now = after[part]
        if isinstance(was, dict):
            found += [
                f"{part}: {k}: {was.get(k)} → {now.get(k)}" for k in sorted({*was, *now}) if was.get(k) != now.get(k)
            ]
        elif was != now:
            found.append(f"{part}: {was!r} → {now!r}")
    assert not found, "\n".join(found)


def user_status(lab: Lab, tree: Path) -> str:
    """Return what the user's own ``git status`` shows in a tree."""
    return lab.git("status", "--porcelain", "--untracked-files=all", cwd=tree)


def check_tree(lab: Lab, tree: Path, *, agent: str, base: str, status: str | None = "", sparse: bool = False) -> None:
    """Check that a fresh worktree is whole, clean, on its own branch and not locked."""
    assert lab.git("symbolic-ref", "HEAD", cwd=tree) == f"refs/heads/swarm/{agent}-{SESSION}"
    assert lab.git("rev-parse", "HEAD", cwd=tree) == base
    assert status is None or user_status(lab, tree) == status, user_status(lab, tree)
    shape = "--format=%(objectmode) %(objectname) 0%x09%(path)"
    assert lab.git("ls-files", "-s", cwd=tree) == lab.git("ls-tree", "-r", shape, base, cwd=tree)
    if not sparse:
        assert lab.git("ls-files", "--deleted", cwd=tree) == ""
    admin = Path(lab.git("rev-parse", "--absolute-git-dir", cwd=tree))
    assert not (admin / "locked").exists()
    assert not list(admin.glob("*.lock"))


def whole_life(
    lab: Lab,
    where: Path | None = None,
    *,
    root: Path | None = None,
    base: str | None = None,
    status: str | None = "",
    sparse: bool = False,
    environ: Mapping[str, str] | None = None,
    instructions: bool = True,
    **flags: Any,
) -> None:
    """Make a set of two, check it, remove it with work in it, bring it back, remove it again.

    Args:
        where: the folder swarm is asked from.
        root: the main checkout, where it is not the lab's.
        status: what ``git status`` shows in a fresh checkout of this repository all by itself.
    """
    root = root or lab.root
    settings = {"worktrees.durable": False, **{key.replace("__", "."): value for key, value in flags.items()}}
    swarm = Swarm.open(where or root, environ={**lab.env, **(environ or {})}, flags=settings)
    assert swarm.root == root
    before = state(lab, root)
    commit = lab.git("rev-parse", f"{base or 'HEAD'}^{{commit}}", cwd=root)

    paths = swarm.create(SESSION, AGENTS, base=base, instructions=instructions).paths()

    assert list(paths) == list(AGENTS)
    assert swarm.operations.unfinished() == ()
    for agent, tree in paths.items():
        assert tree.parent == root / swarm.config.settings.worktrees.base_path
        check_tree(lab, tree, agent=agent, base=commit, status=status, sparse=sparse)
    infos = swarm.worktrees()
    assert [(info.agent, info.session, info.missing) for info in infos] == [(a, SESSION, False) for a in AGENTS]

    tree = paths["developer"]
    (tree / WORK).write_text("not to be lost\n")
    worked = user_status(lab, tree)
    _remove_again(lab, swarm, paths, before, root)

    swarm.restore(SESSION)

    assert (tree / WORK).read_text() == "not to be lost\n"
    assert status is None or user_status(lab, tree) == worked
    assert lab.git("symbolic-ref", "HEAD", cwd=tree) == f"refs/heads/swarm/developer-{SESSION}"
    _remove_again(lab, swarm, paths, before, root)


def _remove_again(lab: Lab, swarm: Swarm, paths: Mapping[str, Path], before: Mapping[str, Any], root: Path) -> None:
    report = swarm.cleanup([SESSION], force=True)
    assert [item.agent for item in report.removed] == list(paths)
    assert report.skipped == ()
    for tree in paths.values():
        assert not tree.exists()
    assert swarm.worktrees() == ()
    assert swarm.operations.unfinished() == ()
    same(before, state(lab, root))


# --- stand-ins and small machines -----------------------------------------------------------------------


def program(folder: Path, name: str, script: str) -> Path:
    """Write a small shell program."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def first_on_path(lab: Lab, folder: Path) -> dict[str, str]:
    """Return the lab's environment with *folder* first on PATH."""
    return {**lab.env, "PATH": f"{folder}{os.pathsep}{lab.env['PATH']}"}


def is_running(pid: int) -> bool:
    """Whether a process still does anything; one that is dead and not yet reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


@contextlib.contextmanager
def small_disk(folder: Path, options: str) -> Iterator[Path]:
    """Mount a memory file system with these limits on *folder*; skips where that is not allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root on Linux can mount a small disk")
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"cannot mount a small disk here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let nobody write below a folder, root neither."""
    if os.geteuid() != 0:
        everything = [folder, *folder.rglob("*")]
        modes = {one: one.stat().st_mode for one in everything}
        for one in everything:
            one.chmod(modes[one] & ~0o222)
        try:
            yield
        finally:
            for one, mode in modes.items():
                one.chmod(mode)
        return
    for words in (["mount", "--bind", str(folder), str(folder)], ["mount", "-o", "remount,ro,bind", str(folder)]):
        if subprocess.run(words, capture_output=True, check=False).returncode:
            pytest.skip("cannot make a folder read-only here")
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw,bind", str(folder)], check=True)
        subprocess.run(["umount", "-l", str(folder)], check=True)  # what has files open there goes on with them


def fill_up(folder: Path, leave: int = 0) -> None:
    """Use up the disk below *folder* but for *leave* bytes."""
    with (folder / "ballast").open("wb", buffering=0) as file:
        size = 1 << 20
        while size >= 512:
            try:
                file.write(b"x" * size)
            except OSError:
                size //= 2
        if leave:
            file.truncate(max(0, file.tell() - leave))


def as_plain_user(script: str, *arguments: str, env: Mapping[str, str]) -> dict[str, Any]:
    """Run Python in a process whose rights are those of a plain user, and return what it prints as JSON.

    Root keeps its user id, so that it can still read this checkout, but loses the right to ignore modes.
    """
    command = [sys.executable, "-c", _CHILD + script, *arguments]
    if os.geteuid() == 0:
        tool = shutil.which("setpriv")
        if tool is None:
            pytest.skip("setpriv is needed to give up root's rights")
        lost = "-dac_override,-dac_read_search,-fowner"
        command = [tool, f"--bounding-set={lost}", f"--inh-caps={lost}", *command]
    done = subprocess.run(command, cwd=PROJECT, env=dict(env), capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


_CHILD = """\
import json, os, sys
from swarm import Swarm, SwarmError

def outcome(act):
    try:
        act()
    except SwarmError as error:
        return {**error.as_dict(), "exit_code": error.exit_code}
    return {"code": "DONE"}

"""
