"""Values of panes: panes to open, tmux's list, a pane's screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


class PanePlan(NamedTuple):
    """One pane to open.

    Attributes:
        agent: its name; a word swarm checked.
        cwd: where it starts.
        argv: what runs in it.
    """

    agent: str
    cwd: Path
    argv: tuple[str, ...]


class Pane(NamedTuple):
    """A pane of swarm's, as tmux shows it now.

    Attributes:
        id: tmux's own, such as ``%12``; never changes.
        repository, operation, session, agent: swarm's marks on it.
        dead: its program has ended and the pane is kept for its last words.
        in_mode: somebody scrolls in it (copy mode).
    """

    id: str
    window: str
    repository: str
    operation: str
    session: str
    agent: str
    pid: int
    dead: bool
    in_mode: bool
    width: int
    height: int
    tmux_session: str


class Screen(NamedTuple):
    """The content of a pane at one moment, and whether it takes keys.

    Attributes:
        pid: the pane's own process.
        dead: its program has ended.
        in_mode: somebody scrolls in it (copy mode); keys go there.
        closed: keys are switched off, or go to other panes as well.
        before: what stands left of the cursor in its row.
        after: what stands right of it.
        faint: that is written faintly, as what a program suggests.
        text: all that is shown, without spaces and ends of lines.
        takes_lines: a shell that edits its line itself does not do so now: it is not at its prompt.
    """

    pid: int
    dead: bool
    in_mode: bool
    closed: bool
    before: str
    after: str
    text: str
    faint: bool = False
    takes_lines: bool | None = None
