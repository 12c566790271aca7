"""The way of Codex in a box to its model, and the credential that it has outside."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.machine import records
from swarm.programs import model_access
from swarm.programs.model_access import PLACEHOLDER, TokenFile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from swarm.programs.model_access import Service

_LOGIN = "codex login"
#: Where an account of ChatGPT is served.
_OF_ACCOUNTS = "https://chatgpt.com/backend-api/codex"
_PROVIDER, _KEY = "swarm", "SWARM_MODEL_KEY"


def models(home: Path, environ: Mapping[str, str]) -> tuple[Service, ...]:
    """Return the API with the credential that the program itself would take.

    Args:
        home: its configuration folder.
    """
    own = _own_provider(home)
    if own.get("base_url"):
        key = environ.get(str(own.get("env_key") or "OPENAI_API_KEY"), "")
        return (model_access.openai(str(own["base_url"]), model_access.bearer(key) if key else {}),)
    upstream = environ.get("OPENAI_BASE_URL", "")
    key = environ.get("CODEX_API_KEY") or environ.get("OPENAI_API_KEY", "")
    if key:
        return (model_access.openai(upstream, model_access.bearer(key)),)
    file = home / "auth.json"
    found = _read(file)
    if found.get("OPENAI_API_KEY"):
        token = TokenFile(str(file), ("OPENAI_API_KEY",), login=_LOGIN)
        return (model_access.openai(upstream, model_access.bearer("{token}"), token),)
    tokens = found.get("tokens")
    if isinstance(tokens, dict):
        headers = {**model_access.bearer("{token}"), "chatgpt-account-id": str(tokens.get("account_id") or "")}
        token = TokenFile(str(file), ("tokens", "access_token"), login=_LOGIN)
        return (model_access.openai(_OF_ACCOUNTS, headers, token),)
    return (model_access.openai(upstream, {}),)


def settings(door: str) -> list[str]:
    """Return the settings by which the program in a box finds its door; without one none."""
    if not door:
        return []
    provider = f'{{name="{_PROVIDER}",base_url="{door}/openai",env_key="{_KEY}",wire_api="responses"}}'
    return [f'model_provider="{_PROVIDER}"', f"model_providers.{_PROVIDER}={provider}"]


def variables(door: str) -> dict[str, str]:
    """Return the variables that go with `settings`."""
    return {_KEY: PLACEHOLDER} if door else {}


def _own_provider(home: Path) -> dict[str, Any]:
    """Return the provider that the user's settings name."""
    try:
        found = tomllib.loads(files.read_small(home / "config.toml").decode("utf-8"))
        chosen = found["model_providers"][found["model_provider"]]
    except (OSError, SwarmError, ValueError, KeyError, TypeError):
        return {}
    return chosen if isinstance(chosen, dict) else {}


def _read(file: Path) -> dict[str, Any]:
    try:
        return records.read_object(str(file), 1 << 20, follow=True)
    except (OSError, ValueError):
        return {}
