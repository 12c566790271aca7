"""The swarm directory in use: find it, make it, its sockets."""
