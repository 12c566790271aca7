"""Read typed values from a YAML tree, and report all problems at once.

A *reader* is a function ``(node, key) -> value`` that raises `ConfigProblem`; those below make readers.
Keys are found by their name, by other names of the same idea, and in camelCase.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from swarm.kit.errors import ConfigProblem
from swarm.kit.yaml import Listing, Node, Scalar, Table

if TYPE_CHECKING:
    from collections.abc import Iterable

Reader = Callable[[Node, str], Any]


class Key(NamedTuple):
    """One key that a mapping may have.

    Attributes:
        read: reads its value.
        field: what the value is called in the program, if not as the key.
        aliases: other names that mean the same.
    """

    read: Reader
    field: str = ""
    aliases: tuple[str, ...] = ()


class Several(Exception):  # no error here: the reader of the whole file raises its problems
    """Problems found together."""

    def __init__(self, problems: Iterable[ConfigProblem]) -> None:
        super().__init__()
        self.problems = tuple(problems)


def problems_of(problem: ConfigProblem | Several) -> tuple[ConfigProblem, ...]:
    """Return the single problems."""
    return problem.problems if isinstance(problem, Several) else (problem,)


def refuse(node: Node, key: str, what: str, hint: str | None = None) -> NoReturn:
    """Report a problem with the value of a key."""
    raise node.problem(f"{key}: {what}", hint=hint)


# --- single values ----------------------------------------------------------------------------


def text(check: Callable[[str], str] = str, *, longest: int = 1000, lines: bool = False) -> Reader:
    """Text that passes *check*, which may also tidy it up.

    Args:
        check: raises ValueError.
        lines: it may have several.
    """

    def read(node: Node, key: str) -> str:
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            hint = "quote the word if you mean it" if isinstance(value, bool) else None
            refuse(node, key, "must be text", hint)
        whole = str(value)
        if len(whole) > longest:
            refuse(node, key, f"has more than {longest} characters")
        if not (lines or whole.isprintable()):
            refuse(node, key, "must be one line without control characters")
        try:
            return check(whole)
        except ValueError as error:
            shown = "" if lines or not whole.isprintable() else f" {whole!r}"
            refuse(node, key + shown, str(error))

    return read


def filled(value: str) -> str:
    """Check that a text says something."""
    if not value.strip():
        raise ValueError("must not be empty")
    return value


def choice(words: Iterable[str], make: Callable[[str], Any] = str, hints: Mapping[str, str] | None = None) -> Reader:
    """One of *words*; *hints* say what to write instead of others."""
    known = tuple(words)

    def read(node: Node, key: str) -> Any:
        value = node.value if isinstance(node, Scalar) else None
        if value not in known:
            shown = "" if not isinstance(value, str) else f" {value[:40]!a}"
            refuse(node, f"{key}{shown}", f"must be one of {', '.join(known)}", (hints or {}).get(str(value)))
        return make(str(value))

    return read


def switch(node: Node, key: str) -> bool:
    """``true`` or ``false``."""
    if not isinstance(node, Scalar) or not isinstance(node.value, bool):
        refuse(node, key, "must be true or false")
    return node.value


def number(low: float, high: float, read_one: Callable[[object], float], show: Callable[[Any], str] = str) -> Reader:
    """A number, time or size between two others."""

    def read(node: Node, key: str) -> float:
        value = node.value if isinstance(node, Scalar) else None
        try:
            found = read_one(value)
        except ValueError as error:
            refuse(node, key, str(error))
        if not low <= found <= high:
            refuse(node, key, f"must be from {show(low)} to {show(high)}, not {show(found)}")
        return found

    return read


# --- lists and mappings -----------------------------------------------------------------------


def listing(one: Reader, *, most: int = 200, distinct: bool = True) -> Reader:
    """A list; a single value stands for a list of one."""

    def read(node: Node, key: str) -> tuple[Any, ...]:
        if isinstance(node, Scalar) and node.value is not None:
            items: tuple[Node, ...] = (node,)
        elif isinstance(node, Listing):
            items = node.items
        else:
            refuse(node, key, "must be a list")
        if len(items) > most:
            refuse(node, key, f"has more than {most} entries")
        found = gather((item, partial(one, item, key)) for item in items)
        if distinct:
            for number_, (item, value) in enumerate(zip(items, found, strict=True)):
                if value in found[:number_]:
                    refuse(item, key, f"{value!a} is there twice")
        return tuple(found)

    return read


def gather(tasks: Iterable[tuple[Node, Callable[[], Any]]]) -> list[Any]:
    """Do all of it, then raise what went wrong, in the order of the file."""
    found, problems = [], []
    for node, task in tasks:
        try:
            found.append(task())
        except (ConfigProblem, Several) as problem:
            problems += [(node.line, node.column, one) for one in problems_of(problem)]
    if problems:
        ordered = [one for _, _, one in sorted(problems, key=lambda item: item[:2])]
        raise ordered[0] if len(ordered) == 1 else Several(ordered)
    return found


def table(keys: Mapping[str, Key]) -> Reader:
    """A mapping with only these keys; returns field → value of keys that are set and not empty."""

    def read(node: Node, key: str) -> dict[str, Any]:
        if not isinstance(node, Table):
            refuse(node, key, "must be a mapping")
        before = f"{key}." if key else ""
        first: dict[str, Scalar] = {}

        def one(name: str) -> tuple[str, Any]:
            pair = node.pairs[name]
            known = _find(keys, name)
            if known is None:
                refuse(pair.key, before + _shown(name), "unknown key", _hint(keys, name))
            if known in first:
                refuse(
                    pair.key,
                    before + _shown(name),
                    f"means the same as {first[known].value} in line {first[known].line}",
                )
            first[known] = pair.key
            if isinstance(pair.value, Scalar) and pair.value.value is None:
                return "", None
            return keys[known].field or known, keys[known].read(pair.value, before + known)

        found = gather((pair.key, partial(one, name)) for name, pair in node.pairs.items())
        return {name: value for name, value in found if name}

    return read


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower() if re.fullmatch(r"[a-z]\w*", name, re.ASCII) else name


def _find(keys: Mapping[str, Key], name: str) -> str | None:
    for spelled in (name, _snake(name), name.replace("-", "_")):
        if spelled in keys:
            return spelled
        for known, key in keys.items():
            if spelled in key.aliases:
                return known
    return None


def _hint(keys: Mapping[str, Key], name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(_snake(name), [*keys, *(alias for key in keys.values() for alias in key.aliases)], n=1)
    return f"did you mean {close[0]}?" if close else f"the keys are {', '.join(keys)}"


def _shown(name: str) -> str:
    return ascii(name)[1:-1]
