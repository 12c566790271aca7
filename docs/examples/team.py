"""Start a team, answer what it asks, collect its last words, and merge its work.

    python team.py feature-x "Greet people by name"

Approvals are for people: run this at a terminal of your own, or with a grant (`swarm approvals grant`) in SWARM_GRANT.
"""

from __future__ import annotations

import sys

from swarm import AgentEvent, Swarm, SwarmError, Team

SAFE = {"Read", "Glob", "Grep"}


def answer(swarm: Swarm, event: AgentEvent) -> None:
    """Allow what only reads; refuse everything else, and say why."""
    asked = [one.question for one in swarm.approvals() if one.question.id == event.approval]
    for question in asked:
        if question.tool in SAFE:
            swarm.approvals.approve(question.id)
        else:
            swarm.approvals.deny(question.id, reason="this team only reads; ask for the file that you need")
    if not asked:
        print(f"{event.worker} waits for you in its pane: {event.cause}")


def watch(swarm: Swarm, team: Team) -> dict[str, str]:
    """Return the last words of each agent when the turns of all are over."""
    said: dict[str, str] = {}
    while len(said) < len(team):
        event = swarm.wait_for_event(timeout=3600, session=team.session)
        if event is None:
            break
        if event.kind == "AgentWaiting":
            answer(swarm, event)
        elif event.kind in {"AgentIdle", "WorkerComplete"}:
            said[event.agent] = event.text or event.message
    return said


def main(session: str, task: str, program: str | None = None) -> int:
    """Run a team for one task."""
    try:
        swarm = Swarm.open()
        team = swarm.start(session, "researcher,developer", task=task, program=program)
        for agent, words in watch(swarm, team).items():
            print(f"{agent}: {words}")
        swarm.stop([session])
        merged = swarm.merge(session)
        print(f"merged into {merged.into}: {', '.join(change.path for change in merged.files)}")
    except SwarmError as error:
        print(f"{error}\n{error.hint or ''}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
