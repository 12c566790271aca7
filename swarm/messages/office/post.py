"""The post office of a repository: send, take, acknowledge, look.

Paths are text here: ``pathlib`` costs more to load than a message to send.

Who sends is not an argument: it is what the machine says of the process (``machine/identity.py``).  The state of a
message is what happened to it, each with its evidence; nothing here types into a pane.
"""

from __future__ import annotations

from swarm.messages.office.base import LEASE, Sender
from swarm.messages.office.looking import Looking
from swarm.messages.office.sending import Sending, Sent
from swarm.messages.office.taking import Taken, Taking

__all__ = ["LEASE", "Post", "Sender", "Sent", "Taken"]


class Post(Sending, Taking, Looking):
    """The messages below one ``.swarm`` folder: send, take and read them.

    Args:
        prepare: makes that folder, in a repository that has none yet.
    """
