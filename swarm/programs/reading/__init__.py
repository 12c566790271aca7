"""Read what a program does: from its screen, and from its own records."""
