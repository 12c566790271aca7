"""``--times``: a table at the end of a run: what each kind, room and file of tests took.

Seconds are of all workers together. Of them, "CPU" is what the test's process and the programs that it waited for
computed; the rest is waiting, or the work of programs in panes.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.kinds import KINDS, kind_of

if TYPE_CHECKING:
    from collections.abc import Generator

_SLOWEST, _SLOWEST_FILES = 10, 25


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--times``."""
    parser.addoption("--times", action="store_true", help="show what each kind and each room of tests took")


def pytest_configure(config: pytest.Config) -> None:
    """Measure in the processes that run tests, and add up in the one that hears of all."""
    if config.getoption("--times"):
        config.pluginmanager.register(_Clock())
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(_Table())


class _Clock:
    """Notes on each report the test's kind and the CPU time of the phase."""

    def __init__(self) -> None:
        self._before = _cpu()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._before = _cpu()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, pytest.TestReport]:
        report: Any = yield
        now = _cpu()
        report.kind, report.cpu = kind_of(item), now - self._before
        self._before = now
        return report  # type: ignore[no-any-return]  # pytest says nothing of its attributes


def _cpu() -> float:
    return sum(os.times()[:4])


class _Table:
    """Adds up what the reports say."""

    def __init__(self) -> None:
        self._seconds: dict[str, Counter[str]] = defaultdict(Counter)
        self._kind: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        took = self._seconds[report.nodeid]
        took["seconds"] += report.duration
        took["cpu"] += report.cpu
        self._kind[report.nodeid] = report.kind

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._seconds:
            return
        terminalreporter.section("times")
        show = terminalreporter.line
        by_kind = self._added(self._kind)
        by_room = self._added({name: name.split("/")[1] for name in self._seconds})
        order = [kind for kind in KINDS if kind in by_kind]
        for title, found, names in (("kind", by_kind, order), ("room", by_room, sorted(by_room))):
            show(f"{title:12} {'tests':>6} {'seconds':>8} {'CPU':>8}")
            for name in names:
                show(_line(name, found[name]))
        show(_line("all", sum(by_kind.values(), Counter())))
        by_file = self._added({name: name.partition("::")[0] for name in self._seconds})
        show("slowest files")
        for name in sorted(by_file, key=lambda name: -by_file[name]["seconds"])[:_SLOWEST_FILES]:
            show(_line(name, by_file[name], 46))
        show("slowest tests")
        for name in sorted(self._seconds, key=lambda name: -self._seconds[name]["seconds"])[:_SLOWEST]:
            show(f"{self._seconds[name]['seconds']:7.1f} s  {name}")

    def _added(self, group: dict[str, str]) -> dict[str, Counter[str]]:
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for name, took in self._seconds.items():
            found[group[name]].update(took)
            found[group[name]]["tests"] += 1
        return found


def _line(name: str, took: Counter[str], width: int = 12) -> str:
    return f"{name:{width}} {took['tests']:6} {took['seconds']:8.1f} {took['cpu']:8.1f}"
