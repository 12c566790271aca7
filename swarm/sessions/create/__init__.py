"""Make a set of worktrees: the checks before, all or nothing."""
