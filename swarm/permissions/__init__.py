"""Deny and allow rules: what they mean, and what a tool call does."""
