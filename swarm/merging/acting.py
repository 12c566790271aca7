"""Find changed files that act on the user's machine by themselves, because a program runs their content.

A box keeps an agent in.  It does not keep in what the user runs of the agent's work, and some files run without a
word of the user's: on entering a folder, on a commit, when an editor or an agent program opens the project.
Tests, builds and scripts are not among them: the user starts those.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from swarm.merging.values import ActingFile
from swarm.programs import registry
from swarm.project.names import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Paths as patterns, without regard to case, and why such a file acts. `*` is a part of a name; a `/` at the end: all
#: that is in such a folder. One without another `/` may stand in any folder, others only at the root, but for `**/`.
#: What agent programs take from a project is said in their folders of `programs/`.
_PATTERNS = {
    "direnv and its like run it when a shell enters its folder": (".envrc", ".autoenv"),
    "git runs it, once its hook program is installed": (
        *("**/.husky/", "**/.githooks/", "**/.lefthook/", "lefthook.y*ml", ".lefthook.y*ml", ".pre-commit-config.yaml"),
    ),
    "an editor runs commands from it when it opens the project": (
        *("**/.vscode/", ".vscode/tasks.json", ".vscode/settings.json", "*.code-workspace", "**/.idea/", "**/.zed/"),
        *("**/.cursor/", "**/.devcontainer/", ".devcontainer.json", ".exrc", ".nvim.lua", ".dir-locals.el"),
    ),
    "a CI service runs it after a push, with the keys that it has there": (
        *("**/.github/workflows/", "**/.github/actions/", "**/.circleci/", ".gitlab-ci*.yml", "jenkinsfile*"),
        *("**/.forgejo/workflows/", "**/.gitea/workflows/", "azure-pipelines*.yml", ".travis.yml"),
    ),
    "a version manager runs or installs what it names, when a shell enters its folder": (
        *("mise.toml", "mise.local.toml", "**/.mise/", ".tool-versions"),
    ),
    "a package manager takes programs and hosts from it": (".npmrc", ".yarnrc.yml", "**/.yarn/", "**/.cargo/config*"),
    "swarm takes commands for new worktrees and rights of agents from it": (".swarm/",),
}


@cache
def _patterns() -> dict[str, tuple[str, ...]]:
    agents = [registry.program(name) for name in PROGRAMS if name != "shell"]
    taken = {f"{one.title} takes programs and permissions from it": one.acts for one in agents if one.acts}
    return {**_PATTERNS, **taken}


@cache
def often_ignored() -> tuple[str, ...]:
    """Return those that are files at the root; a look for all ignored files would go through all that was installed."""
    every = (pattern for patterns in _patterns().values() for pattern in patterns)
    return tuple(pattern for pattern in every if "*" not in pattern and not pattern.endswith("/"))


def _expression(patterns: Iterable[str]) -> re.Pattern[str]:
    """Return an expression that finds the paths of some patterns."""
    found = []
    for pattern in patterns:
        whole, anywhere = pattern.removeprefix("**/"), pattern.startswith("**/")
        folder, name = whole.endswith("/"), whole.removesuffix("/")
        words = re.escape(name).replace(r"\*", "[^/]*")
        # a link in place of a folder leads to any other: the folder's own name counts
        found.append(("(?:.*/)?" if anywhere or "/" not in whole else "") + words + ("(?:/.*)?" if folder else ""))
    return re.compile("|".join(found), re.IGNORECASE | re.DOTALL)


@cache
def _by_reason() -> dict[str, re.Pattern[str]]:
    return {reason: _expression(patterns) for reason, patterns in _patterns().items()}


def acting(paths: Iterable[str], hooks: str = "") -> Iterator[ActingFile]:
    """Yield those of some paths that act on the user's machine, with the reason.

    Args:
        hooks: the folder of the worktree from which git takes its hooks; empty: it takes them from elsewhere.
    """
    for path in paths:
        if hooks and (path == hooks or path.startswith(f"{hooks}/")):
            yield ActingFile(path, "git runs it: core.hooksPath names its folder")
            continue
        reason = next((reason for reason, one in _by_reason().items() if one.fullmatch(path)), "")
        if reason:
            yield ActingFile(path, reason)
