"""Tasks: work for agent programs without a terminal, which no crash loses and none does twice."""
