"""tmux."""
