"""Remove worktrees without losing work: choose, save, remove."""
