"""The MCP door: what agents can do, as tools of the Model Context Protocol."""
