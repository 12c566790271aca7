"""The readers' side: acts of readers, and the next messages for them."""
