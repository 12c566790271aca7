"""A bridge's command that posts messages and requests to an address, with a signature, and tries again.

It runs by itself, with the standard library alone. Each request has the headers ``X-Swarm-Id`` (the same each time it
is tried), ``X-Swarm-Time`` and, with a secret, ``X-Swarm-Signature: sha256=`` and the HMAC of time, a dot and the body.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FIRST_PAUSE, _LONGEST_PAUSE, _TIMEOUT = 0.5, 60.0, 20


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an error: the body is for the named address alone."""

    def redirect_request(self, *_args: object) -> None:
        return None


def _words(line: dict[str, Any]) -> str:
    if line["type"] == "approval":
        return f"{line['sender']} asks for permission {line['id']}: {line['summary']}"
    return f"{line['sender']}: " + "\n".join(filter(None, (line["subject"], line["body"])))


def body_of(line: dict[str, Any], form: str) -> bytes:
    """Return the body of a request: the whole line, or one text as chat services take it."""
    shown = {key: value for key, value in line.items() if key != "code"}
    found = {"text": {"text": _words(line)}, "content": {"content": _words(line)[:2000]}}.get(form, shown)
    return json.dumps(found).encode()


def post(opener: urllib.request.OpenerDirector, url: str, secret: str, name: str, body: bytes) -> str:
    """Post once; return whether it arrived, and else what went wrong."""
    now = str(int(time.time()))
    headers = {"Content-Type": "application/json", "X-Swarm-Id": name, "X-Swarm-Time": now}
    if secret:
        code = hmac.new(secret.encode(), f"{now}.".encode() + body, hashlib.sha256).hexdigest()
        headers["X-Swarm-Signature"] = f"sha256={code}"
    try:
        request = urllib.request.Request(url, body, headers)  # noqa: S310  # main checked the scheme
        with opener.open(request, timeout=_TIMEOUT) as answer:
            return "" if 200 <= answer.status < 300 else f"HTTP {answer.status}"
    except urllib.error.HTTPError as error:
        return f"HTTP {error.code}"
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__


def main() -> None:
    """Post what comes, and acknowledge what arrived."""
    url, secret = (os.environ.get(os.environ.get(name, ""), "") for name in ("SWARM_URL_ENV", "SWARM_SECRET_ENV"))
    if not url.startswith(("https://", "http://")):
        sys.exit(f"the variable {os.environ.get('SWARM_URL_ENV')} holds no address of a web server")
    if os.environ.get("SWARM_SECRET_ENV") and not secret:
        sys.exit(f"the variable {os.environ['SWARM_SECRET_ENV']} holds no secret")
    opener = urllib.request.build_opener(_NoRedirect)
    for text in sys.stdin:
        line = json.loads(text)
        if line["type"] not in ("message", "approval"):
            continue
        pause, body = _FIRST_PAUSE, body_of(line, os.environ.get("SWARM_FORMAT", ""))
        while problem := post(opener, url, secret, line["id"], body):
            sys.stderr.write(f"{line['id']}: {problem}; tried again in {pause:g} s\n")
            sys.stderr.flush()
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        if line["type"] == "message":
            sys.stdout.write(json.dumps({"v": 1, "type": "ack", "id": line["id"]}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
