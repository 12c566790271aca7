"""Git repositories: running git, and reading and writing what git has in its folder."""
