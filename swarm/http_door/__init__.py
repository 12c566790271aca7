"""The HTTP door: an agent's tasks for programs on this machine."""
