"""The files between swarm and Claude Code: first-run answers, settings, and what the program says of itself."""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from swarm.kit.errors import EnvironmentProblem, SwarmError
from swarm.machine import hook_events, processes
from swarm.machine.run_folder import runfiles as files
from swarm.programs import reviewer, role_effects
from swarm.programs.claude import SETTINGS, first_run, moved, settings, state
from swarm.programs.claude.launch import config_file, config_folder, mcp_servers
from swarm.programs.claude.program import Claude
from swarm.programs.status import OwnWords
from swarm.programs.values import Launch
from swarm.roles.options import Hook, PermissionMode, Permissions, Reviewer, RoleOptions, WorktreeOptions

pytestmark = pytest.mark.component

#: The tools that go round the bus.
AROUND = ["SendMessage", "ListAgents"]
KEY = "sk-example-0123456789abcdefghij"


def read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def trusted(file: Path) -> set[str]:
    return {name for name, one in read(file)["projects"].items() if one.get("hasTrustDialogAccepted")}


class TestFirstRun:
    def test_a_fresh_home_gets_exactly_what_is_needed_and_nobody_else_may_read_it(self, tmp_path: Path) -> None:
        file = tmp_path / ".claude.json"
        trees = [tmp_path / "w/a", tmp_path / "w/b"]
        first_run.preapprove(file, tmp_path / "main", trees, {"ANTHROPIC_API_KEY": KEY})
        assert read(file) == {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {str(tree): {"hasTrustDialogAccepted": True} for tree in trees},
        }
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert os.listdir(tmp_path) == [".claude.json"]

    def test_what_is_there_stays(self, tmp_path: Path) -> None:
        file = tmp_path / ".claude.json"
        tree = tmp_path / "w/a"
        there = {"theme": "dark", "projects": {str(tree): {"lastCost": 3}, "/other": {"x": [1]}}, "ünï": "😀"}
        file.write_text(json.dumps(there))
        first_run.preapprove(file, tmp_path / "main", [tree], {})
        found = read(file)
        assert found["projects"].pop(str(tree)) == {"lastCost": 3, "hasTrustDialogAccepted": True}
        assert found == {**there, "projects": {"/other": {"x": [1]}}}

    def test_without_an_account_the_onboarding_is_left_to_the_user(self, tmp_path: Path) -> None:
        file = tmp_path / ".claude.json"
        first_run.preapprove(file, tmp_path / "main", [tmp_path / "w"], {})
        assert "hasCompletedOnboarding" not in read(file)
        (tmp_path / ".claude").mkdir()
        (tmp_path / ".claude/.credentials.json").write_text("{}")
        first_run.preapprove(file, tmp_path / "main", [tmp_path / "w"], {})
        assert read(file)["hasCompletedOnboarding"] is True

    def test_a_key_that_the_user_refused_stays_refused(self, tmp_path: Path) -> None:
        file = tmp_path / ".claude.json"
        answers = {"approved": [], "rejected": [KEY[-20:]]}
        file.write_text(json.dumps({"customApiKeyResponses": answers}))
        first_run.preapprove(file, tmp_path / "main", [tmp_path / "w"], {"ANTHROPIC_API_KEY": KEY})
        assert read(file)["customApiKeyResponses"] == answers

    @pytest.mark.parametrize("where", ["main", "w", "."])
    def test_nothing_is_added_below_what_the_user_trusts(self, tmp_path: Path, where: str) -> None:
        file = tmp_path / ".claude.json"
        known = str((tmp_path / where).resolve())
        file.write_text(json.dumps({"projects": {known: {"hasTrustDialogAccepted": True}}}))
        first_run.preapprove(file, tmp_path / "main", [tmp_path / "w/a"], {})
        assert trusted(file) == {known}

    def test_withdrawn_it_is_as_it_was(self, tmp_path: Path) -> None:
        file = tmp_path / ".claude.json"
        one, two = tmp_path / "w/a", tmp_path / "w/b"
        file.write_text(json.dumps({"projects": {str(one): {"lastCost": 3}}}))
        first_run.preapprove(file, tmp_path / "main", [one, two], {})
        first_run.withdraw(file, [one, two])
        assert read(file) == {"projects": {str(one): {"lastCost": 3}}}

    @pytest.mark.parametrize(
        ("name", "content", "said"),
        [
            (".claude/settings.json", {"permissions": {"allow": ["Bash(npm test)"]}}, "settings.json allows tools"),
            (".claude/settings.local.json", {"permissions": {"allow": ["Read"]}}, "settings.local.json allows tools"),
            (".claude/settings.json", {"permissions": {"additionalDirectories": ["/"]}}, "opens more folders"),
            (".claude/settings.json", {"permissions": {"allow": [], "deny": ["Read"]}}, ""),
            (".claude/settings.json", {"permissions": []}, ""),
            (".claude/settings.json", [], ""),
            ("other/.claude/settings.json", {"permissions": {"allow": ["Read"]}}, ""),
        ],
    )
    def test_what_a_project_allows_needs_an_entry_that_is_the_users_to_make(
        self, tmp_path: Path, name: str, content: Any, said: str
    ) -> None:
        main = tmp_path / "main"
        project = {name: json.dumps(content).encode()}
        environ = {"HOME": str(tmp_path)}

        def refused(**options: Any) -> list[SwarmError]:
            return list(Claude().check_project(RoleOptions(**options), environ, main, project.get))

        assert [said in one.message for one in refused()] == [True] * bool(said)
        assert all(f"start `claude` once in {main}" in one.hint for one in refused())
        assert refused(print=True) == []
        assert len(refused(worktree=WorktreeOptions(subdir="other"))) == name.startswith("other")
        (tmp_path / ".claude.json").write_text(json.dumps({"projects": {str(main): {"hasTrustDialogAccepted": True}}}))
        assert refused() == refused(worktree=WorktreeOptions(subdir="other")) == []

    @pytest.mark.parametrize("text", ["{", "[]", '"x"'])
    def test_a_damaged_file_is_refused_and_left_alone(self, tmp_path: Path, text: str) -> None:
        file = tmp_path / ".claude.json"
        file.write_text(text)
        with pytest.raises(EnvironmentProblem, match="damaged"):
            first_run.preapprove(file, tmp_path / "main", [tmp_path / "w"], {})
        assert file.read_text() == text
        assert os.listdir(tmp_path) == [".claude.json"]

    def test_a_link_stays_a_link(self, tmp_path: Path) -> None:
        real, file = tmp_path / "dots" / "claude.json", tmp_path / ".claude.json"
        real.parent.mkdir()
        real.write_text("{}")
        file.symlink_to(real)
        first_run.preapprove(file, tmp_path / "main", [tmp_path / "w"], {})
        assert file.is_symlink()
        assert trusted(real) == {str(tmp_path / "w")}

    def test_it_waits_for_the_programs_own_lock_and_takes_a_stale_one(self, tmp_path: Path) -> None:
        file, lock = tmp_path / ".claude.json", tmp_path / ".claude.json.lock"
        lock.mkdir()
        done: list[float] = []

        def work() -> None:
            first_run.preapprove(file, tmp_path / "main", [tmp_path / "w"], {})
            done.append(time.monotonic())

        worker = threading.Thread(target=work)
        worker.start()
        worker.join(0.3)
        assert not done
        released = time.monotonic()
        lock.rmdir()
        worker.join(20)
        assert done[0] >= released
        lock.mkdir()
        os.utime(lock, (1, 1))
        first_run.preapprove(file, tmp_path / "main", [tmp_path / "w2"], {})
        assert len(trusted(file)) == 2
        assert not lock.exists()

    def test_many_at_once_lose_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(first_run, "_LOCK_WAIT", 60.0)  # a busy disk may take a second for each
        monkeypatch.setattr(first_run, "_LOCK_STALE", 60.0)
        file = tmp_path / ".claude.json"
        trees = [tmp_path / f"w{number}" for number in range(12)]
        workers = [
            threading.Thread(target=first_run.preapprove, args=(file, tmp_path / "main", [tree], {})) for tree in trees
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        assert trusted(file) == {str(tree) for tree in trees}


class TestSettings:
    def test_they_hold_the_roles_rules_mode_and_hooks(self) -> None:
        options = RoleOptions(
            permission_mode=PermissionMode.BYPASS,
            permissions=Permissions(allow=("Read",), deny=("Bash(rm *)",)),
            hooks=(Hook("Stop", "echo role"),),
            settings={"permissions": {"allow": ["Edit"]}, "env": {"A": "b"}},
        )
        ours = {"Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "echo ours", "timeout": 3}]}]}
        made = settings.make(options, hooks=ours, servers={"db": True, "web": False})
        assert made["permissions"] == {
            "allow": ["Edit", "Read"],
            "deny": ["Bash(rm *)", *AROUND],
            "defaultMode": "bypassPermissions",
        }
        assert [one["hooks"][0]["command"] for one in made["hooks"]["Stop"]] == ["echo role", "echo ours"]
        assert made["skipDangerousModePermissionPrompt"] is True
        assert (made["enabledMcpjsonServers"], made["disabledMcpjsonServers"]) == (["db"], ["web"])
        assert list(settings.problems(made)) == []

    def test_rules_that_the_program_skips_with_a_dialog_are_not_given_to_it(self) -> None:
        """Those about files it knows as Edit and Read only."""
        skipped = ("foo-bar", "Bash(x\\)", "Bash(:*)", "Read(a:*)", "Grep(a:*)")
        files = ("Write(/x)", "MultiEdit(x)", "NotebookEdit(x)", "Glob(y)", "Grep(y)", "LS(y)", "Write")
        options = RoleOptions(
            permissions=Permissions(
                allow=(*skipped, *files, "Bash(git *:*)", "mcp__a__b", "Bash(x\\\\)"), deny=(*skipped[:4], "Write(x)")
            )
        )
        made = settings.make(options, hooks={}, servers={})
        assert made["permissions"]["allow"] == [
            *("Edit(/x)", "Edit(x)", "Read(y)", "Write", "Bash(git * *)", "mcp__a__b", "Bash(x\\\\)"),
        ]
        assert made["permissions"]["deny"] == ["Write(x)", *AROUND]
        said = [f"{one.key} {one.text}" for one in role_effects.notes(options, ("claude",))]
        assert (
            f"permissions.allow is not enforced by claude for {', '.join(skipped)}: it takes no rule of that form"
            in said
        )
        assert any("for Write(/x), MultiEdit(x), NotebookEdit(x) only as Edit" in one for one in said)
        assert any("for Glob(y), Grep(y), LS(y) only as Read" in one for one in said)

    @pytest.mark.parametrize(
        ("wrong", "where"),
        [
            ({"env": {"A": 1}}, "settings.env"),
            ({"model": 3}, "settings.model"),
            ({"includeCoAuthoredBy": "no"}, "settings.includeCoAuthoredBy"),
            ({"enabledMcpjsonServers": "db"}, "settings.enabledMcpjsonServers"),
            ({"permissions": {"ask": "Bash"}}, "settings.permissions.ask"),
            ({"cleanupPeriodDays": "abc"}, "settings.cleanupPeriodDays"),
            ({"statusLine": 3}, "settings.statusLine"),
            ({"hooks": {"Nope": []}}, "settings.hooks.Nope"),
            ({"hooks": {"Stop": [{"hooks": [{"type": "command"}]}]}}, "settings.hooks.Stop"),
            ({"hooks": {"Stop": [{"hooks": "echo"}]}}, "settings.hooks.Stop"),
        ],
    )
    def test_what_the_program_would_drop_in_silence_is_refused(self, wrong: dict[str, Any], where: str) -> None:
        found = list(Claude().check(RoleOptions(settings=wrong), {}))
        assert len(found) == 1
        assert where in found[0].message

    @pytest.mark.parametrize(
        ("says", "code", "words"),
        [
            (
                "{read}\n- $2 > attribution: Expected false or an object",
                "USAGE",
                "settings.attribution: Expected false",
            ),
            ("{read}", "", ""),
            ("{read}\n- $2 > permissions.allow: Invalid permission rule x was skipped: it", "", ""),
            ("{read}\nadvice (in $2): Write(/x) is not matched", "", ""),
            ("- /home/me/.claude/settings.json > model: Expected string\n{read}", "", ""),
            ("nothing at all", "RULES_NOT_ENFORCED", "settings.attribution"),
            ("- $2 > attribution: Expected false", "RULES_NOT_ENFORCED", "settings.attribution"),
        ],
    )
    def test_the_installed_program_says_what_it_takes_and_its_silence_alone_says_nothing(
        self, tmp_path: Path, says: str, code: str, words: str
    ) -> None:
        asked = "- $2 > hooks.$(grep -o 'SwarmAsks[A-Za-z]*' \"$2\"): Unknown hook event was ignored"
        lines = says.replace("{read}", asked)
        program = tmp_path / "claude"
        program.write_text(f'#!/bin/sh\n[ "$1 $3" = "--settings doctor" ] || exit 1\ncat <<EOF\n{lines}\nEOF\n')
        program.chmod(0o755)
        options = RoleOptions(settings={"attribution": 1.5})
        found = list(Claude().check(options, {"CLAUDE_BIN": str(program), "PATH": os.environ["PATH"]}))
        assert [one.code for one in found] == [code] * bool(code)
        assert all(words in one.message for one in found)

    def test_nobody_is_asked_about_what_swarm_itself_has_written(self, tmp_path: Path) -> None:
        program = tmp_path / "claude"
        program.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\n")
        program.chmod(0o755)
        options = RoleOptions(permissions=Permissions(deny=("Bash(rm *)",)))
        assert list(Claude().check(options, {"CLAUDE_BIN": str(program)})) == []
        assert not (tmp_path / "asked").exists()

    def test_an_agent_stays_in_its_pane_and_is_written_to_by_the_bus_alone(self) -> None:
        made = settings.make(RoleOptions(), hooks={}, servers={})
        assert made["disableAgentView"] is True
        assert made["crossSessionInbound"] == "refuse"
        assert made["permissions"]["deny"] == AROUND
        assert list(settings.problems(made)) == []

    def test_a_role_may_allow_what_goes_round_it(self) -> None:
        allowed = Permissions(allow=("SendMessage", "ListAgents"))
        further = {"disableAgentView": False, "crossSessionInbound": "accept"}
        made = settings.make(RoleOptions(permissions=allowed, settings=further), hooks={}, servers={})
        assert {key: made[key] for key in further} == further
        assert made["permissions"]["deny"] == []
        assert list(Claude().settings_problems(RoleOptions(settings=further), {"PATH": ""})) == []

    @pytest.mark.parametrize("plugins", [{}, {"one@there": True}, {"one@there": ["1.2"]}])
    def test_plugins_are_known_without_asking_the_program(self, tmp_path: Path, plugins: dict[str, Any]) -> None:
        self.silent(tmp_path)
        options = RoleOptions(settings={"enabledPlugins": plugins})
        assert list(Claude().settings_problems(options, {"PATH": str(tmp_path)})) == []

    def test_plugins_of_the_wrong_kind_are_refused(self, tmp_path: Path) -> None:
        self.silent(tmp_path)
        options = RoleOptions(settings={"enabledPlugins": {"one@there": 3}})
        (found,) = Claude().settings_problems(options, {"PATH": str(tmp_path)})
        assert "enabledPlugins" in found.message

    @staticmethod
    def silent(folder: Path) -> None:
        """Install a program that tells nothing about settings, as Claude Code 2.1.197 does."""
        (folder / "claude").write_text("#!/bin/sh\nexit 1\n")
        (folder / "claude").chmod(0o755)


class TestMoved:
    """Whether a conversation goes on as a background session."""

    def roster(self, folder: Path, run: Path, *, start: int = 0, flags: str = "settings.json") -> None:
        me = {"pid": os.getpid(), "procStart": str(start or processes.start_of(os.getpid()))}
        worker = {**me, "dispatch": {"respawnFlags": ["--settings", str(run / ".claude" / flags)]}}
        (folder / "daemon").mkdir(exist_ok=True)
        (folder / "daemon/roster.json").write_text(json.dumps({"workers": {"1f7f1cb7": worker}}))

    def parked(self, folder: Path, job: str | None) -> None:
        (folder / "sessions").mkdir(exist_ok=True)
        record = {"pid": 77, "status": "idle", **({"parkedJobId": job} if job else {})}
        (folder / "sessions/77.json").write_text(json.dumps(record))

    def test_the_program_shows_a_list_and_the_session_lives(self, tmp_path: Path) -> None:
        self.roster(tmp_path, tmp_path / "run")
        self.parked(tmp_path, "1f7f1cb7")
        assert moved.moved_to(tmp_path, tmp_path / "run", 77) == "1f7f1cb7"

    def test_the_program_has_ended_and_the_session_lives(self, tmp_path: Path) -> None:
        self.roster(tmp_path, tmp_path / "run")
        assert moved.moved_to(tmp_path, tmp_path / "run", 0) == "1f7f1cb7"

    def test_it_talks_itself_or_another_is_parked(self, tmp_path: Path) -> None:
        self.roster(tmp_path, tmp_path / "run")
        self.parked(tmp_path, None)
        assert moved.moved_to(tmp_path, tmp_path / "run", 77) == ""
        self.parked(tmp_path, "99999999")
        assert moved.moved_to(tmp_path, tmp_path / "run", 77) == ""

    def test_a_session_that_is_over_or_is_another_agents_is_none(self, tmp_path: Path) -> None:
        assert moved.moved_to(tmp_path, tmp_path / "run", 0) == ""
        self.roster(tmp_path, tmp_path / "run", start=1)
        assert moved.moved_to(tmp_path, tmp_path / "run", 0) == ""
        self.roster(tmp_path, tmp_path / "other")
        assert moved.moved_to(tmp_path, tmp_path / "run", 0) == ""
        (tmp_path / "daemon/roster.json").write_text('{"workers": [')
        assert moved.moved_to(tmp_path, tmp_path / "run", 0) == ""


class TestFolder:
    def test_the_users_own_unless_somebody_chose_another(self, tmp_path: Path) -> None:
        home = {"HOME": str(tmp_path)}
        assert config_folder("", home) == tmp_path / ".claude"
        assert config_file(tmp_path / ".claude", home) == tmp_path / ".claude.json"
        named = {**home, "CLAUDE_CONFIG_DIR": "/c"}
        assert config_file(config_folder("", named), named) == Path("/c/.claude.json")
        assert config_folder("~/x", named) == tmp_path / "x"
        assert config_file(tmp_path / "x", home) == tmp_path / "x/.claude.json"

    def test_the_swarm_directorys_only_with_a_login(self, tmp_path: Path) -> None:
        home, shared = {"HOME": str(tmp_path)}, tmp_path / "s/claude-config/default"
        shared.mkdir(parents=True)
        there = {**home, "SWARM_DIR": str(tmp_path / "s")}
        assert config_folder("", there) == tmp_path / ".claude"
        (shared / ".credentials.json").write_text("{}")
        assert config_folder("", there) == shared
        assert config_folder("mine", there) == tmp_path / "s/mine"
        assert config_folder("mine", home) == tmp_path / "mine"

    def test_servers_of_the_project_are_used_when_the_user_approved_them_there(self, tmp_path: Path) -> None:
        tree, main, config = tmp_path / "tree", tmp_path / "main", tmp_path / ".claude.json"
        tree.mkdir()
        assert mcp_servers(tree, main, config) == {}
        (tree / ".mcp.json").write_text(json.dumps({"mcpServers": {"db": {}, "web": {}, "new": {}}}))
        config.write_text(json.dumps({"projects": {str(main): {"enabledMcpjsonServers": ["db"]}}}))
        (main / ".claude").mkdir(parents=True)
        (main / ".claude/settings.local.json").write_text(json.dumps({"disabledMcpjsonServers": ["web"]}))
        assert mcp_servers(tree, main, config) == {"db": True, "web": False, "new": False}


class TestLaunch:
    """What a start and a resume are given."""

    ID, OTHER = "6c1ed0a4-0d4f-4b0f-9c56-0d8f7f9a3b11", "f5a0d0a4-1d4f-4b0f-9c56-0d8f7f9a3b22"

    def launch(self, home: Path, *, resume: bool, options: RoleOptions | None = None) -> Launch:
        run = home / "run"
        run.mkdir(exist_ok=True)
        return Launch(
            agent="a",
            role="r",
            session="s",
            worktree=home / "tree",
            run_dir=run,
            role_file=run / "role.md",
            task_file=run / "task.md",
            task="do it",
            conversation=self.ID,
            resume=resume,
            executable="claude",
            options=options or RoleOptions(),
            main=home,
            environ={"HOME": str(home)},
        )

    def argv(self, home: Path, *, resume: bool) -> tuple[str, ...]:
        return Claude().launch(self.launch(home, resume=resume)).argv

    def spoken(self, home: Path, conversation: str, text: str = '{"type":"user"}') -> Path:
        file = home / ".claude/projects/x" / f"{conversation}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def test_a_resume_goes_on_with_the_conversation_the_program_was_last_in(self, tmp_path: Path) -> None:
        self.spoken(tmp_path, self.ID)
        self.spoken(tmp_path, self.OTHER)
        assert self.argv(tmp_path, resume=True)[1:3] == ("--resume", self.ID)
        files.write(str(tmp_path / "run"), hook_events.CONVERSATION, {"id": self.OTHER})
        assert self.argv(tmp_path, resume=True)[1:3] == ("--resume", self.OTHER)
        assert self.argv(tmp_path, resume=False)[1:3] == ("--session-id", self.ID)

    def test_one_that_was_cleared_and_not_spoken_in_begins_empty_without_the_task(self, tmp_path: Path) -> None:
        self.spoken(tmp_path, self.ID)
        (tmp_path / "run").mkdir()
        files.write(str(tmp_path / "run"), hook_events.CONVERSATION, {"id": self.OTHER})
        empty = self.spoken(tmp_path, self.OTHER, "{}")
        argv = self.argv(tmp_path, resume=True)
        assert argv[1:3] == ("--session-id", self.OTHER)
        assert "do it" not in argv
        assert not empty.exists()

    @pytest.mark.parametrize("wrong", ["../../x", "", None, 5, "F5A0D0A4-1D4F-4B0F-9C56-0D8F7F9A3B22"])
    def test_what_is_no_id_is_not_believed(self, tmp_path: Path, wrong: Any) -> None:
        self.spoken(tmp_path, self.ID)
        (tmp_path / "run").mkdir()
        files.write(str(tmp_path / "run"), hook_events.CONVERSATION, {"id": wrong})
        assert self.argv(tmp_path, resume=True)[1:3] == ("--resume", self.ID)

    def test_a_reviewers_instructions_are_there_only_while_the_role_has_one(self, tmp_path: Path) -> None:
        there = RoleOptions(permissions=Permissions(reviewer=Reviewer(enabled=True, instructions="Be careful.")))
        made = Claude().launch(self.launch(tmp_path, resume=False, options=there)).files
        assert made[reviewer.INSTRUCTIONS] == "Be careful."
        stale = tmp_path / "run" / reviewer.INSTRUCTIONS
        stale.write_text("Be careful.")
        made = Claude().launch(self.launch(tmp_path, resume=True)).files
        assert reviewer.INSTRUCTIONS not in made
        assert not stale.exists()
        assert reviewer.spec_of(tmp_path / "run") is None

    def test_the_view_of_background_sessions_is_off_for_all_it_runs_unless_the_role_wants_it(
        self, tmp_path: Path
    ) -> None:
        wanted = RoleOptions(settings={"disableAgentView": False})
        made = [Claude().launch(self.launch(tmp_path, resume=False, options=one)).env for one in (None, wanted)]
        assert [one.get("CLAUDE_CODE_DISABLE_AGENT_VIEW") for one in made] == ["1", None]

    def test_the_settings_switch_hooks_on_whatever_the_users_own_say(self, tmp_path: Path) -> None:
        made = json.loads(Claude().launch(self.launch(tmp_path, resume=False)).files[SETTINGS])
        assert made["disableAllHooks"] is False
        assert all(len(entries) == 1 for entries in made["hooks"].values())


class TestState:
    def write(self, folder: Path, **record: Any) -> None:
        (folder / "sessions").mkdir(exist_ok=True)
        (folder / "sessions/41.json").write_text(json.dumps({"pid": 41, "procStart": "77", **record}))

    @pytest.mark.parametrize(
        ("record", "said"),
        [
            ({"status": "busy"}, ("working", "")),
            ({"status": "idle", "statusUpdatedAt": 5}, ("idle", "")),
            ({"status": "waiting", "waitingFor": "permission prompt"}, ("waiting", "for permission to use a tool")),
            ({"status": "waiting", "waitingFor": "a\x1b[2Jword"}, ("waiting", "a [2Jword")),
            ({"status": "waiting"}, ("waiting", "")),
        ],
    )
    def test_its_words(self, tmp_path: Path, record: dict[str, Any], said: tuple[str, str]) -> None:
        self.write(tmp_path, **record)
        found = state.read(tmp_path, 41, 77)
        assert found is not None
        assert (found.state, found.detail) == said

    #: Told by hooks after a start at 1000, the program being idle since 2000; asked or not → what it is.
    TOLD: tuple[tuple[str, list[tuple[str, int, dict[str, str]]], tuple[str, str]], ...] = (
        ("nothing yet", [], ("starting", "idle")),
        ("of an earlier start", [("Stop", 900, {})], ("starting", "idle")),
        ("its start", [("SessionStart", 1500, {"source": "startup"})], ("starting", "idle")),
        ("cleared by hand", [("SessionStart", 1500, {"source": "clear"})], ("idle", "idle")),
        ("a prompt, a moment ago", [("UserPromptSubmit", 2500, {})], ("working", "working")),
        ("a prompt, before it was idle", [("UserPromptSubmit", 1500, {})], ("idle", "idle")),
        ("the end of a turn", [("UserPromptSubmit", 1500, {}), ("Stop", 1900, {})], ("idle", "idle")),
        ("tools only, of a long turn", [("PostToolUse", 1900, {})], ("idle", "idle")),
        ("a limit", [("StopFailure", 1900, {"error": "rate_limit"})], ("waiting", "waiting")),
    )

    @pytest.mark.parametrize(("told", "states"), [row[1:] for row in TOLD], ids=[row[0] for row in TOLD])
    def test_idle_by_its_file_is_idle_only_after_the_turn_of_a_prompt(
        self, tmp_path: Path, told: list[tuple[str, int, dict[str, str]]], states: tuple[str, str]
    ) -> None:
        then = time.time_ns() // 1_000_000 - 3000  # the times above go on from here
        lines = [json.dumps({"hook_event_name": name, "at_ms": then + at, **more}) for name, at, more in told]
        (tmp_path / hook_events.EVENTS).write_text("".join(f"{line}\n" for line in lines))
        idle = OwnWords(state.SOURCE, "idle", "", then + 2000)
        found = [state.after_turn(tmp_path, idle, then + 1000, asked=asked).state for asked in (True, False)]
        assert tuple(found) == states

    def test_idle_it_says_what_the_model_said_last(self, tmp_path: Path) -> None:
        event = {"hook_event_name": "Stop", "at_ms": 5000, "last_assistant_message": "It is\n\x1b[2Jgreen now."}
        (tmp_path / hook_events.EVENTS).write_text(json.dumps(event) + "\n")
        found = state.after_turn(tmp_path, OwnWords(state.SOURCE, "idle", "", 5000), 1000, asked=True)
        assert (found.state, found.detail) == ("idle", "It is [2Jgreen now.")

    def test_a_program_whose_hooks_tell_nothing_is_believed_after_a_while(self, tmp_path: Path) -> None:
        now = time.time_ns() // 1_000_000
        idle = OwnWords(state.SOURCE, "idle", "", now - 121_000)
        assert state.after_turn(tmp_path, idle, now - 130_000, asked=True) == idle

    def test_a_new_word_is_unknown_and_told(self, tmp_path: Path) -> None:
        self.write(tmp_path, status="pondering")
        found = state.read(tmp_path, 41, 77)
        assert found is not None
        assert found.state == "unknown"
        assert "pondering" in found.detail

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 42, "status": "idle"}', '{"pid": 41}'])
    def test_what_is_no_statement(self, tmp_path: Path, text: str) -> None:
        assert state.read(tmp_path, 41, 77) is None
        self.write(tmp_path)
        (tmp_path / "sessions/41.json").write_text(text)
        assert state.read(tmp_path, 41, 77) is None

    def test_a_file_of_a_dead_process_with_the_same_pid_is_not_believed(self, tmp_path: Path) -> None:
        self.write(tmp_path, status="idle")
        assert state.read(tmp_path, 41, 78) is None
