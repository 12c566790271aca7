"""The notes beside an agent's run."""

from __future__ import annotations

from collections import Counter

import pytest

from swarm.machine.run_folder import runfiles

pytestmark = pytest.mark.unit


def test_no_two_notes_have_one_name() -> None:
    """One that writes over another's note makes it forget: a held task would wait for ever."""
    names = Counter(
        value for key, value in vars(runfiles).items() if key.isupper() and str(value).endswith((".json", ".lock"))
    )

    assert [name for name, times in names.items() if times > 1] == []
    assert len(names) > 10
