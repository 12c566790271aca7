"""Take in what an agent committed in its box, like a push from a stranger.

    ask for the tip (in the box) ──► a pack of what is new (in the box) ──► index it, strictly, in a quarantine
         ──► connected? commits? no new nested repositories? ──► keep the pack ──► move the branch ══ taken in

What comes out of a box is bytes and nothing else: the host's git reads no file that an agent can write.  The branch
moves from the tip that was taken in last, or not at all.  Killed anywhere before that, nothing has changed but a pack
that nothing names; a refusal loses nothing either, because the box keeps all of it.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from swarm.git.content.walk import MOST
from swarm.git.errors import GitFailed
from swarm.git.plumbing import GITLINK, alternate
from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.project.layout import HEADS
from swarm.project.world import new_operation_id
from swarm.sandbox.errors import IntakeRefused
from swarm.sandbox.inside import Inside
from swarm.sandbox.private import TAKEN, box_of, branch_of
from swarm.worktrees import transaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from swarm.project.world import World

#: Refs of an agent's box that are not its branch.
BOX_REFS = "refs/swarm/box/"
#: What one taking in may bring.
LIMIT = 256 << 20
_OBJECT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MOST_NAMED = 5
#: Run in the box, where there is not too much to read: every file that git does not ignore into a copy of the index.
#: A path that ends in a slash is a separate repository.
_ADD_ALL = """
find . -xdev -type f -printf '%s\\n' | awk -v most="$2" '{ sum += $1 } END { exit sum > most }' || exit 4
if [ -e "$1" ]; then cp -- "$1" "$GIT_INDEX_FILE"; fi
git add --update -- . && git ls-files -z --others --exclude-standard >/tmp/others || exit 1
grep -zv '/$' /tmp/others | git update-index -z --add --remove --replace --stdin && exec git write-tree
"""
_TOO_MUCH = 4
_PARTS = ("pack", "rev", "idx")  # the index last: with it git sees the pack


@dataclass(frozen=True, slots=True)
class Source:
    """Whose work is taken in.

    Attributes:
        name: ``agent@session``.
        tree: the worktree.
        base: the folder of its box: private git folder, home.
    """

    name: str
    tree: Path
    base: Path


@dataclass(frozen=True, slots=True)
class TakenIn:
    """What a taking in did.

    Attributes:
        branch: the full name of the agent's branch.
        old, new: its tip before and now; the same when there was nothing new.
        kept: the ref that keeps the tip before, where the agent has rewritten its history.
    """

    branch: str
    old: str
    new: str
    kept: str = ""


def take_in(world: World, source: Source, *, with_nested: bool = False, limit: int = LIMIT) -> TakenIn:
    """Take in what is committed on the agent's own branch. The caller holds the lock and has recovered.

    Args:
        with_nested: also new nested repositories (gitlinks).
        limit: bytes that this may bring.

    Raises:
        IntakeRefused: it is not fit for the repository; nothing changed, and nothing is lost.
        SwarmError: it failed; nothing changed.
    """
    branch = branch_of(source.tree, world.git.common)
    inside = Inside(box_of(source.tree, world.git.common, source.base), world.environ)
    new = _tip(inside, source, branch)
    old, last = _on_host(world, branch), _taken(source.base)
    if new == old:
        _note_taken(source.base, new)
        return TakenIn(branch, old, new)
    if new == last:  # only the host has moved it
        return TakenIn(branch, old, old)
    if old != last:
        hint = f"put it back, after a look at what is on it: git update-ref {branch} {last}"
        raise IntakeRefused(
            f"cannot take in the work of {source.name}: its branch has moved outside of its box", hint=hint
        )
    operation = new_operation_id()
    kept = f"{BOX_REFS}{source.name.replace('@', '/')}/before/{operation}"
    with _Intake(world, operation, source, {branch: new, kept: old}) as quarantine:
        quarantine.fetch(inside, [new], limit)
        if not with_nested:
            quarantine.hold_back_nested(new)
        rewritten = not quarantine.has(old, new)
        quarantine.keep()
        lines = [f"update {branch} {new} {old}", *([f"create {kept} {old}"] if rewritten else [])]
        _move(world, source, lines)
    return TakenIn(branch, old, new, kept if rewritten else "")


def capture(world: World, source: Source, top: str = "", *, limit: int = LIMIT) -> Mapping[str, str]:
    """Save what git in the box has and the repository has not, under refs; return them with their commits.

    Args:
        top: below which ref; default: one of its own below `BOX_REFS`.

    That is: other branches, a detached HEAD, stashes, the index, and all files that git does not ignore.  Nested
    repositories and ignored files are files of the worktree, and are saved from there.

    Raises:
        SwarmError: it failed; nothing changed.
    """
    inside = Inside(box_of(source.tree, world.git.common, source.base), world.environ)
    found = _parts(inside, source, world.git.refs(HEADS))
    operation = new_operation_id()
    top = top or f"{BOX_REFS}{source.name.replace('@', '/')}/saved/{operation}"
    refs = {f"{top}/{name}": tip for name, tip in found.items()}
    if not refs:
        return refs
    with _Intake(world, operation, source, refs) as quarantine:
        quarantine.fetch(inside, sorted(set(refs.values())), limit)
        quarantine.keep()
        _move(world, source, [f"create {ref} {tip}" for ref, tip in refs.items()])
    return refs


def continue_intake(world: World, record: dict[str, Any]) -> str:
    """Bring a taking in to an end that a crash interrupted: the branch moved, or it did not; the box has all of it."""
    transaction.clear_locks(world, record)
    _release(world.git.common, str(record["operation"]))
    ref, tip = record["refs"][0]
    source = Source(str(record["session"]), Path(record["tree"]), Path(record["base"]))
    done = _on_host(world, ref) == tip
    if done and ref.startswith(HEADS) and files.exists(source.base / TAKEN):
        _renew_index(world, source, tip)
        _note_taken(source.base, tip)
    transaction.close(world, record, "done" if done else "rolled back")
    return "done" if done else "rolled back"


class _Intake:
    """Objects from a box, seen by no other git until they are known to be good; an operation of the journal."""

    def __init__(self, world: World, operation: str, source: Source, refs: Mapping[str, str]) -> None:
        self._world = world
        self._git = world.git.runner
        self._source = source
        self._what = f"cannot take in the work of {source.name}"
        self._folder = world.layout.trash_folder(operation)
        self._pack = ""
        objects = self._folder / "objects"
        self._env = {
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": alternate(world.git.common / "objects"),
            "GIT_QUARANTINE_PATH": str(objects),  # git itself forbids refs to objects in here
            "GIT_OPTIONAL_LOCKS": "0",
        }
        self._operation = operation
        self._record: dict[str, Any] = {
            "kind": "intake",
            "operation": operation,
            "verb": "take in",
            "session": source.name,
            "started_ns": time.time_ns(),
            "pid": os.getpid(),
            "tree": str(source.tree),
            "base": str(source.base),
            "refs": [list(one) for one in refs.items()],
            "locks": [str(lock) for lock in world.git.ref_locks(tuple(refs)) if not files.exists(lock)],
        }

    def __enter__(self) -> Self:
        self._world.journal.write(self._operation, self._record)
        files.make_folders(self._folder / "objects" / "pack", 0o700)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        if kind is not None:
            self._git.stop_all()
            self._git.resume()
        if kind is None or issubclass(kind, Exception):
            continue_intake(self._world, self._record)

    def fetch(self, inside: Inside, tips: Iterable[str], limit: int) -> None:
        """Let the box pack what these commits bring, and index that outside.

        Raises:
            IntakeRefused: a bad, missing or too large object.
        """
        wanted = list(tips)
        known = self._git.ask("for-each-ref", "--format=^%(objectname)").decode("ascii").split()
        asked = "\n".join([*wanted, *dict.fromkeys(known)]) + "\n"
        incoming = self._folder / "incoming"
        with open(incoming, "xb") as file:
            argv = ("git", "pack-objects", "--revs", "--stdout", "--thin", "-q")
            try:
                code, err = inside.save(file.write, *argv, stdin=asked.encode("ascii"), limit=limit)
            except SwarmError as problem:
                raise IntakeRefused(f"{self._what}: {problem.message}") from None
        if code != 0:
            raise IntakeRefused(f"{self._what}: git in its box cannot pack it", details=err.decode("utf-8", "replace"))
        if _objects_in(incoming):
            self._index(incoming, limit)
        self._check(wanted)

    def _index(self, incoming: Path, limit: int) -> None:
        options = ("--stdin", "--strict", "--fix-thin", f"--max-input-size={limit}", f"--keep={self._mark}")
        fd = os.open(incoming, os.O_RDONLY | os.O_CLOEXEC)
        try:
            out = self._git.run("index-pack", *options, stdin=fd, env=self._env)
        except GitFailed as problem:
            raise self._refused(problem) from None
        finally:
            os.close(fd)
        files.unlink_if_there(incoming)
        self._pack = out.decode("ascii").split()[-1]

    def _check(self, tips: list[str]) -> None:
        """Look whether all that the tips need is here or in the repository, and each is a commit."""
        lines = ("\n".join(tips) + "\n").encode("ascii")
        try:
            kinds = self._git.run("cat-file", "--batch-check=%(objecttype)", stdin=lines, env=self._env).split()
            if set(kinds) != {b"commit"}:
                raise IntakeRefused(f"{self._what}: a tip is no commit")
            self._git.run(
                *("rev-list", "--objects", "--stdin", "--not", "--all", "--quiet"), stdin=lines, env=self._env
            )
        except GitFailed as problem:
            raise self._refused(problem) from None

    def _refused(self, problem: GitFailed) -> IntakeRefused:
        return IntakeRefused(f"{self._what}: git refuses it ({problem.message})", details=problem.details)

    @property
    def _mark(self) -> str:
        return f"swarm {self._operation}"

    def has(self, old: str, new: str) -> bool:
        """Whether *old* is in the history of *new*."""
        return self._git.attempt("merge-base", "--is-ancestor", old, new, env=self._env)[0] == 0

    def hold_back_nested(self, tip: str) -> None:
        """Refuse commits with repositories in the tree that none of their parents has there.

        Raises:
            IntakeRefused
        """
        out = self._git.run(
            *("log", "-z", "--raw", "-c", "--no-renames", "--no-abbrev", "--ignore-submodules=none", "--format="),
            *(tip, "--not", "--all"),
            env=self._env,
        )
        found = list(dict.fromkeys(_new_gitlinks(out)))
        if found:
            names = ", ".join(found[:_MOST_NAMED])
            hint = "a repository inside the worktree is committed as a bare pointer: commit its files, or ignore it"
            raise IntakeRefused(f"{self._what}: new nested repositories: {names}", hint=hint, nested=found)

    def keep(self) -> None:
        """Move the pack to the repository's own; until the refs are moved a file keeps git from packing it anew."""
        if not self._pack:
            return  # the repository has all of it
        source, target = self._folder / "objects" / "pack", self._world.git.common / "objects" / "pack"
        files.make_folders(target)
        for part in ("keep", *_PARTS):
            name = f"pack-{self._pack}.{part}"
            if not files.exists(target / name):
                files.rename_if_there(source / name, target / name)
        files.sync_folder(target)


def _new_gitlinks(raw: bytes) -> Iterable[str]:
    """Give the paths at which a commit has a nested repository and none of its parents has."""
    fields = iter(raw.split(b"\0"))
    for field in fields:
        colons = len(field) - len(field.lstrip(b":"))
        if not colons:
            continue
        modes = field[colons:].decode("ascii", "replace").split(" ")[: colons + 1]
        path = os.fsdecode(next(fields, b""))
        if modes[-1] == GITLINK and GITLINK not in modes[:-1]:
            yield path


def _objects_in(pack: Path) -> int:
    """Return how many objects a pack says that it has; what is no pack has one, for git to refuse it."""
    with open(pack, "rb") as file:
        head = file.read(12)
    return int.from_bytes(head[8:], "big") if head[:4] == b"PACK" and len(head) == 12 else 1


def _tip(inside: Inside, source: Source, ref: str) -> str:
    """Return the commit that a ref names in the box."""
    said = inside.run("git", "rev-parse", "--verify", "--quiet", "--end-of-options", ref, limit=1 << 12)
    text = said.out.decode("ascii", "replace").strip()
    if said.code != 0 or not _OBJECT.fullmatch(text):
        raise IntakeRefused(f"cannot take in the work of {source.name}: its box has no commit on {ref}")
    return text


def _parts(inside: Inside, source: Source, known: Mapping[str, str]) -> dict[str, str]:
    """Make commits, in the box, of what is not committed; return all that is to be saved, by name."""

    def git(*argv: str, env: Mapping[str, str] | None = None) -> str:
        code, out, _ = inside.run("git", *argv, env=env, limit=1 << 24)
        return out.decode("utf-8", "replace").strip() if code == 0 else ""

    def commit(tree: str, parent: str) -> str:
        who = {f"GIT_{role}_{what}": "swarm" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        parents = ("-p", parent) if parent else ()
        return git("commit-tree", tree, *parents, "-m", f"swarm: saved from {source.name}", env=who) if tree else ""

    head = git("rev-parse", "--verify", "--quiet", "HEAD")
    index = git("rev-parse", "--git-path", "index")
    copy = {"GIT_INDEX_FILE": "/tmp/swarm-index"}  # noqa: S108  # the box's own
    # In one go: what lies in the /tmp of a box goes with it.
    code, out, _ = inside.run("sh", "-c", _ADD_ALL, "sh", index, str(MOST), env=copy)
    work = out.decode("ascii", "replace").strip() if code == 0 else ""
    found = {"head": head, "index": commit(git("write-tree"), head), "work": commit(work, head)}
    for number, tip in enumerate(git("log", "--walk-reflogs", "--format=%H", "refs/stash").split()):
        found[f"stash/{number}"] = tip
    for line in git("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads").splitlines():
        tip, _, ref = line.partition(" ")
        if known.get(ref) != tip:
            found[f"branch/{ref.removeprefix(HEADS)}"] = tip
    if not _OBJECT.fullmatch(found["work"]):
        too_much = f"its worktree has more than {MOST >> 30} GiB"
        why = too_much if code == _TOO_MUCH else "git in its box cannot read its files"
        raise IntakeRefused(f"cannot save the work of {source.name}: {why}")
    return {name: tip for name, tip in found.items() if _OBJECT.fullmatch(tip)}


def _move(world: World, source: Source, lines: list[str]) -> None:
    """Move refs, all or none, each from where it is known to be."""
    text = "\n".join(["start", *lines, "prepare", "commit", ""])
    world.git.runner.run(
        *("update-ref", "--create-reflog", "-m", f"swarm: taken in from {source.name}", "--stdin"),
        stdin=text.encode("utf-8", "surrogateescape"),
        what=f"cannot take in the work of {source.name}",
    )


def _renew_index(world: World, source: Source, tip: str) -> None:
    """Let the host's own index of the tree say what the branch says; no file of the tree is read."""
    from swarm.git import gitdir

    admin = gitdir.own_folder(world.git.common, source.tree)
    if admin is not None:
        env = {"GIT_DIR": str(admin), "GIT_WORK_TREE": str(world.git.root), "GIT_INDEX_FILE": str(admin / "index")}
        world.git.runner.run("read-tree", tip, env=env, what=f"cannot renew git's index of {source.tree}")


def _release(common: Path, operation: str) -> None:
    """Remove the files by which an operation kept its packs."""
    for path in (common / "objects" / "pack").glob("pack-*.keep"):
        if files.read_small(path).strip() == f"swarm {operation}".encode("ascii"):
            files.unlink_if_there(path)


def _on_host(world: World, ref: str) -> str:
    return world.git.refs(ref).get(ref, "")


def _taken(base: Path) -> str:
    return files.read_small(base / TAKEN).decode("ascii", "replace").strip()


def _note_taken(base: Path, tip: str) -> None:
    if _taken(base) != tip:
        files.write_atomic(base / TAKEN, f"{tip}\n".encode("ascii"))
