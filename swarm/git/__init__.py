"""Git repositories: run git, and read and write the files in git's folder."""
