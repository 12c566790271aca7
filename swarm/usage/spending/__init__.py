"""Counting what agent programs wrote down of their tokens, as it grows. Standard library only."""
