"""Pure values and rules: no files, no processes, standard library only."""
