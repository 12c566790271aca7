"""Save a working tree as git objects, byte for byte."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.git.content.walk import Walk, walk
from swarm.git.running import standin
from swarm.git.shortcuts.index import objects_named
from swarm.kit import files as fsio
from swarm.kit.errors import NoSpace
from swarm.project.layout import HEADS
from swarm.worktrees.errors import SalvageFailed
from swarm.worktrees.trees.look import TreeLook
from swarm.worktrees.trees.parts import HEX, IN_ONE_FILE, MANIFEST, admin_files, env_of, has_index
from swarm.worktrees.values import Capture, Saved, TreeState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


_CONFLICT_FOLDER = ".swarm-conflict"
_RESCUED_FOLDER = ".swarm-damaged-index"
_IDENTITY = {
    "GIT_AUTHOR_NAME": "swarm",
    "GIT_AUTHOR_EMAIL": "swarm@localhost",
    "GIT_COMMITTER_NAME": "swarm",
    "GIT_COMMITTER_EMAIL": "swarm@localhost",
}


class TreeSave(TreeLook):
    """Saves the working trees of one repository."""

    def capture(self, tree: Path, admin: Path, wish: Capture) -> Saved:
        """Write everything that *wish* names as git objects; the caller puts refs on them.

        Raises:
            SalvageFailed: something could not be read; nothing may be removed then.
        """
        try:
            return self._capture(tree, admin, wish)
        except OSError as error:
            problem = fsio.translate(error, f"cannot save {tree.name}")
            if isinstance(problem, NoSpace):
                raise problem from error
            raise SalvageFailed(problem.message) from error

    def _capture(self, tree: Path, admin: Path, wish: Capture) -> Saved:
        state = wish.state
        with tempfile.TemporaryDirectory(prefix="swarm-") as scratch:
            # git wants a repository and a folder to run in, also for a worktree that is gone.
            env = env_of(tree if tree.is_dir() else Path(scratch), self._common, Path(scratch) / "index")
            entries = self._saved_entries(env, admin, damaged=wish.damaged)
            found = walk(tree)
            raw_paths = self._raw_paths(state, wish, found)
            raw = self._blobs(tree, raw_paths, found, Path(scratch))
            parents = (state.head,) if state.head else ()
            announced = self._hash_nothing_if_named(entries, Path(scratch))
            as_head = state.head_tree if not (announced or state.staged or state.unmerged) else ""
            index_tree = as_head or self._write_tree(env, _index_lines(entries))
            work = list(_work_lines(entries, raw, found if tree.is_dir() else None, wish.aside))
            work_tree = self._write_tree(env, work)
            refs = {
                "index": self._commit(index_tree, parents, f"{wish.message}: index"),
                "work": self._commit(work_tree, parents, f"{wish.message}: working tree"),
            }
            if state.head:
                refs["head"] = state.head
            if wish.branch_tip and wish.branch_tip != state.head:
                refs["branch"] = wish.branch_tip
            refs |= self._loose_ends(admin, wish, [oid for oid in (state.head, wish.branch_tip) if oid])
            manifest = {
                **wish.manifest,
                "raw": sorted(raw_paths),
                "modes": _modes(found, {path: mode for mode, _, path in work}),
                "empty": sorted(found.empty),
                "aside": sorted(wish.aside),
                "special": list(state.special),
            }
            refs["manifest"] = self._manifest_commit(env, admin, wish, manifest, Path(scratch))
        return Saved(refs, len(raw_paths))

    def _saved_entries(self, env: Mapping[str, str], admin: Path, *, damaged: bool) -> list[tuple[str, str, str, str]]:
        """Return the index entries to save; of a damaged index those whose objects exist."""
        if not has_index(admin):
            return []
        with standin.of_worktree(self._git, Path(env["GIT_WORK_TREE"]), admin, self._common) as real:
            if not damaged:
                return self._entries(real)
            # It may be HEAD alone that git misses.
            tries = (self._whole_entries({**real, "GIT_DIR": folder}) for folder in (real["GIT_DIR"], env["GIT_DIR"]))
            entries = next((found for found in tries if found is not None), None)
        if entries is None:
            named = objects_named(fsio.read_small(admin / "index", 1 << 30), len(self._zero) // 2)
            # A torn name is not trusted as a path.
            entries = [("100644", oid, "0", f"{_RESCUED_FOLDER}/{n}") for n, oid in enumerate(named)]
        there = {oid for oid, kind in self._kinds({oid for _, oid, _, _ in entries}) if kind == "blob"}
        return [entry for entry in entries if entry[0] == "160000" or entry[1] in there]

    def _kinds(self, oids: Iterable[str]) -> list[tuple[str, str]]:
        """Return (object, type) of the existing ones."""
        asked = "".join(f"{oid}\n" for oid in oids).encode("ascii")
        out = self._git.ask("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked)
        lines = (line.decode("ascii").split() for line in out.splitlines() if not line.endswith(b" missing"))
        return [(oid, kind) for oid, kind in lines]

    def _raw_paths(self, state: TreeState, wish: Capture, found: Walk) -> list[str]:
        """Return the files whose bytes git does not have yet."""
        aside = set(wish.aside)
        wanted = {*state.modified, *state.rewritten, *state.hidden, *state.unmerged, *wish.keep} - aside
        return sorted(path for path in wanted if path in found.files)

    def _blobs(self, tree: Path, paths: Sequence[str], found: Walk, scratch: Path) -> dict[str, tuple[str, str]]:
        """Write files as blobs; return path → (git mode, object)."""
        sources = []
        for number, path in enumerate(paths):
            if path in found.links:
                # A link's content is its target; hash-object would follow it.
                target = scratch / f"link-{number}"
                target.write_bytes(os.fsencode(os.readlink(tree / path)))
                sources.append(str(target))
            else:
                sources.append(path)
        oids = self._hash(sources, tree)
        return {path: (_git_mode(path, found), oid) for path, oid in zip(paths, oids, strict=True)}

    def _hash(self, paths: Sequence[str], cwd: Path) -> list[str]:
        if not paths:
            return []
        # The relative paths are meant from *cwd*, whatever work tree git thinks it is in.
        lines = b"".join(_quoted(os.path.join(cwd, path)) + b"\n" for path in paths)
        out = self._git.run(
            "hash-object", "-w", "--no-filters", "--stdin-paths", stdin=lines, what="cannot save the files"
        )
        return out.decode("ascii").split()

    def _write_tree(self, env: Mapping[str, str], lines: Iterable[tuple[str, str, str]]) -> str:
        """Write a tree object with these (mode, object, path)."""
        fsio.unlink_if_there(Path(env["GIT_INDEX_FILE"]))
        self._put_entries(env, lines)
        return (
            self._git.run(*IN_ONE_FILE, "write-tree", "--missing-ok", env=env, what="cannot save the tree")
            .decode("ascii")
            .strip()
        )

    def _hash_nothing_if_named(self, entries: Iterable[tuple[str, str, str, str]], scratch: Path) -> bool:
        """Make sure the empty file is an object: ``add -N`` names it in the index without writing it."""
        kind = "sha256" if len(self._zero) == 64 else "sha1"
        nothing = hashlib.new(kind, b"blob 0\0", usedforsecurity=False).hexdigest()
        named = any(oid == nothing for _, oid, _, _ in entries)
        if named:
            (scratch / "nothing").touch()
            self._hash([str(scratch / "nothing")], scratch)
        return named

    def _commit(self, tree: str, parents: Iterable[str], message: str) -> str:
        flags = [word for parent in parents for word in ("-p", parent)]
        out = self._git.run("commit-tree", tree, *flags, "-m", message, env=_IDENTITY, what="cannot save the work")
        return out.decode("ascii").strip()

    def _loose_ends(self, admin: Path, wish: Capture, tips: list[str]) -> dict[str, str]:
        """Keep the objects that only logs and half-done operations name: amended, reset, rebased away."""
        words: set[bytes] = set()
        for path in [*admin_files(admin), self._common / "logs" / HEADS / wish.branch]:
            if path.name.startswith(("index", "sharedindex")):
                continue
            with contextlib.suppress(OSError):
                words.update(HEX.findall(fsio.read_small(path, 64 << 20)))
        words -= {self._zero.encode(), *(tip.encode() for tip in tips)}
        if not words:
            return {}
        named = self._kinds(word.decode("ascii") for word in words)
        commits = [oid for oid, kind in named if kind == "commit"]
        # A ref of the worktree's own may name anything; refs of ours keep what no commit can hold.
        others = sorted(oid for oid, kind in named if kind != "commit")
        refs = {f"object-{number}": oid for number, oid in enumerate(others)}
        if not commits:
            return refs
        lines = [*commits, *(f"^{tip}" for tip in tips)]
        out = self._git.ask("rev-list", "--stdin", stdin="\n".join(lines).encode() + b"\n").decode("ascii")
        lost = set(out.split())
        parents = sorted(oid for oid in commits if oid in lost)
        if parents:
            empty = self._git.run("hash-object", "-t", "tree", "-w", "--stdin").decode("ascii").strip()
            refs["keep"] = self._commit(empty, parents, f"{wish.message}: commits that only the reflogs had")
        return refs

    def _manifest_commit(
        self, env: Mapping[str, str], admin: Path, wish: Capture, manifest: dict[str, Any], scratch: Path
    ) -> str:
        """Save git's own notes about the worktree, and ours, as a commit of plain files."""
        path = scratch / MANIFEST
        path.write_text(json.dumps(manifest, ensure_ascii=True), encoding="ascii")
        files = {MANIFEST: path}
        files |= {f"admin/{file.relative_to(admin)}": file for file in admin_files(admin)}
        log = self._common / "logs" / HEADS / wish.branch
        if log.is_file():
            files["branch-log"] = log
        oids = self._hash([str(file) for file in files.values()], scratch)
        lines = [("100644", oid, name) for name, oid in zip(files, oids, strict=True)]
        return self._commit(self._write_tree(env, lines), (), f"{wish.message}: the manifest of a restore")

    def check_saved(self, oids: Iterable[str], known: str) -> None:
        """Verify that every object below *oids* exists; *known* is a commit that certainly does.

        Raises:
            GitFailed
        """
        text = "\n".join([*oids, *([f"^{known}"] if known else [])])
        self._git.run(
            *("rev-list", "--objects", "--quiet", "--stdin"), stdin=text.encode() + b"\n", what="cannot save the work"
        )


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


def _quoted(path: str) -> bytes:
    """Write a path for ``--stdin-paths``: a line each, C-quoted where it must be."""
    raw = os.fsencode(path)
    if not raw.startswith(b'"') and b"\n" not in raw and not raw.endswith(b"\r"):
        return raw
    return b'"' + b"".join(b"\\%03o" % byte if byte < 32 or byte in b'"\\' else bytes([byte]) for byte in raw) + b'"'
