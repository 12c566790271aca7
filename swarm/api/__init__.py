"""The library: class Swarm and the documents' functions."""
