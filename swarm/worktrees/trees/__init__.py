"""Working trees as git objects: look, save, restore."""
