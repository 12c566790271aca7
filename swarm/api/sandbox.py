"""The namespace ``swarm.sandbox``: boxes, in which agents are to work."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.sandbox.check import BoxCheck


class Sandbox:
    """Boxes on this machine; needs no repository."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = dict(os.environ if environ is None else environ)

    def __repr__(self) -> str:
        return "<Sandbox>"

    def check(self) -> BoxCheck:
        """Make a box with everything that a box of an agent has, and return whether that went well, and why not."""
        from swarm.sandbox.check import check

        return check(self._environ)
