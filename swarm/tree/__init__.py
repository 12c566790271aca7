"""The tree of agents: leads spawn subtrees and workers, and learn the outcome of each."""
