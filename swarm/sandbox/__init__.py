"""Boxes: what an agent must not touch, it cannot touch."""
