"""Values of panes and launches."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.roles.options import RoleOptions


def _no_options() -> RoleOptions:
    from swarm.roles.options import RoleOptions

    return RoleOptions()


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """Everything needed to start an agent's program.

    Attributes:
        argv: the program and its arguments; never a shell line.
        env: what is added to the caller's environment.
        files: further private files to write before the start: name in the run folder → content.
        pulls: it looks into its inbox by itself, so nothing is to be typed.
        without: names to be left out of its environment.
        awaits: its hooks wait for messages; only when nobody does is it told like the others.
        says: the file in which it says what it is doing, with ``{pid}`` for the process.
        prints: it does its task without a dialog, and ends; nothing is ever typed into its pane.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[str, str]
    pulls: bool = False
    without: tuple[str, ...] = ()
    awaits: bool = False
    says: str = ""
    prints: bool = False

    @property
    def deaf(self) -> bool:
        """Whether messages cannot reach it while it runs, unless it reads its inbox itself."""
        return self.prints and not (self.pulls or self.awaits)


@dataclass(frozen=True, slots=True)
class Login:
    """Whether a program has an account to use, as far as that is seen without asking anybody.

    Attributes:
        seen: where: a variable or a file; empty: nowhere.
        way: how one logs in.
    """

    seen: str
    way: str


@dataclass(frozen=True, slots=True)
class Launch:
    """A program's input for the start of one agent.

    Attributes:
        agent, role, session: names.
        worktree: where it works.
        run_dir: private folder for its notes.
        role_file: the role's full text.
        task_file: the goal; empty file when none was given.
        task: the goal as text.
        conversation: id chosen before the first launch, for programs that can resume by it.
        resume: take that conversation up again.
        executable: the program's path.
        options: what the role's file says beside its text.
        main: the main checkout of the repository.
        environ: the environment that it will have, but for what the program module adds.
    """

    agent: str
    role: str
    session: str
    worktree: Path
    run_dir: Path
    role_file: Path
    task_file: Path
    task: str
    conversation: str
    resume: bool
    executable: str
    options: RoleOptions = field(default_factory=_no_options)
    main: Path = field(default_factory=Path)
    environ: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class PanePlan:
    """One pane to open.

    Attributes:
        agent: its name; a word swarm checked.
        cwd: where it starts.
        argv: what runs in it.
    """

    agent: str
    cwd: Path
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pane:
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


@dataclass(frozen=True, slots=True)
class Screen:
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
