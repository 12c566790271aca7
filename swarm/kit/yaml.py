"""Parse YAML strictly, with the position of every value: the only ``import yaml``.

A file is one mapping with text keys.  Refused, with ``file:line:column``: double keys, tabs as
indentation, several documents, tags, merge keys, more than 50 aliases, 20 levels or 1 MiB, NUL and
whatever is not UTF-8.  Words stay as written; see `swarm.kit.scalars` for the few that do not.

The tree is built from the parser's events with a stack of our own: nothing here is recursive in the
input, nothing is constructed by a tag, and reading ends at the first thing that is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.kit import textfile
from swarm.kit.errors import ConfigProblem
from swarm.kit.forms import troubles_of
from swarm.kit.scalars import Bare, plain_scalar

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import yaml

    from swarm.kit.forms import Trouble

MAX_ALIASES = 50
MAX_DEPTH = 20
#: Values that aliases may repeat in all: 50 aliases alone could stand for millions.
MAX_REPEATED = 10_000
_NULLS = ("", "null", "Null", "NULL")


@dataclass(frozen=True, slots=True)
class Node:
    """Anything in the file, and where it begins; line and column count from 1."""

    source: str
    line: int
    column: int

    @property
    def where(self) -> str:
        """``file:line:column``."""
        return f"{self.source}:{self.line}:{self.column}"

    def problem(self, what: str, *, hint: str | None = None) -> ConfigProblem:
        """Return the error for a problem at this place."""
        return ConfigProblem(f"{self.where}: {what}", hint=hint)

    def problems(self, error: ValueError) -> list[ConfigProblem]:
        """Return a form's complaints about this value, with line and column, in the order of the file."""
        found = [(_place_of(self, one), one) for one in troubles_of(error)]
        found.sort(key=lambda item: (item[0].line, item[0].column))
        return [place.problem(one.text, hint=one.hint) for place, one in found]

    def plain(self) -> Any:  # the reader checks its input
        """Return it as plain Python values."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Scalar(Node):
    """One word or text.

    Attributes:
        bare: it stands there without quotes.
    """

    value: str | int | bool | None
    bare: bool = False

    def plain(self) -> str | int | bool | None:
        """Return the value."""
        return Bare(self.value) if self.bare and isinstance(self.value, str) else self.value


@dataclass(frozen=True, slots=True)
class Listing(Node):
    """A list."""

    items: tuple[Node, ...]

    def plain(self) -> list[Any]:
        """Return a list of plain values."""
        return [item.plain() for item in self.items]


class Pair(NamedTuple):
    """A key and its value."""

    key: Scalar
    value: Node


@dataclass(frozen=True, slots=True)
class Table(Node):
    """A mapping, in the order of the file."""

    pairs: Mapping[str, Pair]

    def plain(self) -> dict[str, Any]:
        """Return a dict of plain values."""
        return {name: pair.value.plain() for name, pair in self.pairs.items()}

    def get(self, name: str) -> Node | None:
        """Return the value of a key, or None."""
        return self.pairs[name].value if name in self.pairs else None


def _place_of(node: Node, trouble: Trouble) -> Node:
    key: Node | None = None
    for step in trouble.path:
        if isinstance(node, Table) and step in node.pairs:
            key, node = node.pairs[str(step)]
        elif isinstance(node, Listing) and isinstance(step, int):
            key, node = None, node.items[step]
    return key if trouble.at_key and key is not None else node


def load(source: Path | bytes, source_name: str | None = None) -> Table:
    """Read one YAML file, or its content.

    Args:
        source: the file, or its bytes.
        source_name: what messages call it; the path when missing.

    Raises:
        ConfigProblem: it is not there, no regular file, or not YAML as described above.
        NoPermission: it may not be read.
    """
    if isinstance(source, bytes):
        name = source_name or "<yaml>"
        if len(source) > textfile.LIMIT:
            raise ConfigProblem(f"{name}: is larger than 1 MiB")
        return _parse(source, name)
    name = source_name or str(source)
    data = textfile.read_bytes(source)
    if data is None:
        raise ConfigProblem(f"{name}: there is no such file")
    return _parse(data, name)


def _parse(data: bytes, name: str) -> Table:
    # A line break in a file's name must not forge a line of output.
    shown = name if name.isprintable() else ascii(name)[1:-1]
    text = textfile.decode(data, shown)
    if not text.strip():
        return Table(shown, 1, 1, {})
    return _Builder(shown).build(text)


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not been seen."""

    node: Node
    anchor: str | None
    items: list[Node] = field(default_factory=list)
    pairs: dict[str, Pair] = field(default_factory=dict)
    key: Scalar | None = None
    height: int = 0
    weight: int = 1


class _Done(NamedTuple):
    """A complete node, the levels below it and the number of values in it."""

    node: Node
    height: int
    weight: int


class _Builder:
    """Builds the tree of one file from the parser's events."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.stack: list[_Open] = []
        self.anchors: dict[str, _Done] = {}
        self.aliases = 0
        self.repeated = 0
        self.documents = 0
        self.root: Node | None = None

    def build(self, text: str) -> Table:
        import yaml

        try:
            loader = yaml.SafeLoader(text)
            try:
                while loader.check_event():
                    self._take(loader.get_event())  # type: ignore[no-untyped-call]
            # The scanner trips over some hostile escapes and directives with plain Python errors.
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                mark = loader.get_mark()
                raise self._at(mark).problem(f"cannot be read as YAML ({error})") from None
            finally:
                loader.dispose()
        except yaml.reader.ReaderError as error:
            where = textfile.position(text, error.position)
            what = f"contains the character {chr(error.character)!a}, which YAML forbids"
            raise ConfigProblem(f"{self.source}:{where}: {what}") from None
        except yaml.MarkedYAMLError as error:
            raise self._syntax_problem(error) from None
        except (yaml.YAMLError, RecursionError) as error:
            raise ConfigProblem(f"{self.source}:1:1: cannot be read as YAML ({error})") from None
        return self._table()

    def _table(self) -> Table:
        root = self.root
        if root is None or (isinstance(root, Scalar) and root.value is None):
            return Table(self.source, 1, 1, {})
        if not isinstance(root, Table):
            raise root.problem("the file must be a mapping: lines of the form `key: value`")
        return root

    def _at(self, mark: Any) -> Node:  # two classes of yaml's, one of them private
        return Node(self.source, mark.line + 1, mark.column + 1)

    def _syntax_problem(self, error: yaml.MarkedYAMLError) -> ConfigProblem:
        mark = error.problem_mark or error.context_mark
        place = Node(self.source, 1, 1) if mark is None else self._at(mark)
        problem = error.problem or "cannot be read as YAML"
        if "'\\t'" in problem:
            return place.problem("a tab where only spaces are allowed", hint="indent with spaces")
        context = f"{error.context}: " if error.context else ""
        return place.problem(f"{context}{problem}", hint="correct the YAML at that place")

    def _take(self, event: yaml.Event) -> None:
        import yaml

        if isinstance(event, yaml.DocumentStartEvent):
            self._start_document(event)
        elif isinstance(event, yaml.AliasEvent):
            self._put(self._alias(event), event)
        elif isinstance(event, yaml.ScalarEvent):
            self._refuse_tag(event)
            done = _Done(self._scalar(event), 0, 1)
            self._remember(event.anchor, done)
            self._put(done, event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close(event)

    def _start_document(self, event: yaml.DocumentStartEvent) -> None:
        self.documents += 1
        if self.documents > 1:
            raise self._at(event.start_mark).problem("a second document begins; only one may be")
        if event.tags:
            raise self._at(event.start_mark).problem("%TAG directives are not allowed")

    def _refuse_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
        if event.tag is not None:
            what = f"the tag {event.tag!a} is not allowed"
            raise self._at(event.start_mark).problem(what, hint="quote the value to make it text")

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        place = self._at(event.start_mark)
        text: str = event.value
        if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
            raise place.problem("the text holds a NUL or half a character")
        value: str | int | bool | None = text
        bare = event.style is None
        if bare:
            value = None if text in _NULLS else plain_scalar(text)
        return Scalar(place.source, place.line, place.column, value, bare)

    def _alias(self, event: yaml.AliasEvent) -> _Done:
        place = self._at(event.start_mark)
        self.aliases += 1
        if self.aliases > MAX_ALIASES:
            raise place.problem(f"more than {MAX_ALIASES} aliases")
        target = self.anchors.get(event.anchor or "")
        if target is None:
            if any(one.anchor == event.anchor for one in self.stack):
                raise place.problem(f"*{event.anchor} is inside the value that it repeats")
            raise place.problem(f"nothing is named &{event.anchor} before this")
        self.repeated += target.weight
        if self.repeated > MAX_REPEATED:
            raise place.problem(f"the aliases repeat more than {MAX_REPEATED} values")
        if len(self.stack) + target.height > MAX_DEPTH:
            raise place.problem(f"more than {MAX_DEPTH} levels deep")
        return target

    def _open(self, event: yaml.CollectionStartEvent) -> None:
        import yaml

        self._refuse_tag(event)
        place = self._at(event.start_mark)
        if len(self.stack) >= MAX_DEPTH:
            raise place.problem(f"more than {MAX_DEPTH} levels deep")
        args = (place.source, place.line, place.column)
        is_table = isinstance(event, yaml.MappingStartEvent)
        node = Table(*args, {}) if is_table else Listing(*args, ())
        if is_table and self.stack and self._wants_key(self.stack[-1]):
            raise place.problem("a key must be text, not a mapping")
        if event.anchor is not None:
            self.anchors.pop(event.anchor, None)
        self.stack.append(_Open(node, event.anchor))

    def _close(self, event: yaml.CollectionEndEvent) -> None:
        top = self.stack.pop()
        place = top.node
        args = (place.source, place.line, place.column)
        is_table = isinstance(place, Table)
        node = Table(*args, top.pairs) if is_table else Listing(*args, tuple(top.items))
        done = _Done(node, top.height + 1, top.weight)
        self._remember(top.anchor, done)
        self._put(done, event)

    def _remember(self, anchor: str | None, done: _Done) -> None:
        if anchor is not None:
            self.anchors[anchor] = done

    @staticmethod
    def _wants_key(top: _Open) -> bool:
        return isinstance(top.node, Table) and top.key is None

    def _put(self, done: _Done, event: yaml.Event) -> None:
        if not self.stack:
            self.root = done.node
            return
        top = self.stack[-1]
        top.height = max(top.height, done.height)
        top.weight += done.weight
        if isinstance(top.node, Listing):
            top.items.append(done.node)
        elif top.key is None:
            top.key = self._key(done.node, event, top)
        else:
            top.pairs[str(top.key.value)] = Pair(top.key, done.node)
            top.key = None

    def _key(self, node: Node, event: yaml.Event, top: _Open) -> Scalar:
        import yaml

        if isinstance(event, yaml.AliasEvent):
            raise self._at(event.start_mark).problem("a key must be written out, not an alias")
        if not isinstance(node, Scalar):
            raise node.problem("a key must be text, not a list or a mapping")
        if not isinstance(node.value, str):
            raise node.problem("a key must be text", hint="quote the key")
        if node.value == "<<":
            raise node.problem("merge keys (<<) are not allowed", hint="write the values out")
        if node.value in top.pairs:
            first = top.pairs[node.value].key
            what = f"the key {node.value!a} is there twice, first in line {first.line}"
            raise node.problem(what, hint="keep one of the two")
        return node
