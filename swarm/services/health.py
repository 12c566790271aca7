"""How components do, from look to look: colours with a word and an age, and when to look again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from swarm.services.values import Component, ComponentHealth

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Between two looks: at one that works, at one that does not, and at a stranger.
WORKING, IDLE, STRANGER = 1.0, 5.0, 30.0
#: From so many failed looks on it counts as unreachable.
LOST_AFTER = 3


class _Known(NamedTuple):
    component: Component
    failed: int
    heard: float
    due: float


class Watch:
    """What is known of components, by their addresses.

    Args:
        keep: seconds for which one that does not answer is shown; then it is forgotten.
    """

    def __init__(self, keep: float = 300.0) -> None:
        self._keep = keep
        self._known: dict[str, _Known] = {}

    @property
    def known(self) -> frozenset[str]:
        """The addresses of all."""
        return frozenset(self._known)

    def due(self, now: float) -> frozenset[str]:
        """Return the addresses that are to be looked at."""
        return frozenset(url for url, one in self._known.items() if one.due <= now)

    def heard(self, looked: Iterable[str], found: Iterable[Component], now: float) -> None:
        """Note what came of looks.

        Args:
            looked: the addresses that were looked at.
            found: what is there; without its own words where it did not answer.
        """
        silent = dict.fromkeys(looked)
        for one in found:
            if one.says is not None or one.url not in self._known:
                failed = int(one.says is None)
                self._known[one.url] = _Known(one, failed, now, now + (WORKING if failed else _pause(one)))
                silent.pop(one.url, None)
        for url in silent:
            before = self._known[url]
            if not before.component.is_ours or now - before.heard >= self._keep:
                del self._known[url]
            else:
                self._known[url] = before._replace(failed=before.failed + 1, due=now + WORKING)

    def seen(self, now: float) -> tuple[ComponentHealth, ...]:
        """Return how all stand: ours first, each by its name."""
        known = sorted(
            self._known.values(),
            key=lambda one: (not one.component.is_ours, one.component.name, one.component.url),
        )
        return tuple(health(one.component, one.failed, now - one.heard) for one in known)


def health(component: Component, failed: int, age: float) -> ComponentHealth:
    """Return how a component does.

    Args:
        failed: looks since the last answer.
        age: seconds since that.
    """
    if not component.is_ours:
        return ComponentHealth(component, "grey", "not ours", age)
    if failed == 0:
        return ComponentHealth(component, "green", "healthy", age)
    if failed < LOST_AFTER:
        return ComponentHealth(component, "yellow", "does not answer", age)
    return ComponentHealth(component, "red", "unreachable", age)


def _pause(component: Component) -> float:
    if not component.is_ours:
        return STRANGER
    return WORKING if component.state not in ("idle", "error") else IDLE
