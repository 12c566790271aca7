"""The live model of a project."""
