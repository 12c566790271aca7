"""All trials of the crash suite, in pieces: which are to be run, what came of each, and the summary.

A piece is one test of the kind crash. What came of it is noted in ``results.jsonl``; started again, the run goes on
with what is not noted yet. The pieces of a scenario try every eighth point each, and the first pieces of all
scenarios come first: a run that is stopped has looked everywhere.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER = Path("build/crash")
#: Told to the tests by these variables: where to list the pieces, which to run, where to note what came of them.
LIST, TODO, RESULTS = "SWARM_CRASH_LIST", "SWARM_CRASH_TODO", "SWARM_CRASH_RESULTS"
COUNTS = ("trials", "kills", "signals", "faults", "not_reached", "violations")
_NOTHING_TO_RUN = 5


def main(argv: list[str] | None = None) -> int:
    """Run what is left, and print the summary; the exit status is 0 when all of it is well."""
    wish = _parser().parse_args(argv)
    results = wish.folder / "results.jsonl"
    wish.folder.mkdir(parents=True, exist_ok=True)
    if wish.fresh:
        results.unlink(missing_ok=True)
    pieces = _pieces(wish.folder)
    unknown = set(wish.scenarios) - {scenario for scenario, _ in pieces.values()}
    if unknown:
        known = " ".join(sorted({scenario for scenario, _ in pieces.values()}))
        _say(f"no such scenario: {' '.join(sorted(unknown))}; there are: {known}", sys.stderr)
        return 2
    mine = {piece: at for piece, at in pieces.items() if not wish.scenarios or at[0] in wish.scenarios}
    if not wish.summary:
        left = to_run(noted(results), mine, again=wish.again)
        _say(f"{len(mine) - len(left)} of {len(mine)} pieces are noted in {results}; {len(left)} to run")
        code = _run(wish, left, results) if left else 0
        if code not in {0, 1, _NOTHING_TO_RUN}:
            _say("stopped: the same command goes on")
    _say("\n".join(summary(noted(results), mine)))
    found = noted(results)
    return 0 if all(found.get(piece, {}).get("outcome") in {"passed", "skipped"} for piece in mine) else 1


def _say(text: str, where: TextIO = sys.stdout) -> None:
    where.write(f"{text}\n")
    where.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/crash", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "scenarios", nargs="*", metavar="SCENARIO", help="only these: create, panes-start, bus_points …"
    )
    parser.add_argument("--workers", default="1", help="how many processes (default 1)")
    parser.add_argument("--summary", action="store_true", help="run nothing, print what is noted")
    parser.add_argument("--again", action="store_true", help="run also what failed before")
    parser.add_argument("--fresh", action="store_true", help="forget what is noted")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"where it is noted (default {FOLDER})")
    return parser


def _pytest(*args: str, **variables: str) -> subprocess.Popen[bytes]:
    env = {**os.environ, "SWARM_CRASH": "full", **variables}
    quiet = subprocess.DEVNULL if LIST in variables else None
    return subprocess.Popen([sys.executable, "-m", "pytest", "--kind", "crash", "-q", *args], env=env, stdout=quiet)


def _pieces(folder: Path) -> dict[str, tuple[str, int]]:
    """Return piece → (scenario, when it has its turn)."""
    file = folder / "pieces.json"
    code = _pytest("--collect-only", "-n0", **{LIST: str(file)}).wait()
    if code != 0:
        msg = f"pytest cannot collect the crash tests: it ended with {code}"
        raise SystemExit(msg)
    found: dict[str, tuple[str, int]] = {name: tuple(at) for name, at in json.loads(file.read_text()).items()}
    return found


def _run(wish: argparse.Namespace, pieces: list[str], results: Path) -> int:
    todo = wish.folder / "todo.json"
    todo.write_text(json.dumps(pieces))
    workers = "0" if wish.workers == "1" else wish.workers
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it is ignored, and would be by pytest
    variables = {TODO: str(todo.resolve()), RESULTS: str(results.resolve())}
    child = _pytest("-n", workers, "--timeout=3600", "--tb=line", **variables)
    before = signal.signal(signal.SIGTERM, lambda *_: child.send_signal(signal.SIGINT))  # it tidies up at that
    try:
        return child.wait()
    except KeyboardInterrupt:  # it had that, too
        return child.wait()
    finally:
        signal.signal(signal.SIGTERM, before)


def to_run(done: dict[str, dict[str, Any]], pieces: dict[str, tuple[str, int]], *, again: bool) -> list[str]:
    """Return what is left, in the order of turns; with *again* also what failed."""
    left = [piece for piece in pieces if piece not in done or (again and done[piece]["outcome"] == "failed")]
    return sorted(left, key=lambda piece: pieces[piece][1])


def noted(results: Path) -> dict[str, dict[str, Any]]:
    """Return what came last of each piece; a line that was cut short is none."""
    found: dict[str, dict[str, Any]] = {}
    for line in results.read_text().splitlines() if results.exists() else ():
        try:
            one = json.loads(line)
        except ValueError:
            continue
        found[one["piece"]] = one
    return found


def summary(found: dict[str, dict[str, Any]], pieces: dict[str, tuple[str, int]]) -> Iterable[str]:
    """Give a line for each scenario, what went wrong, and the totals."""
    every: dict[str, list[dict[str, Any]]] = {scenario: [] for scenario, _ in sorted(pieces.values())}
    size = Counter(scenario for scenario, _ in pieces.values())
    for piece, one in found.items():
        if piece in pieces:
            every[pieces[piece][0]].append(one)
    total: Counter[str] = Counter()
    heads = {"pieces": 9, "trials": 7, "kills": 6, "signals": 7, "faults": 6, "violations": 10}
    yield f"{'scenario':16} {' '.join(f'{head:>{width}}' for head, width in heads.items())}  failed"
    for scenario, ones in every.items():
        counts = _counts(ones)
        total.update(counts)
        yield _line(scenario, counts, size[scenario])
    yield _line("all", total, sum(size.values()))
    commits = sorted({one["commit"] for ones in every.values() for one in ones})
    if commits:
        yield f"of commit {', '.join(commits)}"
    for ones in every.values():
        for one in ones:
            if one["outcome"] == "failed":
                yield f"failed: {one['piece']}\n{one['text']}"


def _counts(ones: list[dict[str, Any]]) -> Counter[str]:
    counts: Counter[str] = Counter(pieces=len(ones), failed=sum(one["outcome"] == "failed" for one in ones))
    for one in ones:
        counts.update({name: one["crash"][name] for name in COUNTS} if one["crash"] else {})
    return counts


def _line(name: str, counts: Counter[str], size: int) -> str:
    pieces = f"{counts['pieces']}/{size}"
    return (
        f"{name:16} {pieces:>9} {counts['trials']:7} {counts['kills']:6} {counts['signals']:7} {counts['faults']:6}"
        f" {counts['violations']:10}  {counts['failed']}"
    )


if __name__ == "__main__":
    sys.exit(main())
