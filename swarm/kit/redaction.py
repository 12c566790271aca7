"""Take secrets out of what is kept: values that are known, and words that have the form of a token."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Stands in the place of a secret.
REMOVED = "[secret removed]"
#: A shorter value would be found in ordinary words.
_LEAST = 8
_NAME = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|PRIVATE|_KEY$|AUTHORIZ", re.IGNORECASE)
#: What the makers of models and forges give out, and what stands in headers and addresses.
_FORMS = re.compile(
    rb"(?<![A-Za-z0-9])(?:"
    rb"sk-[A-Za-z0-9_-]{20,400}|gh[oprsu]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255}|glpat-[A-Za-z0-9_-]{20,255}"
    rb"|AIza[A-Za-z0-9_-]{30,80}|AKIA[A-Z0-9]{16}|xox[abopsr]-[A-Za-z0-9-]{10,255}"
    rb"|eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{5,1000}"
    rb")"
)
_HEADER = re.compile(rb"(\bbearer +)[A-Za-z0-9._~+/-]{16,4000}=*", re.IGNORECASE)
_ADDRESS = re.compile(rb"(\w://[^/\s:@]{1,100}:)[^/\s:@]{1,400}@")


def names_secret(variable: str) -> bool:
    """Whether the name of a variable says that it holds a secret."""
    return _NAME.search(variable) is not None


def values_of(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of the variables that hold secrets by their names."""
    return tuple(dict.fromkeys(value for name, value in environ.items() if names_secret(name) and len(value) >= _LEAST))


def from_text(text: str, values: Iterable[str] = ()) -> str:
    """Return a text without secrets.

    Args:
        values: the secrets that are known.
    """
    data = text.encode("utf-8", "surrogatepass")
    return from_bytes(data, values).decode("utf-8", "surrogatepass")


def from_bytes(data: bytes, values: Iterable[str] = ()) -> bytes:
    """Return bytes without secrets; a known one is also found as JSON writes it."""
    removed = REMOVED.encode("ascii")
    for value in sorted({one for one in values if len(one) >= _LEAST}, key=len, reverse=True):
        for form in {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}:
            data = data.replace(form.encode("utf-8", "surrogateescape"), removed)
    data = _FORMS.sub(removed, data)
    data = _HEADER.sub(rb"\1" + removed, data)
    return _ADDRESS.sub(rb"\1" + removed + b"@", data)
