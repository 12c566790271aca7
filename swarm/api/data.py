"""Values as data for machines, for the doors that print or serve them."""

from __future__ import annotations

from swarm.approvals.data import approval_data as approval_data  # noqa: PLC0414  # offered here
from swarm.sessions.data import agent_data as agent_data  # noqa: PLC0414  # offered here
from swarm.sessions.data import session_data as session_data  # noqa: PLC0414  # offered here
