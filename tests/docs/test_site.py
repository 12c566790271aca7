"""The pages build as a site, and each of them is on it."""

from __future__ import annotations

import subprocess

import pytest
import yaml

from tests.support.pages import PROJECT

pytestmark = pytest.mark.integration


def test_the_site_builds_and_no_link_on_it_is_dead() -> None:
    built = subprocess.run([PROJECT / "scripts" / "docs"], capture_output=True, text=True, check=False)

    assert built.returncode == 0, built.stdout + built.stderr
    assert "WARNING" not in built.stderr
    assert (PROJECT / ".cache" / "site" / "docs" / "guide.html").is_file()


def test_the_navigation_names_every_page_once() -> None:
    text = (PROJECT / "mkdocs.yml").read_text(encoding="utf-8")
    named = [
        page
        for group in yaml.safe_load(text)["nav"]
        for pages in group.values()
        for one in pages
        for page in one.values()
    ]
    there = [
        *(path.name for path in PROJECT.glob("*.md")),
        *(f"docs/{path.name}" for path in PROJECT.glob("docs/*.md")),
    ]

    assert sorted(named) == sorted([*there, "docs/decisions/index.md"])
