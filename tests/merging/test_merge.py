"""A merge is all or nothing, leaves local changes alone, and is recognised as landed afterwards."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import swarm.merging.merge  # noqa: F401  # everything the traced child uses is loaded before it is forked
from swarm import SwarmError
from swarm.callers.errors import NotAPerson
from swarm.kit.errors import UsageProblem
from swarm.merging.checkout import Merging
from swarm.merging.errors import IdentityMissing, MergeBlocked, MergeConflict, NotCommitted, TargetMoved, TargetNotFound
from swarm.testing.lab import Lab, file_digests
from swarm.testing.terminal import without_terminal
from swarm.worktrees.errors import WorkAtRisk
from tests.support.share import FULL, TURN
from tests.support.tracer import Action, trace, why_unsupported

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.integration

ONE, TWO = "researcher", "developer"
HOWS = ["merge", "squash", "rebase"]


def team(lab: Lab, roles: str = f"{ONE},{TWO}") -> None:
    lab.swarm.create("feature-x", roles)


def work(lab: Lab, name: str, files: dict[str, str | bytes], message: str = "work") -> str:
    lab.write(files, lab.tree(name))
    return lab.commit(f"{message} of {name}", cwd=lab.tree(name))


def busy_team(lab: Lab) -> None:
    """Two agents with two commits each that go together, and a main that went on."""
    team(lab)
    for name in (ONE, TWO):
        work(lab, name, {f"{name}/a": "1\n", "shared/" + name: "s\n"}, "first")
        work(lab, name, {f"{name}/b": "2\n"}, "second")
    lab.git("rm", "--quiet", "run.sh", cwd=lab.tree(TWO))
    lab.commit("third", cwd=lab.tree(TWO))
    lab.write({"main-only": "m\n"})
    lab.commit("main went on")


def tip(lab: Lab, branch: str = "main") -> str:
    return lab.git("rev-parse", f"refs/heads/{branch}")


def files_of(lab: Lab, commit: str = "main") -> list[str]:
    return lab.git("ls-tree", "-r", "--name-only", commit).splitlines()


def landed(lab: Lab) -> list[str]:
    session = lab.swarm.sessions.get("feature-x")
    trees, target = lab.swarm._world.trees, tip(lab)
    asked = [(tip(lab, agent.branch), agent.base) for agent in session.agents]
    return [found.how for found in trees.landed(asked, target)]


# --- what it does -------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", HOWS)
def test_a_session_is_merged_and_the_checkout_follows(lab: Lab, how: str) -> None:
    busy_team(lab)
    old = tip(lab)

    report = lab.swarm.merge("feature-x", how=how)

    assert (report.into, report.old, report.new) == ("main", old, tip(lab))
    assert report.checkout == lab.root
    assert [(agent.agent, agent.commits) for agent in report.agents] == [(ONE, 2), (TWO, 3)]
    assert {f"{ONE}/a", f"{ONE}/b", f"{TWO}/a", f"{TWO}/b", "main-only"} < set(files_of(lab))
    assert "run.sh" not in files_of(lab)
    assert lab.git("status", "--porcelain") == ""
    assert not (lab.root / "run.sh").exists()
    assert lab.git("rev-parse", "HEAD") == report.new
    assert "swarm: merge feature-x" in lab.git("reflog", "-1", "HEAD")
    assert lab.swarm.operations.unfinished() == ()
    assert {file.path: file.status for file in report.files}["run.sh"] == "deleted"
    lab.git("fsck", "--strict")


@pytest.mark.parametrize(("how", "word"), [("merge", "merged"), ("squash", "squashed"), ("rebase", "rebased")])
def test_what_was_merged_is_known_to_have_landed_and_can_be_cleaned_up(lab: Lab, how: str, word: str) -> None:
    busy_team(lab)

    lab.swarm.merge("feature-x", how=how)

    assert landed(lab) == [word, word]
    assert [agent.landed for agent in lab.swarm.conflicts().agents] == [True, True]
    again = lab.swarm.merge("feature-x", how=how)
    assert again.new == again.old
    assert [agent.landed for agent in again.agents] == [word, word]
    assert [item.landed for item in lab.swarm.cleanup(["feature-x"]).removed] == [word, word]


def test_a_merge_keeps_the_branches_as_second_parents(lab: Lab) -> None:
    busy_team(lab)
    old = tip(lab)

    lab.swarm.merge("feature-x")

    two, one = lab.git("log", "--first-parent", "--format=%P", f"{old}..main").splitlines()
    assert two.split()[1] == tip(lab, f"swarm/{TWO}-feature-x")
    assert one.split() == [old, tip(lab, f"swarm/{ONE}-feature-x")]
    assert lab.git("log", "-1", "--format=%an <%ae> %s") == (
        f"Lab <lab@localhost> Merge agent {TWO} of session feature-x"
    )


def test_a_squash_is_one_commit_for_each_agent_that_lists_what_is_in_it(lab: Lab) -> None:
    busy_team(lab)
    old = tip(lab)

    lab.swarm.merge("feature-x", how="squash")

    assert lab.git("rev-list", "--count", f"{old}..main") == "2"
    assert lab.git("rev-list", "--merges", f"{old}..main") == ""
    message = lab.git("log", "-1", "--format=%B", "main~1")
    assert message.startswith(f"{ONE} of feature-x: 2 commits\n\n* first of {ONE} (")
    assert f"* second of {ONE} (" in message


def test_a_rebase_keeps_authors_dates_and_messages(lab: Lab) -> None:
    team(lab, TWO)
    lab.write({"a": "1\n"}, lab.tree(TWO))
    lab.git("add", "a", cwd=lab.tree(TWO))
    lab.git(
        *("commit", "--quiet", "-m", "Grüße\n\n  indented\n\n# no comment"),
        cwd=lab.tree(TWO),
        env={"GIT_AUTHOR_NAME": "Ädä", "GIT_AUTHOR_EMAIL": "a@b", "GIT_AUTHOR_DATE": "2001-02-03T04:05:06+0700"},
    )
    lab.git("-c", "i18n.commitEncoding=ISO-8859-1", "commit", "-q", "--allow-empty", "-m", "latin", cwd=lab.tree(TWO))
    lab.write({"b": "1\n"})
    old = lab.commit("main went on")

    lab.swarm.merge("feature-x", how="rebase")

    form = "--format=%an|%ae|%aI|%B|%e"
    wanted = lab.git("log", "--reverse", form, f"swarm/{TWO}-feature-x", "--not", old)
    assert lab.git("log", "--reverse", form, f"{old}..main") == wanted
    assert "2001-02-03T04:05:06+07:00" in wanted


def test_a_rebase_of_what_stands_where_it_is_to_go_makes_no_copies(lab: Lab) -> None:
    team(lab, TWO)
    commit = work(lab, TWO, {"a": "1\n"})

    assert lab.swarm.merge("feature-x", how="rebase").new == commit
    assert landed(lab) == ["merged"]


def test_a_rebase_takes_a_history_with_merges_only_if_nothing_is_lost(lab: Lab) -> None:
    team(lab)
    for name, evil in ((ONE, ""), (TWO, "only in the merge\n")):
        tree = lab.tree(name)
        work(lab, name, {name: "1\n"})
        lab.git("checkout", "--quiet", "-b", f"side-{name}", "HEAD~1", cwd=tree)
        work(lab, name, {f"side-{name}": "1\n"})
        lab.git("checkout", "--quiet", f"swarm/{name}-feature-x", cwd=tree)
        lab.git("merge", "--quiet", "--no-ff", "--no-commit", f"side-{name}", cwd=tree)
        if evil:
            lab.write({name: evil}, tree)
        lab.commit("merge", cwd=tree)

    with pytest.raises(MergeConflict) as caught:
        lab.swarm.merge(f"feature-x/{TWO}", how="rebase")
    assert "merge commits" in (caught.value.details or "")

    lab.swarm.merge(f"feature-x/{ONE}", how="rebase")
    assert f"side-{ONE}" in files_of(lab)
    lab.swarm.merge(f"feature-x/{TWO}")
    assert lab.git("show", f"main:{TWO}") == "only in the merge"


def test_a_branch_with_a_root_of_its_own_is_rebased_commit_by_commit(lab: Lab) -> None:
    team(lab, TWO)
    tree = lab.tree(TWO)
    lab.git("checkout", "--quiet", "--orphan", "new-root", cwd=tree)
    lab.git("rm", "-rf", "--quiet", ".", cwd=tree)
    work(lab, TWO, {"alone": "1\n"})
    lab.git("branch", "-f", f"swarm/{TWO}-feature-x", "new-root", cwd=tree)
    lab.git("checkout", "--quiet", f"swarm/{TWO}-feature-x", cwd=tree)

    lab.swarm.merge("feature-x", how="rebase")

    assert {"alone", "README"} < set(files_of(lab))


def test_one_agent_of_a_session(lab: Lab) -> None:
    busy_team(lab)

    report = lab.swarm.merge(f"feature-x/{TWO}")

    assert [agent.agent for agent in report.agents] == [TWO]
    assert f"{ONE}/a" not in files_of(lab)


def test_a_branch_that_is_not_checked_out(lab: Lab) -> None:
    busy_team(lab)
    lab.git("branch", "release")
    before = lab.fingerprint()

    report = lab.swarm.merge("feature-x", into="release")

    after = lab.fingerprint()
    assert report.checkout is None
    assert tip(lab, "release") == report.new
    assert before.pop("refs") != after.pop("refs")
    assert before == after


def test_a_branch_that_another_worktree_has_checked_out(lab: Lab) -> None:
    busy_team(lab)
    other = lab.root.parent / "release tree"
    lab.git("worktree", "add", "--quiet", "-b", "release", str(other))
    lab.write({"mine": "local\n"}, other)

    report = lab.swarm.merge("feature-x", into="release")

    assert report.checkout == other
    assert (other / ONE / "a").exists()
    assert lab.git("status", "--porcelain", cwd=other) == "?? mine"
    assert lab.git("status", "--porcelain") == ""
    assert "swarm: merge" in lab.git("reflog", "-1", "HEAD", cwd=other)


def test_one_agent_into_another_agent(lab: Lab) -> None:
    busy_team(lab)

    report = lab.swarm.merge("feature-x", into=f"swarm/{TWO}-feature-x")

    assert [agent.agent for agent in report.agents] == [ONE]
    assert (lab.tree(TWO) / ONE / "a").exists()
    assert lab.git("status", "--porcelain", cwd=lab.tree(TWO)) == ""


def test_nothing_to_merge(lab: Lab) -> None:
    team(lab)
    before = lab.fingerprint()

    report = lab.swarm.merge("feature-x")

    assert report.new == report.old
    assert [agent.landed for agent in report.agents] == ["fresh", "fresh"]
    assert report.merged == ()
    assert lab.fingerprint() == before


@pytest.mark.parametrize("how", HOWS)
def test_a_dry_run_changes_nothing(lab: Lab, how: str) -> None:
    busy_team(lab)
    before, objects = lab.fingerprint(), lab.git("count-objects", "-v")

    report = lab.swarm.merge("feature-x", how=how, dry_run=True)

    assert report.dry_run
    assert [agent.commits for agent in report.merged] == [2, 3]
    assert lab.fingerprint() == before
    assert lab.git("count-objects", "-v") == objects


def test_sha256(tmp_path: Path) -> None:
    lab = Lab(tmp_path.resolve())
    lab.root = tmp_path.resolve() / "sha256: odd"
    lab.root.mkdir()
    lab.git("init", "--quiet", "--object-format=sha256")
    lab.write({"README": "hello\n", "run.sh": "x\n"})
    lab.commit("first")
    busy_team(lab)

    for how in ("rebase", "merge"):
        lab.swarm.merge(f"feature-x/{ONE if how == 'rebase' else TWO}", how=how)

    assert {f"{ONE}/a", f"{TWO}/a"} < set(files_of(lab))
    assert lab.git("status", "--porcelain") == ""


def test_eight_agents_go_in_together(lab: Lab) -> None:
    team(lab, "developer:8")
    for number in range(1, 9):
        work(lab, f"developer-{number}", {f"f{number}": "x\n", "log/" + str(number): "y\n"})

    report = lab.swarm.merge("feature-x")

    assert len(report.merged) == 8
    assert {f"f{number}" for number in range(1, 9)} < set(files_of(lab))


def test_agents_that_did_the_same_are_merged_once(lab: Lab) -> None:
    team(lab)
    for name in (ONE, TWO):
        work(lab, name, {"README": "same\n"})

    report = lab.swarm.merge("feature-x", how="squash")

    assert [(agent.agent, bool(agent.result)) for agent in report.agents] == [(ONE, True), (TWO, False)]


def test_the_environment_says_who_the_user_is(lab: Lab) -> None:
    busy_team(lab)
    lab.env |= {"GIT_AUTHOR_NAME": "From", "GIT_COMMITTER_EMAIL": "the@environment"}

    lab.swarm.merge("feature-x")

    assert lab.git("log", "-1", "--format=%an %ce") == "From the@environment"


def test_commits_are_signed_if_the_user_signs(lab: Lab) -> None:
    busy_team(lab)
    program = lab.root.parent / "sign"
    program.write_text(
        "#!/bin/sh\ncat >/dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\n"
        "printf -- '-----BEGIN PGP SIGNATURE-----\\nfake\\n-----END PGP SIGNATURE-----\\n'\n"
    )
    program.chmod(0o755)
    lab.git("config", "gpg.program", str(program))
    lab.git("config", "commit.gpgsign", "true")

    lab.swarm.merge("feature-x", how="squash")

    assert "gpgsig -----BEGIN" in lab.git("cat-file", "commit", "main")


def test_hooks_do_not_run(lab: Lab) -> None:
    busy_team(lab)
    for name in ("pre-merge-commit", "post-merge", "commit-msg", "reference-transaction", "post-checkout"):
        hook = lab.root / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch '{lab.root.parent}/ran'\nexit 1\n")
        hook.chmod(0o755)

    lab.swarm.merge("feature-x")

    assert not (lab.root.parent / "ran").exists()


# --- what it refuses -----------------------------------------------------------------------------------


def refused(lab: Lab, kind: type[SwarmError], target: str = "feature-x", **how: Any) -> SwarmError:
    """Make sure that a merge is refused in this way, dry or not, and nothing is changed by it."""
    before, objects = lab.fingerprint(), lab.git("count-objects", "-v")
    indexes = {str(path): path.read_bytes() for path in (lab.root / ".git").rglob("index")}
    with pytest.raises(kind) as dry:
        lab.swarm.merge(target, **how, dry_run=True)
    with pytest.raises(kind) as caught:
        lab.swarm.merge(target, **how)
    assert type(caught.value) is type(dry.value) is kind
    assert lab.fingerprint() == before
    assert lab.git("count-objects", "-v") == objects
    assert {str(path): path.read_bytes() for path in (lab.root / ".git").rglob("index")} == indexes
    assert lab.swarm.operations.unfinished() == ()
    return caught.value


@pytest.mark.parametrize("how", HOWS)
def test_conflicts_stop_everything(lab: Lab, how: str) -> None:
    team(lab, f"{ONE},{TWO},reviewer")
    work(lab, ONE, {"README": "one\n", "one": "1\n"})
    work(lab, TWO, {"README": "two\n"})
    work(lab, "reviewer", {"src/app.py": "reviewer\n"})
    lab.write({"src/app.py": "main\n"})
    lab.commit("main went on")

    error = refused(lab, MergeConflict, how=how)

    found = {item.agent: item for item in error.facts["conflicts"]}
    assert set(found) == {f"{TWO}@feature-x", "reviewer@feature-x"}
    assert found[f"{TWO}@feature-x"].against == (f"{ONE}@feature-x",)
    assert [file.path for file in found[f"{TWO}@feature-x"].files] == ["README"]
    assert found["reviewer@feature-x"].against == ("main",)
    assert "src/app.py (content)" in (error.details or "")
    assert error.exit_code == 4


def test_work_that_is_not_committed_stops_it(lab: Lab) -> None:
    busy_team(lab)
    lab.write({"README": "changed\n"}, lab.tree(ONE))
    lab.write({"new": "n\n", "debug.log": "ignored\n"}, lab.tree(TWO))

    error = refused(lab, NotCommitted)

    assert isinstance(error, WorkAtRisk)
    assert [(item.agent, [str(risk.kind) for risk in item.risks]) for item in error.facts["agents"]] == [
        (ONE, ["modified"]),
        (TWO, ["untracked"]),
    ]
    report = lab.swarm.merge("feature-x", committed_only=True)
    assert len(report.warnings) == 2
    assert (lab.tree(TWO) / "new").read_text() == "n\n"
    assert "new" not in files_of(lab)


def test_commits_beside_the_agent_s_branch_stop_it(lab: Lab) -> None:
    busy_team(lab)
    lab.git("checkout", "--quiet", "--detach", cwd=lab.tree(ONE))
    work(lab, ONE, {"detached": "x\n"})

    error = refused(lab, NotCommitted)

    assert "a commit without a branch" in error.facts["agents"][0].risks[0].text


def test_ignored_files_and_a_clean_detached_head_do_not_stop_it(lab: Lab) -> None:
    busy_team(lab)
    lab.write({".env": "secret\n"}, lab.tree(ONE))
    lab.git("checkout", "--quiet", "--detach", "HEAD~1", cwd=lab.tree(ONE))

    assert len(lab.swarm.merge("feature-x").merged) == 2


def test_unknown_targets(lab: Lab) -> None:
    busy_team(lab)

    refused(lab, TargetNotFound, into="nowhere")
    refused(lab, UsageProblem, how="octopus")
    lab.git("checkout", "--quiet", "--detach")
    lab.git("branch", "--quiet", "-m", "main", "trunk")
    assert "--into" in refused(lab, TargetNotFound).hint


def test_unknown_user(lab: Lab) -> None:
    busy_team(lab)
    lab.git("config", "--global", "--unset", "user.email")
    lab.git("config", "--global", "user.useConfigOnly", "true")

    assert "git config" in refused(lab, IdentityMissing).hint


@pytest.mark.parametrize("operation", ["merge", "rebase", "rebase elsewhere"])
def test_an_operation_in_progress_stops_it(lab: Lab, operation: str) -> None:
    busy_team(lab)
    lab.git("checkout", "--quiet", "-b", "other", "HEAD~1")
    lab.write({"main-only": "other\n"})
    lab.commit("other")
    lab.git("checkout", "--quiet", "main")
    tree = lab.root
    if operation == "rebase elsewhere":
        tree = lab.root.parent / "elsewhere"
        lab.git("checkout", "--quiet", "other")
        lab.git("worktree", "add", "--quiet", str(tree), "main")
    lab.git(operation.partition(" ")[0], "other", cwd=tree, check=False)

    error = refused(lab, MergeBlocked)

    assert operation.partition(" ")[0] in error.message


def _edited(lab: Lab, *then: str) -> None:
    lab.write({"README": "mine\n"})
    lab.git(*then, "README")


OBSTACLES: dict[str, Callable[[Lab], object]] = {
    "modified": lambda lab: lab.write({"README": "mine\n"}),
    "deleted": lambda lab: (lab.root / "README").unlink(),
    "staged": lambda lab: _edited(lab, "add"),
    "hidden": lambda lab: _edited(lab, "update-index", "--assume-unchanged"),
    "untracked": lambda lab: lab.write({"new/file": "mine\n"}),
    "ignored": lambda lab: lab.write({"added.log": "mine\n"}),
    "a file for a folder": lambda lab: lab.write({"new": "mine\n"}),
    "a folder for a file": lambda lab: lab.write({"plain/inside": "mine\n"}),
    "a link": lambda lab: (lab.root / "new").symlink_to("elsewhere"),
    "an untracked file in a folder that goes": lambda lab: lab.write({"src/mine": "mine\n"}),
}


def agent_with_obstacles(lab: Lab) -> None:
    team(lab, TWO)
    tree = lab.tree(TWO)
    lab.write({"README": "agent\n", "new/file": "agent\n", "added.log": "agent\n", "plain": "agent\n"}, tree)
    (tree / "src" / "app.py").unlink()
    (tree / "src").rmdir()
    (tree / "src").write_text("a file now\n")
    lab.git("add", "--force", "added.log", cwd=tree)
    lab.commit("agent", cwd=tree)


@pytest.mark.parametrize("what", OBSTACLES)
def test_local_work_in_the_way_stops_it(lab: Lab, what: str) -> None:
    agent_with_obstacles(lab)
    OBSTACLES[what](lab)

    error = refused(lab, MergeBlocked)

    assert len(error.facts["paths"]) == 1, error.facts


def test_local_work_elsewhere_is_kept(lab: Lab) -> None:
    lab.write({"mine": "1\n", "staged": "1\n", "gone": "1\n", "hidden": "1\n"})
    lab.commit("more")
    agent_with_obstacles(lab)
    lab.write({"mine": "local\n", "staged": "local\n", "untracked": "local\n", "x.log": "local\n", "hidden": "h\n"})
    (lab.root / "gone").unlink()
    lab.git("add", "staged")
    lab.git("update-index", "--assume-unchanged", "hidden")
    os.utime(lab.root / "README")  # only another time
    before = lab.git("status", "--porcelain", "--ignored", "--untracked-files=all")

    lab.swarm.merge("feature-x")

    assert lab.git("status", "--porcelain", "--ignored", "--untracked-files=all") == before
    assert (lab.root / "README").read_text() == "agent\n"
    assert (lab.root / "src").read_text() == "a file now\n"
    assert (lab.root / "hidden").read_text() == "h\n"
    assert lab.git("ls-files", "-v", "hidden").startswith("h ")


def test_a_sparse_checkout_stays_sparse(lab: Lab) -> None:
    lab.write({"deep/a": "1\n", "other/b": "1\n"})
    lab.commit("more")
    team(lab, TWO)
    work(lab, TWO, {"deep/a": "2\n", "other/b": "2\n"})
    lab.git("sparse-checkout", "set", "deep")

    lab.swarm.merge("feature-x")

    assert (lab.root / "deep" / "a").read_text() == "2\n"
    assert not (lab.root / "other").exists()
    assert lab.git("status", "--porcelain") == ""


# --- what goes wrong while it is done --------------------------------------------------------------------


def test_a_target_that_moves_meanwhile_is_not_overwritten(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    busy_team(lab)
    swarm_ = lab.swarm
    real = Merging.move

    def move(self: Merging, *args: Any) -> None:
        real(self, *args)
        lab.git("update-ref", "refs/heads/main", "main~1")

    monkeypatch.setattr(Merging, "move", move)
    before, old = lab.git("rev-parse", "main"), lab.git("rev-parse", "main~1")
    files = file_digests(lab.root, skip={".git", ".swarm", ".worktrees"})

    with pytest.raises(TargetMoved):
        swarm_.merge("feature-x")

    assert tip(lab) == old
    assert lab.swarm.operations.unfinished() == ()
    assert lab.git("diff", "--cached", "--stat", before) == ""
    assert file_digests(lab.root, skip={".git", ".swarm", ".worktrees"}) == files


def test_what_was_committed_of_a_merge_meanwhile_is_not_taken_back(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    busy_team(lab)
    work(lab, TWO, {"README": "agent\n", "src/app.py": "agent\n"})
    swarm_ = lab.swarm
    real = Merging.move

    def move(self: Merging, *args: Any) -> None:
        real(self, *args)
        lab.git("commit", "--quiet", "-m", "in haste", "README")
        lab.write({"src/app.py": "mine\n"})

    monkeypatch.setattr(Merging, "move", move)

    with pytest.raises(TargetMoved) as caught:
        swarm_.merge("feature-x")

    assert (lab.root / "README").read_text() == "agent\n"
    assert "src/app.py" in (caught.value.details or "")
    assert lab.git("status", "--porcelain").splitlines() == [" M src/app.py"]


def test_between_two_picks_of_a_sequence_nothing_is_merged(lab: Lab) -> None:
    busy_team(lab)
    lab.git("switch", "--quiet", "-c", "picks", "main~1")
    for number in (1, 2):
        lab.write({"README": f"{number}\n"})
        lab.commit(f"pick {number}")
    lab.git("switch", "--quiet", "main")
    lab.write({"README": "ours\n"})
    lab.commit("in the way")
    lab.git("cherry-pick", "picks~1", "picks", check=False)
    lab.write({"README": "solved\n"})
    lab.git("add", "README")
    lab.git("commit", "--quiet", "-m", "the first of two")
    assert not (lab.root / ".git/CHERRY_PICK_HEAD").exists()

    with pytest.raises(MergeBlocked, match="sequence"):
        lab.swarm.merge("feature-x")


def test_a_failure_half_way_takes_the_files_back(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    busy_team(lab)
    lab.write({"src/app.py": "local\n"})
    before, files = lab.fingerprint(), file_digests(lab.root, skip={".git", ".swarm", ".worktrees"})

    def update_branch(self: Merging, *args: Any) -> None:
        raise SwarmError("no")

    with monkeypatch.context() as patch:
        patch.setattr(Merging, "update_branch", update_branch)
        with pytest.raises(SwarmError, match=r"^no$"):
            lab.swarm.merge("feature-x")

    assert lab.fingerprint() == before
    assert file_digests(lab.root, skip={".git", ".swarm", ".worktrees"}) == files
    assert lab.swarm.merge("feature-x").new == tip(lab)


def test_what_the_user_wrote_after_a_crash_stays(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    busy_team(lab)
    work(lab, TWO, {"README": "agent\n", "src/app.py": "agent\n"})

    with monkeypatch.context() as patch:
        patch.setattr(Merging, "update_branch", _die)
        patch.setattr("swarm.merging.merge._settle", lambda *_: None)
        with pytest.raises(SwarmError):
            lab.swarm.merge("feature-x")
    assert len(lab.swarm.operations.unfinished()) == 1
    lab.write({"README": "mine, after the crash\n", f"{TWO}/mine": "new\n"})

    assert lab.swarm.recover().rolled_back == ("merge of feature-x",)

    assert (lab.root / "README").read_text() == "mine, after the crash\n"
    assert (lab.root / TWO / "mine").read_text() == "new\n"
    assert (lab.root / "src" / "app.py").read_text() == "print('app')\n"
    assert lab.git("status", "--porcelain", "-uall").splitlines() == [" M README", f"?? {TWO}/mine"]


def _die(self: Merging, *args: Any) -> None:
    raise SwarmError("died")


def test_a_user_who_has_gone_on_after_a_crash_is_left_alone(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    busy_team(lab)
    with monkeypatch.context() as patch:
        patch.setattr(Merging, "update_branch", _die)
        patch.setattr("swarm.merging.merge._settle", lambda *_: None)
        with pytest.raises(SwarmError):
            lab.swarm.merge("feature-x")
    lab.git("commit", "--quiet", "-m", "by hand")

    lab.swarm.recover()

    assert lab.git("status", "--porcelain") == ""
    assert f"{ONE}/a" in files_of(lab)
    assert (lab.root / ONE / "a").exists()


# --- kill -9 at every point --------------------------------------------------------------------------------


@dataclass
class Scene:
    """A repository in which a merge can be killed, and how it looks before and after."""

    lab: Lab
    image: Path

    def restore(self) -> None:
        """Put everything back in place, and let the indexes know the new inodes."""
        for folder in (self.lab.root,):
            _copy(self.image, folder)
        for tree in (self.lab.root, self.lab.tree(TWO)):
            self.lab.git("update-index", "-q", "--refresh", cwd=tree, check=False)

    def look(self) -> dict[str, Any]:
        """What counts: refs, files of the main checkout, what is staged, and no leftovers; not a commit's time."""
        found = self.lab.fingerprint()
        found["index"] = self.lab.git("ls-files", "--stage", "-v")
        content = self.lab.git("log", "-1", "--format=%T %P %s", "main")
        for key in ("refs", "worktrees"):
            found[key] = found[key].replace(tip(self.lab), content)
        return found


def _copy(source: Path, target: Path) -> None:
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(source, target, symlinks=True)


def scene(lab: Lab) -> Scene:
    lab.write({"mine": "1\n", "staged": "1\n", "dir/old": "1\n", "turns": "file\n", "tool": "x\n"})
    lab.commit("more")
    team(lab, TWO)
    tree = lab.tree(TWO)
    (tree / "dir" / "old").unlink()
    (tree / "turns").unlink()
    (tree / "tool").chmod(0o755)
    lab.write({"README": "agent\n" * 3, "turns/folder": "f\n", "added/deep/file": "n\n"}, tree)
    (tree / "link").symlink_to("README")
    lab.commit("agent", cwd=tree)
    lab.write({"mine": "local\n", "staged": "local\n", "untracked": "local\n"})
    lab.git("add", "staged")
    image = lab.root.parent / "image"
    _copy(lab.root, image)
    return Scene(lab, image)


def _merge(lab: Lab) -> Callable[[], int]:
    temporary = lab.root.parent / "tmp"
    temporary.mkdir(exist_ok=True)

    def target() -> int:
        tempfile.tempdir = str(temporary)  # of the traced child: a killed one leaves something there
        try:
            lab.open(worktrees__durable=False).merge("feature-x")
        except SwarmError:
            return 3
        return 0

    return target


@pytest.mark.crash
@pytest.mark.timeout(900)
@pytest.mark.skipif(why_unsupported() is not None, reason=str(why_unsupported()))
@pytest.mark.parametrize("action", [Action.KILL_TREE, Action.KILL_SELF, Action.KILL_ROOT, Action.ENOSPC])
def test_killed_or_failing_at_any_point_it_is_old_or_new(lab: Lab, action: Action) -> None:
    scene_ = scene(lab)

    def within(point: Any) -> bool:
        # git does not mind an empty folder that it cannot remove.
        return str(point.path).startswith(f"{lab.root}/") and (action is not Action.ENOSPC or point.syscall != "rmdir")

    scene_.restore()
    before = scene_.look()
    counted = trace(_merge(lab), scope=within)
    assert counted.exit_code == 0
    after = scene_.look()
    assert before["refs"] != after["refs"]
    seen = set()
    total = len(counted.points)
    assert total > 30
    step = 1 if FULL else 3
    for at in range(1 + TURN % step, total + 1, step):
        scene_.restore()
        trace(_merge(lab), at=at, action=action, scope=within)
        lab.swarm.recover()
        found = scene_.look()
        old = {key for key in before if found[key] != before[key]}
        new = {key for key in after if found[key] != after[key]}
        where = counted.points[at - 1]
        assert not old or not new, f"{action} at {where}: neither old ({old}) nor new ({new})"
        assert lab.swarm.operations.unfinished() == ()
        seen.add("old" if not old else "new")
    assert seen == {"old", "new"}


# --- nested repositories ---------------------------------------------------------------------------


def add_nested(lab: Lab, tree: Path, name: str, pointer: str) -> None:
    lab.git("update-index", "--add", "--cacheinfo", f"160000,{pointer},{name}", cwd=tree)
    lab.git("commit", "--quiet", "-m", f"nested {name}", cwd=tree)
    (tree / name).mkdir(exist_ok=True)


@pytest.mark.parametrize("how", HOWS)
def test_new_nested_repositories_come_in_by_the_word_of_a_person_alone(lab: Lab, how: str) -> None:
    team(lab)
    lab.write({"main-only": "m\n"})
    before = lab.commit("main went on")
    add_nested(lab, lab.tree(ONE), "vendor", before)

    with pytest.raises(MergeBlocked, match="1 nested repository "):
        lab.swarm.merge("feature-x", how=how, dry_run=True)
    with pytest.raises(MergeBlocked, match="1 nested repository ") as refused:
        lab.swarm.merge("feature-x", how=how)
    assert refused.value.facts["paths"] == ("vendor",)
    assert refused.value.details == "vendor"
    assert "--with-nested" in str(refused.value.hint)
    assert tip(lab) == before
    with pytest.raises(NotAPerson):
        without_terminal(lambda: lab.swarm.merge("feature-x", how=how, nested=True))

    lab.person.merge("feature-x", how=how, nested=True)
    assert lab.git("ls-tree", "main", "vendor").startswith("160000")


def test_a_nested_repository_that_the_branch_has_may_move_on(lab: Lab) -> None:
    base = lab.git("rev-parse", "HEAD")
    add_nested(lab, lab.root, "vendor", base)
    team(lab)
    (lab.tree(ONE) / "vendor").mkdir(exist_ok=True)
    moved = work(lab, ONE, {"a": "1\n"})
    lab.git("update-index", "--cacheinfo", f"160000,{moved},vendor", cwd=lab.tree(ONE))
    lab.git("commit", "--quiet", "-m", "vendor moved", cwd=lab.tree(ONE))

    lab.swarm.merge("feature-x")

    assert moved in lab.git("ls-tree", "main", "vendor")
