"""A proxy and a door for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.sandbox.network.served import Served, each

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    yield from each(Served(tmp_path))
