"""Restore a working tree from saved objects."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.git import gitdir
from swarm.git.content.walk import walk
from swarm.git.plumbing import RAW_DIFF, raw_changes
from swarm.git.running import standin
from swarm.kit import files as fsio
from swarm.machine import own
from swarm.worktrees.errors import SalvageFailed
from swarm.worktrees.trees.parts import IN_ONE_FILE, MANIFEST, admin_files, cwd_of, has_index
from swarm.worktrees.trees.save import TreeSave

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager


class TreeBack(TreeSave):
    """Restores saved working trees of one repository."""

    def read_manifests(self, refs: Mapping[str, str]) -> dict[str, dict[str, Any]]:
        """Read the manifests of saved worktrees: any key → commit gives the key → facts."""
        names = list(refs)
        if not names:
            return {}
        asked = "".join(f"{refs[name]}:{MANIFEST}\n" for name in names).encode("ascii")
        blobs = _batch(self._git.ask("cat-file", "--batch", stdin=asked))
        return {name: json.loads(blob) for name, blob in zip(names, blobs, strict=True) if blob is not None}

    def saved_file(self, manifest: str, name: str) -> bytes | None:
        """Return a plain file that was saved with the manifest, or None."""
        return next(_batch(self._git.ask("cat-file", "--batch", stdin=f"{manifest}:{name}\n".encode())))

    def bring_back(
        self, tree: Path, admin: Path, refs: Mapping[str, str], manifest: Mapping[str, Any], folder: Path
    ) -> None:
        """Fill a freshly registered worktree from saved work.

        Args:
            refs: part → object id.
            folder: holds what was moved aside.
        """
        listed = self._tree_entries(refs["manifest"])
        saved_admin = {p.removeprefix("admin/"): oid for p, (_, oid) in listed.items() if p.startswith("admin/")}
        self._write_admin(admin, saved_admin)
        if (folder / "late").is_dir():
            self._bring_back_whole(tree, admin, folder)
            return
        if manifest.get("as_head"):
            self._bring_back_changes(tree, admin, refs)
        else:
            self._bring_back_files(tree, admin, refs, manifest, has_own="index" in saved_admin)
        for path in manifest["empty"]:
            fsio.make_folders(tree / path)
        _copy_aside(tree, admin, folder, manifest["aside"])
        self._join_submodules(tree, admin)
        _apply_modes(tree, manifest["modes"], manifest["aside"])
        is_boxed = bool(manifest.get("record", {}).get("box"))
        if has_index(admin) and not is_boxed:  # to compare what an agent in a box has written is for its box
            with self._by_its_index(tree, admin) as env:
                self._refresh(env)

    def _bring_back_files(
        self, tree: Path, admin: Path, refs: Mapping[str, str], manifest: Mapping[str, Any], *, has_own: bool
    ) -> None:
        """Write every saved file into an empty worktree.

        Args:
            has_own: it has its saved index already.
        """
        if not has_own:
            self._make_index(tree, admin, known=manifest["kind"] in ("worktree", "missing"))
        raw = set(manifest["raw"])
        work = self._tree_entries(refs["work"])
        with standin.of_worktree(self._git, tree, admin, self._common) as env:
            self._git.run(*IN_ONE_FILE, "read-tree", refs["work"], env=env, cwd=tree, what="cannot read the saved tree")
            clean = [path for path in work if path not in raw]
            if manifest["kind"] == "missing":  # the files left out by a sparse checkout are unknown
                clean = self._without_sparse(clean, admin, tree)
            self._git.run(
                *("checkout-index", "--force", "-z", "--stdin"),
                stdin=b"".join(os.fsencode(path) + b"\0" for path in clean),
                env=env,
                cwd=tree,
                what="cannot write the saved files",
            )
        self._write_raw(tree, {path: work[path] for path in sorted(raw) if path in work})

    def _bring_back_changes(self, tree: Path, admin: Path, refs: Mapping[str, str]) -> None:
        """Turn a worktree that was filled into the saved one: its commit, and some files that differ from it."""
        what = "cannot write the saved files"
        with self._by_its_index(tree, admin) as env:
            there = self._git.run("write-tree", env=env, cwd=tree, what=what).decode("ascii").strip()
            self._git.run(*IN_ONE_FILE, "read-tree", "-m", "-u", there, refs["head"], env=env, cwd=tree, what=what)
            # By this index, too: git reads one even here, and the main checkout's may be broken.
            changes = raw_changes(self._git.ask(*RAW_DIFF, refs["head"], refs["work"], env=env, cwd=tree))
        for path in sorted(changes.old.keys() - changes.new.keys()):
            _remove_file(tree, path)
        self._write_raw(tree, dict(sorted(changes.new.items())))

    def put_files(self, tree: Path, admin: Path, commit: str, paths: Iterable[str]) -> None:
        """Give some files of a fresh worktree the content that they have in a commit; its index stays as it is."""
        there = self._tree_entries(commit)
        wanted = [path for path in paths if path in there]
        with standin.of_worktree(self._git, tree, admin, self._common) as env:
            self._git.run(*IN_ONE_FILE, "read-tree", commit, env=env, cwd=tree, what="cannot read the files to copy")
            for path in paths:
                if path not in there:  # nothing but files of the last commit: no folder on the way is a link
                    _remove_file(tree, path)
            self._git.run(
                *("checkout-index", "--force", "-z", "--stdin"),
                stdin=b"".join(os.fsencode(path) + b"\0" for path in wanted),
                env=env,
                cwd=tree,
                what="cannot write the files to copy",
            )
        with self._by_its_index(tree, admin) as env:
            self._refresh(env)

    def _by_its_index(self, tree: Path, admin: Path) -> AbstractContextManager[dict[str, str]]:
        return standin.of_worktree(self._git, tree, admin, self._common, own_index=True)

    def _refresh(self, env: Mapping[str, str]) -> None:
        self._git.run(*IN_ONE_FILE, "update-index", "-q", "--refresh", env=env, cwd=cwd_of(env), ok=(0, 1))

    def _make_index(self, tree: Path, admin: Path, *, known: bool) -> None:
        """Make the index that was not there: an empty one, as which git takes none.

        Args:
            known: git knew the worktree then; else nothing is known of it but its commit, and that is checked out.
        """
        start = ("--empty",) if known else ("HEAD",)
        with self._by_its_index(tree, admin) as env:
            self._git.run(*IN_ONE_FILE, "read-tree", *start, env=env, cwd=tree, what="cannot make the index")
            if not known:
                what = "cannot write the files of the commit"
                self._git.run("checkout-index", "--all", "--force", env=env, cwd=tree, what=what)

    def _bring_back_whole(self, tree: Path, admin: Path, folder: Path) -> None:
        """Fill a worktree from folders that were kept as they were."""
        for path in admin_files(folder / "late-admin"):
            target = admin / path.relative_to(folder / "late-admin")
            if target != admin / "HEAD":  # decided when the worktree was registered
                fsio.make_folders(target.parent)
                fsio.copy_tree(path, target)
        if not has_index(admin) or not self.can_read(tree, admin):
            # A damaged one is of no use; the salvage keeps it.
            fsio.unlink_if_there(admin / "index")
            with self._by_its_index(tree, admin) as env:
                what = "cannot read the saved commit"
                self._git.run(*IN_ONE_FILE, "read-tree", "HEAD", env=env, cwd=tree, what=what)
        for entry in os.scandir(folder / "late"):
            if entry.name == ".git":
                continue
            fsio.copy_tree(Path(entry.path), tree / entry.name)
        fsio.set_mode(tree, stat.S_IMODE((folder / "late").stat().st_mode))
        for modules in (folder / "late-admin" / "modules", folder / "modules"):
            if modules.is_dir():
                fsio.copy_tree(modules, admin / "modules")
        self._join_submodules(tree, admin)
        with self._by_its_index(tree, admin) as env:
            self._refresh(env)

    def _join_submodules(self, tree: Path, admin: Path) -> None:
        """Let submodules find their git folders, which have moved if the admin folder got another name."""
        for folder in _module_folders(admin / "modules"):
            code, out, _ = self._git.attempt("config", "--file", str(folder / "config"), "core.worktree")
            # It is relative to the git folder, and as long as it was before.
            place = Path(os.path.normpath(folder / os.fsdecode(out.removesuffix(b"\n"))))
            pointer = place / ".git"
            if code == 0 and place.is_relative_to(tree) and pointer.is_file() and gitdir.pointer_of(place) != folder:
                text = f"gitdir: {os.path.relpath(folder, place)}\n"
                fsio.write_atomic(pointer, os.fsencode(text), stat.S_IMODE(pointer.stat().st_mode), durable=False)

    def _tree_entries(self, commit: str) -> dict[str, tuple[str, str]]:
        """Return path → (mode, object) of a commit's tree."""
        entries = {}
        for item in self._git.ask("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
            if item:
                facts, _, path = item.partition(b"\t")
                mode, _, oid = facts.decode("ascii").split(" ")
                entries[os.fsdecode(path)] = (mode, oid)
        return entries

    def _write_admin(self, admin: Path, files: Mapping[str, str]) -> None:
        contents = self._contents(list(files.values()))
        for (name, _), data in zip(files.items(), contents, strict=True):
            if name == "HEAD":
                continue  # decided when the worktree was registered
            target = admin / name
            fsio.make_folders(target.parent)
            fsio.write_atomic(target, data, 0o644, durable=False)

    def _without_sparse(self, paths: list[str], admin: Path, tree: Path) -> list[str]:
        if not has_index(admin):
            return paths
        with self._by_its_index(tree, admin) as env:
            out = self._git.ask("ls-files", "-t", "-z", env=env, cwd=cwd_of(env))
        skipped = {os.fsdecode(item[2:]) for item in out.split(b"\0") if item.startswith(b"S ")}
        return [path for path in paths if path not in skipped]

    def _write_raw(self, tree: Path, entries: Mapping[str, tuple[str, str]]) -> None:
        contents = self._contents([oid for _, oid in entries.values()])
        for (path, (mode, _)), data in zip(entries.items(), contents, strict=True):
            target = tree / path
            fsio.make_folders(target.parent)
            if fsio.exists(target):
                fsio.remove_tree(target)
            if mode == "120000":
                own.symlink(os.fsdecode(data), os.fspath(target))
            else:
                fsio.write_new(target, data, 0o755 if mode == "100755" else 0o644)

    def _contents(self, oids: Sequence[str]) -> Iterator[bytes]:
        """Give the bytes of blobs, some at a time so that a big salvage does not fill the memory."""
        for start in range(0, len(oids), 64):
            part = oids[start : start + 64]
            out = self._git.ask("cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in part).encode())
            for blob in _batch(out):
                if blob is None:
                    raise SalvageFailed("cannot restore: an object of the saved work is missing in the repository")
                yield blob


def _remove_file(tree: Path, path: str) -> None:
    """Remove a file, and the folders that are empty without it."""
    fsio.unlink_if_there(tree / path)
    for folder in (tree / path).parents:
        if folder == tree or not fsio.remove_empty(folder):
            return


def _apply_modes(tree: Path, modes: Mapping[str, int], aside: Iterable[str]) -> None:
    """Give every file the bits it had; folders last and deepest first, they may forbid writing."""
    found = walk(tree)
    copied = tuple(f"{path}/" for path in aside)  # files in such folders have their bits already
    for path, mode in found.files.items():
        wanted = modes.get(path, 0o755 if mode & 0o100 else 0o644)
        if path not in found.links and mode != wanted and not path.startswith(copied):
            fsio.set_mode(tree / path, wanted)
    for path in sorted(found.folders, reverse=True):
        wanted = modes.get(path, 0o755)
        if found.folders[path] != wanted and not path.startswith(copied):
            fsio.set_mode(tree / path, wanted)
    if modes.get("", found.top) != found.top:
        fsio.set_mode(tree, modes[""])


def _copy_aside(tree: Path, admin: Path, folder: Path, paths: Iterable[str]) -> None:
    """Copy moved files back, as far as they still exist; the salvage keeps its copies."""
    for path in paths:
        source, target = folder / "files" / path, tree / path
        fsio.make_folders(target.parent)
        if fsio.exists(source):
            fsio.copy_tree(source, target)
    if (folder / "modules").is_dir():
        fsio.copy_tree(folder / "modules", admin / "modules")


def _module_folders(modules: Path) -> Iterator[Path]:
    """Give the git folders of submodules, and of submodules in these."""
    for where, folders, names in os.walk(modules):
        if "HEAD" in names:
            folders.clear()
            yield Path(where)
            yield from _module_folders(Path(where) / "modules")


def _batch(out: bytes) -> Iterator[bytes | None]:
    """Read the answers of ``cat-file --batch``; None for an object that is missing."""
    position = 0
    while position < len(out):
        end = out.index(b"\n", position)
        header = out[position:end].split(b" ")
        if header[-1] == b"missing":
            yield None
            position = end + 1
            continue
        size = int(header[-1])
        yield out[end + 1 : end + 1 + size]
        position = end + 1 + size + 1
