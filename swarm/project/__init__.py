"""What a repository under swarm has: names, layout, settings, records, the journal and the lock."""
