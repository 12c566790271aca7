"""The outside programs: each is known to exactly one module in here."""
