"""Sessions: creating, listing, restoring and removing them."""
