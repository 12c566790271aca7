"""Diffs, forecasts of conflicts, and merges."""
