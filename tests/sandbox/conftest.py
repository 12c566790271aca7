"""A machine that can make boxes."""

from __future__ import annotations

import os

import pytest

from swarm.sandbox import check


@pytest.fixture(scope="session")
def _can_make_boxes() -> check.BoxCheck:
    return check.check(os.environ)


@pytest.fixture
def boxes(_can_make_boxes: check.BoxCheck) -> None:
    """Leave a test out where no box can be made; with ``SWARM_REQUIRE_BOX`` it fails."""
    if not _can_make_boxes.available:
        (pytest.fail if os.environ.get("SWARM_REQUIRE_BOX") else pytest.skip)(_can_make_boxes.cause)
