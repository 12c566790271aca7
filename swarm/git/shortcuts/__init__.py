"""Worktrees and looks without a git process each, where the repository is ordinary."""
