"""Small tools without a thought of agents: files, errors, YAML, values, texts."""
