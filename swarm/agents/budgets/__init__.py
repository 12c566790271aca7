"""Budgets of agents: their limits, and what children draw on those of their parents."""
