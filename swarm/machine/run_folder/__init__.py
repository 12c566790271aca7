"""An agent's run folder: its files, program, run time and services."""
