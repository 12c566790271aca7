"""Telling an agent of its messages: in its turns, or by typing."""
