"""Deny and allow rules: their meaning, and the effects of tool calls."""
