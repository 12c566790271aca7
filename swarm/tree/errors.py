"""Errors about the tree of agents."""

from __future__ import annotations

from swarm.kit.errors import EXIT_EXISTS, EXIT_REFUSED, EXIT_USAGE, SwarmError


class AlreadyThere(SwarmError):
    """There is a child of this name already, with another task or no longer alive."""

    code = "ALREADY_THERE"
    exit_code = EXIT_EXISTS
    default_hint = "choose another name, or look at the one that is there: swarm tree"


class NoParent(SwarmError):
    """The caller has no parent: it is the root."""

    code = "NO_PARENT"
    exit_code = EXIT_USAGE
    default_hint = "only spawned agents report to a parent; for the user: swarm send user 'TEXT'"


class TreeLimit(SwarmError):
    """A limit of the tree is reached: depth, children, descendants or spawns in a minute."""

    code = "TREE_LIMIT"
    exit_code = EXIT_REFUSED
    default_hint = "wait for a child to end, or do the work yourself"


class Uncommitted(SwarmError):
    """The caller has changes that are not committed, which the child would not see."""

    code = "UNCOMMITTED"
    exit_code = EXIT_REFUSED
    default_hint = "commit them first: git add -A && git commit; or spawn from the last commit: --from-head"
