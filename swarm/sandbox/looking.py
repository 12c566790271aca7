"""Let the host's git look at the worktree of an agent in a box from inside of a box of its own.

Git reads files there that an agent has written, and may run what these name.  So it sees the worktree, which it cannot
change, what it needs of the repository, and no more: no home but the user's settings of git, no network, no process.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from swarm.git.running.runner import Confined
from swarm.project.layout import BOXED_TREE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from swarm.project.layout import Layout

#: A git that looks also ends where swarm was killed, and does not end it: after some more seconds than swarm waits.
_ENDS = ("timeout", "--foreground", "--kill-after=5")
_LATER = 30.0
#: Folders of swarm's own, in which git keeps its notes for one look.
_PLACES = ("GIT_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")


class Looking:
    """Confines the gits of one repository that look at the worktree of an agent in a box.

    Args:
        environ: the caller's; of it only the way to bubblewrap and to git's settings counts.
        patience: seconds that one git may take.
    """

    def __init__(self, layout: Layout, common: Path, environ: Mapping[str, str], patience: float) -> None:
        self._layout = layout
        self._common = common
        self._environ = environ
        self._ends = (*_ENDS, f"{patience + _LATER:g}")

    @contextlib.contextmanager
    def __call__(self, cwd: Path, env: Mapping[str, str]) -> Iterator[Confined | None]:
        """Give how to start git there; None: the folder is in no such worktree.

        Raises:
            SandboxUnavailable
        """
        tree = self._tree_of(env.get("GIT_WORK_TREE") or os.fspath(cwd))
        if tree is None:
            yield None
            return
        from swarm.sandbox import command  # most repositories have no boxes
        from swarm.sandbox.errors import SandboxUnavailable
        from swarm.supervisor.boxed.enter import descriptor

        program = command.find(self._environ)
        if not program:
            raise SandboxUnavailable(f"cannot look at {tree}: it is the worktree of an agent in a box")
        where = os.fspath(cwd) if cwd.is_relative_to(tree) else tree
        made = command.look_options(tree, where, self._seen(), self._written(tree, env), self._variables(env))
        with contextlib.ExitStack() as stack:
            calls = descriptor("filter", command.call_filter())
            stack.callback(os.close, calls)
            words = "\0".join((*made, "--seccomp", str(calls)))
            options = descriptor("options", os.fsencode(words))
            stack.callback(os.close, options)
            yield Confined(program, ("bwrap", "--args", str(options), "--", *self._ends), (calls, options))

    def _tree_of(self, path: str) -> str | None:
        """Return the worktree of an agent in a box in which a path lies."""
        if path == os.fspath(self._layout.root):
            return None
        top = os.fspath(self._layout.sessions)
        boxes = (f"{top}/{session}/box" for session in _names(top))  # before each git: no patterns, no path objects
        for noted in (f"{box}/{agent}/{BOXED_TREE}" for box in boxes if os.path.isdir(box) for agent in _names(box)):
            with contextlib.suppress(OSError), open(noted, "rb") as file:
                tree = os.fsdecode(file.read())
                if path == tree or path.startswith(f"{tree}/"):
                    return tree
        return None

    def _seen(self) -> list[str]:
        """Return what git needs of the repository, and of the user's settings, as far as it is there."""
        from swarm.sandbox import private

        home = self._environ.get("HOME", "/")
        settings = self._environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
        wanted = [f"{home}/.gitconfig", f"{settings}/git", self._environ.get("GIT_CONFIG_GLOBAL", "")]
        stores = [os.fspath(one) for one in private.stores(self._common)[1:]]
        return [os.fspath(self._common), *stores, *(path for path in wanted if path and os.path.exists(path))]

    def _written(self, tree: str, env: Mapping[str, str]) -> list[str]:
        folders = [os.path.dirname(env[name]) for name in _PLACES if name in env]
        kept = (tree, os.fspath(self._common))
        return list(dict.fromkeys(one for one in folders if not any(f"{one}/".startswith(f"{k}/") for k in kept)))

    def _variables(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return git's own variables; of all others nothing that is a secret."""
        passed = {name: value for name, value in env.items() if name.startswith(("GIT_", "LC_"))}
        home = {name: env[name] for name in ("HOME", "XDG_CONFIG_HOME", "LANGUAGE") if name in env}
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", **home, **passed}


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # there is none
        return []
