"""A repository under swarm: names, layout, settings, records, the journal and the lock."""
