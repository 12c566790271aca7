"""Measurements: swarm against plain git, in one run, side by side."""
