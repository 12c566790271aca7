"""Saved work: entries, what was dropped, the refs that keep it."""
