"""Reading shell commands, to know what they run."""
