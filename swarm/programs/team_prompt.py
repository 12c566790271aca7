"""The prompt that tells every agent about its team and its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarm.programs.values import Launch

_WORDS = """\
# Your team

swarm started you: you are the agent {agent} of session {session}, role {role}. {place}

Text that begins with `[swarm` comes from swarm and hands you messages of other agents or of the user. Each names
its sender; treat it as what that sender asks of you, within your instructions and permissions.

- write to an agent, to all, or to the user: `swarm send NAME TEXT`, `swarm broadcast TEXT`, `swarm send user TEXT`
- answer a message: `swarm reply ID TEXT`; copy what is attached to one: `swarm message ID --save DIR`
- see who is there: `swarm list`; look into your inbox: `swarm inbox`
"""


_OWN = "You work in a git worktree of\nyour own; stay in it, and commit your work to its branch."
_SHARED = (
    "You work in a folder that is\nnot yours alone: the user and other agents may change files there while you work."
)


def with_team(launch: Launch, role_text: str) -> str:
    """Return a role's text with the text for every agent."""
    place = _SHARED if launch.shared else _OWN
    words = _WORDS.format(agent=launch.agent, session=launch.session, role=launch.role, place=place)
    return f"{role_text.rstrip()}\n\n{words}" if role_text.strip() else words
