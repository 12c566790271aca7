"""The network of a box: a proxy for named hosts, and a door to the model; both run outside of the box."""
