"""The way of opencode in a box to its models, and the credentials that it has outside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.machine import records
from swarm.programs import model_access
from swarm.programs.base import home_of
from swarm.programs.model_access import PLACEHOLDER, Service, TokenFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

#: Providers with a door: how opencode calls each, the variable of its key, the header, the end of its address that
#: opencode says and the API's own address does not have, and the API.
_PROVIDERS: tuple[tuple[str, str, str, str, Callable[..., Service]], ...] = (
    ("anthropic", "ANTHROPIC_API_KEY", "x-api-key", "/v1", model_access.anthropic),
    ("openai", "OPENAI_API_KEY", "authorization", "", model_access.openai),
    ("google", "GEMINI_API_KEY", "x-goog-api-key", "/v1beta", model_access.google),
)


def models(environ: Mapping[str, str]) -> tuple[Service, ...]:
    """Return the APIs for which the user has a key: in the environment, in opencode's settings, or in its logins."""
    return tuple(_found(environ))


def _found(environ: Mapping[str, str]) -> Iterator[Service]:
    data = Path(environ.get("XDG_DATA_HOME") or home_of(environ) / ".local/share")
    config = Path(environ.get("XDG_CONFIG_HOME") or home_of(environ) / ".config")
    logins = data / "opencode" / "auth.json"
    known, said = _read(logins), _table(_read(config / "opencode" / "opencode.json").get("provider"))
    for name, variable, header, end, api in _PROVIDERS:
        options = _table(_table(said.get(name)).get("options"))
        upstream = str(options.get("baseURL") or "").rstrip("/").removesuffix(end)
        key, token = str(options.get("apiKey") or environ.get(variable) or ""), None
        if not key and _table(known.get(name)).get("type") == "api":
            key, token = "{token}", TokenFile(str(logins), (name, "key"), login="opencode auth login")
        if key:
            yield api(upstream, {header: f"Bearer {key}" if header == "authorization" else key}, token)


def providers(door: str) -> dict[str, Any]:
    """Return the settings by which opencode in a box finds its doors; without one none."""
    if not door:
        return {}
    return {
        name: {"options": {"baseURL": f"{door}/{name}{end}", "apiKey": PLACEHOLDER}}
        for name, _, _, end, _ in _PROVIDERS
    }


def _read(file: Path) -> dict[str, Any]:
    try:
        return records.read_object(str(file), 1 << 20, follow=True)
    except (OSError, ValueError):
        return {}


def _table(found: Any) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}
