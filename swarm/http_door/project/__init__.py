"""The whole project by HTTP: its agents, tasks, messages, approvals and events."""
