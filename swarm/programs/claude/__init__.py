"""Claude Code."""

#: The settings file of one agent, below its run folder.
SETTINGS = ".claude/settings.json"
