"""What is in a working tree, and how it is saved as git objects and brought back.

Everything here works through a private index, so that the worktree's own is never touched, and with
``GIT_DIR`` and ``GIT_WORK_TREE`` said explicitly, so that a broken ``.git`` file does not matter.
Contents are saved byte for byte: no clean filter, no line-end conversion.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm import fsio
from swarm.domain.errors import GitBroken, GitFailed, NoSpace, SalvageFailed, SwarmError
from swarm.domain.layout import HEADS, RECORD_COPY
from swarm.domain.trees import Capture, Saved, TreeState
from swarm.drivers import converted, gitdir, halfmade
from swarm.drivers.gitrun import STATUS
from swarm.drivers.history import commits as commits_between
from swarm.drivers.history import landed as content_landed
from swarm.drivers.index import CLOCK_STEP_NS, objects_named
from swarm.drivers.walk import Walk, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from swarm.domain.model import Commit
    from swarm.drivers.gitrun import GitRunner

#: Files of an admin folder that belong to the place, not to the work.
_NOT_WORK = frozenset({"gitdir", "commondir", "locked", RECORD_COPY})
_CONFLICT_FOLDER = ".swarm-conflict"
_RESCUED_FOLDER = ".swarm-damaged-index"
_IDENTITY = {
    "GIT_AUTHOR_NAME": "swarm",
    "GIT_AUTHOR_EMAIL": "swarm@localhost",
    "GIT_COMMITTER_NAME": "swarm",
    "GIT_COMMITTER_EMAIL": "swarm@localhost",
}
_HEX = re.compile(rb"\b[0-9a-f]{64}\b|\b[0-9a-f]{40}\b")
_MANIFEST = "manifest.json"
#: A shared part of a private index would be written into the repository, and stay there.
_IN_ONE_FILE = ("-c", "core.splitIndex=false")


class Flagged(NamedTuple):
    """Tracked files that git was told not to look at.

    Attributes:
        left_out: those with the mark of a sparse checkout, which need not be there; deleting another one is a change.
    """

    all: frozenset[str]
    left_out: frozenset[str]


class Trees:
    """Saves and restores the working trees of one repository. Implements ``ports.Trees``."""

    def __init__(self, runner: GitRunner, common: Path, object_format: str) -> None:
        self._git = runner
        self._common = common
        self._zero = "0" * (64 if object_format == "sha256" else 40)

    # --- look ----------------------------------------------------------------------------------

    def look(self, tree: Path, admin: Path) -> TreeState:
        """Find everything in a worktree that is not simply its last commit; changes nothing."""
        with _private_index(admin / "index") as index:
            env = _env(tree, admin, index)
            head, head_tree = self._head_and_tree(env)
            entries, flagged = self._entries_and_flags(env)
            found = walk(tree)
            tracked = {path for _, _, _, path in entries}
            found.set_apart(tracked)
            changed, rewritten = self._changed(env, entries, flagged, found, _written_ns(admin / "index"))
            rewritten |= self._unlike_checkout(env, entries, found, changed | rewritten)
            untracked = self._untracked(env, found)
            ignored = found.files.keys() - tracked - set(untracked)
            wanted = {path: oid for _, oid, _, path in entries if path in found.nested}
            inner = {path: self._look_into(tree / path) for path in wanted}
            return TreeState(
                head=head,
                branch=_branch(admin),
                modified=tuple(sorted(changed)),
                deleted=tuple(sorted(path for path in changed if path not in found.files)),
                rewritten=tuple(sorted(rewritten)),
                staged=self._staged(env, head),
                unmerged=tuple(sorted({path for _, _, stage, path in entries if stage != "0"})),
                hidden=tuple(sorted(changed & flagged.all)),
                untracked=untracked,
                ignored=tuple(sorted(ignored)),
                nested=tuple(found.nested),
                submodules=tuple(p for p in found.nested if p in tracked),
                submodule_risks=tuple(self._submodule_risks(tree, wanted, inner)),
                submodule_ignored=tuple(_ignored_within(inner)),
                operations=_operations(admin),
                locks=gitdir.lock_files(admin),
                special=tuple(found.special),
                unreadable=(*found.unreadable, *_unreadable(tree, {*changed, *rewritten, *untracked, *ignored}, found)),
                fingerprint=found.fingerprint + _admin_mark(admin),
                head_tree=head_tree,
            )

    def can_read(self, tree: Path, admin: Path) -> bool:
        """Whether git can read its index of a worktree; only looks."""
        return self._whole_entries(_env(tree, admin, admin / "index")) is not None

    def _whole_entries(self, env: Mapping[str, str]) -> list[tuple[str, str, str, str]] | None:
        """Return the entries of an index; None if it is damaged: git takes one without its end for nameless entries."""
        code, out, _ = self._git.attempt("ls-files", "-s", "-z", env=env, cwd=_inside(env))
        entries = [_entry(item) for item in out.split(b"\0") if item] if code == 0 else []
        return entries if code == 0 and not any(oid == self._zero for _, oid, _, _ in entries) else None

    def recall(self, admin: Path) -> TreeState:
        """Tell what git's notes say of a worktree whose folder is gone, or that git cannot read any more."""
        head = self._head({"GIT_DIR": str(admin)}) or self._named_head(admin) or self._last_head(admin)
        return TreeState(head=head, branch=_branch(admin), operations=_operations(admin))

    def _named_head(self, admin: Path) -> str:
        """Return the commit that the HEAD of an admin folder names that git does not take for one; or nothing."""
        branch, said = _branch(admin), gitdir.read_admin(admin).head
        name = HEADS + branch if branch else said if _HEX.fullmatch(os.fsencode(said)) else "no such"
        code, out, _ = self._git.attempt("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return out.decode("ascii").strip() if code == 0 else ""

    def _last_head(self, admin: Path) -> str:
        """Return the last commit that HEAD was at: of use when its branch was deleted; empty when there is none."""
        try:
            lines = fsio.read_small(admin / "logs" / "HEAD", 64 << 20).splitlines()
        except OSError:
            return ""
        for line in reversed(lines):
            oid = line.split(b" ")[1].decode("ascii", "replace")
            if self._git.attempt("cat-file", "-e", f"{oid}^{{commit}}")[0] == 0:
                return oid
        return ""

    def fingerprint(self, tree: Path, admin: Path) -> str:
        """Return a text that changes whenever anything in the tree does."""
        return walk(tree).fingerprint + _admin_mark(admin)

    def sizes(self, tree: Path, paths: Iterable[str]) -> dict[str, int]:
        """Return the sizes of some files; 0 for what is no regular file."""
        found = {}
        for path in paths:
            try:
                info = os.lstat(tree / path)
            except OSError:
                continue
            found[path] = info.st_size if stat.S_ISREG(info.st_mode) else 0
        return found

    def _head(self, env: Mapping[str, str]) -> str:
        code, out, _ = self._git.attempt("rev-parse", "--verify", "--quiet", "HEAD^{commit}", env=env)
        return out.decode("ascii").strip() if code == 0 else ""

    def _head_and_tree(self, env: Mapping[str, str]) -> tuple[str, str]:
        code, out, _ = self._git.attempt("rev-parse", "HEAD^{commit}", "HEAD^{tree}", env=env)
        head, _, tree = out.decode("ascii", "replace").partition("\n")
        return (head, tree.strip()) if code == 0 else (self._head(env), "")

    def _entries_and_flags(self, env: Mapping[str, str]) -> tuple[list[tuple[str, str, str, str]], Flagged]:
        """Let git look at every file again, in the private index; return its entries, and what was hidden from it."""
        hidden: dict[str, list[bytes]] = {"--no-assume-unchanged": [], "--no-skip-worktree": []}
        entries = []
        for item in self._git.ask("ls-files", "-s", "-v", "-z", env=env, cwd=_inside(env)).split(b"\0"):
            if not item:
                continue
            tag, _, rest = item.partition(b" ")
            entries.append(_entry(rest))
            path = rest.partition(b"\t")[2]
            if tag.islower():
                hidden["--no-assume-unchanged"].append(path)
            if tag in (b"S", b"s"):
                hidden["--no-skip-worktree"].append(path)
        for flag, paths in hidden.items():
            if paths:
                lines = b"\0".join(paths) + b"\0"
                self._git.run("update-index", flag, "-z", "--stdin", stdin=lines, env=env, cwd=_inside(env))
        assumed, skipped = (frozenset(map(os.fsdecode, paths)) for paths in hidden.values())
        return entries, Flagged(assumed | skipped, skipped)

    def _entries(self, env: Mapping[str, str]) -> list[tuple[str, str, str, str]]:
        """Return (mode, object, stage, path) of every index entry."""
        listed = self._git.ask("ls-files", "-s", "-z", env=env, cwd=_inside(env)).split(b"\0")
        return [_entry(item) for item in listed if item]

    def _changed(
        self,
        env: Mapping[str, str],
        entries: Sequence[tuple[str, str, str, str]],
        flagged: Flagged,
        found: Walk,
        index_ns: int,
    ) -> tuple[set[str], set[str]]:
        """Return the tracked paths that are not as the index says; and those that are, but only for git.

        git believes a file's size and its times in whole seconds. So what changed after the index was
        written is compared by content, and what was written anew is not thereby changed.
        """
        suspects = self._differing(env, flagged, found)
        late = [
            (mode, oid, path)
            for mode, oid, stage, path in entries
            if stage == "0" and path not in suspects and found.changed_ns.get(path, 0) > index_ns - CLOCK_STEP_NS
        ]
        if late:  # an entry that is put in anew knows nothing of the file, so git must read it
            self._put_entries(env, late)
            suspects.update(path for _, _, path in late)
        if not suspects:
            return set(), set()
        self._git.run("update-index", "-q", "--refresh", env=env, cwd=_inside(env), ok=(0, 1))
        changed = self._differing(env, flagged, found)
        return changed, suspects - changed

    def _unlike_checkout(
        self, env: Mapping[str, str], entries: Sequence[tuple[str, str, str, str]], found: Walk, known: set[str]
    ) -> set[str]:
        """Return further files that are the same for git, but would be checked out with other bytes."""
        regular = found.sizes.keys() - known
        oids = {
            path: oid for mode, oid, stage, path in entries if stage == "0" and path in regular and mode[:2] == "10"
        }
        return converted.unlike_checkout(self._git, env, self._common, oids, found) if oids else set()

    def _differing(self, env: Mapping[str, str], flagged: Flagged, found: Walk) -> set[str]:
        wanted = ("--raw", "-z", "--no-renames", "--ignore-submodules=all")
        out = self._git.ask("diff-files", *wanted, env=env, cwd=_inside(env))
        fields = os.fsdecode(out).split("\0")
        inside = tuple(f"{folder}/" for folder in found.nested)
        changed = set()
        for facts, path in zip(fields[::2], fields[1::2], strict=False):
            left_out = path in flagged.left_out  # by a sparse checkout
            hidden = path in found.nested or path.startswith(inside)  # `git init` in a tracked folder
            if not (facts.endswith("D") and (left_out or hidden)):
                changed.add(path)
        return changed

    def _staged(self, env: Mapping[str, str], head: str) -> tuple[str, ...]:
        base = head or self._git.ask("hash-object", "-t", "tree", "--stdin").decode("ascii").strip()
        out = self._git.ask(
            *("diff-index", "--cached", "--name-only", "-z", "--no-renames", "--ignore-submodules=none"),
            *("--ita-invisible-in-index", base),  # only announced with `add -N`: nothing is staged
            env=env,
            cwd=_inside(env),
        )
        return tuple(sorted({os.fsdecode(path) for path in out.split(b"\0") if path}))

    def _untracked(self, env: Mapping[str, str], found: Walk) -> tuple[str, ...]:
        out = self._git.ask("ls-files", "-o", "--exclude-standard", "-z", env=env, cwd=_inside(env))
        paths = (os.fsdecode(path) for path in out.split(b"\0"))
        return tuple(sorted(path for path in paths if path in found.files))

    def _submodule_risks(
        self, tree: Path, wanted: Mapping[str, str], inner: Mapping[str, TreeState | None]
    ) -> Iterator[tuple[str, str]]:
        for path, oid in wanted.items():
            if why := self._why_submodule_is_work(tree / path, oid, inner[path]):
                yield path, why

    def _look_into(self, folder: Path) -> TreeState | None:
        """Look at a submodule as closely as at a worktree; None if git cannot read it."""
        code, out, _ = self._git.attempt("rev-parse", "--absolute-git-dir", cwd=folder)
        if code != 0:
            return None
        try:
            return self.look(folder, Path(os.fsdecode(out.removesuffix(b"\n"))))
        except (GitFailed, GitBroken):
            return None

    def _why_submodule_is_work(self, folder: Path, wanted: str, state: TreeState | None) -> str:
        if state is None:
            return "git cannot read it"
        if why := _own_work(state):
            return why
        # Everything but the remotes' branches, so that a stash counts too.
        own = ("rev-list", "--max-count=1", "HEAD", "--exclude=refs/remotes/*", "--all", "--not", "--remotes")
        code, out, _ = self._git.attempt(*own, cwd=folder)
        if code != 0 or out.strip():
            return "commits that no remote has"
        code, out, _ = self._git.attempt("rev-parse", "--verify", "--quiet", "HEAD", cwd=folder)
        return "" if code == 0 and out.decode("ascii").strip() == wanted else "another commit than the project names"

    # --- save ----------------------------------------------------------------------------------

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
            here = admin if admin.is_dir() and not wish.damaged else self._common
            env = _env(tree if tree.is_dir() else Path(scratch), here, Path(scratch) / "index")
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
        """Return the index entries to save; of a damaged index those whose objects are there."""
        real = {**env, "GIT_INDEX_FILE": str(admin / "index")}
        if not _has_index(admin):
            return []
        if not damaged:
            return self._entries(real)
        # It may be HEAD alone that git misses.
        tries = (self._whole_entries({**real, "GIT_DIR": folder}) for folder in (str(admin), env["GIT_DIR"]))
        entries = next((found for found in tries if found is not None), None)
        if entries is None:
            named = objects_named(fsio.read_small(admin / "index", 1 << 30), len(self._zero) // 2)
            # What a torn name says is not to be trusted as a path.
            entries = [("100644", oid, "0", f"{_RESCUED_FOLDER}/{n}") for n, oid in enumerate(named)]
        there = {oid for oid, kind in self._kinds({oid for _, oid, _, _ in entries}) if kind == "blob"}
        return [entry for entry in entries if entry[0] == "160000" or entry[1] in there]

    def _kinds(self, oids: Iterable[str]) -> list[tuple[str, str]]:
        """Return (object, type) of those that are there."""
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
            self._git.run(*_IN_ONE_FILE, "write-tree", "--missing-ok", env=env, what="cannot save the tree")
            .decode("ascii")
            .strip()
        )

    def _put_entries(self, env: Mapping[str, str], lines: Iterable[tuple[str, str, str]]) -> None:
        text = "".join(f"{mode} {oid}\t{path}\0" for mode, oid, path in lines)
        self._git.run(
            *(*_IN_ONE_FILE, "update-index", "-z", "--index-info"),
            stdin=os.fsencode(text),
            env=env,
            cwd=_inside(env),
            what="cannot save the tree",
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
        for path in [*_admin_files(admin), self._common / "logs" / HEADS / wish.branch]:
            if path.name.startswith(("index", "sharedindex")):
                continue
            with contextlib.suppress(OSError):
                words.update(_HEX.findall(fsio.read_small(path, 64 << 20)))
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
            refs["keep"] = self._commit(empty, parents, f"{wish.message}: commits that only the logs knew")
        return refs

    def _manifest_commit(
        self, env: Mapping[str, str], admin: Path, wish: Capture, manifest: dict[str, Any], scratch: Path
    ) -> str:
        """Save git's own notes about the worktree, and ours, as a commit of plain files."""
        path = scratch / _MANIFEST
        path.write_text(json.dumps(manifest, ensure_ascii=True), encoding="ascii")
        files = {_MANIFEST: path}
        files |= {f"admin/{file.relative_to(admin)}": file for file in _admin_files(admin)}
        log = self._common / "logs" / HEADS / wish.branch
        if log.is_file():
            files["branch-log"] = log
        oids = self._hash([str(file) for file in files.values()], scratch)
        lines = [("100644", oid, name) for name, oid in zip(files, oids, strict=True)]
        return self._commit(self._write_tree(env, lines), (), f"{wish.message}: what a restore needs to know")

    def check_saved(self, oids: Iterable[str], known: str) -> None:
        """Make sure that every object below *oids* is there; *known* is a commit that certainly is.

        Raises:
            GitFailed
        """
        text = "\n".join([*oids, *([f"^{known}"] if known else [])])
        self._git.run(
            *("rev-list", "--objects", "--quiet", "--stdin"), stdin=text.encode() + b"\n", what="cannot save the work"
        )

    # --- bring back ------------------------------------------------------------------------------

    def read_manifests(self, refs: Mapping[str, str]) -> dict[str, dict[str, Any]]:
        """Read the manifests of saved worktrees: any key → commit gives the key → facts."""
        names = list(refs)
        if not names:
            return {}
        asked = "".join(f"{refs[name]}:{_MANIFEST}\n" for name in names).encode("ascii")
        blobs = _batch(self._git.ask("cat-file", "--batch", stdin=asked))
        return {name: json.loads(blob) for name, blob in zip(names, blobs, strict=True) if blob is not None}

    def saved_file(self, manifest: str, name: str) -> bytes | None:
        """Return a plain file that was saved beside the manifest; None when there is none."""
        return next(_batch(self._git.ask("cat-file", "--batch", stdin=f"{manifest}:{name}\n".encode())))

    def bring_back(
        self, tree: Path, admin: Path, refs: Mapping[str, str], manifest: Mapping[str, Any], folder: Path
    ) -> None:
        """Fill a freshly registered worktree from what was saved.

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
        if "index" not in saved_admin:
            self._make_index(tree, admin, known=manifest["kind"] in ("worktree", "missing"))
        raw = set(manifest["raw"])
        work = self._tree_entries(refs["work"])
        with tempfile.TemporaryDirectory(prefix="swarm-") as scratch:
            env = _env(tree, admin, Path(scratch) / "index")
            self._git.run("read-tree", refs["work"], env=env, cwd=tree, what="cannot read the saved tree")
            clean = [path for path in work if path not in raw]
            if manifest["kind"] == "missing":  # nobody saw which files a sparse checkout had left out
                clean = self._without_sparse(clean, admin, tree)
            self._git.run(
                *("checkout-index", "--force", "-z", "--stdin"),
                stdin=b"".join(os.fsencode(path) + b"\0" for path in clean),
                env=env,
                cwd=tree,
                what="cannot write the saved files",
            )
        self._write_raw(tree, {path: work[path] for path in sorted(raw) if path in work})
        for path in manifest["empty"]:
            (tree / path).mkdir(parents=True, exist_ok=True)
        _copy_aside(tree, admin, folder, manifest["aside"])
        self._join_submodules(tree, admin)
        _apply_modes(tree, manifest["modes"], manifest["aside"])
        if _has_index(admin):
            real = _env(tree, admin, admin / "index")
            self._git.run("update-index", "-q", "--refresh", env=real, cwd=tree, ok=(0, 1))

    def _make_index(self, tree: Path, admin: Path, *, known: bool) -> None:
        """Make the index that was not there: an empty one, as which git takes none.

        Args:
            known: git knew the worktree then; else nothing is known of it but its commit, and that is checked out.
        """
        env = _env(tree, admin, admin / "index")
        self._git.run(
            "read-tree", *(("--empty",) if known else ("HEAD",)), env=env, cwd=tree, what="cannot make the index"
        )
        if not known:
            what = "cannot write the files of the commit"
            self._git.run("checkout-index", "--all", "--force", env=env, cwd=tree, what=what)

    def _bring_back_whole(self, tree: Path, admin: Path, folder: Path) -> None:
        """Fill a worktree from folders that were kept as they were."""
        for path in _admin_files(folder / "late-admin"):
            target = admin / path.relative_to(folder / "late-admin")
            if target != admin / "HEAD":  # decided when the worktree was registered
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, target)
        env = _env(tree, admin, admin / "index")
        if not _has_index(admin) or self._whole_entries(env) is None:
            # A damaged one is of no use; the salvage keeps it.
            fsio.unlink_if_there(admin / "index")
            self._git.run("read-tree", "HEAD", env=env, cwd=tree, what="cannot read the saved commit")
        for entry in os.scandir(folder / "late"):
            if entry.name == ".git":
                continue
            fsio.copy_one(Path(entry.path), tree / entry.name)
        os.chmod(tree, stat.S_IMODE((folder / "late").stat().st_mode))
        for modules in (folder / "late-admin" / "modules", folder / "modules"):
            if modules.is_dir():
                fsio.copy_tree(modules, admin / "modules")
        self._join_submodules(tree, admin)
        self._git.run("update-index", "-q", "--refresh", env=env, cwd=tree, ok=(0, 1))

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
            target.parent.mkdir(parents=True, exist_ok=True)
            fsio.write_atomic(target, data, 0o644, durable=False)

    def _without_sparse(self, paths: list[str], admin: Path, tree: Path) -> list[str]:
        if not _has_index(admin):
            return paths
        env = _env(tree, admin, admin / "index")
        out = self._git.ask("ls-files", "-t", "-z", env=env, cwd=_inside(env))
        skipped = {os.fsdecode(item[2:]) for item in out.split(b"\0") if item.startswith(b"S ")}
        return [path for path in paths if path not in skipped]

    def _write_raw(self, tree: Path, entries: Mapping[str, tuple[str, str]]) -> None:
        contents = self._contents([oid for _, oid in entries.values()])
        for (path, (mode, _)), data in zip(entries.items(), contents, strict=True):
            target = tree / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if fsio.exists(target):
                fsio.remove_tree(target)
            if mode == "120000":
                os.symlink(os.fsdecode(data), target)
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

    # --- judge -----------------------------------------------------------------------------------

    def foreign(self, tree: Path, commit: str, placed: Iterable[str]) -> tuple[str, ...]:
        """Return files in a half-made tree that neither git nor swarm can have written.

        git was writing the files of *commit* when it died, so a file may be missing or cut short.
        Where the repository is too damaged to tell, every file counts as such.
        """
        found = walk(tree)
        ours = set(placed)
        others = [path for path in found.files if path not in ours]
        try:
            entries = self._tree_entries(commit) if others else {}
            found.set_apart(entries)
            others = [path for path in others if path in found.files]
            strange = [path for path in others if path not in entries]
            known = [path for path in others if path in entries]
            strange += halfmade.unlike_checkout(self._git, self._common, tree, entries, known)
        except GitBroken:
            strange = others
        return tuple(sorted((*strange, *found.nested)))

    def landed(self, tip: str, base: str, target: str) -> str:
        """Say how the commits of *tip* since *base* are in *target*; empty when they are not."""
        return content_landed(self._git, tip, base, target)

    def commits(self, tip: str, base: str) -> tuple[Commit, ...]:
        """Return what *tip* has and *base* has not, newest first, at most fifty."""
        return commits_between(self._git, self._git.cwd, tip, base)

    def status_lines(self, tree: Path, admin: Path) -> tuple[str, ...]:
        """Return what ``git status`` shows, as its two letters and the path."""
        env = {"GIT_DIR": str(admin), "GIT_WORK_TREE": str(tree)}
        out = self._git.ask("status", *STATUS, "--no-renames", cwd=tree, env=env)
        return tuple(os.fsdecode(item) for item in out.split(b"\0") if item)


def _own_work(state: TreeState) -> str:
    """Say what is in the working tree of a submodule that is in no commit."""
    if state.modified or state.staged or state.unmerged or state.untracked:
        return "uncommitted changes"
    if state.operations:
        return f"a {' and a '.join(state.operations)} is in progress"
    if state.submodule_risks:
        return "{}: {}".format(*state.submodule_risks[0])
    return "a repository inside" if set(state.nested) - set(state.submodules) else ""


def _ignored_within(submodules: Mapping[str, TreeState | None]) -> Iterator[str]:
    for path, state in submodules.items():
        if state is not None:
            yield from (f"{path}/{name}" for name in (*state.ignored, *state.submodule_ignored))


def _entry(item: bytes) -> tuple[str, str, str, str]:
    """Read (mode, object, stage, path) of a line of ``ls-files -s``."""
    facts, _, path = item.partition(b"\t")
    mode, oid, stage = facts.decode("ascii").split(" ")
    return mode, oid, stage, os.fsdecode(path)


def _env(tree: Path, admin: Path, index: Path) -> dict[str, str]:
    return {"GIT_DIR": str(admin), "GIT_WORK_TREE": str(tree), "GIT_INDEX_FILE": str(index)}


def _inside(env: Mapping[str, str]) -> Path | None:
    """Return the folder to run git in: with a sparse checkout it looks for files from where it runs."""
    tree = Path(env["GIT_WORK_TREE"])
    return tree if tree.is_dir() else None


@contextlib.contextmanager
def _private_index(index: Path) -> Iterator[Path]:
    """Give a copy of an index; with its time, by which git knows what to distrust. Errors are about the real one."""
    with tempfile.TemporaryDirectory(prefix="swarm-") as scratch:
        copy = Path(scratch) / "index"
        if index.is_file():
            shutil.copy2(index, copy)
            for shared in index.parent.glob("sharedindex.*"):
                shutil.copy2(shared, copy.parent / shared.name)
        try:
            yield copy
        except SwarmError as error:
            error.message = error.message.replace(str(copy), str(index))
            raise


def _written_ns(index: Path) -> int:
    try:
        return index.stat().st_mtime_ns
    except OSError:
        return 0


def _has_index(admin: Path) -> bool:
    return (admin / "index").is_file()


def _operations(admin: Path) -> tuple[str, ...]:
    return tuple(what for name, what in gitdir.OPERATIONS.items() if fsio.exists(admin / name))


def _unreadable(tree: Path, paths: Iterable[str], found: Walk) -> Iterator[str]:
    effective = os.access in os.supports_effective_ids
    for path in sorted(paths):
        regular = path in found.files and path not in found.links
        if regular and not os.access(tree / path, os.R_OK, effective_ids=effective):
            yield path


def _branch(admin: Path) -> str:
    head = gitdir.read_admin(admin).head
    return head.removeprefix("ref: ").removeprefix(HEADS) if head.startswith("ref: ") else ""


def _admin_mark(admin: Path) -> str:
    """Return what the state of git's own notes about a worktree can be told by."""
    marks = []
    for path in _admin_files(admin):
        # git writes a shared index also when it only looks; what the index says of it is in the index itself.
        if path.name.startswith("sharedindex."):
            continue
        with contextlib.suppress(OSError):
            info = os.lstat(path)
            marks.append(f"{path.relative_to(admin)}:{info.st_size}:{info.st_mtime_ns}")
    return "|".join(marks)


def _admin_files(admin: Path) -> list[Path]:
    """Return the files of an admin folder that belong to the work in the tree."""
    found = []
    for where, folders, names in os.walk(admin):
        top = Path(where) == admin
        if top:
            folders[:] = [folder for folder in folders if folder != "modules"]
        wanted = [name for name in names if not name.endswith(".lock") and not (top and name in _NOT_WORK)]
        found += [Path(where) / name for name in wanted]
    return sorted(path for path in found if path.is_file() and not path.is_symlink())


def _index_lines(entries: Iterable[tuple[str, str, str, str]]) -> Iterator[tuple[str, str, str]]:
    for mode, oid, stage, path in entries:
        yield mode, oid, path if stage == "0" else f"{_CONFLICT_FOLDER}/{stage}/{path}"


def _work_lines(
    entries: Iterable[tuple[str, str, str, str]],
    raw: Mapping[str, tuple[str, str]],
    found: Walk | None,
    aside: Sequence[str],
) -> Iterator[tuple[str, str, str]]:
    """Give what was in the working tree; without a tree, what the index would put there.

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
    """Return the permission bits that a checkout would not give by itself; *saved* is path → git's mode."""
    unusual = {path: mode for path, mode in found.folders.items() if mode != 0o755}
    if found.top:
        unusual[""] = found.top  # always: what a new folder has depends on the user's umask then
    for path, mode in found.files.items():
        usual = 0o755 if saved.get(path) == "100755" else 0o644
        if path not in found.links and mode != usual:
            unusual[path] = mode
    return unusual


def _apply_modes(tree: Path, modes: Mapping[str, int], aside: Iterable[str]) -> None:
    """Give every file the bits it had; folders last and deepest first, they may forbid writing."""
    found = walk(tree)
    copied = tuple(f"{path}/" for path in aside)  # what is in such folders has its bits already
    for path, mode in found.files.items():
        wanted = modes.get(path, 0o755 if mode & 0o100 else 0o644)
        if path not in found.links and mode != wanted and not path.startswith(copied):
            os.chmod(tree / path, wanted)
    for path in sorted(found.folders, reverse=True):
        wanted = modes.get(path, 0o755)
        if found.folders[path] != wanted and not path.startswith(copied):
            os.chmod(tree / path, wanted)
    if modes.get("", found.top) != found.top:
        os.chmod(tree, modes[""])


def _copy_aside(tree: Path, admin: Path, folder: Path, paths: Iterable[str]) -> None:
    """Copy back what was moved aside, as far as it is still there; the salvage keeps its own."""
    for path in paths:
        source, target = folder / "files" / path, tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if fsio.exists(source):
            fsio.copy_one(source, target)
    if (folder / "modules").is_dir():
        fsio.copy_tree(folder / "modules", admin / "modules")


def _module_folders(modules: Path) -> Iterator[Path]:
    """Give the git folders of submodules, and of submodules in these."""
    for where, folders, names in os.walk(modules):
        if "HEAD" in names:
            folders.clear()
            yield Path(where)
            yield from _module_folders(Path(where) / "modules")


def _quoted(path: str) -> bytes:
    """Write a path for ``--stdin-paths``: a line each, C-quoted where it must be."""
    raw = os.fsencode(path)
    if not raw.startswith(b'"') and b"\n" not in raw and not raw.endswith(b"\r"):
        return raw
    return b'"' + b"".join(b"\\%03o" % byte if byte < 32 or byte in b'"\\' else bytes([byte]) for byte in raw) + b'"'


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
