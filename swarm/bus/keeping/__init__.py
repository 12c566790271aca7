"""Retention: attachments, finished parts, boxes moved away."""
