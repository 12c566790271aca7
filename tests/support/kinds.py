"""The kinds of tests: each test is of one, and the quick kinds come first."""

from __future__ import annotations

import pytest

#: In the order in which they run; what each is stands in ``pyproject.toml``.
KINDS = ("unit", "component", "contract", "agents", "crash", "e2e", "integration")


def kind_of(item: pytest.Item) -> str:
    """Return a test's kind: the marker nearest to it that is one, and nothing where there is none."""
    return next((mark.name for mark in item.iter_markers() if mark.name in KINDS), "")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--kind``, which is shorter than the expression that ``-m`` takes."""
    parser.addoption(
        "--kind", action="append", choices=KINDS, default=[], help="only tests of this kind; can be given again"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse tests of no kind, leave out the kinds that are not wanted, and sort the rest by kind."""
    none = sorted({str(item.path) for item in items if not kind_of(item)})
    if none:
        msg = (
            f"no kind is named in {', '.join(none)}: add `pytestmark = pytest.mark.unit`, or one of {', '.join(KINDS)}"
        )
        raise pytest.UsageError(msg)
    wanted = config.getoption("--kind") or KINDS
    left = [item for item in items if kind_of(item) not in wanted]
    if left:
        config.hook.pytest_deselected(items=left)
    items[:] = sorted((item for item in items if kind_of(item) in wanted), key=lambda item: KINDS.index(kind_of(item)))
