"""Tokens, cost and time of agents."""
