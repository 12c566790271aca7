"""The library's door: one object a repository, one method a verb.

Nothing here prints, exits, or changes the process's directory or environment; what a command line
shows is what these methods return or raise.
"""

from __future__ import annotations

from swarm.verbs.agents import Agents
from swarm.verbs.approvals import Approvals
from swarm.verbs.delivery import Delivery
from swarm.verbs.design import Design
from swarm.verbs.events import Events
from swarm.verbs.merging import Merging
from swarm.verbs.messages import Messages
from swarm.verbs.queues import Queues
from swarm.verbs.usage import Usage


class Swarm(Agents, Approvals, Delivery, Events, Merging, Messages, Queues, Usage, Design):
    """swarm in one repository. Make it with ``Swarm.open``.

    Example:
        >>> from swarm import Swarm
        >>> swarm = Swarm.open("/path/to/project")          # doctest: +SKIP
        >>> swarm.create("feature-x", ["researcher", "developer"]).paths()  # doctest: +SKIP
    """
