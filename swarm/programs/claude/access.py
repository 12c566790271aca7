"""The way of Claude Code in a box to its model, and the credential that it has outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.programs import model_access
from swarm.programs.model_access import PLACEHOLDER, TokenFile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from swarm.programs.model_access import Service

#: Without it the API takes no token of a subscription.
_SUBSCRIPTION = {"anthropic-beta": "oauth-2025-04-20"}
#: Variables with a credential: none of them goes into a box.
KEYS = ("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS")


def models(folder: Path, environ: Mapping[str, str]) -> tuple[Service, ...]:
    """Return the API with the credential that the program itself would take.

    Args:
        folder: its configuration folder.
    """
    token, headers = None, {}
    if key := environ.get("ANTHROPIC_AUTH_TOKEN"):
        headers = model_access.bearer(key)
    elif key := environ.get("ANTHROPIC_API_KEY"):
        headers = {"x-api-key": key}
    elif key := environ.get("CLAUDE_CODE_OAUTH_TOKEN"):
        headers = {**model_access.bearer(key), **_SUBSCRIPTION}
    else:
        file = folder / ".credentials.json"
        if file.is_file():
            keys = ("claudeAiOauth", "accessToken"), ("claudeAiOauth", "expiresAt")
            token = TokenFile(str(file), *keys, "start `claude` outside of the box")
            headers = {**model_access.bearer("{token}"), **_SUBSCRIPTION}
    return (model_access.anthropic(environ.get("ANTHROPIC_BASE_URL", ""), headers, token),)


def variables(door: str) -> dict[str, str]:
    """Return the variables by which the program in a box finds its door; without one none."""
    if not door:
        return {}
    return {
        "ANTHROPIC_BASE_URL": f"{door}/anthropic",
        "ANTHROPIC_AUTH_TOKEN": PLACEHOLDER,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
