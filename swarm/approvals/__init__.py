"""Questions of agents, and their answers."""
