"""What a supervisor does for a program in a box: begin it, serve its socket and its network, watch its disk."""
