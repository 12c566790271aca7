"""A bench for the worker, and the totals at the end of the run."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import crash, tracer

if TYPE_CHECKING:
    from collections.abc import Iterator

_COUNTS = ("trials", "kills", "signals", "faults", "not_reached", "violations")


@pytest.fixture(scope="session")
def bench() -> Iterator[crash.Bench]:
    """Give the place where trials are run; the photographs in it are made once for each worker."""
    reason = tracer.why_unsupported()
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"the crash suite must run in CI: {reason}")
        pytest.skip(reason)
    with crash.bench() as made:
        yield made


@pytest.fixture(autouse=True)
def _own_temporary_folder() -> Iterator[None]:
    """Give back what a trial sets for its traced fork: other tests may follow in this process."""
    before = tempfile.tempdir
    yield
    tempfile.tempdir = before


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
