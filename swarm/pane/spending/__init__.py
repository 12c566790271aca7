"""What agent programs wrote down of their conversations: found, read as it grows, and counted.

Each program has a module that knows where its records are and what they look like.  The supervisor of an agent with
a budget counts with them, and so does ``swarm usage``; ``swarm transcript`` reads the same records.
"""
