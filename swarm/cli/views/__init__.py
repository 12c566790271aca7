"""How the command line shows things that several commands show."""
