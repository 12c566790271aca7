"""Values of launches."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.programs.turns import Turn
    from swarm.roles.options import RoleOptions


#: In the run folder: what the program is told in a turn without a terminal.
PROMPT = "prompt.md"


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
        stdin: the file in the run folder that it reads as its standard input, without a terminal; empty: nothing.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[str, str]
    pulls: bool = False
    without: tuple[str, ...] = ()
    awaits: bool = False
    says: str = ""
    prints: bool = False
    stdin: str = ""

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
        args: the user's further arguments of the program; they come behind swarm's, and before a prompt.
        shared: it works in a folder that is not its own.
        branch: the branch with which it was made; empty without one.
        door: the command of its MCP door; empty: it has none.
        models_at: of a program in a box: the address of the door to its models (`model_access`); empty: it has none.
        turn: what it is told in one turn without a terminal; None: it has one.
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
    args: tuple[str, ...] = ()
    shared: bool = False
    branch: str = ""
    door: tuple[str, ...] = ()
    models_at: str = ""
    turn: Turn | None = None
