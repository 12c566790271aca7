"""The git program: run it, wait for it, explain its failures."""
