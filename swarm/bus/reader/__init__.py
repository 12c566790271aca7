"""What readers did with messages, and what they get next."""
