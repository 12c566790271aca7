"""The class ``Swarm``: one object per repository, one method per verb.

Nothing here prints, exits, or changes the process's directory or environment; what a command line
shows is what these methods return or raise.
"""

from __future__ import annotations

from swarm.api.agents import Agents
from swarm.api.approvals import Approvals
from swarm.api.delivery import Delivery
from swarm.api.design import Design
from swarm.api.events import Events
from swarm.api.merging import Merging
from swarm.api.messages import Messages
from swarm.api.queues import Queues
from swarm.api.usage import Usage


class Swarm(Agents, Approvals, Delivery, Events, Merging, Messages, Queues, Usage, Design):
    """swarm in one repository. Make it with ``Swarm.open``.

    Example:
        >>> from swarm import Swarm
        >>> swarm = Swarm.open("/path/to/project")          # doctest: +SKIP
        >>> swarm.create("feature-x", ["researcher", "developer"]).paths()  # doctest: +SKIP
    """

    def __repr__(self) -> str:
        return f"<Swarm {self.root}>"
