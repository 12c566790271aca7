"""The steps of transactions: the base class, and steps for branches, worktrees and files."""
