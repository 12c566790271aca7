"""The message bus in files."""
