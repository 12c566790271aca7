"""What swarm must know of this machine: processes, identity, run files. Standard library only."""
