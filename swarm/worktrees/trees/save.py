"""Save a working tree as git objects, byte for byte."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.git.content.walk import Walk, walk
from swarm.git.content.writing import Objects
from swarm.git.graph import Graph
from swarm.git.running import standin
from swarm.git.shortcuts.index import listed, objects_named
from swarm.kit import files as fsio
from swarm.kit.errors import NoSpace
from swarm.project.layout import HEADS
from swarm.worktrees.errors import SalvageFailed
from swarm.worktrees.trees.look import TreeLook
from swarm.worktrees.trees.parts import HEX, MANIFEST, admin_files, has_index
from swarm.worktrees.values import Capture, Saved, TreeState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from swarm.git.rest import Rest


_CONFLICT_FOLDER = ".swarm-conflict"
_RESCUED_FOLDER = ".swarm-damaged-index"


@dataclass(frozen=True, slots=True)
class _Plan:
    """The parts of a tree to save.

    Attributes:
        entries: of its index.
        raw: files whose bytes git does not have yet → (git mode, the file that is written for it).
        work: (mode, object, path) of all that is in the tree; of *raw* ones the file. Nothing where the index is the
            commit's: then the rest follows from the commit.
        files: git's notes and the manifest, by the names under which they are saved.
        announced: the index names the empty file.
    """

    wish: Capture
    admin: Path
    entries: list[tuple[str, str, str, str]]
    raw: dict[str, tuple[str, str]]
    work: list[tuple[str, str, str]]
    files: dict[str, str]
    announced: bool

    @property
    def tips(self) -> list[str]:
        """The commits that are saved by refs of their own."""
        return [oid for oid in (self.wish.state.head, self.wish.branch_tip) if oid]


class TreeSave(TreeLook):
    """Saves the working trees of one repository."""

    _walked: Graph | None = None

    def capture(self, tree: Path, admin: Path, wish: Capture) -> Saved:
        """Write everything that *wish* names as git objects; the caller puts refs on them.

        Raises:
            SalvageFailed: something could not be read; nothing may be removed then.
        """
        return self.capture_all([(tree, admin, wish)])[0]

    def capture_all(self, asked: Sequence[tuple[Path, Path, Capture]]) -> list[Saved]:
        """Do the same for several (tree, admin folder, wish), by as many gits as for one."""
        what = "the work"
        try:
            with tempfile.TemporaryDirectory(prefix="swarm-") as folder:
                scratch = Path(folder)
                objects = Objects(self._git, len(self._zero))
                plans = []
                for tree, admin, wish in asked:
                    what = tree.name
                    plans.append(self._plan(tree, admin, wish, objects, scratch))
                what = "the work"
                objects.write_files()
                ends = self._loose_ends(plans)
                saved = [self._compose(plan, objects, *end) for plan, end in zip(plans, ends, strict=True)]
                objects.write()
        except OSError as error:
            problem = fsio.translate(error, f"cannot save {what}")
            if isinstance(problem, NoSpace):
                raise problem from error
            raise SalvageFailed(problem.message) from error
        return saved

    def _plan(self, tree: Path, admin: Path, wish: Capture, objects: Objects, scratch: Path) -> _Plan:
        """Plan the save of a tree, and have its files written."""
        # git wants a repository and a folder to run in, also for a worktree that is gone.
        rest = wish.state.rest
        where = tree if tree.is_dir() else scratch
        entries = rest.entries if rest else self._saved_entries(where, admin, damaged=wish.damaged)
        found = wish.state.found or walk(tree)
        raw: dict[str, tuple[str, str]] = {}
        for path in self._raw_paths(wish.state, wish, found):
            source = str(tree / path)
            if path in found.links:  # its content is its target; git would follow it
                source = objects.add_bytes(os.fsencode(os.readlink(source)))
            else:
                objects.add_file(tree / path)
            raw[path] = (_git_mode(path, found), source)
        # The empty file must be an object: ``add -N`` names it in the index without writing it.
        kind = "sha256" if len(self._zero) == 64 else "sha1"
        nothing = hashlib.new(kind, b"blob 0\0", usedforsecurity=False).hexdigest()
        announced = rest is None and any(oid == nothing for _, oid, _, _ in entries)
        if announced:
            objects.add_bytes(b"")
        kept = found if tree.is_dir() else None
        listed = [(mode, oid, path) for mode, oid, _, path in entries] if rest else []
        work = [] if rest else list(_work_lines(entries, raw, kept, wish.aside))
        modes = {path: mode for mode, _, path in (*listed, *work)} | {path: mode for path, (mode, _) in raw.items()}
        manifest = {
            **wish.manifest,
            "raw": sorted(raw),
            "modes": _modes(found, modes),
            "empty": sorted(found.empty),
            "aside": sorted(wish.aside),
            "special": list(wish.state.special),
            "as_head": rest is not None,
        }
        files = self._notes(admin, wish)
        if rest is not None:
            files.pop("admin/index", None)  # it says what the commit says
        for file in files.values():
            objects.add_file(file)
        names = {name: os.fspath(file) for name, file in files.items()}
        names[MANIFEST] = objects.add_bytes(json.dumps(manifest, ensure_ascii=True).encode("ascii"))
        return _Plan(wish, admin, entries, raw, work, names, announced=announced)

    def _notes(self, admin: Path, wish: Capture) -> dict[str, Path]:
        """Return git's own notes about a worktree, by the names under which they are saved."""
        files = {f"admin/{file.relative_to(admin)}": file for file in admin_files(admin)}
        log = self._common / "logs" / HEADS / wish.branch
        if wish.branch and log.is_file():
            files["branch-log"] = log
        return files

    def _compose(self, plan: _Plan, objects: Objects, lost: Sequence[str], others: Mapping[str, str]) -> Saved:
        """Make the commits of a plan."""
        wish, state = plan.wish, plan.wish.state
        parents = (state.head,) if state.head else ()
        if state.rest is not None:
            index_tree, work_tree = state.head_tree, self._changed_tree(plan, state.rest, objects)
        else:
            index_tree, work_tree = self._listed_trees(plan, objects)
        refs = {
            "index": objects.commit(index_tree, parents, f"{wish.message}: index"),
            "work": objects.commit(work_tree, parents, f"{wish.message}: working tree"),
        }
        if state.head:
            refs["head"] = state.head
        if wish.branch_tip and wish.branch_tip != state.head:
            refs["branch"] = wish.branch_tip
        refs |= others
        if lost:
            message = f"{wish.message}: commits that only the logs knew"
            refs["keep"] = objects.commit(objects.tree(()), lost, message)
        notes = objects.tree(("100644", objects.name_of(file), name) for name, file in plan.files.items())
        refs["manifest"] = objects.commit(notes, (), f"{wish.message}: what a restore needs to know")
        return Saved(refs, len(plan.raw))

    def _changed_tree(self, plan: _Plan, rest: Rest, objects: Objects) -> str:
        """Return the tree of a worktree that differs from its commit in some files."""
        added = [(mode, objects.name_of(source), path) for path, (mode, source) in plan.raw.items()]
        gone = {*rest.changed, *plan.raw, *plan.wish.aside}
        return objects.changed_tree(rest.folders, gone, added) if gone else rest.tree

    def _listed_trees(self, plan: _Plan, objects: Objects) -> tuple[str, str]:
        """Return the trees of an index and of the worktree, from all that is in them."""
        state = plan.wish.state
        lines = list(_index_lines(plan.entries))
        as_head = bool(state.head_tree) and not (plan.announced or state.staged or state.unmerged)
        index_tree = state.head_tree if as_head else objects.tree(lines)
        work = [(mode, objects.name_of(oid) if path in plan.raw else oid, path) for mode, oid, path in plan.work]
        return index_tree, index_tree if plan.work == lines else objects.tree(work)

    def _saved_entries(self, tree: Path, admin: Path, *, damaged: bool) -> list[tuple[str, str, str, str]]:
        """Return the index entries to save; of a damaged index those whose objects are there."""
        if not has_index(admin):
            return []
        plain = None if damaged else listed(admin / "index", len(self._zero) // 2)
        if plain is not None:
            return plain
        with standin.of_worktree(self._git, tree, admin, self._common) as real:
            if not damaged:
                return self._entries(real)
            # It may be HEAD alone that git misses.
            folders = (real["GIT_DIR"], str(self._common))
            tries = (self._whole_entries({**real, "GIT_DIR": folder}) for folder in folders)
            entries = next((found for found in tries if found is not None), None)
        if entries is None:
            named = objects_named(fsio.read_small(admin / "index", 1 << 30), len(self._zero) // 2)
            # A torn name is not trusted as a path.
            entries = [("100644", oid, "0", f"{_RESCUED_FOLDER}/{n}") for n, oid in enumerate(named)]
        there = {oid for oid, kind in self._kinds({oid for _, oid, _, _ in entries}).items() if kind == "blob"}
        return [
            (mode, oid, stage, path if _is_plain(path) else f"{_RESCUED_FOLDER}/{n}")
            for n, (mode, oid, stage, path) in enumerate(entries)
            if mode == "160000" or oid in there
        ]

    def _walk(self, tips: Sequence[str]) -> Graph:
        """Return the history of some commits: the last one that was walked, if that knows all of them."""
        if self._walked is None or not self._walked.knows(tips):
            self._walked = Graph(self._git, tips)
        return self._walked

    def _kinds_of(self, oids: set[str]) -> dict[str, str]:
        """Do as ``_kinds``, without asking git about commits already walked."""
        known = {oid for oid in oids if self._walked is not None and self._walked.knows([oid])}
        return {**self._kinds(oids - known), **dict.fromkeys(known, "commit")}

    def _kinds(self, oids: Iterable[str]) -> dict[str, str]:
        """Return object → type of those that are there."""
        asked = "".join(f"{oid}\n" for oid in oids).encode("ascii")
        if not asked:
            return {}
        out = self._git.ask("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked)
        lines = (line.decode("ascii").split() for line in out.splitlines() if not line.endswith(b" missing"))
        return dict(lines)

    def _raw_paths(self, state: TreeState, wish: Capture, found: Walk) -> list[str]:
        """Return the files whose bytes git does not have yet."""
        aside = set(wish.aside)
        wanted = {*state.modified, *state.rewritten, *state.hidden, *state.unmerged, *wish.keep} - aside
        return sorted(path for path in wanted if path in found.files)

    def _loose_ends(self, plans: Sequence[_Plan]) -> Iterator[tuple[list[str], dict[str, str]]]:
        """Give of each the objects that only logs and half-done operations name: amended, reset, rebased away.

        That is: commits, and other objects by the parts of the salvage that hold them.
        """
        words = [self._words(plan) for plan in plans]
        kinds = self._kinds_of({word for found in words for word in found})
        commits = [sorted(oid for oid in found if kinds.get(oid) == "commit") for found in words]
        tips = [plan.tips for plan in plans]
        graph = self._walk([oid for part in (*commits, *tips) for oid in part]) if any(commits) else None
        for found, named, own in zip(words, commits, tips, strict=True):
            # A ref of the worktree's own may name anything; refs of ours keep what no commit can hold.
            others = sorted(oid for oid in found if kinds.get(oid, "commit") != "commit")
            lost = [oid for oid in named if graph and not any(graph.has(tip, oid) for tip in own)]
            yield lost, {f"object-{number}": oid for number, oid in enumerate(others)}

    def _words(self, plan: _Plan) -> set[str]:
        """Return the words in git's notes about a worktree that may be object names."""
        words: set[bytes] = set()
        logs = [self._common / "logs" / HEADS / plan.wish.branch] if plan.wish.branch else []
        for path in [*admin_files(plan.admin), *logs]:
            if path.name.startswith(("index", "sharedindex")):
                continue
            with contextlib.suppress(OSError):
                words.update(HEX.findall(fsio.read_small(path, 64 << 20)))
        return {word.decode("ascii") for word in words} - {self._zero, *plan.tips}

    def check_saved(self, oids: Iterable[str], known: Iterable[str]) -> None:
        """Make sure that every object below *oids* is there; *known* are commits that certainly are.

        Raises:
            GitFailed
        """
        text = "\n".join([*oids, *(f"^{commit}" for commit in dict.fromkeys(known) if commit)])
        self._git.run(
            *("rev-list", "--objects", "--quiet", "--stdin"), stdin=text.encode() + b"\n", what="cannot save the work"
        )


def _is_plain(path: str) -> bool:
    """Whether a path leads down, by a name in each folder."""
    return not {"", ".", "..", ".git"}.intersection(path.casefold().split("/"))


def _index_lines(entries: Iterable[tuple[str, str, str, str]]) -> Iterator[tuple[str, str, str]]:
    for mode, oid, stage, path in entries:
        yield mode, oid, path if stage == "0" else f"{_CONFLICT_FOLDER}/{stage}/{path}"


def _work_lines(
    entries: Iterable[tuple[str, str, str, str]],
    raw: Mapping[str, tuple[str, str]],
    found: Walk | None,
    aside: Sequence[str],
) -> Iterator[tuple[str, str, str]]:
    """Yield the entries of the working tree; without a tree, those of the index.

    What is tracked but not there is left out whatever the reason: deleted, or by a sparse checkout.
    """
    elsewhere = {*raw, *aside}
    for mode, oid, stage, path in entries:
        there = found is None or (path in found.folders if mode == "160000" else path in found.files)
        if stage == "0" and there and path not in elsewhere:
            yield mode, oid, path
    for path, (mode, oid) in raw.items():
        yield mode, oid, path


def _git_mode(path: str, found: Walk) -> str:
    if path in found.links:
        return "120000"
    return "100755" if found.files[path] & 0o100 else "100644"


def _modes(found: Walk, saved: Mapping[str, str]) -> dict[str, int]:
    """Return the permission bits that a checkout would not set; *saved* is path → git's mode."""
    unusual = {path: mode for path, mode in found.folders.items() if mode != 0o755}
    if found.top:
        unusual[""] = found.top  # always: the bits of a new folder depend on the user's umask then
    for path, mode in found.files.items():
        usual = 0o755 if saved.get(path) == "100755" else 0o644
        if path not in found.links and mode != usual:
            unusual[path] = mode
    return unusual
