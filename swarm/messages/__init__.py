"""Messages between agents, the user and programs."""
