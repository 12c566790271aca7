"""Launch agents: the request, the refusals before it, the steps and the private files."""
