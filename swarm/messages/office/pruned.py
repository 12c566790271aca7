"""Messages that are no longer kept: prune them, and answer requests for them."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from swarm.bus.errors import MessageNotFound
    from swarm.bus.protocol import Keep, PostBus, Pruned, PrunedAttachments, Stored
    from swarm.project.config.settings import Settings

_HOW_LONG = "how long messages stay that are done: swarm config show messages.keep"


def not_found(bus: PostBus, message_id: str) -> MessageNotFound:
    """Return the error for a message that does not exist, or no longer."""
    from swarm.bus.errors import MessageNotFound

    shown = f"{message_id[:60]!a}"
    if path := bus.damaged(message_id):
        return MessageNotFound(
            f"message {shown} was damaged on the disk", hint=f"what is left of it: cat -v {quote(path)}"
        )
    if bus.was_removed(message_id):
        return MessageNotFound(f"message {shown} is no longer kept", hint=_HOW_LONG)
    if bus.removed():
        return MessageNotFound(f"there is no message {shown}, or it is no longer kept", hint=_HOW_LONG)
    return MessageNotFound(f"there is no message {shown}")


def missing_from(thread: Iterable[Stored]) -> tuple[str, ...]:
    """Return the ids that messages of a thread answer, and that are not there."""
    messages = [stored.message for stored in thread]
    there = {message.id for message in messages}
    named = (one for message in messages for one in (message.thread_id, message.in_reply_to))
    return tuple(dict.fromkeys(one for one in named if one and one not in there))


def rule(settings: Callable[[], Settings], older_than_ms: int | None) -> Keep:
    """Return the retention rule: from the settings, or by a given age."""
    from swarm.bus.protocol import Keep
    from swarm.messages.settings import keep_of

    return keep_of(settings()) if older_than_ms is None else Keep(older_than_ms)


def prune_attachments(bus: PostBus, boxes: Sequence[str], keep: Keep, *, dry_run: bool) -> PrunedAttachments:
    """Remove the attachments that no message refers to any longer, when these boxes have been pruned."""
    there = set(bus.addresses())
    return bus.prune_attachments(keep, dry_run=dry_run, after=[one for one in boxes if one in there])


def prune(bus: PostBus, boxes: Sequence[str], keep: Keep, *, dry_run: bool) -> tuple[Pruned, ...]:
    """Prune finished old messages; a missing box has none.

    Raises:
        SwarmError: of the first box in which it could not be done; in the others it is.
    """
    from swarm.bus.errors import InboxNotFound
    from swarm.kit.errors import Interrupted, SwarmError

    done = []
    problem = None
    for box in boxes:
        try:
            done.append(bus.prune(box, keep, dry_run=dry_run))
        except InboxNotFound:
            continue
        except Interrupted:
            raise
        except SwarmError as error:
            problem = problem or error
    if problem is not None:
        raise problem
    return tuple(done)
