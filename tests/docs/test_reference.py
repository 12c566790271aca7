"""docs/reference.md is made from the docstrings of the library.

After a change of a docstring or a signature: ``SWARM_UPDATE_DOCS=1 scripts/test tests/docs/test_reference.py``.
"""

from __future__ import annotations

import enum
import inspect
import os
import re
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

import swarm
import swarm.worktrees
from tests.support.library import namespaces
from tests.support.pages import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.component

PAGE = PROJECT / "docs" / "reference.md"

HEAD = """\
# Reference of the library

<!-- Made by tests/docs/test_reference.py from the docstrings of swarm; do not edit by hand. -->

[Library](library.md) shows the verbs in use. This page lists each of them with its arguments. Import every type
from `swarm`. [Errors](errors.md) lists the exceptions and their codes.
"""


def page() -> str:
    parts = [HEAD, "## Swarm\n", _prose(inspect.getdoc(swarm.Swarm)), *_members(swarm.Swarm, "swarm")]
    for name, kind in namespaces().items():
        parts += [f"## swarm.{name}\n", _prose(inspect.getdoc(kind)), *_members(kind, f"swarm.{name}")]
    parts += ["## Functions of swarm.worktrees\n", "Each function takes `repo=`, by default the current directory.\n"]
    for name in swarm.worktrees.__all__:
        found = getattr(swarm.worktrees, name)
        if inspect.isfunction(found):
            parts += _entry(name, found)
    parts += ["## Types\n"]
    for name in sorted(swarm.__all__, key=str.casefold):
        found = getattr(swarm, name)
        shown = {swarm.Swarm, *namespaces().values()}
        if inspect.isclass(found) and found not in shown and not issubclass(found, BaseException):
            parts += [f"### {name}\n", _prose(_own_doc(found)), *_fields(found)]
    return "\n".join(part for part in parts if part).rstrip() + "\n"


def _members(kind: type, prefix: str) -> Iterator[str]:
    """Yield an entry for each public method, inherited ones too, by name."""
    for name, member in sorted(inspect.getmembers_static(kind)):
        if name == "__call__":
            yield from _entry(prefix, member)
        if name.startswith("_") or not inspect.getdoc(member):
            continue
        if isinstance(member, (classmethod, staticmethod)):
            yield from _entry(f"Swarm.{name}" if kind is swarm.Swarm else f"{prefix}.{name}", member.__func__)
        elif inspect.isfunction(member):
            yield from _entry(f"{prefix}.{name}", member)
        elif isinstance(member, property):
            yield from (f"### {prefix}.{name}\n", _prose(inspect.getdoc(member)))


def _entry(name: str, function: Any) -> Iterator[str]:
    signature = inspect.signature(function)
    shown = [part for part in map(_parameter, signature.parameters.values()) if part not in {"self", "cls"}]
    kinds = [one.kind for one in signature.parameters.values() if one.name not in {"self", "cls"}]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        shown.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    result = f" -> {_type(signature.return_annotation)}"
    line = f"{name}({', '.join(shown)}){result}"
    if len(line) > 110:
        line = f"{name}(\n" + "".join(f"    {part},\n" for part in shown) + f"){result}"
    yield f"### {name}\n"
    yield f"```py\n{line}\n```\n"
    yield _prose(inspect.getdoc(function))


def _parameter(one: inspect.Parameter) -> str:
    stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(one.kind.name, "")
    note = "" if one.annotation is one.empty else f": {_type(one.annotation)}"
    return f"{stars}{one.name}{note}" + ("" if one.default is one.empty else f" = {one.default!r}")


def _type(note: Any) -> str:
    note = getattr(note, "__forward_arg__", note)
    return note if isinstance(note, str) else inspect.formatannotation(note)


def _prose(text: str | None) -> str:
    """Turn a docstring into Markdown: its sections become lists, its examples blocks of code."""
    lines: list[str] = []
    section = ""
    for paragraph in (text or "").replace("``", "`").split("\n\n"):
        head, _, rest = paragraph.partition("\n")
        if head == "Attributes:":
            continue  # they stand with the fields
        if head in {"Args:", "Raises:", "Returns:", "Yields:"}:
            section = head.rstrip(":").replace("Args", "Arguments")
            lines += [f"{section}:", "", *_listed(rest, section), ""]
        elif head == "Example:":
            lines += ["```pycon", *re.sub(r" *# doctest.*", "", textwrap.dedent(rest)).splitlines(), "```", ""]
        elif paragraph.startswith("    "):
            lines += ["```py", *textwrap.dedent(paragraph).splitlines(), "```", ""]
        elif paragraph.strip():
            lines += [*(line.strip() for line in paragraph.splitlines()), ""]
    return "\n".join(lines)


def _listed(body: str, section: str) -> Iterator[str]:
    """Yield one list item per argument; a text that names none is a single item."""
    body = textwrap.dedent(body)
    if section in {"Returns", "Yields"}:
        yield "- " + " ".join(body.split())
        return
    for item in re.split(r"\n(?! )", body):
        name, colon, what = item.partition(":")
        names = ", ".join(f"`{one.strip()}`" for one in name.split(",")) if colon else ""
        yield "- " + (f"{names}: {' '.join(what.split())}" if colon else " ".join(item.split()))


def _fields(kind: type) -> Iterator[str]:
    """Yield the fields of a value with their types and meaning, or the members of an enumeration."""
    if issubclass(kind, enum.Enum):
        yield ", ".join(f"`{one.value}`" for one in kind) + "\n"
        return
    about = _attributes(_own_doc(kind))
    fields = []
    for base in reversed(kind.__mro__):
        for name, note in inspect.get_annotations(base).items():
            if not name.startswith("_") and "ClassVar" not in str(note):
                fields.append(f"- `{name}`: `{_type(note)}`" + (f"; {about[name]}" if name in about else ""))
    if fields:
        yield "\n".join(fields) + "\n"


def _attributes(text: str) -> dict[str, str]:
    """Return what the section of attributes in a docstring tells about each of them."""
    section = re.search(r"^Attributes:\n((?:    .*\n?)*)", text.replace("``", "`"), re.MULTILINE)
    items = (item.partition(":") for item in re.split(r"\n(?! )", textwrap.dedent(section[1] if section else "")))
    return {name.strip(): " ".join(what.split()) for names, _, what in items for name in names.split(",")}


def _own_doc(kind: type) -> str:
    """Return the docstring of a type, but not the one that Python makes for values."""
    text = inspect.getdoc(kind) or ""
    return "" if text.startswith(f"{kind.__name__}(") else text


def test_the_reference_is_made_from_the_docstrings() -> None:
    made = page()
    if os.environ.get("SWARM_UPDATE_DOCS"):
        PAGE.write_text(made, encoding="utf-8")

    assert PAGE.read_text(encoding="utf-8") == made, "run with SWARM_UPDATE_DOCS=1"
