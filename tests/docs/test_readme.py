"""The README shows what really happens, and leads nowhere wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.pages import PROJECT, broken_links, run_page, scratch

pytestmark = pytest.mark.integration

README = PROJECT / "README.md"
PAGES = sorted([*PROJECT.glob("*.md"), *(PROJECT / "docs").glob("**/*.md")])


@pytest.mark.timeout(400)  # a busy machine
def test_the_readme_shows_what_happens_typed_where_there_is_nothing(tmp_path: Path) -> None:
    with scratch(tmp_path.resolve()) as lab:
        shutil.rmtree(lab.root)
        Path(lab.env["GIT_CONFIG_GLOBAL"]).write_text("[user]\n\tuseConfigOnly = true\n")  # git knows nobody
        run_page(README, lab, begin=lab.root.parent)


def test_the_readme_is_short() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()

    assert len(lines) < 185
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    index = (PROJECT / "docs" / "index.md").read_text(encoding="utf-8")

    assert "docs/index.md" in README.read_text(encoding="utf-8")
    assert [page.name for page in (PROJECT / "docs").glob("*.md") if f"]({page.name})" not in index] == ["index.md"]


@pytest.mark.parametrize("script", ["scripts/demo", "scripts/test", "scripts/bench", "scripts/picture"])
def test_the_scripts_it_names_are_there(script: str) -> None:
    assert (PROJECT / script).stat().st_mode & 0o111
