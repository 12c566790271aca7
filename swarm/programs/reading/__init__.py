"""Read a program's state from its screen, and its conversation from its own records."""
