"""Types of settings: how swarm reads, checks and shows their values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any, Generic, NamedTuple, Never, TypeVar, cast

from swarm.kit import commandline as setups
from swarm.kit.scalars import (
    bytes_from,
    milliseconds_from,
    plain_scalar,
    seconds_from,
    show_bytes,
    show_milliseconds,
    show_seconds,
)
from swarm.project.config.prices import parse as parse_price
from swarm.project.errors import InvalidName
from swarm.project.names import check_prefix

T = TypeVar("T")

_LONGEST_FILE_NAME = 255


# --- kinds of value ---------------------------------------------------------------------------


class Form(NamedTuple, Generic[T]):
    """How a value of one type is read, checked and shown.

    Attributes:
        name: the type in the user's words, for the documentation.
        read: turn what YAML or the caller gave into the value; ValueError says what is wrong.
        split: turn the text of an environment variable into what ``read`` takes.
        show: spell a value as it would stand in YAML.
    """

    name: str
    read: Callable[[object], T]
    split: Callable[[str], object] = plain_scalar
    show: Callable[[T], str] = str


class key(Generic[T]):  # noqa: N801  # it reads as a declaration, as ``property`` does
    """One declared setting, an attribute of its section that can only be read.

    Attributes:
        help: what it is for.
        aliases: whole dotted keys that mean the same.
    """

    def __init__(self, default: Any, form: Form[T], help: str, *aliases: str) -> None:  # noqa: A002
        self.name = ""
        self.default: T = default
        self.form = form
        self.help = help
        self.aliases = aliases

    def __set_name__(self, owner: type[Section], name: str) -> None:
        self.name = name

    def __get__(self, section: Section, owner: type[Section]) -> T:
        return cast("T", section.given.get(self.name, self.default))

    def __set__(self, section: Section, value: T) -> Never:
        raise AttributeError(f"cannot change the setting {self.name}")


class Section:
    """Settings that belong together: each is a `key`, and has its default where no value is given.

    Attributes:
        given: the values that are set, by the names of their keys.
    """

    __slots__ = ("given",)

    def __init__(self, **given: Any) -> None:
        unknown = given.keys() - {one.name for one in self.declared()}
        if unknown:
            raise TypeError(f"{type(self).__name__} has no setting {', '.join(sorted(unknown))}")
        self.given = given

    @classmethod
    def declared(cls) -> tuple[key[Any], ...]:
        """Return the declared settings, in order."""
        return tuple(one for one in vars(cls).values() if isinstance(one, key))

    def values(self) -> dict[str, Any]:
        """Return each setting's name with its value."""
        return {one.name: self.given.get(one.name, one.default) for one in self.declared()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.values() == other.values()

    def __hash__(self) -> int:
        return hash((type(self), *self.values().values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.values().items())})"


def text(check: Callable[[str], str] = str, name: str = "text") -> Form[str]:
    """Text that passes *check*, which may also tidy it up."""

    def read(raw: object) -> str:
        # A plain integer is spelled just as it was written, so it can stand for text.
        if isinstance(raw, bool) or not isinstance(raw, (str, int)):
            raise ValueError(f"must be text, not {kind_of(raw)}")  # noqa: TRY004
        return check(str(raw))

    return Form(name, read, split=str, show=json.dumps)


def choice(*words: str) -> Form[str]:
    """One of *words*."""

    def read(raw: object) -> str:
        if raw not in words:
            raise ValueError(f"must be {' or '.join(words)}, not {shown(raw)}")
        return raw

    return Form(" or ".join(f"`{word}`" for word in words), read, split=str)


def several(*words: str) -> Form[tuple[str, ...]]:
    """A list of some of *words*."""
    one = choice(*words)

    def read(raw: object) -> tuple[str, ...]:
        if not isinstance(raw, (list, tuple)):
            raise ValueError(f"must be a list, not {shown(raw)}")  # noqa: TRY004
        return tuple(dict.fromkeys(one.read(word) for word in raw))

    return patterns()._replace(name=f"list of {one.name}", read=read)


def program() -> Form[str]:
    """A command as one line or as a list of words, or none; kept as a line. There is no shell."""

    def read(raw: object) -> str:
        if raw == "":
            return ""
        return _one_command(raw)

    return text()._replace(name="command", read=read)


def _one_command(raw: object) -> str:
    if isinstance(raw, (list, tuple)):
        return setups.argv([text().read(word) for word in raw])
    return setups.command(text().read(raw))


def switch() -> Form[bool]:
    """``true`` or ``false``."""

    def read(raw: object) -> bool:
        if not isinstance(raw, bool):
            raise ValueError(f"must be true or false, not {shown(raw)}")  # noqa: TRY004
        return raw

    return Form("true or false", read, show=lambda value: str(value).lower())


def number(low: int, high: int) -> Form[int]:
    """A whole number from *low* to *high*."""

    def read(raw: object) -> int:
        if isinstance(raw, bool) or not isinstance(raw, int):
            raise ValueError(f"must be a whole number, not {shown(raw)}")  # noqa: TRY004
        return _within(raw, low, high, str)

    return Form(f"number from {low} to {high}", read)


def amount(low: float, high: float) -> Form[float]:
    """A number that may have a fraction."""

    def read(raw: object) -> float:
        if isinstance(raw, bool) or re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", str(raw)) is None:
            raise ValueError(f"must be a number such as 5 or 2.50, not {shown(raw)}")
        return _within(float(str(raw)), low, high, "{:g}".format)

    return Form(f"number from {low:g} to {high:g}, also with a fraction", read, show="{:g}".format)


def seconds(low: float, high: float) -> Form[float]:
    """A time in seconds."""
    return Form(
        f"time from {show_seconds(low)} to {show_seconds(high)}; a bare number is seconds",
        lambda raw: _within(seconds_from(raw), low, high, show_seconds),
        show=show_seconds,
    )


def milliseconds(low: int, high: int) -> Form[int]:
    """A time in milliseconds."""
    return Form(
        f"time from {show_milliseconds(low)} to {show_milliseconds(high)}; a bare number is milliseconds",
        lambda raw: _within(milliseconds_from(raw), low, high, show_milliseconds),
        show=show_milliseconds,
    )


def size(low: int, high: int) -> Form[int]:
    """A size in bytes."""
    return Form(
        f"size from {show_bytes(low)} to {show_bytes(high)}; a bare number is bytes",
        lambda raw: _within(bytes_from(raw), low, high, show_bytes),
        show=show_bytes,
    )


def patterns() -> Form[tuple[str, ...]]:
    """A list of names and glob patterns."""

    def read(raw: object) -> tuple[str, ...]:
        if not isinstance(raw, (list, tuple)):
            raise ValueError(f"must be a list, not {shown(raw)}")  # noqa: TRY004
        item = text(_printable)
        return tuple(item.read(one) for one in raw)

    return Form(
        "list of names and patterns",
        read,
        split=lambda raw: [part.strip() for part in raw.split(",") if part.strip()],
        show=lambda value: json.dumps(list(value)),
    )


def paths() -> Form[tuple[str, ...]]:
    """A list of paths in the repository, and patterns of such."""
    return _listed(patterns(), setups.inside, "list of paths and patterns")


def variables() -> Form[tuple[str, ...]]:
    """A list of names of environment variables."""
    return _listed(patterns(), setups.port, "list of variables")


def _listed(form: Form[tuple[str, ...]], check: Callable[[str], str], name: str) -> Form[tuple[str, ...]]:
    return form._replace(name=name, read=lambda raw: tuple(check(one) for one in form.read(raw)))


def commands() -> Form[tuple[str, ...]]:
    """A list of commands, each one line or a list of words; kept as lines. There is no shell."""

    def read(raw: object) -> tuple[str, ...]:
        if isinstance(raw, str):
            raw = [raw]
        if not isinstance(raw, (list, tuple)):
            raise ValueError(f"must be a list, not {shown(raw)}")  # noqa: TRY004
        return tuple(_one_command(item) for item in raw)

    return Form(
        "list of commands, each a line or a list of words",
        read,
        split=lambda raw: [line for line in raw.splitlines() if line.strip()],
        show=lambda value: json.dumps(list(value)),
    )


def prices() -> Form[tuple[str, ...]]:
    """Prices of models, a line each."""
    form = patterns()

    def read(raw: object) -> tuple[str, ...]:
        lines = form.read(raw)
        for line in lines:
            parse_price(line)
        return lines

    return Form("list of `MODEL = INPUT/OUTPUT/CACHE READ/CACHE WRITE`", read, form.split, form.show)


_Number = TypeVar("_Number", int, float)


def _within(value: _Number, low: float, high: float, show: Callable[[Any], str]) -> _Number:
    if not low <= value <= high:
        raise ValueError(f"must be from {show(low)} to {show(high)}, not {show(value)}")
    return value


def kind_of(raw: object) -> str:
    """Describe the kind of a wrong value."""
    if raw is None:
        return "empty"
    if isinstance(raw, bool):
        return "true or false (quote the word if you mean it)"
    if isinstance(raw, Mapping):
        return "a mapping"
    return "a list" if isinstance(raw, (list, tuple)) else f"a {type(raw).__name__}"


def shown(raw: object) -> str:
    """Spell a value for a message, cut short if it is long; of what holds others, only say what it is."""
    if raw is None or isinstance(raw, (Mapping, list, tuple)):
        return kind_of(raw)
    if isinstance(raw, bool):
        return str(raw).lower()
    word = ascii(raw)
    return word if len(word) <= 60 else word[:57] + "..."


# --- checks of text ---------------------------------------------------------------------------


def _printable(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    if not value.isprintable():
        raise ValueError("must not contain control characters")
    return value


def folder_inside(value: str) -> str:
    """Check a folder below the repository's root that is neither git's nor the state folder."""
    _printable(value)
    path = PurePosixPath(value)
    if path.is_absolute() or value.startswith("~"):
        raise ValueError("must be a path relative to the repository, not an absolute one")
    if ".." in path.parts:
        raise ValueError("must not contain '..'")
    if not path.parts:
        raise ValueError("must name a folder, not the repository itself")
    # Without case: on macOS `.GIT` is the same folder.
    lowered = [part.casefold() for part in path.parts]
    if ".git" in lowered:
        raise ValueError("must not be inside .git")
    if lowered[0] == ".swarm":
        raise ValueError("must not be inside .swarm, which holds swarm's own state")
    return str(path)


def file_name(value: str) -> str:
    """Check the name of a file at the root of a worktree."""
    _printable(value)
    if "/" in value or value in (".", ".."):
        raise ValueError("must be a plain file name without a folder")
    if value.casefold() in (".git", ".swarm"):
        raise ValueError(f"must not be {value}")
    if len(value.encode()) > _LONGEST_FILE_NAME:
        raise ValueError(f"must not be longer than {_LONGEST_FILE_NAME} bytes")
    return value


def prefix(value: str) -> str:
    """Check the first part of a branch's name."""
    try:
        return check_prefix(value)
    except InvalidName as error:
        raise ValueError(error.message) from None


def tmux_socket(value: str) -> str:
    """Check a tmux server: a path whose length the kernel takes, or a plain name."""
    if "/" in value:
        if len(value.encode("utf-8", "surrogateescape")) > 100:
            raise ValueError("a socket path has at most 100 bytes")
        return value
    return tmux_name(value) if value else value


def tmux_name(value: str) -> str:
    """Check a name that tmux takes as it is; it gives a meaning to dots, colons and number signs."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", value) is None:
        raise ValueError("use letters, digits, - and _")
    return value


def program_name(value: str) -> str:
    """Check the name of an agent program."""
    if re.fullmatch(r"[a-z][a-z0-9-]{0,39}", value) is None:
        raise ValueError("use a plain name such as demo")
    return value


def collector(value: str) -> str:
    """Check the address of a collector; a secret in it would be shown wherever settings are shown."""
    if value and re.fullmatch(r"https?://(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(:\d{1,5})?(/[!-~]*)?", value, re.ASCII) is None:
        if "@" in value:
            raise ValueError("must not hold a password; put what the collector asks for into telemetry.headers_file")
        raise ValueError("must be an address such as http://localhost:4318")
    return value


def private_file(value: str) -> str:
    """Check the place of a file of the user's."""
    if value and (not value.startswith(("/", "~/")) or not value.isprintable()):
        raise ValueError("must be an absolute path, or one that begins with ~/")
    return value
