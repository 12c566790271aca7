"""The log of events of a project: numbered, durable, with its gaps declared."""
