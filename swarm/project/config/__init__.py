"""Settings: their sections, layers and files."""
