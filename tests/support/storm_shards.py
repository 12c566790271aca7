"""A storm of a million messages, in shards: each a storm of its own with its own seed and files.

A shard that is done is noted in ``results.jsonl``; started again with the same wishes, what is noted is not
done again.  The files of a shard that went wrong are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.ledger import judge
from tests.support.storm import Plan, storm

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATIENCE = 3600.0


def main(argv: list[str] | None = None) -> int:
    """Run what is left of all shards; print a line for each, and the verdict."""
    wish = _parser().parse_args(argv)
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no process of it stays
    try:
        return _run(wish)
    except KeyboardInterrupt:
        _say("stopped: the same command goes on")
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(wish: argparse.Namespace) -> int:
    what = f"{wish.messages}-{wish.shard}-{wish.writers}w{wish.readers}r{wish.inboxes}i-seed{wish.seed}"
    folder = wish.folder / what
    folder.mkdir(parents=True, exist_ok=True)
    count = -(-wish.messages // wish.shard)
    done = {one["shard"]: one for one in _noted(folder / "results.jsonl")}
    for number in range(1, count + 1):
        again = number in done
        if not again:
            size = min(wish.shard, wish.messages - (number - 1) * wish.shard)
            plan = Plan(wish.writers, wish.readers, wish.inboxes, size, wish.seed + number - 1)
            done[number] = _shard(plan, number, folder)
        _say(f"shard {number}/{count}, {done[number]['line']}" + ", noted before" * again)
    bad = [one for one in done.values() if one["wrong"]]
    total = sum(one["sent"] for one in done.values())
    kills = sum(one["kills"] for one in done.values())
    _say(f"{total} sends returned, {kills} kills, {len(bad)} of {count} shards went wrong" + f": {folder}" * bool(bad))
    if not bad:
        _say("every promise held")
    return 1 if bad else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/storm", description="Kill writers and readers of messages, in shards."
    )
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--shard", type=int, default=20_000, help="messages in each shard")
    parser.add_argument("--writers", type=int, default=64)
    parser.add_argument("--readers", type=int, default=16)
    parser.add_argument("--inboxes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1, help="of the first shard; each has the next one")
    parser.add_argument("--folder", type=Path, default=Path("build/storm"), help="for results and files")
    return parser


def _shard(plan: Plan, number: int, folder: Path) -> dict[str, Any]:
    """Run one storm and note what came of it."""
    plan.patience = _PATIENCE
    place = folder / f"shard-{number}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    began = time.monotonic()
    try:
        storm(plan, place)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    took = time.monotonic() - began
    verdict = judge(place / "ledger")
    aside = sum(len(os.listdir(bad)) for bad in place.glob("messages/*/*/bad"))
    lines = [f"seed {plan.seed}: {verdict}; {aside} set aside; {took:.0f} s", *verdict.examples]
    found = {
        "shard": number,
        "sent": verdict.counts["A"],
        "kills": verdict.counts["X"],
        "wrong": bool(verdict.wrong or aside),
        "line": "\n    ".join(lines),
    }
    if not found["wrong"]:
        shutil.rmtree(place)
    with (folder / "results.jsonl").open("a", encoding="utf-8") as file:
        file.write("\n" + json.dumps(found))  # behind a line that was cut short, too
    return found


def _noted(path: Path) -> Iterator[dict[str, Any]]:
    """Give what earlier runs noted; a line that was cut short is a shard to do again."""
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
