"""The pages below docs/ show what really happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.pages import PROJECT, run_page, scratch

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


@pytest.mark.timeout(400)  # a busy machine
@pytest.mark.parametrize("name", ["guide", "tutorial", "library", "how-it-works", "pods", "teams-of-teams"])
def test_the_page_shows_what_happens(name: str, tmp_path: Path) -> None:
    with scratch(tmp_path.resolve()) as lab:
        run_page(PROJECT / "docs" / f"{name}.md", lab)
