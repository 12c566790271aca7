"""Claude Code: start it without a dialog, give it its role and task, and read its own report of its state."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.kit.errors import EnvironmentProblem, UsageProblem
from swarm.programs import base
from swarm.programs.base import Program
from swarm.programs.errors import RulesNotEnforced
from swarm.roles.options import PermissionMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from swarm.kit.errors import SwarmError
    from swarm.permissions.rules import Rules as PermissionRules
    from swarm.permissions.translation import Gaps
    from swarm.programs.model_access import Service
    from swarm.programs.turns import Said
    from swarm.programs.values import Launch, LaunchSpec, Login
    from swarm.project.config.sections import Telemetry
    from swarm.roles.options import RoleOptions


class Claude(Program):
    """``claude``, in interactive mode or in print mode."""

    name = "claude"
    title = "Claude Code"
    acts = (
        *(".mcp.json", ".claude/settings.json", ".claude/settings.local.json", "**/.claude/settings*.json"),
        *(
            "**/.claude/hooks/",
            "**/.claude/commands/",
            "**/.claude/skills/",
            "**/.claude/agents/",
            "**/.claude-plugin/",
        ),
    )
    prints = True
    turns = True
    speech = "swarm.programs.claude.speech"
    interrupts = 2.0
    background = ("CLAUDE_JOB_DIR", "CLAUDE_BG_SOCKET_TOKENS_PATH")
    tells_version = True
    token_variable = "CLAUDE_CODE_OAUTH_TOKEN"  # noqa: S105  # its name
    holds = (base.GUARD, base.OWN)
    obeys = (
        base.RULES
        | base.COUNTED
        | {
            *(
                "permissions.agent",
                "model",
                "permission_mode",
                "system_prompt",
                "hooks",
                "settings",
                "claude_config_dir",
            ),
            *("telemetry", "heartbeat", "print"),
        }
    )

    def has_model(self, model: str) -> bool:
        """Know its short names and its whole ones."""
        return model in ("opus", "sonnet", "haiku") or model.startswith("claude-")

    def executable(self, environ: Mapping[str, str]) -> str:
        """Return the program's name."""
        return environ.get("CLAUDE_BIN") or "claude"

    def check(self, options: RoleOptions, environ: Mapping[str, str]) -> Iterator[SwarmError]:
        """Return the parts of a role that the program would refuse, or silently ignore."""
        from swarm.programs.claude import rules

        for text, why in rules.problems(options):
            yield UsageProblem(f"cannot enforce the deny rule {text[:60]!a}: it {why}")
            return
        yield from self.settings_problems(options, environ)
        if options.permission_mode is PermissionMode.BYPASS and os.geteuid() == 0 and not environ.get("IS_SANDBOX"):
            yield UsageProblem(
                "Claude Code refuses permission_mode bypassPermissions for root",
                hint="start swarm as another user, or set IS_SANDBOX=1 inside a sandbox",
            )

    def settings_problems(self, options: RoleOptions, environ: Mapping[str, str]) -> Iterator[SwarmError]:
        """Return the parts of a role for which the program would drop its settings file, deny rules and hooks included.

        The installed program is asked where the role has further settings: they are the program's own, not swarm's.
        """
        from swarm.programs.claude import accepted, settings

        made = settings.make(options, hooks=self.hooks(Path(), Path(), options), servers={})
        wrong = [*settings.problems(made)]
        found = shutil.which(self.executable(environ), path=environ.get("PATH"))
        if not wrong and found and options.settings:
            told = accepted.complaints(found, made, environ)
            if told is None:
                yield from _cannot_be_asked(found, options)
            wrong = [f"settings.{one}" for one in told or ()]
        for problem in wrong:
            yield UsageProblem(f"Claude Code would not accept this role's {problem}")

    def denied(self, options: RoleOptions) -> tuple[str, ...]:
        """Return a role's deny rules, those in its settings for the program included."""
        from swarm.programs.claude import rules

        return rules.denied(options)

    def gaps(self, rules: PermissionRules) -> Gaps:
        """Return which rules it holds in part only."""
        from swarm.programs.claude.translate import translate

        return translate(rules).gaps

    def launch(self, launch: Launch) -> LaunchSpec:
        """Start a conversation under the id chosen beforehand, or take it up again."""
        from swarm.programs.claude.launch import spec

        hooks = self.hooks(launch.run_dir, launch.main, launch.options, door=bool(launch.door))
        if launch.turn is not None and not launch.session:  # no agent with an inbox: only its rules are held
            hooks = {event: entries for event, entries in hooks.items() if event == "PreToolUse"}
        return spec(launch, hooks)

    def said(self, out: Path) -> Said:
        """Return what it said of a turn."""
        from swarm.programs.claude import turns

        return turns.said(out)

    def knows(self, launch: Launch) -> bool:
        """Whether it has a conversation with words in it."""
        from swarm.programs.claude.launch import can_resume, config_folder

        return can_resume(config_folder(launch.options.claude_config_dir, launch.environ), launch.conversation)

    def last_conversation(self, launch: Launch) -> str:
        """Return the one that its hooks told of last."""
        from swarm.programs.claude.launch import conversation_of

        return conversation_of(launch.run_dir)

    def heard(self, launch: Launch) -> frozenset[str]:
        """Return the ids of the user's texts in its record."""
        from swarm.programs.claude.launch import config_folder, conversation_of
        from swarm.programs.claude.turns import heard

        folder = config_folder(launch.options.claude_config_dir, launch.environ)
        return heard(folder, (launch.conversation, conversation_of(launch.run_dir)))

    def hooks(self, run_dir: Path, main: Path, options: RoleOptions, *, door: bool = False) -> dict[str, Sequence[Any]]:
        """Return swarm's own hooks, in the program's form: event → list of ``{matcher, hooks}``."""
        from swarm.programs.claude import hooks, rules

        return hooks.standard(run_dir, main, guarded=bool(rules.denied(options)), prints=options.print, door=door)

    def home(self, options: RoleOptions, environ: Mapping[str, str]) -> str:
        """Return the file that must know a folder before the program is started there."""
        from swarm.programs.claude.launch import config_file, config_folder

        return str(config_file(config_folder(options.claude_config_dir, environ), environ))

    def check_project(
        self, options: RoleOptions, environ: Mapping[str, str], main: Path, read: Callable[[str], bytes | None]
    ) -> Iterator[SwarmError]:
        """Refuse a start that would wait for a person: a project's permissions count only where the user trusts it."""
        from swarm.programs.claude import first_run

        if options.print:  # it asks nobody, and leaves out what the project allows
            return
        asks = first_run.asks_for_trust(Path(self.home(options, environ)), main, options.worktree.subdir, read)
        if asks:
            yield EnvironmentProblem(
                f"Claude Code would wait for you to say whether it may trust this project: {asks}",
                hint=f"start `claude` once in {main} and say yes, or use --print",
            )

    def preapprove(self, home: str, main: Path, trees: Sequence[Path], environ: Mapping[str, str]) -> None:
        """Answer the program's questions at its first start in a folder in advance."""
        from swarm.programs.claude import first_run

        first_run.preapprove(Path(home), main, trees, environ)

    def withdraw(self, home: str, trees: Sequence[Path]) -> None:
        """Take that back for folders that are gone."""
        from swarm.programs.claude import first_run

        first_run.withdraw(Path(home), trees)

    def forget(self, run_dir: Path, tree: Path) -> None:
        """Forget the answers for one agent, from the note made at its start."""
        from swarm.programs.reading import notes

        home = notes.read(run_dir).get("home")
        if home:
            self.withdraw(home, [tree])

    def asking(self, run_dir: Path, pid: int, start: int) -> Callable[[], bool]:
        """Return a check whether a question is still shown."""
        from swarm.programs.claude.asking import Asking
        from swarm.programs.reading import notes

        folder = notes.read(run_dir).get("config")
        return Asking(Path(folder) if folder else None, pid, start)

    def services(self, environ: Mapping[str, str]) -> list[Path]:
        """Return the notes of its service for sessions in the background."""
        folder = Path(environ.get("CLAUDE_CONFIG_DIR") or base.home_of(environ) / ".claude")
        return [folder / "daemon.lock", folder / "daemon" / "roster.json"]

    def login(self, environ: Mapping[str, str]) -> Login:
        """Return whether it has an account to use."""
        from swarm.programs.claude import first_run
        from swarm.programs.claude.launch import config_file, config_folder
        from swarm.programs.values import Login

        folder = config_folder("", environ)
        seen = first_run.login(folder, config_file(folder, environ), environ)
        return Login(seen, "start `claude` once and log in, or set ANTHROPIC_API_KEY")

    def models(self, options: RoleOptions, environ: Mapping[str, str]) -> tuple[Service, ...]:
        """Return Anthropic's API."""
        from swarm.programs.claude import access
        from swarm.programs.claude.launch import config_folder

        return access.models(config_folder(options.claude_config_dir, environ), environ)

    def at_door(self, door: str) -> Mapping[str, str]:
        """Return its address of the API, and what stands for a credential."""
        from swarm.programs.claude import access

        return access.variables(door)

    def telemetry(self, wish: Telemetry) -> Mapping[str, str]:
        """Return the variables that switch its measurements on; it sends prompts only on request."""
        return {"CLAUDE_CODE_ENABLE_TELEMETRY": "1", "OTEL_LOG_USER_PROMPTS": "1" if wish.prompts else "0"}


PROGRAM = Claude()


def _cannot_be_asked(executable: str, options: RoleOptions) -> Iterator[SwarmError]:
    """Refuse settings that neither swarm nor the program can check."""
    from swarm.programs.claude import settings

    unknown = [f"settings.{key}" for key in options.settings if key not in settings.KNOWN]
    if unknown:
        yield RulesNotEnforced(
            f"cannot start with {', '.join(unknown)}: {executable} cannot say whether it accepts them, "
            "and one wrong value makes it drop all rules silently",
            hint="remove them from `settings` of the role, or install the newest Claude Code",
        )
