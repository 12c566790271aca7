"""Bridges: gateways between the user's inbox and programs of the user's."""
