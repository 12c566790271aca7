"""``swarm list``, ``status``, ``why``, ``peek``: the states of sessions and agents, with the evidence."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated

import typer

from swarm import State, SwarmError, UsageProblem
from swarm.api.data import agent_data, session_data
from swarm.api.words import split_agent
from swarm.cli import completion
from swarm.cli.output import Answer, Output
from swarm.cli.table import Cell, Column
from swarm.cli.text import age, count, iso, place, plain, short_id
from swarm.cli.verb import Run, verb
from swarm.cli.views.agents import show_notes, stale

if TYPE_CHECKING:
    from swarm import AgentStatus, BoxReport, Notes, Parent, Session, SessionStatus, Swarm

_STYLES = {
    State.WAITING: "warn",
    State.FAILED: "bad",
    State.UNKNOWN: "dim",
    State.WORKING: "good",
    State.STARTING: "hint",
}
#: What comes first where there is not room for all.
_URGENT = (State.WAITING, State.FAILED, State.UNKNOWN, State.WORKING, State.STARTING)
#: Of a watched screen: the heads, "and 3 more", an empty line, the last line and the cursor's.
_ROWS_AROUND = 5
#: Seconds after which ages are shown anew, and how long a screen stays at least.
_AGES, _REDRAW = 1.0, 0.1
SessionName = Annotated[
    str | None,
    typer.Argument(
        metavar="[SESSION|AGENT]",
        help="Only this session, or this agent.",
        autocompletion=completion.sessions,
        show_default=False,
    ),
]
Everywhere = Annotated[
    bool, typer.Option("--all", help="Also sessions made with another swarm directory.", show_default=False)
]
AgentName = Annotated[
    str,
    typer.Argument(
        metavar="AGENT[@SESSION]",
        help="Agent; name the session where several sessions have such an agent.",
        autocompletion=completion.agents,
        show_default=False,
    ),
]


def add_to(root: typer.Typer) -> None:
    """Add the commands to the tree."""
    verb(root, "list", attempt="cannot list the sessions", examples="swarm list\nswarm list --json")(list_)
    verb(
        root,
        "status",
        attempt="cannot look at the agents",
        examples="swarm status\nswarm status feature-x --watch",
    )(status)
    verb(root, "why", attempt="cannot explain {agent}", examples="swarm why developer@feature-x")(why)
    verb(
        root,
        "peek",
        attempt="cannot look at {agent}",
        examples="swarm peek developer\nswarm peek developer@feature-x -n 100\nswarm peek developer --follow",
    )(peek)


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
        Cell(one.state, _STYLES.get(one.state, "")),
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
        Cell(one.status.state, _STYLES.get(one.status.state, "")),
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


# --- one agent -------------------------------------------------------------------------------------


def why(run: Run, agent: AgentName) -> Answer:
    """Explain an agent's state: every piece of evidence, and which one decided."""
    from swarm.cli.views.setup import setup_data

    name, session = split_agent(agent)
    swarm = run.open()
    one = swarm.why(name, session, look=run.output.json, unread=run.output.json)
    where = one.session
    box = swarm.boxes.explain(one.agent.name, where)
    done = swarm.worktrees.setup_of(one.agent.name, where)
    parent = swarm.sessions.get(where).parent
    trouble = swarm.hooks.trouble(one.agent.name, where)
    told = {
        "parent": parent.address if parent else "",
        "setup": done and setup_data(done),
        "box": {"by": box.by, "network": list(box.decisions)} if box.by else None,
        "hook_trouble": {"at": iso(trouble[0] * 1000), "text": trouble[1]} if trouble else None,
    }
    warnings = (f"a hook of its program failed {age(trouble[0] * 1000)} ago: {trouble[1]}",) if trouble else ()
    return Answer(
        {**agent_data(one, where), **told}, lambda output: _show_why(output, one, where, parent, done, box), warnings
    )


def _show_why(
    output: Output, one: AgentStatus, session: str, parent: Parent | None, done: Notes | None, box: BoxReport
) -> None:
    from swarm.cli.views.setup import setup_rows, show_setup

    output.pairs(
        [
            ("agent", f"{one.agent.name}@{session}"),
            ("state", Cell(one.status.state, _STYLES.get(one.status.state, ""))),
            ("detail", one.status.detail or "-"),
            ("program", one.agent.program or "-"),
            *((("parent", parent.address),) if parent else ()),
            ("pane", one.pane or "-"),
            ("process", str(one.pid) if one.pid else "-"),
            ("worktree", place(one.worktree)),
            ("head", short_id(one.head) or "-"),
            *((("box", one.box),) if one.box else ()),
            *_limits(one),
            *((("held", one.held),) if one.held else ()),
            *setup_rows(one.agent, done),
        ]
    )
    if done is not None:
        show_setup(output, done)
    if one.outside:
        from swarm.cli.views.outside import show_outside  # most have none

        show_outside(output, one.outside)
    output.out()
    output.out("evidence:", "heading")
    for item in one.status.evidence:
        mark = "*" if item.decides else " "
        when = f"  ({age(item.at_ms)} ago)" if item.at_ms else ""
        output.item(f" {mark} ", f"{item.source}: {item.text}{when}")
    show_decisions(output, box)
    output.err("* decided the state")


def _limits(one: AgentStatus) -> Iterator[tuple[str, str]]:
    """Yield the line about the limits of an agent's box."""
    if one.limits:
        from swarm.cli.views.boxes import limits_words  # most have none

        yield "limits", limits_words(one.limits)


def show_decisions(output: Output, box: BoxReport) -> None:
    """Print what an agent in a box asked of the network, and what came of it."""
    if not box.decisions:
        return
    output.out()
    output.out("asked of the network, newest first:", "heading")
    for one in box.decisions:
        times = f", {one['times']} times" if one["times"] != 1 else ""
        said = f"{one['target'] or '-'}: {one['reason']} (by the {one['by']}{times})"
        output.item("  let through " if one["allowed"] else "  refused     ", said, "good" if one["allowed"] else "bad")


def peek(
    run: Run,
    agent: AgentName,
    lines: Annotated[str, typer.Option("-n", "--lines", metavar="LINES", help="Number of lines.")] = "40",
    follow: Annotated[
        bool, typer.Option("--follow", help="Show each change until Ctrl-C.", show_default=False)
    ] = False,
) -> Answer:
    """Print the last lines of an agent's pane."""
    wanted = int(lines) if lines.isascii() and lines.isdigit() and len(lines) <= 6 else 0
    if not 1 <= wanted <= 100_000:
        raise UsageProblem(f"--lines {lines}: give a number from 1 to 100000")
    name, session = split_agent(agent)
    swarm = run.open()
    if follow:
        return _follow(run, swarm, name, session, wanted)
    shown = swarm.peek(name, session, lines=wanted)
    return Answer({"agent": name, "lines": shown}, lambda output: _print(output, shown))


def _print(output: Output, lines: Sequence[str]) -> None:
    for line in lines:
        output.out(plain(line))


def _follow(run: Run, swarm: Swarm, name: str, session: str | None, lines: int) -> Answer:
    swarm.peek(name, session, lines=lines)  # is there anything to see?
    where = swarm.why(name, session, look=False, unread=False, ask=False)
    address = f"{where.agent.name}@{where.session}"

    from swarm.cli.views.watch import until_ctrl_c

    def view() -> None:
        with swarm.live(git=None) as live, live.show(address, lines=lines):
            revision = live.snapshot().revision
            while True:
                for change in live.wait(revision):
                    revision = change.revision
                    if change.kind == "screen" and change.subject == address and change.after is not None:
                        if change.after["problem"]:
                            swarm.peek(name, session, lines=lines)  # says what is wrong
                        _show_screen(run, name, change.after["lines"])

    return until_ctrl_c(run, view)


def _show_screen(run: Run, name: str, shown: list[str]) -> None:
    if run.output.json:
        run.output.answer(run.command, Answer({"agent": name, "lines": shown}, lambda _output: None))
    else:
        run.output.clear_screen()
        _print(run.output, shown)
