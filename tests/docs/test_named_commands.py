"""Every command and option that a page names is one."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from swarm.cli.app import build
from swarm.cli.command_table import ALIASES
from tests.support.pages import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.component

PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]
_INLINE = re.compile(r"(?<!`)`swarm ([a-z][^`]*)`(?!`)")
#: Blocks of every language: the end of one that is left out would look like a beginning.
_BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"^(?:\$ )?swarm ([a-z].*)$", re.MULTILINE)
TREE: Any = build()


def unknown(said: str) -> str:
    """Return the first word of a command line that swarm does not know, or nothing."""
    command, words = TREE, re.split(r"[#|]", said)[0].split()
    while words and hasattr(command, "commands"):
        found = command.get_command(None, ALIASES.get(words[0], words[0]))
        if found is None and command is TREE:
            return words[0]
        if found is None:  # a word for the subcommand that the group takes by itself
            break
        command, words = found, words[1:]
    options = {"--help", *_options(command)}
    return next((word for word in re.findall(r"(?<!\S)--[a-z-]+", " ".join(words)) if word not in options), "")


def _options(command: Any) -> set[str]:
    own = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    below = getattr(command, "commands", {}) if command is not TREE else {}
    return own.union(*(_options(command.get_command(None, name)) for name in below))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_only_commands_and_options_that_swarm_has(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    lines = "\n".join(block for language, block in _BLOCK.findall(text) if language in {"", "console", "sh"})
    named = _INLINE.findall(_BLOCK.sub("", text)) + _LINE.findall(lines)

    assert [(said, wrong) for said in named if (wrong := unknown(said))] == []


def test_a_command_or_an_option_that_swarm_has_not_is_found() -> None:
    lines = ("stat", "start x --foo", "inbox --tak", "merge x --squash")

    assert [unknown(line) for line in lines] == ["stat", "--foo", "--tak", ""]


@pytest.mark.parametrize(
    "page", [PROJECT / "DESIGN.md", *sorted(PROJECT.glob("docs/decisions/*.md"))], ids=lambda p: p.name
)
def test_a_page_about_the_code_names_only_files_that_are_there(page: Path) -> None:
    named = re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|md|yaml))[:`]", page.read_text(encoding="utf-8"))

    assert [name for name in named if not any((place / name).is_file() for place in (PROJECT, PROJECT / "swarm"))] == []


_IMPORT = re.compile(r"^(?:>>> )?from (swarm[\w.]*) import ([\w, ]+)", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_imports_from_swarm_is_there(page: Path) -> None:
    imports = _IMPORT.findall(page.read_text(encoding="utf-8"))

    assert not [
        f"{module}.{name}"
        for module, names in imports
        for name in re.findall(r"\w+", names)
        if not hasattr(import_module(module), name)
    ]
