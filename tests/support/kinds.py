"""The kinds of tests: each test is of one, the quick kinds come first, and tests that mostly wait come last.

A run on several workers takes tests from both ends: one half of the workers computes, the other half waits for
programs in panes. Where the two meet they help each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

#: In the order in which they run; what each is stands in ``pyproject.toml``.
KINDS = ("unit", "component", "contract", "crash", "integration", "e2e", "agents")
#: A test that asks for one of these waits for programs more than it computes.
_WAITING = frozenset({"swarm_panes", "claude", "agents"})


def kind_of(item: pytest.Item) -> str:
    """Return a test's kind: the marker nearest to it that is one, and nothing where there is none."""
    return next((mark.name for mark in item.iter_markers() if mark.name in KINDS), "")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--kind``, which is shorter than the expression that ``-m`` takes."""
    parser.addoption(
        "--kind", action="append", choices=KINDS, default=[], help="only tests of this kind; can be given again"
    )
    parser.addoption(
        "--stories", action="store_true", help="of the kind agents only the tests marked story, one for each program"
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import a file in which no test is of a wanted kind."""
    wanted = config.getoption("--kind")
    if not wanted or not collection_path.name.startswith("test_") or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    return True if not any(f"pytest.mark.{kind}" in text for kind in wanted) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse tests of no kind, leave out the kinds that are not wanted, and sort the rest by kind."""
    none = sorted({str(item.path) for item in items if not kind_of(item)})
    if none:
        msg = (
            f"no kind is named in {', '.join(none)}: add `pytestmark = pytest.mark.unit`, or one of {', '.join(KINDS)}"
        )
        raise pytest.UsageError(msg)
    left = [item for item in items if not _is_wanted(item, config)]
    if left:
        config.hook.pytest_deselected(items=left)
    items[:] = sorted((item for item in items if _is_wanted(item, config)), key=_turn)


def _is_wanted(item: pytest.Item, config: pytest.Config) -> bool:
    kind = kind_of(item)
    if config.getoption("--stories") and kind == "agents" and not item.get_closest_marker("story"):
        return False
    return kind in (config.getoption("--kind") or KINDS)


def _turn(item: pytest.Item) -> tuple[bool, int]:
    return not _WAITING.isdisjoint(getattr(item, "fixturenames", ())), KINDS.index(kind_of(item))


@pytest.hookimpl(optionalhook=True)  # xdist may be switched off
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give the scheduler that takes from both ends."""
    if config.getoption("dist") != "load":
        return None
    from tests.support.both_ends import BothEnds

    return BothEnds(config, log)
