"""Servers of one swarm directory: their files, their records, their token, and the calls that reach them."""
