"""One schema language for files and settings: it reads, checks and shows values, and describes them to editors.

A form reads plain values, as YAML or a caller gives them.  A wrong one is a `Misfit`, which says where in the value
each trouble is; `swarm.kit.yaml.Node.problems` finds its line and column.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar, cast

from swarm.kit import commandline
from swarm.kit.scalars import (
    bytes_from,
    milliseconds_from,
    plain_scalar,
    seconds_from,
    show_bytes,
    show_milliseconds,
    show_seconds,
)
from swarm.kit.words import did_you_mean

S = TypeVar("S")
T = TypeVar("T")
_Number = TypeVar("_Number", int, float)
Schema = Mapping[str, Any]

_DECIMAL = r"[0-9]{1,9}(\.[0-9]{1,6})?"
_TIME = r"^[0-9]{1,15}(\.[0-9]{1,9})? ?(ms|s|m|h|d|w)?$"
_SIZE = r"^[0-9]{1,15}(\.[0-9]{1,9})? ?([kKmMgG][iI]?)?[bB]?$"


class Trouble(NamedTuple):
    """One thing that is wrong with a value.

    Attributes:
        what: the cause, as the end of a sentence.
        key: the dotted name of the field; empty for the value itself.
        value: the wrong value, if it helps.
        path: the keys as spelled, and the indexes, that lead to it.
        at_key: the last key of the path is wrong, not its value.
    """

    what: str
    key: str = ""
    value: str = ""
    hint: str | None = None
    path: tuple[str | int, ...] = ()
    at_key: bool = False

    @property
    def text(self) -> str:
        """The whole line."""
        subject = " ".join(filter(None, (self.key, self.value)))
        return f"{subject}: {self.what}" if subject else self.what

    def inside(self, path: tuple[str | int, ...], key: str) -> Trouble:
        """Return it as seen from the value that holds this one."""
        return self._replace(path=(*path, *self.path), key=".".join(filter(None, (key, self.key))))


class Misfit(ValueError):
    """A value does not fit its form."""

    def __init__(self, *troubles: Trouble) -> None:
        super().__init__(troubles[0].what)
        self.troubles = troubles


def troubles_of(error: ValueError) -> tuple[Trouble, ...]:
    """Return the troubles in an error of a form or a check."""
    return error.troubles if isinstance(error, Misfit) else (Trouble(str(error)),)


def refuse(what: str, hint: str | None = None, *, key: str = "", value: str = "", at_key: bool = False) -> NoReturn:
    """Raise one trouble."""
    raise Misfit(Trouble(what, key, value, hint, at_key=at_key))


class Form(NamedTuple, Generic[T]):
    """How a value of one type is read, checked and shown.

    Attributes:
        name: the type in the user's words, for the documentation.
        read: turn a plain value into what it means; ValueError says what is wrong.
        schema: the same for editors, as JSON Schema.
        split: turn the text of an environment variable into what ``read`` takes.
        show: spell a value as it would stand in YAML.
        fields: of a mapping.
    """

    name: str
    read: Callable[[Any], T]
    schema: Schema = {}  # noqa: RUF012  # nobody changes it
    split: Callable[[str], object] = plain_scalar
    show: Callable[[T], str] = str
    fields: Mapping[str, Field] = {}  # the same


class Field(NamedTuple):
    """One key of a mapping in a file.

    Attributes:
        help: what it is for.
        aliases: other names that mean the same; each name may also stand in camelCase.
        to: what the program calls it, if not so.
        override: `--override` may set it.
    """

    form: Form[Any]
    help: str
    aliases: tuple[str, ...] = ()
    to: str = ""
    override: bool = False


# --- single values ----------------------------------------------------------------------------


def text(
    check: Callable[[str], str] = str,
    name: str = "text",
    *,
    longest: int = 1000,
    lines: bool = False,
    pattern: str = "",
    least: int = 0,
) -> Form[str]:
    """Text that passes *check*, which may also tidy it up.

    Args:
        check: raises ValueError.
        lines: it may have several.
        pattern: what editors check, where one says it.
    """

    def read(raw: object) -> str:
        # A plain integer is spelled just as it was written, so it can stand for text.
        if isinstance(raw, bool) or not isinstance(raw, (str, int)):
            hint = "quote the word if you mean it" if isinstance(raw, bool) else None
            refuse(f"must be text, not {kind_of(raw)}", hint)
        whole = str(raw)
        if len(whole) > longest:
            refuse(f"has more than {longest} characters")
        if not (lines or whole.isprintable()):
            refuse("must be one line without control characters")
        try:
            return check(whole)
        except ValueError as error:
            # What is empty, and a text of several lines, would only confuse.
            refuse(str(error), value="" if lines or not whole else shown(whole))

    limits: dict[str, Any] = {"type": ["string", "number"], "maxLength": longest}
    limits |= {"minLength": least} if least else {}
    return Form(name, read, limits | ({"pattern": pattern} if pattern else {}), split=str, show=json.dumps)


def filled(value: str) -> str:
    """Check that a text says something."""
    if not value.strip():
        raise ValueError("must not be empty")
    return value


def choice(*words: str, hints: Mapping[str, str] | None = None) -> Form[str]:
    """One of *words*; *hints* give the right word for common wrong ones."""
    known = tuple(str(word) for word in words)

    def read(raw: object) -> str:
        if not isinstance(raw, str) or raw not in known:
            refuse(f"must be one of {', '.join(known)}", (hints or {}).get(str(raw)), value=shown(raw))
        return raw

    return Form(" or ".join(f"`{word}`" for word in known), read, {"enum": list(known)}, split=str)


def then(form: Form[S], make: Callable[[S], T]) -> Form[T]:
    """The result of *make* for a value of *form*."""
    return cast("Form[T]", form._replace(read=cast("Any", lambda raw: make(form.read(raw)))))


def switch() -> Form[bool]:
    """``true`` or ``false``."""

    def read(raw: object) -> bool:
        if not isinstance(raw, bool):
            refuse("must be true or false", value=shown(raw))
        return raw

    return Form("true or false", read, {"type": "boolean"}, show=lambda value: str(value).lower())


def number(low: int, high: int) -> Form[int]:
    """A whole number from *low* to *high*."""

    def read(raw: object) -> int:
        if isinstance(raw, bool) or not isinstance(raw, int):
            refuse("must be a whole number", value=shown(raw))
        return _within(raw, low, high, str)

    return Form(f"number from {low} to {high}", read, {"type": "integer", "minimum": low, "maximum": high})


def amount(low: float, high: float) -> Form[float]:
    """A number that may have a fraction."""

    def read(raw: object) -> float:
        if isinstance(raw, bool) or re.fullmatch(_DECIMAL, str(raw)) is None:
            refuse("must be a number such as 5 or 2.50", value=shown(raw))
        return _within(float(str(raw)), low, high, "{:g}".format)

    name = f"number from {low:g} to {high:g}, also with a fraction"
    return Form(name, read, _counted(f"^{_DECIMAL}$", low, high), show="{:g}".format)


def seconds(low: float, high: float) -> Form[float]:
    """A time in seconds."""
    return _measure("time", "seconds", low, high, seconds_from, show_seconds, _TIME)


def milliseconds(low: int, high: int) -> Form[int]:
    """A time in milliseconds."""
    return _measure("time", "milliseconds", low, high, milliseconds_from, show_milliseconds, _TIME)


def size(low: int, high: int) -> Form[int]:
    """A size in bytes."""
    return _measure("size", "bytes", low, high, bytes_from, show_bytes, _SIZE)


def _measure(
    kind: str,
    unit: str,
    low: _Number,
    high: _Number,
    parse: Callable[[object], _Number],
    show: Callable[[_Number], str],
    pattern: str,
) -> Form[_Number]:
    """A number with a unit, between two limits."""
    name = f"{kind} from {show(low)} to {show(high)}; a bare number is {unit}"
    return Form(name, lambda raw: _within(parse(raw), low, high, show), _counted(pattern, low, high), show=show)


def _counted(pattern: str, low: float, high: float) -> Schema:
    return {"anyOf": [{"type": "number", "minimum": low, "maximum": high}, {"type": "string", "pattern": pattern}]}


def _within(value: _Number, low: float, high: float, show: Callable[[Any], str]) -> _Number:
    if not low <= value <= high:
        refuse(f"must be from {show(low)} to {show(high)}, not {show(value)}")
    return value


# --- lists and mappings -----------------------------------------------------------------------


def listing(one: Form[T], name: str = "", *, most: int = 500, distinct: bool = True) -> Form[tuple[T, ...]]:
    """A list; a single text stands for a list of one."""

    def read(raw: object) -> tuple[T, ...]:
        if not isinstance(raw, (list, tuple, str)):
            refuse("must be a list", value="" if isinstance(raw, Mapping) else shown(raw))
        items: Iterable[tuple[tuple[int, ...], object]] = (
            [((), raw)] if isinstance(raw, str) else [((place,), item) for place, item in enumerate(raw)]
        )
        if len(raw) > most and not isinstance(raw, str):
            refuse(f"has more than {most} entries")
        found = gather((path, "", partial(one.read, item)) for path, item in items)
        if distinct:
            twice = [place for place, value in enumerate(found) if value in found[:place]]
            if twice:
                raise Misfit(*(Trouble(f"{found[place]!a} is there twice", path=(place,)) for place in twice))
        return tuple(found)

    return Form(
        name or f"list of {one.name}",
        read,
        {"anyOf": [one.schema, {"type": "array", "items": one.schema, "maxItems": most, "uniqueItems": distinct}]},
        split=lambda raw: [part.strip() for part in raw.split(",") if part.strip()],
        show=lambda value: json.dumps(list(value)),
    )


def gather(tasks: Iterable[tuple[tuple[str | int, ...], str, Callable[[], T]]]) -> list[T]:
    """Do all tasks, each with its path and the name of its key, then raise all their errors."""
    found: list[T] = []
    troubles: list[Trouble] = []
    for path, key, task in tasks:
        try:
            found.append(task())
        except ValueError as error:
            troubles += (one.inside(path, key) for one in troubles_of(error))
    if troubles:
        raise Misfit(*troubles)
    return found


def mapping(fields: Mapping[str, Field], make: Callable[..., T], name: str = "mapping") -> Form[T]:
    """A mapping with only these keys.

    Args:
        make: called with what is set and not empty, by `Field.to`; a Misfit of it names a key.
    """

    def read(raw: object) -> T:
        if not isinstance(raw, Mapping):
            refuse("must be a mapping")
        spelled: dict[str, str] = {}

        def one(given: str, value: object) -> tuple[str, Any]:
            known = name_of(fields, given)
            if known is None:
                refuse("unknown key", _hint(fields, given), at_key=True)
            if spelled.setdefault(known, given) != given:
                refuse(f"means the same as {spelled[known]} above", "keep one of the two", at_key=True)
            field = fields[known]
            return field.to or known, None if value is None else field.form.read(value)

        found = gather(((given,), _label(fields, given, spelled), partial(one, given, raw[given])) for given in raw)
        try:
            return make(**{known: value for known, value in found if value is not None})
        except Misfit as error:
            raise Misfit(
                *(one.inside((spelled[one.key],) if one.key in spelled else (), "") for one in error.troubles)
            ) from None

    return Form(name, read, _object(fields), fields=fields)


def _label(fields: Mapping[str, Field], given: str, spelled: Mapping[str, str]) -> str:
    known = name_of(fields, given)
    return ascii(given)[1:-1] if known is None or known in spelled else known


def name_of(fields: Mapping[str, Field], name: str) -> str | None:
    """Return the field that a key names in any of its spellings."""
    for spelled in (name, _snake(name), name.replace("-", "_")):
        for known, field in fields.items():
            if spelled == known or spelled in field.aliases:
                return known
    return None


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower() if re.fullmatch(r"[a-z]\w*", name, re.ASCII) else name


def camel(name: str) -> str:
    """Return a name as in camelCase."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _hint(fields: Mapping[str, Field], name: str) -> str:
    spellings = [spelled for known, field in fields.items() for spelled in (known, *field.aliases)]
    return did_you_mean(_snake(name), spellings, f"the keys are {', '.join(fields)}")


def _object(fields: Mapping[str, Field]) -> Schema:
    """Return the schema of a mapping; editors accept other spellings, and offer the first."""
    known = {name: {**field.form.schema, "description": field.help} for name, field in fields.items()}
    others: dict[str, Any] = {}
    for name, field in fields.items():
        spellings = {one for plain in (name, *field.aliases) for one in (plain, camel(plain), plain.replace("_", "-"))}
        if spellings - {name}:
            others[f"^({'|'.join(sorted(spellings - {name}))})$"] = known[name]
    return {
        "type": ["object", "null"],
        "properties": known,
        **({"patternProperties": others} if others else {}),
        "additionalProperties": False,
    }


def json_schema(form: Form[Any], title: str) -> dict[str, Any]:
    """Return the JSON Schema of a whole file."""
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": title, **form.schema}


# --- commands -----------------------------------------------------------------------------------


_WORDS = listing(text(longest=10_000, lines=True), distinct=False)
_LINE = text(commandline.command, longest=10_000, lines=True, least=1)


def program() -> Form[str]:
    """A command as one line or as a list of words; kept as a line. There is no shell."""

    def read(raw: object) -> str:
        return commandline.argv(_WORDS.read(raw)) if isinstance(raw, (list, tuple)) else _LINE.read(raw)

    return Form("command", read, {"anyOf": [_LINE.schema, _WORDS.schema["anyOf"][1]]}, split=str, show=json.dumps)


def commands() -> Form[tuple[str, ...]]:
    """A list of commands; kept as lines."""
    form = listing(program(), "list of commands, each a line or a list of words", distinct=False)
    return form._replace(split=lambda raw: [line for line in raw.splitlines() if line.strip()])


# --- words for messages ---------------------------------------------------------------------------


def kind_of(raw: object) -> str:
    """Describe the kind of a wrong value."""
    if raw is None:
        return "empty"
    if isinstance(raw, bool):
        return "true or false"
    if isinstance(raw, Mapping):
        return "a mapping"
    return "a list" if isinstance(raw, (list, tuple)) else f"a {type(raw).__name__}"


def shown(raw: object) -> str:
    """Spell a value for a message, cut short if it is long; of a container name only the kind."""
    if raw is None or isinstance(raw, (Mapping, list, tuple)):
        return kind_of(raw)
    if isinstance(raw, bool):
        return str(raw).lower()
    word = repr(raw) if str(raw).isprintable() else ascii(raw)
    return word if len(word) <= 60 else word[:57] + "..."
