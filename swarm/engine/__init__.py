"""Look at the world, change it in steps that a later process can undo."""
