"""The folders in which tasks work: swarm's own, those that the user names, and the boxes of both."""
