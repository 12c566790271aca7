"""The caller of swarm, a person or an agent, and its rights."""
