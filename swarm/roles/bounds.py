"""The parts of a role file that bound an agent: what it may use up, and what it can reach."""

from __future__ import annotations

from swarm.kit.forms import Field, amount, choice, listing, mapping, number, text
from swarm.project.config import hosts
from swarm.roles.options import Limits, Network

LIMITS = mapping(
    {
        "tokens": Field(number(1, 10**12), "Tokens that an agent may read and write."),
        "cost": Field(amount(0.01, 10**6), "US dollars that an agent may cost."),
        "minutes": Field(amount(0.1, 10**6), "Minutes that an agent may run."),
        "agents": Field(number(1, 256), "Agents of this role in one session."),
    },
    Limits,
)
NETWORK = mapping(
    {
        "preset": Field(choice(*hosts.PRESETS), "The setting `sandbox.network`, for this role."),
        "hosts": Field(listing(text(hosts.host, "host"), "list of hosts"), "Hosts beside those of `sandbox.hosts`."),
    },
    Network,
)
