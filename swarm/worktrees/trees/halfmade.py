"""Find foreign files in a half-made working tree."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.git.content import blobs
from swarm.git.content.contents import Checkout
from swarm.kit import files as fsio
from swarm.kit.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from swarm.git.running.runner import GitRunner

    #: Returns, for some paths, the bytes that git would have written there, if known.
    Asks = Callable[[Sequence[str]], Mapping[str, bytes]]

#: Time limit for filter programs to produce their content; files that are unknown then are kept.
_FILTER_SECONDS = 5.0
_LARGEST = 1 << 31
_AT_ONCE = 500


def unlike_checkout(
    git: GitRunner, common: Path, tree: Path, entries: Mapping[str, tuple[str, str]], files: Iterable[str]
) -> list[str]:
    """Return the files that differ from a checkout's content and from the start of it.

    Args:
        entries: path → (mode, blob) of what is checked out.
        files: the paths to look at, all of them among the entries.
    """
    # Nearly all have just the bytes of the blob.  That is seen here: asked with an index that knows nothing of
    # the files yet, git takes all of them for changed, and would examine each in its own process.
    oids = {path: entries[path][1] for path in files}
    doubtful = {path: oid for path, oid in oids.items() if blobs.name_of(tree / path, len(oid)) != oid}
    if not doubtful:
        return []
    with tempfile.TemporaryDirectory(prefix="swarm-") as scratch:
        # The real tree may hold half of the attributes, so git gets a tree with nothing but those.
        rules = Path(scratch) / "rules"
        rules.mkdir()
        env = {"GIT_DIR": str(common), "GIT_WORK_TREE": str(rules), "GIT_INDEX_FILE": str(Path(scratch) / "index")}
        lines = [f"{mode} {oid}\t{path}\0" for path, (mode, oid) in entries.items() if path.endswith(".gitattributes")]
        git.run("update-index", "-z", "--index-info", stdin=os.fsencode("".join(lines)), env=env, cwd=rules)
        git.run("checkout-index", "--all", "--force", env=env, cwd=rules)
        return _judge(Checkout(git, env, doubtful), tree)


def _judge(checkout: Checkout, tree: Path) -> list[str]:
    """Ask the user's filter programs last, and not for long: one that hangs may be why all is taken back."""
    filtered = checkout.filtered()
    left = _unlike(tree, checkout.oids.keys() - filtered, checkout.written)
    left = _unlike(tree, filtered.union(left), checkout.raw)
    asked = filtered.intersection(left)
    until = time.monotonic() + _FILTER_SECONDS
    unlike = _unlike(tree, asked, lambda paths: checkout.written(paths, until))
    return [path for path in left if path not in asked] + unlike


def _unlike(tree: Path, paths: Iterable[str], ask: Asks) -> list[str]:
    """Return the files that do not start like the content from *ask*; read in parts, to save memory."""
    wanted = sorted(paths)
    left: list[str] = []
    for start in range(0, len(wanted), _AT_ONCE):
        part = wanted[start : start + _AT_ONCE]
        whole = ask(part)
        left += [path for path in part if path not in whole or not _begins(tree / path, whole[path])]
    return left


def _begins(path: Path, whole: bytes) -> bool:
    try:
        return not path.is_symlink() and whole.startswith(fsio.read_small(path, _LARGEST))
    except (OSError, EnvironmentProblem):
        return False
