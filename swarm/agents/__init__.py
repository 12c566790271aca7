"""The agents of a session: launching them, their state, events and limits."""
