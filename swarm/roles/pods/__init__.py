"""Pods: teams as files with variables."""
