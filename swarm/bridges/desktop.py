"""A bridge's command that shows messages and requests as notifications of the desktop.

It runs by itself, with the standard library alone. A notification that could not be shown ends it: swarm starts it
again later, and hands the message over again.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LONGEST = 300


def argv_of(title: str, body: str) -> list[str] | None:
    """Return the command that shows a notification, or None where there is none."""
    if found := shutil.which("notify-send"):
        return [found, "--app-name=swarm", "--", title, body]
    if found := shutil.which("gdbus"):
        method = ["--dest", "org.freedesktop.Notifications", "--object-path", "/org/freedesktop/Notifications"]
        text = [json.dumps(word) for word in ("swarm", "", title, body)]  # as GVariant texts
        hints = [text[0], "0", text[1], text[2], text[3], "[]", "{}", "-1"]
        return [found, "call", "--session", *method, "--method", "org.freedesktop.Notifications.Notify", "--", *hints]
    if found := shutil.which("osascript"):
        script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"
        return [found, "-e", script, "--", title, body]
    return None


def _plain(text: object) -> str:
    """Make a text fit for a notification: no control characters, no markup, not too long."""
    flat = "".join(c if c.isprintable() else " " for c in str(text))[:_LONGEST]
    return flat.replace("&", "&amp;").replace("<", "&lt;")


def show(line: dict[str, Any]) -> None:
    """Show a line of swarm's."""
    if line["type"] == "approval":
        title, body = f"{line['sender']} asks for permission", line["summary"]
    else:
        title, body = f"{line['sender']} writes", line["subject"] or line["body"]
    argv = argv_of(_plain(title), _plain(body))
    if argv is None:
        sys.exit("there is none of notify-send, gdbus and osascript")
    subprocess.run(argv, check=True, timeout=20, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


def main() -> None:
    """Show what comes, and acknowledge it."""
    for text in sys.stdin:
        line = json.loads(text)
        if line["type"] in ("message", "approval"):
            show(line)
        if line["type"] == "message":
            sys.stdout.write(json.dumps({"v": 1, "type": "ack", "id": line["id"]}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
