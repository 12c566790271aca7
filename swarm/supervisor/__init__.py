"""The process in a pane that starts, watches and ends one agent program. Standard library only."""
