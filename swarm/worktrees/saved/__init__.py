"""Saved work: entries, dropped entries, the refs that keep them."""
