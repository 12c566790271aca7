"""An agent's run folder: its files, its program, its run time, the services beside it."""
