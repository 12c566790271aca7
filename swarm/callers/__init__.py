"""Who calls swarm, a person or an agent, and what that one may do."""
