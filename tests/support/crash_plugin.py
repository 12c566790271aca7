"""A bench for the worker, the totals at the end of the run, and for ``scripts/crash`` what came of each piece."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import crash_run
from tests.support.share import FULL, TURN

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from tests.support import crash

_COUNTS = crash_run.COUNTS
_MOST_TEXT = 6000


@pytest.fixture(scope="session")
def bench() -> Iterator[crash.Bench]:
    """Give the place where trials are run; the photographs in it are made once for each worker."""
    from tests.support import crash, tracer

    reason = tracer.why_unsupported()
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"the crash suite must run in CI: {reason}")
        pytest.skip(reason)
    with crash.bench() as made:
        yield made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Give back what a trial sets for its traced fork: other tests may follow in this process."""
    before = tempfile.tempdir
    try:
        return (yield)
    finally:
        tempfile.tempdir = before


# --- in pieces: scripts/crash -------------------------------------------------------------------------


@pytest.hookimpl(trylast=True)  # of the crash tests that are left
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """List the pieces, or choose and order them, as ``crash_run`` wants it."""
    if name := os.environ.get(crash_run.LIST):
        Path(name).write_text(json.dumps({item.nodeid: _place(item) for item in items}), encoding="utf-8")
    if name := os.environ.get(crash_run.TODO):
        by_name = {item.nodeid: item for item in items}
        items[:] = [by_name[piece] for piece in json.loads(Path(name).read_text(encoding="utf-8"))]


def _place(item: pytest.Item) -> tuple[str, int]:
    """Return a piece's scenario, and when it has its turn."""
    assert isinstance(item, pytest.Function)
    params: dict[str, Any] = item.callspec.params if hasattr(item, "callspec") else {}
    if "verb" in params and "chunk" in params:
        return f"panes-{params['verb']}", params["chunk"]
    if "name" in params and ("first" in params or "chunk" in params):
        return params["name"], params["chunk"] if "chunk" in params else params["first"] - 1
    return item.path.stem.removeprefix("test_"), 1


class _Notes:
    """Adds what came of each piece to a file as soon as it is over."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        said = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
        self._commit = said.stdout.strip()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.outcome == "passed":
            return
        facts: Any = dict(report.user_properties).get("crash")
        lines = (facts or {}).get("found") or report.longreprtext.splitlines()
        note = {
            "piece": report.nodeid,
            "outcome": report.outcome,
            "seconds": round(report.duration, 1),
            "commit": self._commit,
            "crash": facts,
            "text": "\n".join(lines)[:_MOST_TEXT],
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(note) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Take notes, in the process that hears of all pieces."""
    if (path := os.environ.get(crash_run.RESULTS)) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Notes(path))


def pytest_report_header() -> str:
    """Say which share of the crash points has its turn: with it, a run can be repeated."""
    return "crash points: all" if FULL else f"crash points: the share of SWARM_CRASH_TURN={TURN}"


# --- totals -------------------------------------------------------------------------------------------


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line for each scenario and action, and write them to ``SWARM_CRASH_REPORT``."""
    if hasattr(terminalreporter.config, "workerinput"):
        return  # a worker knows only its share
    totals: dict[tuple[str, str], dict[str, Any]] = {}
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            for name, facts in getattr(report, "user_properties", []):
                if name == "crash" and report.when == "call":
                    _add(totals.setdefault((facts["scenario"], facts["action"]), {}), facts)
    if not totals:
        return
    terminalreporter.section("crash trials")
    for (scenario, action), facts in sorted(totals.items()):
        ended = ", ".join(f"{name} {count}" for name, count in sorted(facts["ended"].items()))
        terminalreporter.line(
            f"{scenario:15} {action:14} {facts['points']:4} points, {facts['trials']:5} trials,"
            f" {facts['violations']} violations; ended {ended}; slowest recovery {facts['slowest_recovery_ms']} ms"
        )
    whole = {name: sum(facts[name] for facts in totals.values()) for name in _COUNTS}
    terminalreporter.line(", ".join(f"{name} {count}" for name, count in whole.items()))
    path = os.environ.get("SWARM_CRASH_REPORT")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            for (scenario, action), facts in sorted(totals.items()):
                file.write(json.dumps({"scenario": scenario, "action": action, **facts}) + "\n")


def _add(total: dict[str, Any], facts: dict[str, Any]) -> None:
    for name in (*_COUNTS, "seconds"):
        total[name] = total.get(name, 0) + facts[name]
    for name in ("points", "slowest_recovery_ms"):
        total[name] = max(total.get(name, 0), facts[name])
    ended = total.setdefault("ended", {})
    for name, count in facts["ended"].items():
        ended[name] = ended.get(name, 0) + count
