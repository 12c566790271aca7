"""Roles and workflows: finding, reading and writing them."""
