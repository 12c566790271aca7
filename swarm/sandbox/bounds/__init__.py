"""What an agent in a box may use up, and which of its role's rules the box holds."""
