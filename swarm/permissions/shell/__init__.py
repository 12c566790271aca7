"""Read shell commands, to find every program that they run."""
