"""The steps of transactions: what a step is, and those of branches, worktrees and files."""
