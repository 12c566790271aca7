"""What runs inside a pane: the launcher that starts, watches and ends one agent program.

Standard library only, and nothing else of swarm: it starts in milliseconds, once per pane.
"""
