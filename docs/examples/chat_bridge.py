"""A bridge to a Telegram chat; people of an allow-list write to the agents from there."""

import json
import os
import sys
import threading
import urllib.parse
import urllib.request
from typing import Any

ALLOWED = {int(word) for word in os.environ["CHAT_ALLOWED"].split()} or sys.exit("CHAT_ALLOWED names nobody")


def call(method: str, **data: object) -> Any:
    address = f"{os.environ['CHAT_API']}/{method}"
    with urllib.request.urlopen(address, urllib.parse.urlencode(data).encode(), timeout=60) as answer:
        return json.load(answer)["result"]


def say(**line: str) -> None:
    print(json.dumps({"v": 1, **line}), flush=True)


def listen(last: int = 0) -> None:
    try:
        while True:
            for update in call("getUpdates", offset=last + 1, timeout=50):
                last, message = update["update_id"], update.get("message", {})
                if message.get("from", {}).get("id") in ALLOWED and "text" in message:
                    say(type="message", id=str(last), body=message["text"])
    finally:
        os._exit(1)  # swarm starts it again


threading.Thread(target=listen, daemon=True).start()
for text in sys.stdin:
    line = json.loads(text)
    if line["type"] == "message":
        call("sendMessage", chat_id=os.environ["CHAT_ID"], text=f"{line['sender']}: {line['subject'] or line['body']}")
        say(type="ack", id=line["id"])
