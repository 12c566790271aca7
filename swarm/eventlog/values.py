"""Values of the log of events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What is between the event before and the event after is not in the log.
GAP = "gap"


class Happened(NamedTuple):
    """Something that happened, for whoever writes it into the log.

    Attributes:
        kind: such as ``agent.state``: a thing, a dot, and what happened to it.
        subject: the thing's name, such as ``developer@feature-x``.
        before, after: what changed of it; None: it was not there before, or is not there any more.
    """

    kind: str
    subject: str
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None


class LogEvent(NamedTuple):
    """One event of the log.

    Attributes:
        number: events are numbered from 1 on, without end; no number is given twice.
        at_ms: when it was written down, in milliseconds since 1970.
        kind: as for ``Happened``; ``gap`` stands for what is not in the log, and ``after`` gives the ``reason``, and
            ``first`` and ``last``, the numbers that are missing, or ``from_ms`` and ``until_ms``, the time that is.
        subject, before, after: as for ``Happened``.
    """

    number: int
    at_ms: int
    kind: str
    subject: str
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None


class LogPage(NamedTuple):
    """Some events in a row.

    Attributes:
        last: read on after this number.
        more: there are more already.
    """

    events: tuple[LogEvent, ...]
    last: int
    more: bool = False
