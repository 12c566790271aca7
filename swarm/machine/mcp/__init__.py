"""The MCP door of an agent, as far as it runs beside its program: the standard library alone."""
