"""The repository: refs, worktrees, commits."""

from __future__ import annotations

import errno
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.git import copying, gitdir, register, untouched
from swarm.git.errors import BareRepository, GitBroken, GitFailed, GitTooOld, NotARepo, RefConflict
from swarm.git.ground import Ground, refuse_links
from swarm.git.index import backdate
from swarm.git.probe import Look
from swarm.git.runner import STATUS, GitRunner, Started, cause_of, explain
from swarm.kit.errors import ConfigProblem, SwarmError
from swarm.project.layout import HEADS
from swarm.project.model import AdminDir, WorktreeEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

#: What each git program said its version is.
_VERSIONS: dict[tuple[object, ...], tuple[int, ...]] = {}
_ABOUT = ("--is-bare-repository", "--is-inside-work-tree", "--show-object-format")
_HEAD = ("HEAD^{commit}", "HEAD^{tree}")
_WHERE = ("--show-toplevel", "--git-common-dir")
#: Folders at the top of the checkout that hide their content from git themselves.
_OWN = (".swarm", ".worktrees")
#: The index that was read last: callers of the library open the same repository time and again.
_READ: dict[Path, tuple[_Mark | None, copying.Source | None]] = {}
#: A larger one is not kept.
_KEPT = 5000
#: Of a file: inode, size, when it was written, when it was changed.
_Mark = tuple[int, int, int, int]
_OBJECT_TYPES = frozenset({b"commit", b"tree", b"blob", b"tag"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a repository is.

    Attributes:
        root: the main checkout, also when asked from a linked worktree.
        common: the git directory that all worktrees share.
        top: the work tree that was asked from.
        object_format: ``sha1`` or ``sha256``.
        commit: what was checked out in *top* then; empty for none, or where git cannot tell.
        tree: its tree.
    """

    root: Path
    common: Path
    top: Path
    object_format: str
    commit: str = ""
    tree: str = ""


def discover(start: Path, environ: Mapping[str, str], meanwhile: Callable[[], object] = lambda: None) -> Place:
    """Find the repository around *start*.

    Args:
        meanwhile: done while git looks.

    Raises:
        NotARepo, BareRepository, GitBroken, RepositoryOwner, GitMissing.
    """
    if not _is_folder(start):
        raise NotARepo(f"cannot use {start}: there is no such folder", hint="check the path after -C")
    git = GitRunner(start, environ=environ, timeout=30)
    asked = git.begin("rev-parse", *_ABOUT, *_HEAD, *_WHERE)
    asked.use_the_time(meanwhile)
    code, out, err = asked.outcome()
    head = os.fsdecode(out).split("\n", 5)[3:5] if code == 0 else ["", ""]
    if code == 0:
        out = b"\n".join((*out.split(b"\n", 3)[:3], out.split(b"\n", 5)[5]))
    else:  # most often there is no commit yet
        code, out, err = git.attempt("rev-parse", *_ABOUT, *_WHERE)
    lines = os.fsdecode(out).split("\n", 3)
    if code != 0:
        raise _why_no_repository(start, lines, code, err.decode("utf-8", "replace").strip())
    if lines[3].count("\n") == 2:
        top_text, common_text = lines[3].split("\n")[:2]
    else:  # a path with a newline in it: ask for one at a time
        top_text = os.fsdecode(git.run("rev-parse", "--show-toplevel").removesuffix(b"\n"))
        common_text = os.fsdecode(git.run("rev-parse", "--git-common-dir").removesuffix(b"\n"))
    top, common = Path(top_text), _absolute(common_text, start)
    return Place(_main_checkout(top, common, git), common, top, lines[2], *head)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise


def _why_no_repository(start: Path, printed: Sequence[str], code: int, text: str) -> Exception:
    if printed[0] == "true":
        return BareRepository(f"cannot work in {start}: the repository is bare, it has no work tree")
    if "must be run in a work tree" in text:
        return NotARepo(f"cannot work in {start}: it is inside a git directory, not in a work tree")
    error = explain(f"cannot work in {start}", code, text)
    if type(error) is NotARepo and any((folder / ".git").exists() for folder in (start, *start.parents)):
        return GitBroken(f"cannot work in {start}: git does not recognise the repository there", details=text)
    if type(error) is NotARepo:
        return NotARepo(f"not a git repository: {start}", details=text)
    if type(error) is GitFailed:
        return GitBroken(error.message, details=text)
    return error


def _path(printed: bytes, start: Path) -> Path:
    # git ends its answer with one newline; the path itself may hold more of them.
    return _absolute(os.fsdecode(printed.removesuffix(b"\n")), start)


def _absolute(path: str, start: Path) -> Path:
    # Real paths, as git writes them into the worktrees' pointers: ``.git`` itself may be a symbolic link.
    return Path(os.path.realpath(os.path.join(os.path.realpath(start), path)))


def _main_checkout(top: Path, common: Path, git: GitRunner) -> Path:
    """Return the main work tree of the repository whose shared git directory is *common*."""
    if gitdir.pointer_of(top) is None or _path(git.run("rev-parse", "--git-dir"), git.cwd) == common:
        return top  # asked from the main work tree itself, also of a submodule or a separate git dir
    code, out, _ = git.attempt("config", "--file", str(common / "config"), "core.worktree")
    if code == 0:
        return Path(os.path.normpath(common / os.fsdecode(out.removesuffix(b"\n"))))
    if common.name == ".git":
        code, out, _ = git.attempt("config", "--file", str(common / "config"), "--type=bool", "core.bare")
        if out.strip() != b"true":
            return common.parent
    raise BareRepository(f"cannot work in {top}: its repository {common} has no main work tree")


class Git:
    """One repository.

    Args:
        place: where it is.
        runner: runs git in the main checkout.
        jobs: how many trees are filled at the same time; 0 means one a processor.
    """

    def __init__(self, place: Place, runner: GitRunner, *, jobs: int = 0) -> None:
        self.place = place
        self.root = place.root
        self.common = place.common
        self.runner = runner
        self._jobs = jobs or os.cpu_count() or 1
        self._version: tuple[int, ...] | None = None
        self._source: tuple[_Mark | None, copying.Source | None] = (None, None)
        self._looks = threading.local()  # whoever makes worktrees in another thread looks by themselves

    # --- the program ---------------------------------------------------------------------------

    def version(self) -> tuple[int, ...]:
        """Return git's version as numbers."""
        if self._version is None:
            program = self.runner.program()
            if program not in _VERSIONS:
                text = self.runner.ask("version").decode("ascii", "replace")
                match = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
                _VERSIONS[program] = tuple(int(n or 0) for n in match.groups()) if match else (0, 0, 0)
            self._version = _VERSIONS[program]
        return self._version

    def require(self, minimum: tuple[int, int], purpose: str) -> None:
        """Refuse a git that is too old for *purpose*.

        Raises:
            GitTooOld
        """
        if self.version()[:2] < minimum:
            have, need = (".".join(map(str, v)) for v in (self.version(), minimum))
            raise GitTooOld(f"cannot {purpose}: git {need} or newer is needed, this is {have}")

    def bind_lock(self, fd: int | None) -> None:
        """Let every git from now on inherit the repository lock."""
        self.runner.bind_lock(fd)

    def stop_all(self) -> None:
        """End whatever git runs for us."""
        self.runner.stop_all()

    def resume(self) -> None:
        """Allow git again."""
        self.runner.resume()

    def collector(self) -> int:
        """Return the process of a ``git gc`` that is at work in the repository; 0 where there is none."""
        return gitdir.collector(self.common)

    def hook(self, name: str) -> str:
        """Return the program that is the repository's hook of a name, seen from a worktree; empty where there is none.

        One whose path is not absolute belongs to the files of a worktree, and may not be there.
        """
        look = self._look
        known = look.says("core.hookspath") if look is not None else None
        if known is None or len(known) > 1:  # the last one is that of our own gits
            asked = ("config", "-z", "--type=path", "--get-all", "core.hooksPath")
            known = tuple(os.fsdecode(self.runner.attempt(*asked)[1]).split("\0")[:-1])
        folder = known[-2] if len(known) > 1 else str(self.common / "hooks")
        path = os.path.join(folder, name)
        return path if folder and (not os.path.isabs(path) or os.access(path, os.X_OK)) else ""

    # --- commits and refs ----------------------------------------------------------------------

    def resolve_commit(self, name: str) -> str | None:
        """Return the commit that *name* means, or None."""
        if name.startswith("-") or "\0" in name or not name:
            return None
        if name.startswith(":/"):  # all that follows is the text to look for
            code, out, _ = self.runner.attempt("rev-parse", "--verify", "--quiet", "--end-of-options", name)
            name = out.decode("ascii").strip() if code == 0 else ""
        code, out, _ = self.runner.attempt("rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}")
        found = out.decode("ascii").strip()
        return found if code == 0 and found.isalnum() else None  # `^main` means everything but that

    def head_trouble(self) -> str:
        """Return why HEAD is no commit: git's words, or nothing when there simply is none yet."""
        code, _, err = self.runner.attempt("log", "-1", "--format=%H", "--no-show-signature")
        text = err.decode("utf-8", "replace").strip()
        return "" if code == 0 or "does not have any commits yet" in text else cause_of(code, text)

    def head_branch(self) -> str | None:
        """Return the branch of the main checkout; None when detached. It may have no commit yet."""
        text = gitdir.head_of(self.common)
        if text.startswith(f"ref: {HEADS}") and not text.endswith(".invalid"):  # that is reftable's
            return text.removeprefix(f"ref: {HEADS}")
        code, out, _ = self.runner.attempt("symbolic-ref", "--quiet", "HEAD")
        return os.fsdecode(out.removesuffix(b"\n")).removeprefix(HEADS) if code == 0 else None

    def refs(self, *prefixes: str) -> dict[str, str]:
        """Return full ref name → object id for everything below the prefixes (or exactly so named)."""
        out = self.runner.ask("for-each-ref", "--format=%(objectname) %(refname)", *prefixes)
        pairs = (line.split(" ", 1) for line in os.fsdecode(out).splitlines())
        return {name: oid for oid, name in pairs}

    def refs_around(self, names: Sequence[str], folder: str) -> frozenset[str]:
        """Return which of these refs there are, and all those below *folder*."""
        found = gitdir.refs_around(self.common, names, folder)
        if found is None:
            # Brackets keep git from listing what is below a name.
            exactly = (f"{name[:-1]}[{name[-1]}]" for name in names)
            found = frozenset(self.refs(*exactly, f"{folder}/"))
        return found

    def change_refs(
        self, *, create: Mapping[str, str] | None = None, delete: Mapping[str, str] | None = None, reason: str
    ) -> None:
        """Create and delete refs in one transaction: all or none, in the order given.

        Args:
            create: name → object id; none of the names may exist.
            delete: name → the object id it must still have.

        Raises:
            BranchExists, RefConflict, GitBusy, GitFailed: nothing was changed.
        """
        lines = [f"create {name}\0{oid}\0" for name, oid in (create or {}).items()]
        lines += [f"delete {name}\0{oid}\0" for name, oid in (delete or {}).items()]
        if not lines:
            return
        try:
            self.runner.run(
                *("update-ref", "--no-deref", "-m", reason, "--stdin", "-z"),
                stdin=os.fsencode("".join(lines)),
                what="cannot change the branches",
                meanwhile=self._look_on,
            )
        except GitFailed as error:
            if "exists; cannot create" in (error.details or ""):
                raise RefConflict(error.message, details=error.details) from error
            raise
        for name in delete or {}:
            # git does not mind when it cannot remove the log of a ref that it deletes.
            (self.common / "logs" / name).unlink(missing_ok=True)

    def tips(self, *names: str) -> dict[str, str]:
        """Return what exactly these refs say, of those that there are."""
        found = gitdir.tips(self.common, names)
        return found if len(found) == len(names) else self.refs(*names)

    def drop_ref(self, name: str, tip: str, *, reason: str) -> None:
        """Delete one ref that must still say *tip*."""
        if not gitdir.drop_ref(self.common, name, tip):
            self.change_refs(delete={name: tip}, reason=reason)

    def objects(self, names: Sequence[str]) -> dict[str, str]:
        """Return name → object id for those of *names* that mean an object, such as ``HEAD:src``; one git for all."""
        asked = [name for name in dict.fromkeys(names) if name and name[0] != "-" and not set(name) & {"\n", "\0"}]
        if not asked:
            return {}
        lines = os.fsencode("".join(f"{name}\n" for name in asked))
        out = self.runner.ask("cat-file", "--batch-check=%(objecttype) %(objectname)", stdin=lines)
        answers = (line.split(b" ") for line in out.splitlines())
        return {
            name: answer[1].decode("ascii")
            for name, answer in zip(asked, answers, strict=True)
            if answer[0] in _OBJECT_TYPES and len(answer) == 2  # else "<name> missing"
        }

    def is_ancestor(self, old: str, new: str) -> bool:
        """Whether *new* has everything that *old* has."""
        return self.runner.attempt("merge-base", "--is-ancestor", old, new)[0] == 0

    def count(self, new: str, old: str) -> int:
        """How many commits *new* has that *old* does not."""
        return int(self.runner.ask("rev-list", "--count", new, f"^{old}"))

    def tracked(self, commit: str, paths: Iterable[str]) -> frozenset[str]:
        """Return which of *paths* the commit has."""
        out = self.runner.ask(
            *("ls-tree", "-z", "--name-only", "--full-tree", commit, "--", *paths),
            what=f"cannot read the files of commit {commit[:12]}",
        )
        return frozenset(os.fsdecode(name) for name in out.split(b"\0") if name)

    def branch_config(self, branch: str) -> tuple[tuple[str, str], ...]:
        """Return the ``branch.<name>.*`` settings of the repository's own configuration."""
        if not gitdir.may_configure(self.common, branch):
            return ()
        code, out, _ = self.runner.attempt(
            "config", "--local", "-z", "--get-regexp", rf"^branch\.{re.escape(branch)}\.[a-z0-9-]+$"
        )
        pairs = (item.partition("\n") for item in os.fsdecode(out).split("\0") if item) if code == 0 else ()
        return tuple((key, value) for key, _, value in pairs)

    def drop_branch_config(self, branch: str) -> None:
        """Remove the ``branch.<name>`` section if there is one."""
        if not self.branch_config(branch):
            return
        self._remove_section(f"branch.{branch}", lambda: bool(self.branch_config(branch)))

    def _remove_section(self, name: str, there: Callable[[], bool]) -> None:
        # The exit code says nothing here: git calls it an error when the section is gone meanwhile, and a
        # success when the new file could not be written. So look.
        error: SwarmError | None = None
        try:
            self.runner.run("config", "--local", "--remove-section", name)
        except SwarmError as caught:
            error = caught
        if there():
            raise error or GitFailed(f"cannot remove section {name} from the configuration: git could not write it")

    def add_config(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Add settings to the repository's own configuration."""
        for key, value in pairs:
            self.runner.run("config", "--local", "--add", key, value)

    # --- configuration of one worktree ---------------------------------------------------------

    def uses_worktree_config(self) -> bool:
        """Whether worktrees may have a configuration of their own."""
        code, out, _ = self.runner.attempt("config", "--local", "--type=bool", "extensions.worktreeConfig")
        return code == 0 and out.strip() == b"true"

    def use_worktree_config(self, *, wanted: bool) -> None:
        """Turn git's per-worktree configuration on, or off again with nothing left of it.

        Raises:
            ConfigProblem: the repository has settings that would have to move first.
        """
        if wanted and not self.uses_worktree_config():
            # With the extension on, these two would suddenly count for every worktree.
            for key, harmless in (("core.worktree", b""), ("core.bare", b"false")):
                code, out, _ = self.runner.attempt("config", "--local", key)
                if code == 0 and out.strip() != harmless:
                    raise ConfigProblem(
                        f"cannot hide a file in single worktrees: the repository sets {key}",
                        hint="set worktrees.instructions_file back to CLAUDE.local.md",
                    )
            self.runner.run("config", "--local", "extensions.worktreeConfig", "true")
        elif not wanted and self.uses_worktree_config():
            self.runner.run("config", "--local", "--unset", "extensions.worktreeConfig")
            if self.runner.attempt("config", "--local", "--get-regexp", r"^extensions\.")[0] != 0:
                self._drop_empty_extensions()

    def _drop_empty_extensions(self) -> None:
        """Take away the heading that a git leaves when its last setting goes; newer ones do so themselves."""

        def there() -> bool:
            return "[extensions]" in (self.common / "config").read_text(encoding="utf-8", errors="surrogateescape")

        if there():
            self._remove_section("extensions", there)

    def exclude_in_worktree(self, admin: AdminDir, *files: str) -> None:
        """Hide *files* in one worktree, with those hidden before; what the user ignores everywhere stays ignored."""
        exclude = admin.path / "swarm-exclude"
        old = exclude.read_bytes() if exclude.is_file() else self._user_excludes()
        new = dict.fromkeys(b"/" + re.sub(rb"([\\*?\[ ])", rb"\\\1", os.fsencode(file)) + b"\n" for file in files)
        exclude.write_bytes(old + b"".join(line for line in new if line not in old.splitlines(keepends=True)))
        self.runner.run("config", "--file", str(admin.path / "config.worktree"), "core.excludesFile", str(exclude))

    def _user_excludes(self) -> bytes:
        code, out, _ = self.runner.attempt("config", "--type=path", "core.excludesFile")
        path = (
            Path(os.fsdecode(out.removesuffix(b"\n"))) if code == 0 and out.strip() else self.runner.default_excludes()
        )
        try:
            text = path.read_bytes()
        except OSError:
            return b""
        return text if not text or text.endswith(b"\n") else text + b"\n"

    def first_reflog_message(self, branch: str) -> str:
        """Return the message with which a branch was made; empty when it is not recorded."""
        path = self.common / "logs" / "refs" / "heads" / branch
        try:
            with path.open("rb") as file:
                return file.readline(4096).decode("utf-8", "replace").partition("\t")[2].strip()
        except OSError:
            return ""

    # --- worktrees -----------------------------------------------------------------------------

    def worktrees(self) -> tuple[WorktreeEntry, ...]:
        """Return what git lists, the main checkout first."""
        if self.version()[:2] >= (2, 36):
            return parse_worktrees(self.runner.ask("worktree", "list", "--porcelain", "-z"), end=b"\0")
        return parse_worktrees(self.runner.ask("worktree", "list", "--porcelain"), end=b"\n")

    def look_closely(self, since: object = None) -> None:
        """Begin to find out what the next ``add_worktree`` and ``fill`` can do without running git.

        They wait for the answer; never asked, both leave everything to git.

        Args:
            since: an earlier look with the same is as good, if nobody changed the settings or staged anything since.
        """
        mark, source = self._main_index()
        stamp = since, mark, _mark_of(self.common / "config"), _mark_of(self.common / "info/attributes")
        look = self._look
        if look is None or since is None or look.stamp != stamp:
            self.stop_looking()
            self._looks.mine = look = Look(self.runner, self.common, source, stamp)
            look.begin()  # noted down before: whatever stops it half way, it is ended

    def _look_on(self) -> None:
        """Use a moment in which nothing else is to be done for what ``fill`` will need."""
        look = self._look
        if look is not None:
            look.read_ahead(self.root)

    @property
    def _look(self) -> Look | None:
        found: Look | None = getattr(self._looks, "mine", None)
        return found

    def stop_looking(self) -> None:
        """Forget what was found out, and end what still finds out."""
        look = self._look
        self._looks.mine = None
        if look is not None:
            look.end()

    def _main_index(self) -> tuple[_Mark | None, copying.Source | None]:
        """Return the main checkout's index and of which moment it is; read again only when it is another."""
        index = self.common / "index"
        mark = _mark_of(index)
        known = _READ.get(index) or self._source  # taken at once: another thread may put a newer one there
        if known[0] != mark or mark is None:
            self._source = known = mark, copying.read(index) if mark is not None else None
            _READ.clear()
            if known[1] is not None and len(known[1].entries) <= _KEPT:
                _READ[index] = known
        return known

    def glance(self, paths: Sequence[str]) -> tuple[str, str, frozenset[str]] | None:
        """Return the commit that is checked out, its tree, and which of *paths* it has, without running git.

        None where the files of git's folder do not tell that beyond doubt.
        """
        head = gitdir.head_of(self.common).removeprefix("ref: ")
        tip = gitdir.tips(self.common, (head,)).get(head) if head.startswith(HEADS) else None
        source = self._main_index()[1]
        if tip is None or source is None or (tip, source.tree) != (self.place.commit, self.place.tree):
            return None
        return tip, source.tree, frozenset(path for path in paths if source.has(os.fsencode(path)))

    def add_worktree(
        self, tree: Path, *, branch: str, commit: str, reason: str, aside: Path, anyway: bool = False
    ) -> None:
        """Register a worktree without files, locked at birth with *reason*.

        Args:
            branch: an existing branch to check out; empty for a detached *commit*.
            aside: an existing folder of the operation's own.
            anyway: also if git believes that the branch is checked out elsewhere.
        """
        for folder in (tree.parent, self.common / "worktrees"):
            Ground(folder).look()
        plain = branch and (look := self._look) is not None and look.registers()
        if plain and register.register(self.common, tree, branch=branch, commit=commit, reason=reason, aside=aside):
            return
        lock = ("--lock", "--reason", reason) if self.version()[:2] >= (2, 33) else ("--lock",)
        target = (str(tree), branch) if branch else ("--detach", str(tree), commit)
        self.runner.run(
            *("worktree", "add", *(("--force",) if anyway else ()), "--quiet", "--no-checkout", *lock, *target),
            what=f"cannot create the worktree {tree.name}",
        )

    def fill(self, trees: Sequence[Path], backdate_ns: int, *, commit: str = "", content: str = "") -> None:
        """Write the files of freshly registered worktrees and make their first ``git status`` fast.

        This is the one piece to replace for another way of filling trees.

        Args:
            commit: where all of them are, if it is the same.
            content: its tree.
        """
        look = self._look
        source = look.source if look is not None and look.copies() else None
        if look is not None and source is not None and content == source.tree:
            pairs = [(tree, admin) for tree in trees if (admin := gitdir.pointer_of(tree)) is not None]
            if lacking := look.missing():  # git would notice while it wrote the files
                raise GitBroken(f"cannot write the files of {trees[0].name}: missing object {lacking[0]}")
            if copying.copy(source, self.root, pairs, backdate_ns, look.ahead) == 0:
                for _, admin in pairs:
                    register.note_filled(admin, commit)
                return
        self._fill_by_git(trees, backdate_ns)

    def _fill_by_git(self, trees: Sequence[Path], backdate_ns: int) -> None:
        if len(trees) == 1 or self._jobs == 1:
            for tree in trees:
                self._fill_one(tree, backdate_ns)
            return
        joined = (self.runner.work(),)
        with ThreadPoolExecutor(
            min(self._jobs, len(trees)), initializer=self.runner.help_with, initargs=joined
        ) as pool:
            work = [pool.submit(self._fill_one, tree, backdate_ns) for tree in trees]
            try:
                for item in work:
                    item.result()
            except BaseException:
                for item in work:
                    item.cancel()
                self.stop_all()  # a tree that fails, or a signal, ends the others now
                raise

    def _fill_one(self, tree: Path, backdate_ns: int) -> None:
        what = f"cannot write the files of {tree.name}"
        # Never with checkout.workers: git then loses encodings that a folder's own .gitattributes asks for.
        self.runner.run("reset", "--hard", "--no-recurse-submodules", "--quiet", cwd=tree, what=what)
        # Files and index of the same second are "racily clean": git would read and hash every file
        # again at each status. Files that are older than the index are believed.
        admin = gitdir.pointer_of(tree)
        sha256 = self.place.object_format == "sha256"
        if admin is not None and backdate(tree, admin / "index", backdate_ns, sha256=sha256):
            return
        _backdate(tree, backdate_ns)
        self.runner.run("update-index", "-q", "--refresh", cwd=tree, ok=(0, 1), what=what)

    def unlock(self, admin: AdminDir) -> None:
        """Remove the lock of a worktree."""
        from swarm.kit import files as fsio

        fsio.unlink_if_there(admin.path / "locked")

    def lock(self, admin: AdminDir, reason: str) -> None:
        """Lock a worktree against removal, as ``git worktree lock`` does."""
        from swarm.kit import files as fsio

        fsio.write_atomic(admin.path / "locked", os.fsencode(reason + "\n" if reason else ""), 0o644)

    def begin_status(self, tree: Path) -> Started:
        """Begin to look for changes; any output is one."""
        return self.runner.begin("status", *STATUS, cwd=tree)

    def is_untouched(self) -> bool:
        """Whether the main checkout is what its commit says, as far as that can be seen without running git."""
        mark, source = self._main_index()
        if source is None or mark is None or source.tree != self.place.tree or self.glance(()) is None:
            return False
        hidden = [name for name in _OWN if untouched.hides_itself(self.root / name)]
        return untouched.is_untouched(source, self.root, mark[2], hidden)

    # --- plain file views of the git directory ------------------------------------------------------

    def admin_dirs(self) -> tuple[AdminDir, ...]:
        """Return every worktree registration, read without running git."""
        return gitdir.admin_dirs(self.common)

    def admin_of(self, tree: Path) -> AdminDir | None:
        """Return the registration that points at *tree*."""
        return gitdir.admin_of(self.common, tree)

    def pointer_of(self, tree: Path) -> Path | None:
        """Return the registration that *tree* points at."""
        return gitdir.pointer_of(tree)

    def refuse_links(self, admin: Path) -> None:
        """Refuse a registration in whose folder git would write through a link.

        Raises:
            SymlinkInTheWay
        """
        refuse_links(self.root, {"GIT_DIR": str(admin)})

    def ref_locks(self, refs: Iterable[str]) -> tuple[Path, ...]:
        """Return the lock files a change of *refs* may leave when git is killed."""
        return (*gitdir.ref_locks(self.common, refs), self.common / "config.lock")

    def remove_stale_locks(self, locks: Iterable[Path], since_ns: int, aside: Path) -> list[str]:
        """Move away lock files of ours that a killed git left; return those that stay."""
        return gitdir.remove_stale_locks(self.common, self.root, locks, since_ns, aside)

    def prune_empty_ref_folders(self, prefix: str) -> None:
        """Remove empty folders that deleted refs and registrations left."""
        from swarm.kit import files as fsio

        gitdir.prune_empty_ref_folders(self.common, prefix)
        fsio.remove_empty(self.common / "worktrees")  # git does the same after the last worktree


def _mark_of(path: Path) -> _Mark | None:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _backdate(tree: Path, when_ns: int) -> None:
    """Give every file below *tree* the same, older, time."""
    stamp = (when_ns, when_ns)
    folders = [os.fspath(tree)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    os.utime(entry.path, ns=stamp, follow_symlinks=False)


def parse_worktrees(printed: bytes, end: bytes = b"\n") -> tuple[WorktreeEntry, ...]:
    """Read ``git worktree list --porcelain``: *end* ends a line, an empty line ends an entry.

    The last entry counts also without its empty line.
    """
    entries: list[WorktreeEntry] = []
    facts: dict[str, str] = {}
    for raw in [*printed.split(end), b""]:
        if raw:
            key, _, value = os.fsdecode(raw).partition(" ")
            facts[key] = value
            continue
        if "worktree" in facts:
            entries.append(
                WorktreeEntry(
                    path=Path(facts["worktree"]),
                    head=facts.get("HEAD", ""),
                    branch=facts.get("branch", "").removeprefix(HEADS),
                    detached="detached" in facts,
                    bare="bare" in facts,
                    locked="locked" in facts,
                    lock_reason=facts.get("locked", ""),
                    prunable="prunable" in facts,
                )
            )
        facts = {}
    return tuple(entries)
