"""Files that swarm owns: records, journal, lock, configuration, roles."""
