"""Held tasks: told more while they work, asked for, followed, and taken over into a pane."""
