"""An append-only log in a folder: its files, lines, parts and locks."""
