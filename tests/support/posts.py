"""The messages of a lab's repository, as another process would open them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.messages.office.post import Post

if TYPE_CHECKING:
    from swarm.testing.lab import Lab
    from swarm.testing.panes import PaneLab


def post_of(lab: Lab | PaneLab) -> Post:
    return Post(lab.root / ".swarm", environ=lab.env)
