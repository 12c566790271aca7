"""Sockets of supervisors and servers on this machine: ask them, and know the process at the other end."""
