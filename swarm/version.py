"""The version of swarm, in the one place that holds it."""

__version__ = "0.1.0"
