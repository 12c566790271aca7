"""The live model of a project with real agents: what happens reaches every reader."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from swarm import Answer, AsyncSwarm, Question, Verdict
from swarm.approvals.store import Approvals as Store
from swarm.machine import inotify, processes
from swarm.machine.run_folder import program_facts
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from swarm import Change, Live
    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@contextmanager
def following(lab: PaneLab, **how: Any) -> Iterator[tuple[Live, Callable[..., Change]]]:
    """Give a live model, and a wait for a change behind all that were seen."""
    with lab.swarm.live(**how) as live:
        seen: list[Change] = []

        def see(kind: str, subject: str, **after: object) -> Change:
            """Return the next change of a kind whose fields are these."""

            def there() -> Change | None:
                seen.extend(live.wait(seen[-1].revision if seen else 0, 5))
                return next(
                    (
                        one
                        for one in seen
                        if (one.kind, one.subject) == (kind, subject)
                        and all((one.after or {}).get(name) == value for name, value in after.items())
                    ),
                    None,
                )

            wait_for(there, f"{kind} {subject} {after}", 90)
            found = there()
            assert found is not None
            return found

        yield live, see


@pytest.fixture
def team(panes: PaneLab) -> PaneLab:
    panes.env["SWARM_AGENTS_NUDGE"] = "never"
    panes.start("developer,reviewer")
    panes.all_until("idle")
    return panes


@pytest.mark.parametrize("told", [True, False], ids=["inotify", "looking"])
def test_a_state_a_message_a_commit_and_an_end_reach_a_reader(
    team: PaneLab, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    if not told:
        monkeypatch.setattr(inotify, "begin", lambda: -1)
    with following(team) as (live, see):
        before = live.snapshot()
        assert [(one.agent.name, one.status.state) for one in before.sessions[0].agents] == [
            ("developer", "idle"),
            ("reviewer", "idle"),
        ]

        program_facts.write_state(team.run("developer"), "working", "a long step")
        change = see("agent.state", "developer@fx", state="working", detail="a long step")
        assert change.before is not None
        assert change.before["state"] == "idle"
        see("session.state", "fx", state="working")

        tree = team.swarm.worktrees.path("developer", "fx")
        (tree / "new.txt").write_text("new\n")
        team.git("-C", str(tree), "add", "new.txt")
        team.git("-C", str(tree), "commit", "-qm", "new")
        see("agent.git", "developer@fx", ahead=1, dirty=False)

        os.kill(team.one("reviewer").pid, signal.SIGKILL)
        see("agent.state", "reviewer@fx", state="failed")

        assert before.agent("reviewer@fx").status.state == "idle"  # type: ignore[union-attr]  # it never changes
        assert live.snapshot().agent("reviewer").status.state == "failed"  # type: ignore[union-attr]


def test_sessions_come_and_go_and_operations_are_told(team: PaneLab) -> None:
    with following(team) as (live, see):
        team.swarm.create("later", "architect")
        see("session.added", "later")
        assert see("agent.added", "architect@later").after is not None
        team.swarm.cleanup(["later"])
        see("agent.removed", "architect@later")
        see("session.removed", "later")
        assert [one.session.name for one in live.snapshot().sessions] == ["fx"]

        path = team.root / ".swarm/journal/20260101T000000-000abcdef01.json"
        path.write_text('{"schema": 1, "operation": "x", "verb": "merge", "session": "fx"}')
        see("operation.begun", path.stem, verb="merge", session="fx")
        path.unlink()
        see("operation.ended", path.stem)


def test_waiting_messages_are_counted(team: PaneLab) -> None:
    team.swarm.create("desk", "architect")  # without a program, so that nobody else takes them
    with following(team) as (live, see):
        team.swarm.send("architect@desk", "look at this")
        see("agent.inbox", "architect@desk", unread=1)
        taken = team.swarm.messages.take("architect@desk")
        assert taken is not None
        team.swarm.messages.ack([one.id for one in taken.messages], "architect@desk")
        see("agent.inbox", "architect@desk", unread=0)
        assert live.snapshot().agent("architect@desk").unread == 0  # type: ignore[union-attr]


def test_a_request_is_told_with_its_answer(team: PaneLab) -> None:
    store = Store(team.root / ".swarm" / "approvals")
    me = os.getpid()
    who = {"pid": me, "pid_start": processes.start_of(me) or 0, "boot": processes.boot_id(), "asked_ms": 1}
    with following(team) as (live, see):
        asked = store.ask(Question("", "fx", "developer", "Bash", {"command": "true"}, **who))  # type: ignore[arg-type]

        opened = see("approval.opened", asked.id, agent="developer", session="fx")
        assert opened.after is not None
        assert opened.after["summary"] == "Bash(true)"
        assert [one.question.id for one in live.snapshot().approvals] == [asked.id]
        store.answer(asked.id, Answer(Verdict.DENY, "user:somebody", "not now"))
        answered = see("approval.answered", asked.id)
        assert answered.after == {"state": "denied", "by": "user:somebody", "reason": "not now"}
        assert live.snapshot().approvals == ()


def test_a_screen_is_looked_at_while_somebody_wants_it(team: PaneLab) -> None:
    with following(team) as (live, see):
        with live.show("developer@fx", lines=200):
            first = see("screen", "developer@fx")
            assert first.after is not None
            assert "demo>" in "\n".join(first.after["lines"])
            team.type("developer", "say something new")
            wait_for(
                lambda: any("something new" in "\n".join((one.after or {}).get("lines", ())) for one in live.since(0)),
                "the new words on the screen",
            )
        with live.show("nobody@fx"):
            assert see("screen", "nobody@fx").after == {"lines": [], "problem": "it has no pane"}


def test_it_tells_in_tmux_and_writes_the_log_and_supervisors_start_nothing(team: PaneLab) -> None:
    team.swarm.events.log()
    with following(team, tell=True) as (_, see):
        program_facts.write_state(team.run("developer"), "waiting", "for a test")
        see("agent.state", "developer@fx", state="waiting")
        pane = team.one("developer").pane
        wait_for(
            lambda: "waiting: for a test" in team.tmux("show-options", "-p", "-v", "-t", pane, "@swarm_state"),
            "the state in the border of the pane",
        )

        def written() -> bool:
            events = team.swarm.events.log().events
            return any(one.kind == "agent.state" and (one.after or {}).get("detail") == "for a test" for one in events)

        wait_for(written, "the event in the log")
        # The time of the last look is later than the change: no supervisor has a reason to start a process.
        lock = team.root / ".swarm/sessions/fx/run/label.lock"
        assert lock.stat().st_mtime_ns > (team.run("developer") / "state.json").stat().st_mtime_ns
    assert team.swarm.wait_for_event(timeout=0, kinds=["AgentWaiting"]).worker == "developer@fx"  # type: ignore[union-attr]


def test_without_a_model_the_supervisors_write_the_log(team: PaneLab) -> None:
    program_facts.write_state(team.run("developer"), "working", "alone")
    program_facts.write_state(team.run("developer"), "waiting", "all alone")

    def written() -> bool:
        return any((one.after or {}).get("detail") == "all alone" for one in team.swarm.events.log().events)

    wait_for(written, "the event that a supervisor's process wrote", 90)


def test_a_look_on_request_sees_what_no_file_tells(team: PaneLab) -> None:
    with team.swarm.live(git=None) as without, team.swarm.live(git=3600) as live:
        tree = team.swarm.worktrees.path("developer", "fx")
        (tree / "untracked.txt").write_text("new\n")

        assert live.refresh().agent("developer").dirty is True  # type: ignore[union-attr]
        assert without.refresh().agent("developer").dirty is None  # type: ignore[union-attr]


def test_many_readers_on_asyncio_take_no_threads(team: PaneLab) -> None:
    async def main() -> list[list[int]]:
        async with AsyncSwarm(team.swarm).live() as live:
            begin = live.snapshot().revision

            async def read() -> list[int]:
                found = []
                async for one in live.changes(after=begin, timeout=60):
                    found.append(one.revision)
                    if one.kind == "agent.state" and one.after and one.after["detail"] == "the last one":
                        break
                return found

            tasks = [asyncio.ensure_future(read()) for _ in range(200)]
            await asyncio.sleep(0)
            program_facts.write_state(team.run("developer"), "working", "the last one")
            return list(await asyncio.gather(*tasks))

    found = asyncio.run(main())

    assert len(found) == 200
    assert all(one == found[0] and one == list(range(one[0], one[-1] + 1)) for one in found)


def test_a_closed_model_ends_its_readers_and_leaves_no_descriptor(team: PaneLab) -> None:
    swarm = team.swarm
    with swarm.live(tell=True):
        pass
    before = len(os.listdir("/proc/self/fd"))

    for _ in range(3):
        with swarm.live(tell=True) as live:
            pass
        assert list(live.changes(after=live.snapshot().revision)) == []

    assert len(os.listdir("/proc/self/fd")) <= before
