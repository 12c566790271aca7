"""The agent program that comes with swarm."""
