"""Parse JSON for code that runs at every tool call, without the ``json`` module.

It is the same scanner and the same text, without the parts that use regular expressions; where Python does not have
them, it is the module itself.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_BLANK = " \t\n\r"


class _Ways:
    """What the scanner asks of the one that uses it."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float

    def __init__(self) -> None:
        self.memo: dict[str, str] = {}


def loads(data: bytes) -> object:
    """Read one value.

    Raises:
        ValueError: it is none.
    """
    scan = _scanner()
    if scan is None:
        import json

        return json.loads(data)
    text = data.decode("utf-8").strip(_BLANK)
    try:
        found, end = scan(text, 0)
    except (StopIteration, SystemError, RecursionError) as error:
        raise ValueError("it is no JSON") from error
    if end != len(text):
        raise ValueError("there is more than one value")
    return found


def _scanner() -> Callable[[str, int], tuple[object, int]] | None:
    try:
        from _json import make_scanner  # the fast half of the json module
    except ImportError:
        return None
    return make_scanner(_Ways())  # type: ignore[arg-type]  # any object that has these says how


def line(record: Mapping[str, object]) -> bytes:
    """Return plain values by name as one line of ASCII; anything else in it is left out."""
    parts = [f"{_text(name)}: {word}" for name, value in record.items() if (word := _word(value))]
    return ("{" + ", ".join(parts) + "}\n").encode("ascii")


def _word(value: object) -> str:
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value) if isinstance(value, int) else ""


def _text(text: str) -> str:
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        from json.encoder import encode_basestring_ascii
    made: str = encode_basestring_ascii(text)
    return made
