"""Match hosts of addresses against rules.

An address is read as browsers do, which take much for a host: ``https:/x.org``, ``https://%78.org``, wide letters and
dots.  What is not clearly one has no host, so that it is asked about.
"""

from __future__ import annotations

from swarm.permissions.match import text_of

_WEB = ("http:", "https:")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.")
#: What stands for a dot in names of hosts.
_DOTS = ("\u3002", "\uff0e", "\uff61")
_LONGEST = 253


def host_of(given: object) -> str | None:
    """Return the host of a tool's address in small letters; None when it is not known for sure."""
    url = text_of(given, "url")
    if url is None or not url.isprintable() or "\\" in url or " " in url:
        return None
    from urllib.parse import unquote, urlsplit

    scheme, colon, rest = url.partition(":")
    if (scheme + colon).casefold() in _WEB:  # how many slashes there are does not matter to browsers
        url = f"{scheme}://{rest.lstrip('/')}"
    try:
        host = urlsplit(url).hostname or ""
        return host if host.startswith("[") or ":" in host else _plain(unquote(host, errors="strict"))
    except ValueError:  # and non-texts in it
        return None


def is_plain(given: object, host: str) -> bool:
    """Whether the address has its host as it is: in another form it may be denied, but is not allowed."""
    url = (text_of(given, "url") or "").casefold()
    return url.startswith(("http://" + host, "https://" + host)) or "@" + host in url


def is_host(pattern: str, host: str, *, below: bool) -> bool:
    """Whether a host is the rule's; with *below* also one below it."""
    wanted = pattern.removeprefix("domain:").casefold()
    if wanted.startswith("*."):
        return host.endswith(wanted[1:])
    return host == wanted or (below and host.endswith("." + wanted))


def _plain(host: str) -> str | None:
    """Return a host's name as a resolver reads it; None for an invalid name, or a number in disguise."""
    if not host.isascii():
        from unicodedata import normalize

        for dot in _DOTS:
            host = host.replace(dot, ".")
        host = normalize("NFKC", host).casefold()
        if not host.isascii():
            host = host.encode("idna").decode()
    host = host.casefold().rstrip(".")
    if not host or len(host) > _LONGEST or not _LETTERS.issuperset(host) or ".." in host or host.startswith("."):
        return None
    labels = host.split(".")
    if not labels[-1].isdigit() and not labels[-1].startswith("0x"):
        return host
    numbers = [label for label in labels if label.isdigit() and str(int(label)) == label and int(label) < 256]
    return host if len(numbers) == len(labels) == 4 else None
