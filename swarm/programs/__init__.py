"""Agent programs: a folder for each, behind one contract."""
