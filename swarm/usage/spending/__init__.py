"""Count the tokens in agent programs' own records, as they grow. Standard library only."""
