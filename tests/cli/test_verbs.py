"""Every command does what its help says, in words and as JSON."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from swarm.project.layout import Layout
from swarm.project.sessions import Sessions

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.integration

UNCOMMITTED = {"src/app.py": "print('better')\n", "notes.txt": "an idea\n"}


def test_create_says_what_was_made_and_what_to_type_next(cli: Cli) -> None:
    said = cli.ok("worktree", "create", "feature-x", "--roles", "researcher,developer:2")

    assert "created session feature-x with 3 worktrees from main" in said.out
    assert ".worktrees/developer-2-feature-x" in said.out
    assert "swarm/developer-2-feature-x" in said.out
    assert "next: cd .worktrees/researcher-feature-x" in said.err
    assert "swarm cleanup feature-x" in said.err


def test_create_gives_machines_all_they_need(cli: Cli) -> None:
    data = cli.ok("worktree", "create", "feature-x", "--roles", "developer", "--json").data()

    assert data["session"] == "feature-x"
    assert data["base_ref"] == "main"
    assert data["base"] == cli.lab.git("rev-parse", "HEAD")
    assert data["agents"] == [
        {
            "name": "developer",
            "role": "developer",
            "branch": "swarm/developer-feature-x",
            "path": str(cli.lab.tree("developer")),
            "instructions": "CLAUDE.local.md",
            "tree": "own",
        }
    ]
    assert data["steps"] == []
    assert data["dry_run"] is False


def test_a_dry_create_shows_the_steps_and_changes_nothing(cli: Cli) -> None:
    before = cli.lab.fingerprint()

    said = cli.ok("worktree", "create", "feature-x", "--roles", "developer", "--dry-run")
    data = cli.ok("worktree", "create", "feature-x", "--roles", "developer", "--dry-run", "--json").data()

    assert "would create session feature-x" in said.out
    assert "write the session record" in said.out
    assert "nothing was changed" in said.err
    assert data["dry_run"] is True
    assert len(data["steps"]) > 3
    assert cli.lab.fingerprint() == before
    assert not (cli.lab.root / ".swarm").exists()


def test_create_without_instructions_starts_from_the_base_asked_for(cli: Cli) -> None:
    first = cli.lab.git("rev-parse", "HEAD")
    cli.lab.commit("second")

    cli.ok("worktree", "create", "feature-x", "--roles", "developer", "--base", "HEAD~1", "--no-instructions")

    assert cli.lab.git("rev-parse", "HEAD", cwd=cli.lab.tree("developer")) == first
    assert not (cli.lab.tree("developer") / "CLAUDE.local.md").exists()


def test_create_names_every_problem_at_once(cli: Cli) -> None:
    cli.lab.git("branch", "swarm/developer-feature-x")
    cli.lab.git("branch", "swarm/researcher-feature-x")

    said = cli("worktree", "create", "feature-x", "--roles", "researcher,developer")
    found = cli("worktree", "create", "feature-x", "--roles", "researcher,developer", "--json").json()

    assert said.code == 3
    assert said.err.startswith("error: cannot create session feature-x: 2 problems\n")
    assert "  - branch swarm/developer-feature-x already exists (BRANCH_EXISTS)\n" in said.err
    assert said.err.count("hint:") == 1
    assert [error["code"] for error in found["errors"]] == ["BRANCH_EXISTS", "BRANCH_EXISTS"]


def test_an_error_has_the_form_the_user_was_promised(cli: Cli) -> None:
    cli.lab.git("branch", "swarm/developer-feature-x")

    said = cli("worktree", "create", "feature-x", "--roles", "developer")

    assert said.code == 3
    assert said.out == ""
    assert said.err == (
        "error: cannot create session feature-x: branch swarm/developer-feature-x already exists\n"
        "\n"
        "hint: use a different session name, or delete that branch if it is not needed\n"
        "code: BRANCH_EXISTS\n"
    )


def test_list_shows_each_worktree_with_its_state(team: Cli) -> None:
    team.lab.write(UNCOMMITTED, cwd=team.lab.tree("developer"))
    team.lab.commit("one", cwd=team.lab.tree("researcher"))

    said = team.ok("worktree", "list")
    found = {one["agent"]: one for one in team.ok("worktree", "list", "feature-x", "--json").data()["worktrees"]}

    assert "changed" in next(line for line in said.out.splitlines() if line.startswith("developer"))
    assert set(found["developer"]) == {
        *("agent", "role", "session", "branch", "path", "head", "locked", "lock_reason"),
        *("created_at", "dirty", "ahead", "missing"),
    }
    assert found["developer"]["dirty"] is True
    assert found["developer"]["ahead"] == 0
    assert found["developer"]["created_at"].endswith("Z")
    assert (found["researcher"]["dirty"], found["researcher"]["ahead"]) == (False, 1)


def test_list_of_nothing_says_what_to_do(cli: Cli) -> None:
    said = cli.ok("worktree", "list")

    assert said.out == ""
    assert "swarm worktree create" in said.err
    assert cli.ok("worktree", "list", "--json").data() == {"worktrees": []}


def test_show_tells_commits_changes_and_what_stands_against_a_cleanup(team: Cli) -> None:
    team.lab.commit("a fine commit", cwd=team.lab.tree("developer"))
    team.lab.write(UNCOMMITTED, cwd=team.lab.tree("developer"))

    said = team.ok("worktree", "show", "developer")
    data = team.ok("worktree", "show", "developer@feature-x", "--json").data()

    assert "a fine commit" in said.out
    assert "notes.txt" in said.out
    assert "without --force" in said.out
    assert data["commits"][0]["subject"] == "a fine commit"
    assert {risk["kind"] for risk in data["risks"]} == {"modified", "untracked"}
    assert data["placed"] == ["CLAUDE.local.md"]


def test_an_agent_of_two_sessions_needs_the_session(team: Cli) -> None:
    team.ok("worktree", "create", "bugs", "--roles", "developer")

    said = team("worktree", "show", "developer")

    assert (said.code, "AMBIGUOUS" in said.err) == (2, True)
    assert "developer@bugs" in team.ok("worktree", "show", "developer@bugs").out


def test_lock_and_unlock_are_gits_own(team: Cli) -> None:
    said = team.ok("worktree", "lock", "developer", "--reason", "on a disk")
    assert "locked developer@feature-x" in said.out
    assert "swarm worktree unlock developer@feature-x" in said.err
    assert "locked on a disk" in team.lab.git("worktree", "list", "--porcelain")
    assert team.ok("worktree", "list", "--json").data()["worktrees"][1]["lock_reason"] == "on a disk"

    assert team("cleanup", "feature-x").code == 4

    team.ok("worktree", "unlock", "developer@feature-x")
    assert "locked" not in team.lab.git("worktree", "list", "--porcelain")


def test_remove_takes_one_agent_and_says_how_to_get_it_back(team: Cli) -> None:
    said = team.ok("worktree", "remove", "developer")

    assert "removed 1 worktree and 1 branch" in said.out
    assert "restore with: swarm restore feature-x" in said.err
    assert not team.lab.tree("developer").exists()
    assert team.lab.tree("researcher").exists()


def test_a_dry_remove_removes_nothing(team: Cli) -> None:
    data = team.ok("worktree", "remove", "developer", "--dry-run", "--json").data()

    assert data["dry_run"] is True
    assert data["worktrees_removed"] == 1
    assert team.lab.tree("developer").exists()


def test_update_role_puts_the_present_text_in(team: Cli) -> None:
    team.lab.write({"roles/developer/CLAUDE.md": "Be bold.\n"})

    said = team.ok("worktree", "update-role", "developer@feature-x")

    assert "developer@feature-x" in said.out
    assert (team.lab.tree("developer") / "CLAUDE.local.md").read_text() == "Be bold.\n"


def test_update_role_does_not_overwrite_what_the_agent_wrote(team: Cli) -> None:
    file = team.lab.tree("developer") / "CLAUDE.local.md"
    file.write_text("mine\n")

    assert team("worktree", "update-role", "developer").code == 4
    assert file.read_text() == "mine\n"


def test_prune_forgets_what_is_gone(team: Cli) -> None:
    tree = team.lab.tree("developer")
    tree.rename(team.lab.root.parent / "elsewhere")

    assert "missing" in team.ok("worktree", "list").out
    assert team.ok("worktree", "prune", "--json").data()["worktrees_removed"] == 1
    assert [one["agent"] for one in team.ok("worktree", "list", "--json").data()["worktrees"]] == ["researcher"]
    assert "nothing to prune" in team.ok("worktree", "prune").out


def test_cleanup_refuses_and_lists_the_work_at_risk(team: Cli) -> None:
    team.lab.write({f"new-{n:02}.txt": "x" for n in range(14)}, cwd=team.lab.tree("developer"))

    said = team("cleanup", "feature-x")
    found = team("cleanup", "feature-x", "--json").json()

    assert said.code == 4
    assert "developer@feature-x  .worktrees/developer-feature-x" in said.err
    assert said.err.count("        new-") == 10
    assert "… and 4 more" in said.err
    assert said.err.endswith("code: WORK_AT_RISK\n")
    agents = found["errors"][0]["details"]["agents"]
    assert [(a["session"], a["agent"], a["path"]) for a in agents] == [
        ("feature-x", "developer", str(team.lab.tree("developer")))
    ]
    assert agents[0]["risks"][0]["kind"] == "untracked"
    assert len(agents[0]["risks"][0]["items"]) == 14
    assert team.lab.tree("researcher").exists()


def test_cleanup_says_what_it_removed_saved_and_dropped_and_restore_brings_it_back(team: Cli) -> None:
    tree = team.lab.tree("developer")
    team.lab.write({"work.txt": "work\n"}, cwd=tree)
    team.lab.commit("work", cwd=tree)
    team.lab.write({**UNCOMMITTED, "node_modules/x.js": "1"}, cwd=tree)

    said = team.ok("cleanup", "feature-x", "--force")

    assert "removed 2 worktrees and 2 branches" in said.out
    row = next(line for line in said.out.splitlines() if line.startswith("developer@feature-x"))
    assert "1, not merged" in row
    assert "branch + " in row
    assert "node_modules" in row
    assert "restore with: swarm restore feature-x" in said.err
    assert not tree.exists()

    back = team.ok("restore", "feature-x")
    assert "restored 2 worktrees of session feature-x" in back.out
    assert (tree / "notes.txt").read_text() == "an idea\n"


def test_cleanup_data_has_the_promised_fields(team: Cli) -> None:
    data = team.ok("cleanup", "--all", "--json").data()

    assert set(data) == {
        *("removed", "skipped", "branches", "sessions", "worktrees_removed", "branches_removed"),
        *("warnings", "dry_run"),
    }
    assert (data["worktrees_removed"], data["branches_removed"], data["sessions"]) == (2, 2, ["feature-x"])
    assert data["removed"][0]["salvage"].startswith("feature-x/researcher@")


def test_cleanup_of_everything_when_there_is_nothing_is_fine(cli: Cli) -> None:
    assert cli.ok("cleanup", "--all").out == "nothing to clean up\n"
    data = cli.ok("cleanup", "--all", "--json").data()
    assert (data["removed"], data["dry_run"]) == ([], False)
    assert not (cli.lab.root / ".swarm").exists()


def test_cleanup_of_branches_that_are_all_there_is_left(team: Cli) -> None:
    team.ok("cleanup", "feature-x", "--keep-branches")
    shutil.rmtree(team.lab.root / ".swarm")

    data = team.ok("cleanup", "--all", "--json").data()

    assert (data["branches_removed"], data["dry_run"]) == (2, False)
    assert "swarm/" not in team.lab.git("branch", "--list")


def test_cleanup_by_age_passes_over_what_is_young_or_at_risk(team: Cli) -> None:
    assert "younger" in team.ok("cleanup", "--older-than", "24h").out

    team.lab.write(UNCOMMITTED, cwd=team.lab.tree("developer"))
    said = team.ok("cleanup", "--older-than", "0s")

    assert "kept feature-x/developer" in said.out
    assert not team.lab.tree("researcher").exists()
    assert team.lab.tree("developer").exists()


def test_keep_branches_leaves_them(team: Cli) -> None:
    team.ok("cleanup", "feature-x", "--keep-branches")

    assert "swarm/developer-feature-x" in team.lab.git("branch", "--list", "swarm/*")


def test_discard_saves_nothing(team: Cli) -> None:
    said = team.typed("cleanup", "feature-x", "--discard")

    assert said.code == 0
    assert "restore with" not in said.err
    assert team.ok("salvage", "list", "--json").data() == {"entries": []}


def test_a_cleanup_that_worked_in_part_says_so(team: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from swarm.sessions.cleanup import cleanup, cleanup_request
    from swarm.sessions.errors import CleanupFailed

    whole = cleanup.cleanup

    def partly(world: object, request: cleanup_request.Request) -> object:
        from dataclasses import replace

        from swarm.sessions.reports import Skipped

        report = whole(world, request)  # type: ignore[arg-type]
        failed = (Skipped("feature-x/developer", "the disk says no", "PERMISSION"),)
        report = replace(report, removed=report.removed[:1], skipped=failed)
        raise CleanupFailed("could not remove everything", failed=failed, report=report)

    monkeypatch.setattr(cleanup, "cleanup", partly)
    said = team("cleanup", "feature-x", "--json")
    found = said.json()

    assert (said.code, found["status"]) == (1, "partial")
    assert found["data"]["worktrees_removed"] == 1
    assert found["errors"][0]["code"] == "PERMISSION"


def test_restore_without_a_target_lists(team: Cli) -> None:
    assert "no saved work" in team.ok("restore").err
    team.ok("cleanup", "--all")

    said = team.ok("restore")
    assert "feature-x/developer@" in said.out
    assert "swarm restore SESSION" in said.err
    assert len(team.ok("restore", "--list", "--json").data()["entries"]) == 2


def test_a_folder_that_is_kept_whole_is_said_to_be_saved_so(team: Cli) -> None:
    admin = team.lab.root / ".git" / "worktrees" / "developer-feature-x"
    (admin / "index").write_text("trash\n")

    refused = team("cleanup", "feature-x")
    said = team.ok("cleanup", "feature-x", "--force")

    assert refused.code == 4
    assert str(admin / "index") in refused.err.replace("\n", "")
    assert re.search(r"^developer@feature-x +none +branch \+ whole folder +-$", said.out, re.MULTILINE)


def test_a_branch_that_had_no_worktree_is_restored_as_a_branch(team: Cli) -> None:
    team.ok("cleanup", "feature-x", "--keep-branches")
    team.ok("cleanup", "--all")

    said = team.ok("restore", "leftover/developer-feature-x")

    assert said.out == "restored branch swarm/developer-feature-x, which had no worktree\n"
    assert "next:" not in said.err


def test_a_dry_restore_restores_nothing(team: Cli) -> None:
    team.ok("cleanup", "--all")

    said = team.ok("restore", "feature-x/developer", "--dry-run")

    assert "would restore 1 worktree" in said.out
    assert not team.lab.tree("developer").exists()


def test_restore_onto_something_that_is_there_is_refused(team: Cli) -> None:
    team.ok("cleanup", "--all")
    team.ok("worktree", "create", "feature-x", "--roles", "developer")

    assert team("restore", "feature-x/developer").code == 3


def test_salvage_can_be_shown_and_dropped(team: Cli) -> None:
    team.ok("cleanup", "--all")

    shown = team.ok("salvage", "show", "feature-x/developer", "--json").data()
    assert shown["branch"] == "swarm/developer-feature-x"
    assert "swarm restore feature-x/developer@" in team.ok("salvage", "show", "feature-x/developer").err

    asked = team("salvage", "drop", "feature-x/developer")
    assert (asked.code, "--yes" in asked.err) == (2, True)

    data = team.typed("salvage", "drop", "feature-x/developer", "--yes", "--json").data()
    assert (len(data["dropped"]), data["for_good"]) == (1, False)
    assert "developer" not in team.ok("salvage", "list").out
    assert "developer" in team.ok("salvage", "list", "--dropped").out
    said = team.typed("salvage", "drop", "feature-x", "--yes")
    assert "dropped 1 saved worktree" in said.out
    assert "take it back within 7d: swarm restore feature-x/researcher@" in said.err
    assert "deleted 2 saved worktrees for good" in team.typed("salvage", "drop", "--all", "--now", "--yes").out
    assert team("salvage", "show", "feature-x/developer").code == 6
    assert "nothing to drop" in team.typed("salvage", "drop", "--all", "--yes").out


def test_a_lost_record_is_told_of_and_made_anew(team: Cli) -> None:
    (team.lab.root / ".swarm" / "sessions" / "feature-x" / "session.json").unlink()
    assert "swarm recover" in team.ok("worktree", "list").err

    said = team.ok("recover").out

    assert said == "session feature-x is known again: swarm rebuilt its record from its worktrees\n"
    assert "researcher" in team.ok("worktree", "show", "researcher").out
    assert team.ok("recover").out == "nothing to recover\n"


def test_recover_with_nothing_to_do(team: Cli) -> None:
    assert team.ok("recover").out == "nothing to recover\n"
    assert team.ok("recover", "--json").data() == {"rolled_back": [], "finished": [], "notes": []}


def test_roles_are_listed_and_shown_also_outside_of_a_repository(cli: Cli, tmp_path: Path) -> None:
    cli.lab.write({"roles/tester/CLAUDE.md": "# Tester\n\nBreaks things.\n"})
    outside = tmp_path / "outside"
    outside.mkdir()

    listed = cli.ok("role", "list")
    lines = [line for line in listed.out.splitlines() if line.startswith(("developer ", "tester "))]
    assert lines[0].index("Turns") == lines[1].index("Breaks")
    assert "Breaks things." in cli.ok("role", "show", "tester").out
    assert cli.ok("role", "show", "tester", "--json").data()["kind"] == "repository"
    names = [role["name"] for role in cli.ok("role", "list", "--json", cwd=outside).data()["roles"]]
    assert names == ["architect", "developer", "lead", "researcher", "reviewer", "worker"]
    assert cli("role", "show", "nobody", cwd=outside).code == 6


def test_config_shows_each_value_with_its_origin(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.lab.write({".swarm/config.yaml": "git:\n  timeout: 90s\n"})
    monkeypatch.setenv("SWARM_GIT_JOBS", "3")

    shown = cli.ok("config", "show").out
    found = {one["key"]: one for one in cli.ok("config", "show", "--json").data()["settings"]}

    assert "config.yaml:2:" in shown
    assert (found["git.timeout"]["value"], found["git.timeout"]["origin"]) == (90, "project")
    assert (found["git.jobs"]["value"], found["git.jobs"]["where"]) == (3, "SWARM_GIT_JOBS")
    assert found["git.retries"]["origin"] == "default"
    assert cli.ok("config", "show", "git.timeout").out == "90s\n"
    assert cli("config", "show", "git.timout").code == 2


def test_validate_finds_every_problem(team: Cli) -> None:
    assert "no problems" in team.ok("validate").err
    team.lab.write({".swarm/config.yaml": "git:\n  timeot: 90s\nlock:\n  timeout: soon\n"})
    team.lab.write({"roles/tester/CLAUDE.md": ""})
    Layout(team.lab.root).session_file("feature-x").write_text("{")
    (team.lab.root / ".swarm" / "journal" / "20260101T000000-1.json").write_text("{}")

    said = team("validate")
    found = team("validate", "--json").json()

    assert (said.code, found["status"]) == (2, "error")
    areas = [problem["area"] for problem in found["data"]["problems"]]
    assert areas == ["configuration", "configuration", "roles", "sessions", "operations"]
    assert "did you mean git.timeout?" in said.out


#: What is refused where nothing was ever made, or has nothing to do there.
FOR_NOTHING = (
    *("cleanup fx", "cleanup --all --force", "restore fx", "recover", "merge fx", "diff developer", "conflicts"),
    *("salvage drop fx --yes", "salvage drop fx/developer --yes", "salvage drop --all --yes", "salvage show fx"),
    *("stop fx", "stop --all", "resume fx", "resume --all", "restart developer", "start fx --roles nobody"),
    *("worktree create fx --roles nobody", "worktree remove developer@fx --force", "worktree lock developer@fx"),
    *(
        "worktree unlock developer@fx",
        "worktree update-role developer@fx",
        "worktree prune",
        "session prune --older-than 1d",
    ),
    *("send nobody hello", "send user hello --attach nowhere", "broadcast hello", "reply m-1 hello", "inbox take"),
    *("inbox ack m-1", "inbox prune --yes", "queue take q", "approve abc", "deny abc", "approvals revoke abc"),
)


def test_what_is_refused_or_has_nothing_to_do_makes_no_folder(cli: Cli) -> None:
    for command in FOR_NOTHING:
        cli(*command.split())
        assert not (cli.lab.root / ".swarm").exists(), command
        assert not (cli.lab.root / ".worktrees").exists(), command


#: What only looks, and looks into the state folder for that.
LOOKS = ("config show", "list", "status", "worktree list", "role list", "validate", "log", "salvage list")


@pytest.mark.parametrize("theirs", [True, False], ids=["someone else's", "a link"])
def test_of_a_state_folder_that_is_not_ours_nothing_is_read(team: Cli, *, theirs: bool) -> None:
    """Not even its configuration, which could name programs to run."""
    state = team.lab.root / ".swarm"
    team.lab.write({"config.yaml": "git: {jobs: no-number}\n", "roles/their-role/CLAUDE.md": "x\n"}, cwd=state)
    if theirs and os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    if theirs:
        os.chown(state, 65534, 65534)
    else:
        state.rename(team.lab.root.parent / "state")
        state.symlink_to(team.lab.root.parent / "state")

    for command in LOOKS:
        said = team(*command.split())
        everything = said.out + said.err
        assert said.code == 2, f"{command}: {everything}"
        assert ("belongs to another user" if theirs else "symbolic link") in everything, command
        assert not [word for word in ("no-number", "their-role", "feature-x") if word in everything], command


def test_log_shows_what_was_done(team: Cli) -> None:
    team.ok("cleanup", "--all")

    said = team.ok("log")
    operations = team.ok("log", "--json").data()["operations"]

    assert [entry["verb"] for entry in operations] == ["create", "cleanup"]
    assert "done" in said.out


def test_log_of_nothing(cli: Cli) -> None:
    assert "no operations yet" in cli.ok("log").err
    assert cli.ok("log", "--json").data() == {"operations": []}


def test_init_makes_the_repositorys_own_directory_from_anywhere_in_it(cli: Cli) -> None:
    made = cli.ok("init", "--json", cwd=cli.lab.root / "src").data()["path"]

    assert made == str(cli.lab.root / ".swarm")
    assert (cli.lab.root / ".swarm" / ".swarm-dir.txt").is_file()
    assert cli("init").code == 3


def test_a_repository_stays_clean_and_usable_after_init(cli: Cli) -> None:
    cli.ok("init")

    assert cli.lab.git("status", "--porcelain") == ""
    cli.ok("worktree", "create", "feature-x", "--roles", "developer")


def test_init_outside_of_a_repository_takes_the_current_folder(cli: Cli, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()

    assert cli.ok("init", "--json", cwd=outside).data()["path"] == str(outside)
    assert cli.ok("init", "there", "--json", cwd=outside).data()["path"] == str(outside / "there")


def test_init_global_makes_the_users_own(cli: Cli) -> None:
    assert cli.ok("init", "--global", "--json").data()["path"] == os.environ["HOME"] + "/.swarm"
    assert cli("init", "here", "--global").code == 2


def test_an_agents_worktree_is_as_good_a_place_as_the_main_checkout(team: Cli) -> None:
    inside = team.lab.tree("developer") / "src"

    assert len(team.ok("worktree", "list", "--json", cwd=inside).data()["worktrees"]) == 2
    assert team("init", cwd=inside).code == 3


def test_records_are_kept_where_completions_look(team: Cli) -> None:
    assert Sessions(Layout(team.lab.root)).names() == ("feature-x",)


def test_one_record_that_cannot_be_read_hides_no_other_session(team: Cli) -> None:
    team.ok("worktree", "create", "other", "--roles", "researcher")
    (team.lab.root / ".swarm/sessions/other/session.json").write_text("{")

    said = team("status")
    found = team("status", "--json").json()

    assert said.code == 1
    assert "developer" in said.out
    assert "other/session.json" in said.err
    assert (found["status"], [one["code"] for one in found["errors"]]) == ("partial", ["RECORD"])
    assert [one["session"] for one in found["data"]["sessions"]] == ["feature-x"]
    assert team("cleanup", "--all").code == 5


def test_init_prints_the_whole_path_wherever_it_is_typed(cli: Cli, tmp_path: Path) -> None:
    assert cli.ok("init").out == f"made the swarm directory {cli.lab.root}/.swarm\n"
    assert cli.ok("init", "teams/one").out == f"made the swarm directory {cli.lab.root}/teams/one\n"
    assert cli.ok("init", "--global").out == f"made the swarm directory {cli.lab.env['HOME']}/.swarm\n"
    assert cli.ok("init", str(tmp_path / "far"), "--json").data()["path"] == str(tmp_path / "far")
