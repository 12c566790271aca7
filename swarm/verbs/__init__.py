"""The verbs of ``Swarm``, a module for each kind; ``api.py`` puts them together."""
