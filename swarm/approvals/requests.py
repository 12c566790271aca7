"""The requests of one agent that wait for an answer, read with the standard library alone: for its supervisor."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from swarm.machine import processes, records

if TYPE_CHECKING:
    from collections.abc import Iterator

QUESTION, ANSWER = ".question.json", ".answer.json"
_LIMIT = 1 << 20


def oldest(folder: str, session: str, agent: str) -> dict[str, Any] | None:
    """Return the record of the agent's oldest request that a living process waits for, with its ``id``."""
    return min(_waiting(folder, session, agent), key=lambda one: (one["asked_ms"], one["id"]), default=None)


def _waiting(folder: str, session: str, agent: str) -> Iterator[dict[str, Any]]:
    try:
        names = set(os.listdir(folder))
    except OSError:
        return
    boot = processes.boot_id()
    for name in sorted(names):
        word = name.removesuffix(QUESTION)
        if word == name or name[0] == "." or word + ANSWER in names:
            continue
        try:
            record = records.read_object(os.path.join(folder, name), _LIMIT)
            mine = (record["session"], record["agent"], record["boot"]) == (session, agent, boot)
            if mine and processes.is_alive(int(record["pid"]), int(record["pid_start"])):
                yield {**record, "id": word, "asked_ms": int(record["asked_ms"]), "tool": str(record["tool"])}
        except (OSError, ValueError, KeyError, TypeError):
            continue  # `swarm approvals` says what is wrong with it
