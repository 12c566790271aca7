"""Workers in the window of their lead: panes that are opened beside another agent's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from swarm import SwarmError
from swarm.testing.panes import QUICK, PaneLab
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


def windows(panes: PaneLab) -> list[str]:
    """Return ``window: agents`` for each window, agents in order of name."""
    found: dict[str, list[str]] = {}
    for row in panes.tmux.rows("#{window_name}|#{@swarm_agent}"):
        window, _, agent = row.partition("|")
        found.setdefault(window, []).append(agent)
    return sorted(f"{window}: {' '.join(sorted(agents))}" for window, agents in found.items())


def begin(panes: PaneLab, *roles: str, session: str = "fx") -> None:
    panes.start(",".join(roles), session, task=QUICK)
    for role in roles:
        panes.until(role.partition("=")[0], "idle", session=session)


def test_workers_open_in_the_window_of_their_lead_and_others_in_their_own(panes: PaneLab) -> None:
    begin(panes, "lead=architect", "reviewer")
    panes.tmux("select-pane", "-t", panes.one("reviewer").pane)
    before = panes.swarm.sessions.get("fx")

    panes.start("developer:2", "parts", task=QUICK, beside="lead")
    panes.start("researcher", "own", task=QUICK)

    assert windows(panes) == ["fx: developer-1 developer-2 lead reviewer", "own: researcher"]
    assert panes.tmux.rows("#{pane_active} #{@swarm_agent}", "-t", panes.one("lead").pane).count("1 reviewer") == 1
    assert panes.swarm.sessions.get("parts").beside == "lead@fx"
    assert panes.swarm.sessions.get("fx") == before
    for name in ("developer-1", "developer-2"):
        assert panes.until(name, "idle", session="parts").worktree == panes.tree(name, "parts")

    panes.swarm.cleanup(["parts"], force=True)
    assert windows(panes) == ["fx: lead reviewer", "own: researcher"]


def test_after_a_lost_server_they_are_beside_their_lead_again_and_without_it_alone(panes: PaneLab) -> None:
    begin(panes, "lead=architect")
    panes.start("developer", "parts", task=QUICK, beside="lead@fx")
    panes.until("developer", "idle", session="parts")
    panes.tmux.kill()

    panes.swarm.resume(everything=True)
    assert windows(panes) == ["fx: developer lead"]

    panes.tmux.kill()
    panes.swarm.resume(["parts"])
    assert windows(panes) == ["parts: developer"]


def test_a_full_window_is_no_reason_to_fail(panes: PaneLab) -> None:
    begin(panes, "lead=architect")
    window = panes.tmux("display-message", "-p", "-t", panes.one("lead").pane, "#{window_id}")
    panes.tmux("resize-window", "-t", window, "-x", "20", "-y", "4")

    panes.start("developer:3", "parts", task=QUICK, beside="lead")

    assert windows(panes) == ["fx: lead", "parts: developer-1 developer-2 developer-3"]


@pytest.mark.parametrize(
    ("beside", "words"),
    [("nobody", "nobody"), ("lead@no-such", "no-such"), ("lead", "has no pane"), ("-x@@", "-x")],
)
def test_beside_what_is_not_there_nothing_is_made(panes: PaneLab, beside: str, words: str) -> None:
    begin(panes, "lead=architect")
    panes.swarm.stop(["fx"])
    panes.tmux("kill-pane", "-t", panes.one("lead").pane)
    wait_for(lambda: panes.panes() == [], "the pane to be gone")

    with pytest.raises(SwarmError, match=words):
        panes.start("developer", "parts", task=QUICK, beside=beside)

    assert not panes.tree("developer", "parts").exists()
    assert names(panes.swarm.sessions()) == ["fx"]
    done = panes.cli("start", "parts", "--roles", "developer", "--agent", "demo", "--beside", beside)
    assert done.returncode != 0
    assert done.stderr.startswith("error: cannot start session parts")


def names(sessions: Sequence[object]) -> list[str]:
    return [str(getattr(session, "name", "")) for session in sessions]
