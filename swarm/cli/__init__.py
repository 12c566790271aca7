"""The command line: words and exit codes over ``swarm.api``, and nothing the library cannot do."""
