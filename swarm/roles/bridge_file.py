"""The form of a file that defines a bridge; it stands here because the schemas of all users' files are made here."""

from __future__ import annotations

from typing import Any

from swarm.kit.forms import Field, choice, filled, listing, mapping, refuse, text

_WORDS = listing(text(filled, "word", least=1), "list of words", distinct=False)
_VARIABLE = text(filled, "variable", pattern="^[A-Za-z_][A-Za-z0-9_]*$")


def _bridge(**found: Any) -> dict[str, Any]:
    kind, command = found.setdefault("kind", "command"), found.setdefault("command", ())
    url, secret, form = (found.pop(key, "") for key in ("url_env", "secret_env", "format"))
    if (kind == "command") != bool(command):
        refuse("is needed" if kind == "command" else f"a bridge of kind {kind} has one of its own", key="command")
    if kind != "webhook" and (url or secret or form):
        refuse("is for the kind webhook", key="url_env" if url else "secret_env" if secret else "format")
    if kind == "webhook" and not url:
        refuse("a webhook needs the name of the variable that holds its address", key="url_env")
    settings = [("SWARM_URL_ENV", url), ("SWARM_SECRET_ENV", secret), ("SWARM_FORMAT", form)]
    passes = (*found.pop("env", ()), *(name for name in (url, secret) if name))
    return {**found, "passes": passes, "settings": tuple(pair for pair in settings if pair[1])}


BRIDGE = mapping(
    {
        "kind": Field(choice("command", "desktop", "webhook"), "A command of yours, or one that ships with swarm."),
        "command": Field(_WORDS, "The command and its arguments; there is no shell."),
        "to": Field(text(filled, "agent"), "The agent for messages that name none; default: the last sender."),
        "may": Field(listing(choice("approve"), "list of rights"), "What it may do beside sending messages."),
        "env": Field(listing(_VARIABLE, "list of variables"), "Variables of your environment that the command gets."),
        "url_env": Field(_VARIABLE, "Of a webhook: the variable that holds the address."),
        "secret_env": Field(_VARIABLE, "Of a webhook: the variable that holds the secret for signatures."),
        "format": Field(choice("json", "text", "content"), "Of a webhook: the whole message, or one text for a chat."),
    },
    _bridge,
    "bridge",
)
