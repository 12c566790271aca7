"""Changes of a project, each on one line, for ``swarm watch`` and ``swarm events``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from swarm.cli.text import count, plain, short_id

if TYPE_CHECKING:
    from swarm.cli.output import Output

_STYLES = {"waiting": "warn", "failed": "bad", "working": "good", "unknown": "dim", "starting": "hint"}
_NO_FIELDS: Mapping[str, Any] = {}


def show_change(
    output: Output,
    kind: str,
    subject: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    at_ms: int,
    number: int | None = None,
) -> None:
    """Print a change, if it is one that a person would call so.

    Args:
        number: of an event of the log, which is printed in any case, with its day.
    """
    text, style = _words(kind, before or _NO_FIELDS, after or _NO_FIELDS)
    if not text and number is None:
        return
    thing = kind.partition(".")[0]
    name = plain(subject) if thing == "agent" else f"{thing} {plain(subject)}".rstrip()
    form = "%H:%M:%S" if number is None else f"{number:>6} %Y-%m-%d %H:%M:%S"
    clock = time.strftime(form, time.localtime(at_ms / 1000))
    output.item(f"{clock} {name}: ", text or kind.partition(".")[2], style)


def show_agent(output: Output, subject: str, fields: Mapping[str, Any], at_ms: int) -> None:
    """Print how an agent stands."""
    show_change(output, "agent.state", subject, None, fields, at_ms)


def _words(kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, str]:
    """Return a change in words, and how it is painted; no words for what changed only in its evidence."""
    thing, _, what = kind.partition(".")
    if thing == "agent":
        return _of_agent(what, before, after)
    if thing == "approval":
        return _of_approval(what, before, after)
    if thing == "operation":
        return f"{(after or before).get('verb') or 'change'} {what}", ""
    if kind == "gap":
        return _of_gap(after), "warn"
    if kind == "session.state":
        return str(after.get("state", "")), _STYLES.get(str(after.get("state")), "")
    return (what, "") if thing == "session" and what in ("added", "removed") else ("", "")


def _of_agent(what: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, str]:
    if what == "state":
        state, detail = str(after.get("state", "")), str(after.get("detail") or "")
        if (before.get("state"), before.get("detail")) == (after.get("state"), after.get("detail")):
            return "", ""
        return state + (f": {plain(detail)}" if detail else ""), _STYLES.get(state, "")
    if what == "git":
        return _of_tree(before, after), ""
    if what == "inbox":
        number = after.get("unread")
        return (f"{count(number, 'message')} unread" if isinstance(number, int) else ""), ""
    if what == "added":
        return f"added, {plain(str(after.get('program') or 'no program'))}", ""
    return ("removed" if what == "removed" else ""), ""


def _of_tree(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return what is new in a worktree: its commit, or whether files differ from that."""
    said = []
    if after.get("head") and before.get("head") != after.get("head"):
        ahead = after.get("ahead")
        more = f", {count(ahead, 'commit')} ahead" if isinstance(ahead, int) else ""
        said.append(f"at commit {short_id(str(after['head']))}{more}")
    if isinstance(after.get("dirty"), bool) and before.get("dirty") != after["dirty"]:
        said.append("files changed" if after["dirty"] else "files clean")
    return "; ".join(said)


def _of_approval(what: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, str]:
    asked = after if what == "opened" else before
    who = f"{asked.get('agent')}@{asked.get('session')}"
    if what == "opened":
        return f"{plain(who)} asks: {plain(str(after.get('summary', '')))}", "warn"
    by = f" by {plain(str(after['by']))}" if after.get("by") else ""
    return f"{plain(who)}: {after.get('state') or 'over'}{by}", ""


def _of_gap(told: Mapping[str, Any]) -> str:
    if "first" in told:
        return f"{told['first']} to {told['last']} are missing: {plain(str(told.get('reason', '')))}"
    begin = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(int(told.get("from_ms") or 0) / 1000))
    return f"since {begin}: {plain(str(told.get('reason', '')))}"
