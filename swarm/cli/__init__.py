"""The command line: words and exit codes over ``swarm.api.swarm``, and nothing the library cannot do."""
