"""Make worktrees ready for work, and put them away: files, commands, ports."""
