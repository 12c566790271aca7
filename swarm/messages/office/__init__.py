"""Class Post and its parts: send, take, acknowledge, look."""
