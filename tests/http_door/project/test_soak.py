"""Figure 2 in short: tasks come in while the server is killed all the time. `scripts/soak` is the long form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.serving_soak import soak

if TYPE_CHECKING:
    from swarm.testing.lab import Lab

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600)]


def test_no_task_is_lost_and_none_is_done_twice(lab: Lab) -> None:
    found = soak(lab, tasks=16, agents=4, every=1.5)
    assert found.good, found
    assert found.kills > 0
