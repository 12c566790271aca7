"""``swarm list``, ``swarm status``: the states of sessions and agents."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated

import typer

from swarm import State, SwarmError, UsageProblem
from swarm.api.data import session_data
from swarm.cli import completion
from swarm.cli.output import Answer, Output
from swarm.cli.table import Cell, Column
from swarm.cli.text import age, count, plain
from swarm.cli.verb import Run, verb
from swarm.cli.views.agents import STATE_STYLES, Everywhere, SessionName, show_notes, stale

if TYPE_CHECKING:
    from swarm import AgentStatus, Session, SessionStatus, Swarm

#: What comes first where there is not room for all.
_URGENT = (State.WAITING, State.FAILED, State.UNKNOWN, State.WORKING, State.STARTING)
#: Of a watched screen: the heads, "and 3 more", an empty line, the last line and the cursor's.
_ROWS_AROUND = 5
#: Seconds after which ages are shown anew, and how long a screen stays at least.
_AGES, _REDRAW = 1.0, 0.1


def add_to(root: typer.Typer) -> None:
    """Add the commands to the tree."""
    verb(root, "list", attempt="cannot list the sessions", examples="swarm list\nswarm list --json")(list_)
    verb(
        root,
        "status",
        attempt="cannot look at the agents",
        examples="swarm status\nswarm status feature-x --watch",
    )(status)


# --- list and status -------------------------------------------------------------------------------


def list_(
    run: Run,
    pod: Annotated[
        str | None,
        typer.Option(
            "--pod",
            metavar="POD",
            help="Only this pod; '*' is all. Default: SWARM_POD, else all.",
            autocompletion=completion.pods,
            show_default=False,
        ),
    ] = None,
    everywhere: Everywhere = False,
) -> Answer:
    """List the sessions: a line each, with its state and how many agents are in which state.

    With pods, each has a heading, and sessions without a pod come last. A session made with another swarm directory
    is listed with --all.
    """
    swarm = run.open()
    only = os.environ.get("SWARM_POD", "") if pod is None else "" if pod == "*" else pod
    problems: list[SwarmError] = []
    others: list[Session] = []
    whole = run.output.json  # in words nothing is said of commits, files and messages
    found = swarm.status(look=whole, unread=whole, problems=problems, elsewhere=None if everywhere else others)
    found = tuple(one for one in found if not only or one.session.pod == only)
    bridges = swarm.bridges()

    def show(output: Output, sessions: Sequence[SessionStatus], session: str | None) -> None:
        _show_sessions(only, output, sessions, session)
        output.out(f"bridges: {', '.join(f'{plain(one.name)} {one.state}' for one in bridges) or 'none'}")

    answer = _answer(swarm, found, None, problems, show=show, others=others)
    return answer._replace(data={**answer.data, "bridges": [one._asdict() for one in bridges]})


def _show_sessions(pod: str, output: Output, found: Sequence[SessionStatus], session: str | None) -> None:
    """Print a line for each session, below its pod."""
    if not found:
        if pod:
            output.err(f"no sessions of pod {plain(pod)}; all of them: swarm list --pod '*'")
        else:
            _show(output, found, session)
        return
    columns = (
        Column("SESSION"),
        Column("STATE", keep="all"),
        Column("AGENTS"),
        Column("BASE", 2),
        Column("AGE", 1, keep="all", right=True),
    )
    pods = sorted({one.session.pod for one in found}, key=lambda name: (not name, name))
    for name in pods:
        if pods != [""]:
            if name != pods[0]:
                output.out()
            output.out(f"pod {plain(name)}" if name else "without a pod", "heading")
        output.table(columns, [_session_row(one) for one in found if one.session.pod == name])


def _session_row(one: SessionStatus) -> tuple[str | Cell, ...]:
    states = Counter(str(agent.status.state) for agent in one.agents)
    silent = sum(bool(agent.stale) for agent in one.agents)
    return (
        one.session.name,
        Cell(one.state, STATE_STYLES.get(one.state, "")),
        ", ".join(f"{number} {state}" for state, number in (*states.most_common(), ("stale", silent)) if number) or "-",
        one.session.base_ref,
        age(one.session.created_ms),
    )


def status(
    run: Run,
    session: SessionName = None,
    watch: Annotated[bool, typer.Option("--watch", help="Show each change until Ctrl-C.", show_default=False)] = False,
    everywhere: Everywhere = False,
) -> Answer:
    """Show the state of every agent.

    States: starting, working, idle, waiting (for you), done, failed, stopped, unknown.
    `swarm why AGENT` shows the evidence for a state.
    """
    swarm = run.open()
    if watch:
        return _watch(run, swarm, session, everywhere=everywhere)
    problems: list[SwarmError] = []
    others: list[Session] = []
    left = None if everywhere else others
    found = swarm.status(session, look=_look(session), problems=problems, elsewhere=left)
    return _answer(swarm, found, session, problems, others=others)


def _look(session: str | None) -> bool | None:
    """Return how git is asked: a session that is named is looked at whole."""
    return True if session else None


def _answer(
    swarm: Swarm,
    found: Sequence[SessionStatus],
    session: str | None,
    problems: Sequence[SwarmError] = (),
    show: Callable[[Output, Sequence[SessionStatus], str | None], None] | None = None,
    others: Sequence[Session] = (),
) -> Answer:
    granted = [one.name for one in swarm.approvals.grants()]
    return Answer(
        {
            "sessions": [session_data(one) for one in found],
            "elsewhere": [one.name for one in others],
            "grants": granted,
        },
        lambda output: (show or _show)(output, found, session),
        warnings=[*(f"not shown: {problem.message}; {problem.hint}" for problem in problems), *stale(found)],
        next=(*_next(found, asks=_asks(swarm, found), granted=granted), *not_listed(others)),
        errors=[problem.as_dict() for problem in problems],
        exit_code=1 if problems else 0,
    )


def _next(found: Sequence[SessionStatus], *, asks: bool, granted: Sequence[str] = ()) -> tuple[str, ...]:
    """Print the next commands: first for agents that wait for the user, then for ended ones."""

    def named(*states: State) -> list[str]:
        return [f"{a.agent.name}@{s.session.name}" for s in found for a in s.agents if a.status.state in states]

    ended = [(a, s) for s in found for a in s.agents if a.status.state is State.STOPPED and a.agent.program]
    over = [s.session.name for a, s in ended if a.status.is_over_budget]  # a resume leaves them out
    stopped = [s.session.name for a, s in ended if not a.status.is_over_budget]
    return (
        *(f"waits for you: swarm attach {one}" for one in named(State.WAITING)[:3]),
        *(["answer from here: swarm approvals"] if asks else []),
        *([f"may answer for you: {', '.join(granted)} (swarm approvals grants)"] if granted else []),
        *(f"explain a failure: swarm why {one}" for one in named(State.FAILED)[:1]),
        *(f"over its budget; raise the limit before a resume: swarm usage {one}" for one in over[:1]),
        *(f"bring back: swarm resume {one}" for one in stopped[:1]),
    )


def not_listed(others: Sequence[Session]) -> tuple[str, ...]:
    """Say how many sessions another swarm directory has."""
    return (f"{count(len(others), 'session')} of another swarm directory: swarm list --all",) if others else ()


def _asks(swarm: Swarm, found: Sequence[SessionStatus]) -> bool:
    """Whether an agent waits for an answer that any terminal can give."""
    waiting = {(s.session.name, a.agent.name) for s in found for a in s.agents if a.status.state is State.WAITING}
    if not waiting:
        return False
    with suppress(SwarmError):  # `swarm approvals` reports problems with them
        return any((one.question.session, one.question.agent) in waiting for one in swarm.approvals(problems=[]))
    return False


def _show(output: Output, found: Sequence[SessionStatus], session: str | None, most: int | None = None) -> None:
    """Print the table.

    Args:
        most: so many agents; of more the rest is counted, those first that need somebody.
    """
    if not found:
        what = f"no session {plain(session)}" if session else "no sessions"
        output.err(f"{what}; start one with: swarm start {plain(session or 'SESSION')} --roles researcher,developer")
        return
    columns = (
        Column("AGENT"),
        Column("SESSION") if len(found) > 1 else Column("SESSION", 6),
        Column("STATE", keep="all"),
        Column("DETAIL"),
        Column("SINCE", 3, keep="all", right=True),
        Column("AHEAD", 2, keep="all", right=True),
        Column("FILES", 2, keep="all"),
        Column("PROGRAM", 4),
        Column("PANE", 5, keep="all"),
        Column("BRANCH", 7),
        *(
            (Column("UNREAD", 1, keep="all", right=True),)
            if any(a.unread != 0 or a.box for s in found for a in s.agents)
            else ()
        ),
        *((Column("BOX", 8),) if any(a.box for s in found for a in s.agents) else ()),
    )
    agents = [(one, group.session.name) for group in found for one in group.agents]
    shown = agents if most is None or len(agents) <= most else sorted(agents, key=_calls)[:most]
    output.table(columns, [_row(one, where)[: len(columns)] for one, where in shown])
    show_notes(output, found, limits=most is None)
    unseen = sum(one.ahead is None and one.dirty is None and not one.missing for one, _ in agents)
    if unseen and session is None and len(found) > 1:
        output.err(f"changes were not looked for in {count(unseen, 'worktree')}; to see them: swarm status SESSION")
    if len(shown) < len(agents):
        output.out(f"and {len(agents) - len(shown)} more", "dim")


def _calls(named: tuple[AgentStatus, str]) -> int:
    """Return how soon the user should see an agent."""
    state = named[0].status.state
    return _URGENT.index(state) if state in _URGENT else len(_URGENT)


def _row(one: AgentStatus, session: str) -> tuple[str | Cell, ...]:
    none = "-" if one.agent.tree == "shared" else "?"  # of a folder that is not its own nothing is counted
    files = {True: "changed", False: "clean", None: none}[one.dirty] if not one.missing else "missing"
    return (
        one.agent.name,
        session,
        Cell(one.status.state, STATE_STYLES.get(one.status.state, "")),
        one.status.detail,
        age(one.status.since_ms) if one.status.since_ms else "-",
        none if one.ahead is None else str(one.ahead),
        files,
        one.agent.program or "-",
        one.pane or "-",
        one.agent.branch,
        "?" if one.unread is None else str(one.unread or "-"),
        one.box or "-",
    )


def _watch(run: Run, swarm: Swarm, session: str | None, *, everywhere: bool) -> Answer:
    """Print the table again at each change; a stream of JSON objects for machines."""
    if not run.output.json and run.output.room() is None:
        raise UsageProblem("--watch needs a terminal", hint="for machines: swarm status --watch --json")
    swarm.status(session, look=False, unread=False, ask=False)  # is it there?

    from swarm.cli.views.watch import until_ctrl_c

    def view() -> None:
        with swarm.live(tell=True) as live:
            shown = -1
            while True:
                snapshot = live.snapshot()
                if snapshot.revision != shown or not run.output.json:
                    _show_watched(run, swarm, snapshot.sessions, session, everywhere=everywhere)
                shown = snapshot.revision
                live.wait(shown, _AGES)
                time.sleep(_REDRAW)

    return until_ctrl_c(run, view)


def _show_watched(
    run: Run, swarm: Swarm, found: Sequence[SessionStatus], session: str | None, *, everywhere: bool
) -> None:
    """Print what a live model knows of a session, an agent, or all."""
    others = () if everywhere or session else swarm.sessions.elsewhere()
    found = tuple(one for one in found if one.session not in others)
    if session:
        found = _only(swarm, found, session)
    if run.output.json:
        run.output.answer(run.command, _answer(swarm, found, session, others=others))
        return
    run.output.clear_screen()
    _show(run.output, found, session, most=max(1, get_terminal_size().lines - _ROWS_AROUND))
    run.output.out()
    run.output.out("Ctrl-C ends this", "dim")


def _only(swarm: Swarm, found: Sequence[SessionStatus], target: str) -> tuple[SessionStatus, ...]:
    """Return a session, or an agent alone in its session.

    Raises:
        SessionNotFound, AgentNotFound: it is gone.
    """
    wanted = swarm.sessions.target(target)
    names = {one.name for one in wanted.agents}
    return tuple(
        one._replace(agents=tuple(agent for agent in one.agents if agent.agent.name in names))
        for one in found
        if one.session.name == wanted.name
    )
