"""What the doors by HTTP share: their sockets, and uvicorn with a limit for slow peers."""
