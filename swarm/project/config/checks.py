"""How a setting is declared, and the forms and checks that only settings use."""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Generic, Never, TypeVar, cast

from swarm.kit import commandline as setups
from swarm.kit.forms import Form, listing, program, refuse, shown, text
from swarm.kit.scalars import plain_scalar
from swarm.project.config.prices import parse as parse_price
from swarm.project.errors import InvalidName, ReservedName
from swarm.project.layout import SUBTREES
from swarm.project.names import check_name, check_prefix

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_LONGEST_FILE_NAME = 255


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


# --- forms ------------------------------------------------------------------------------------


def program_or_none() -> Form[str]:
    """A command, or none."""
    form = program()
    return form._replace(
        read=lambda raw: "" if raw == "" else form.read(raw), schema={"anyOf": [{"const": ""}, form.schema]}
    )


def patterns() -> Form[tuple[str, ...]]:
    """A list of names and glob patterns."""
    return _listed(_printable, "list of names and patterns")


def paths() -> Form[tuple[str, ...]]:
    """A list of paths in the repository, and patterns of such."""
    return _listed(setups.inside, "list of paths and patterns")


def variables() -> Form[tuple[str, ...]]:
    """A list of names of environment variables."""
    return _listed(setups.port, "list of variables")


def prices() -> Form[tuple[str, ...]]:
    """Prices of models, a line each."""

    def check(line: str) -> str:
        parse_price(line)
        return line

    return _listed(check, "list of `MODEL = INPUT/OUTPUT/CACHE READ/CACHE WRITE`")


def port_range() -> Form[tuple[int, int]]:
    """The first and the last of some ports."""

    def read(raw: object) -> tuple[int, int]:
        ports = list(raw) if isinstance(raw, (list, tuple)) else []
        if len(ports) != 2 or any(isinstance(one, bool) or not isinstance(one, int) for one in ports):
            refuse("must be the first and the last port", "for example: [9000, 9199]", value=shown(raw))
        first, last = ports
        if not 1 <= first <= last <= 65_535:
            refuse("must be two ports from 1 to 65535, the smaller one first", value=shown(raw))
        return first, last

    one = {"type": "integer", "minimum": 1, "maximum": 65_535}
    return Form(
        "first and last port",
        read,
        {"type": "array", "items": one, "minItems": 2, "maxItems": 2},
        split=lambda text: [plain_scalar(part.strip()) for part in text.split(",")],
        show=lambda value: json.dumps(list(value)),
    )


def _listed(check: Callable[[str], str], name: str) -> Form[tuple[str, ...]]:
    return listing(text(check, least=1), name, distinct=False)


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


def folder_of_subtrees(value: str) -> str:
    """Check a folder for the worktrees of spawned leads: one of swarm's own, or as for all worktrees."""
    return value if value == SUBTREES else folder_inside(value)


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


def role_name(value: str) -> str:
    """Check the name of a role; whether there is one is asked when it is used."""
    try:
        return check_name("role", value)
    except (InvalidName, ReservedName) as error:
        raise ValueError(error.message) from None


def collector(value: str) -> str:
    """Check the address of a collector; a secret in it would be shown wherever settings are shown."""
    if value and re.fullmatch(r"https?://(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(:\d{1,5})?(/[!-~]*)?", value, re.ASCII) is None:
        if "@" in value:
            raise ValueError("must not hold a password; put what the collector asks for into telemetry.headers_file")
        raise ValueError("must be an address such as http://localhost:4318")
    return value


def box_path(value: str) -> str:
    """Check a path that a box is to show."""
    path = private_file(value)
    if not path or ".." in PurePosixPath(path).parts or path.rstrip("/") in ("", "~"):
        raise ValueError("must name a file or folder below / or ~, without '..'")
    return path.rstrip("/")


def private_file(value: str) -> str:
    """Check the place of a file of the user's."""
    if value and (not value.startswith(("/", "~/")) or not value.isprintable()):
        raise ValueError("must be an absolute path, or one that begins with ~/")
    return value
