"""What stays on disk, and for how long: attachments, finished parts, boxes moved away."""
