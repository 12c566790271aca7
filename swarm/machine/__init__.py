"""Facts about this machine: processes, identity, run files. Standard library only."""
