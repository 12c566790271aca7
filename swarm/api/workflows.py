"""The namespace ``swarm.workflows``: the kinds of work that ``swarm.start_workflow`` starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.api.door import Door
from swarm.kit import files

if TYPE_CHECKING:
    from swarm.roles.workflows import Workflow


class Workflows(Door):
    """Kinds of work, each with the roles that it takes. Call it for all of them."""

    def get(self, name: str) -> Workflow:
        """Return a workflow by its name or an alias.

        Raises:
            WorkflowNotFound
        """
        from swarm.roles import workflows

        with files.os_errors("cannot read the workflows"):
            return workflows.find(name, workflows.places(self._root, self._roles.swarm_dir))

    def __call__(self) -> tuple[Workflow, ...]:
        """Return all workflows."""
        from swarm.roles import workflows

        with files.os_errors("cannot read the workflows"):
            return workflows.all_workflows(workflows.places(self._root, self._roles.swarm_dir))
