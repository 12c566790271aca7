"""What is refused before anything is made: in plain words, with a way out, all problems at once, nothing changed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from swarm import Refused, SwarmError
from swarm.project.names import AgentSpec
from tests.project.test_names import HOSTILE, IN_ANY_CASE, LISTS, NOT_TEXT
from tests.support import odd
from tests.support.odd import AGENTS, NOTES, SESSION, refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration


def nothing_was_made(lab: Lab, before: dict[str, Any]) -> None:
    assert lab.fingerprint() == before
    assert not (lab.root / ".swarm").exists()
    assert not (lab.root / ".worktrees").exists()


# --- names ------------------------------------------------------------------------------------------


def test_no_hostile_name_makes_anything(lab: Lab) -> None:
    """Every hostile name in every place that takes one; one repository, since nothing may be made."""
    swarm = lab.swarm
    before = lab.fingerprint()
    for name in [*HOSTILE, *NOT_TEXT, *IN_ANY_CASE]:
        attempts: list[Callable[[], object]] = [
            lambda name=name: swarm.create(name, ["developer"]),  # type: ignore[misc]
            lambda name=name: swarm.create(SESSION, [name]),  # type: ignore[misc]
            lambda name=name: swarm.create(SESSION, [AgentSpec(name, "developer")]),  # type: ignore[misc]
            lambda name=name: swarm.create(SESSION, ["developer", name], dry_run=True),  # type: ignore[misc]
            lambda name=name: swarm.cleanup([name]),  # type: ignore[misc]
            lambda name=name: swarm.roles.get(name),  # type: ignore[misc]
            lambda name=name: swarm.worktrees.remove(name),  # type: ignore[misc]
        ]
        for attempt in attempts:
            with pytest.raises(SwarmError) as caught:
                attempt()
            assert caught.value.exit_code in (2, 6), f"{name!r}: {caught.value.message}"
            odd.reads_well(caught.value)
    nothing_was_made(lab, before)


@pytest.mark.parametrize(
    "given", [LISTS[key] for key in LISTS if key != "generator"], ids=lambda item: ascii(item)[:40]
)
def test_no_list_of_roles_that_cannot_be_meant_makes_anything(lab: Lab, given: tuple[object, str, str]) -> None:
    before = lab.fingerprint()

    with refused(lab.root.parent, given[1], says=given[2], exit_code=2):
        lab.swarm.create(SESSION, given[0])  # type: ignore[arg-type]

    nothing_was_made(lab, before)


@pytest.mark.parametrize("given", ["nobody", "developer,nobody", ["x=nobody"], "nobody:3"])
def test_an_unknown_role_makes_nothing(lab: Lab, given: Any) -> None:
    before = lab.fingerprint()

    with refused(lab.root.parent, "ROLE_NOT_FOUND", says="nobody", hint="roles/nobody|researcher", exit_code=6):
        lab.swarm.create(SESSION, given)

    nothing_was_made(lab, before)


@pytest.mark.parametrize(
    "base",
    [
        "",
        "nowhere",
        "-x",
        "--all",
        "HEAD~99",
        "main:README",
        "HEAD^{tree}",
        "a\0b",
        "main..main",
        "@{-1}",
        "é",
        "x" * 5000,
    ],
    ids=lambda base: ascii(base)[:20],
)
def test_a_base_that_is_no_commit_makes_nothing(lab: Lab, base: str) -> None:
    before = lab.fingerprint()

    with refused(
        lab.root.parent, "BASE_NOT_FOUND", says="no commit of this repository", hint="git branch -a", exit_code=2
    ):
        lab.swarm.create(SESSION, AGENTS, base=base)

    nothing_was_made(lab, before)


def test_a_base_whose_name_is_hostile_to_the_terminal_is_quoted(lab: Lab) -> None:
    with refused(lab.root.parent, "BASE_NOT_FOUND") as caught:
        lab.swarm.create(SESSION, AGENTS, base="a\x1b[31m\u202e\nb")

    assert caught.text.isascii()


@pytest.mark.parametrize("shape", [SESSION, "1", "A" * 40, "a_b-c", "007", "Feature-X"])
def test_a_valid_name_comes_through_everything(lab: Lab, shape: str) -> None:
    swarm = lab.open(worktrees__durable=False)
    agents = ["researcher", "R2=researcher", "developer:2", "b" * 40 + "=architect"]

    paths = swarm.create(shape, agents).paths()

    assert list(paths) == ["researcher", "R2", "developer-1", "developer-2", "b" * 40]
    assert [info.agent for info in swarm.worktrees(shape.upper())] == list(paths)
    for agent, tree in paths.items():
        assert tree == lab.root / ".worktrees" / f"{agent}-{shape}"
        assert lab.git("symbolic-ref", "--short", "HEAD", cwd=tree) == f"swarm/{agent}-{shape}"
        assert swarm.worktrees.show(agent.lower(), shape.lower()).info.path == tree
    assert len(swarm.cleanup([shape], force=True).removed) == 5
    assert {agent.name for agent in swarm.restore(shape).agents} == set(paths)


# --- what is already there --------------------------------------------------------------------------

TREE = f".worktrees/developer-{SESSION}"
BRANCH = f"swarm/developer-{SESSION}"


def _branch(name: str) -> Callable[[Lab], None]:
    return lambda lab: void(lab.git("branch", name))


def void(_: object) -> None:
    """Take what a lambda returns."""


def _files(**files: str) -> Callable[[Lab], None]:
    return lambda lab: lab.write({name.replace("__", "/"): text for name, text in files.items()})


def _empty_folder(lab: Lab) -> None:
    (lab.root / TREE).mkdir(parents=True)


def _full_folder(lab: Lab) -> None:
    lab.write({f"{TREE}/work": "not to be lost\n"})


def _file(lab: Lab) -> None:
    lab.write({TREE: "a file\n"})


def _dangling(lab: Lab) -> None:
    (lab.root / ".worktrees").mkdir()
    (lab.root / TREE).symlink_to("nowhere")


def _other_case(lab: Lab) -> None:
    (lab.root / ".worktrees" / f"DEVELOPER-{SESSION}").mkdir(parents=True)


def _stale(lab: Lab) -> None:
    lab.git("worktree", "add", "--quiet", "--detach", str(lab.root / TREE))
    subprocess.run(["rm", "-r", str(lab.root / ".worktrees")], check=True)


def _stale_and_moved(lab: Lab) -> None:
    """Registered at our path, but with the folder moved elsewhere by hand."""
    lab.git("worktree", "add", "--quiet", "--detach", str(lab.root / TREE))
    (lab.root / TREE).rename(lab.root.parent / "moved")
    (lab.root / ".worktrees").rmdir()


def _base_link(lab: Lab) -> None:
    (lab.root.parent / "outside").mkdir()
    (lab.root / ".worktrees").symlink_to(lab.root.parent / "outside")


def _base_dangling(lab: Lab) -> None:
    (lab.root / ".worktrees").symlink_to("nowhere")


def _base_tracked(lab: Lab) -> None:
    lab.write({".worktrees/x": "x\n"})
    lab.commit("tracked")


def _base_tracked_and_gone(lab: Lab) -> None:
    _base_tracked(lab)
    subprocess.run(["rm", "-r", str(lab.root / ".worktrees")], check=True)


def _state_link(lab: Lab) -> None:
    (lab.root.parent / "outside").mkdir(mode=0o700)
    (lab.root / ".swarm").symlink_to(lab.root.parent / "outside")


def _state_tracked(lab: Lab) -> None:
    lab.write({".swarm/config.yaml": "git: {jobs: 1}\n"})
    (lab.root / ".swarm").chmod(0o700)
    lab.commit("tracked")


def _state_shared(lab: Lab) -> None:
    (lab.root / ".swarm").mkdir()
    (lab.root / ".swarm").chmod(0o770)


def _state_foreign(lab: Lab) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    (lab.root / ".swarm").mkdir(mode=0o700)
    os.chown(lab.root / ".swarm", 65534, 65534)


def _ref_swarm(lab: Lab) -> None:
    lab.git("update-ref", "refs/swarm", "HEAD")


def _ref_op(lab: Lab) -> None:
    lab.git("update-ref", "refs/swarm/op", "HEAD")


def _ref_salvage(lab: Lab) -> None:
    lab.git("update-ref", "refs/swarm/salvage", "HEAD")


def _packed_branch(lab: Lab) -> None:
    lab.git("branch", BRANCH)
    lab.git("pack-refs", "--all")


def _checked_out(lab: Lab) -> None:
    lab.git("checkout", "--quiet", "-b", BRANCH)


def _symbolic_branch(lab: Lab) -> None:
    lab.git("symbolic-ref", f"refs/heads/{BRANCH}", "refs/heads/main")


def _dangling_symbolic_branch(lab: Lab) -> None:
    lab.git("symbolic-ref", f"refs/heads/{BRANCH}", "refs/heads/nowhere")


def _broken_branch(lab: Lab) -> None:
    lab.write({f".git/refs/heads/{BRANCH}": "garbage\n"})


IN_THE_WAY: dict[str, tuple[Callable[[Lab], None], str, str, str, int]] = {
    "the-branch": (_branch(BRANCH), "BRANCH_EXISTS", BRANCH, "different session", 3),
    "the-branch-packed": (_packed_branch, "BRANCH_EXISTS", BRANCH, "different session", 3),
    "the-branch-checked-out": (_checked_out, "BRANCH_EXISTS", BRANCH, "different session", 3),
    "the-branch-symbolic": (_symbolic_branch, "BRANCH_EXISTS", BRANCH, "different session", 3),
    "the-branch-dangling": (_dangling_symbolic_branch, "BRANCH_EXISTS", BRANCH, "different session", 3),
    "the-branch-broken": (_broken_branch, "BRANCH_EXISTS", BRANCH, "different session", 3),
    "a-branch-in-other-case": (
        _branch(f"swarm/DEVELOPER-{SESSION}"),
        "NAME_COLLISION",
        "only in case",
        "without case",
        2,
    ),
    "a-branch-named-swarm": (
        _branch("swarm"),
        "REF_CONFLICT",
        "'swarm' is in the way",
        "git branch -m swarm swarm-old",
        2,
    ),
    "a-branch-below": (_branch(f"{BRANCH}/sub"), "REF_CONFLICT", f"{BRANCH}/sub exists below", "rename", 2),
    "refs-swarm": (_ref_swarm, "REF_CONFLICT", "refs/swarm", "git update-ref", 2),
    "refs-swarm-op": (_ref_op, "REF_CONFLICT", "refs/swarm/op", "git update-ref", 2),
    "refs-swarm-salvage": (_ref_salvage, "REF_CONFLICT", "refs/swarm/salvage", "git update-ref", 2),
    "an-empty-folder": (_empty_folder, "WORKTREE_EXISTS", "already exists", "different session", 3),
    "a-full-folder": (_full_folder, "WORKTREE_EXISTS", "already exists", "different session", 3),
    "a-file": (_file, "WORKTREE_EXISTS", "already exists", "different session", 3),
    "a-dangling-link": (_dangling, "WORKTREE_EXISTS", "already exists", "different session", 3),
    "a-folder-in-other-case": (_other_case, "NAME_COLLISION", "only in case", "without case", 2),
    "a-stale-registration": (_stale, "WORKTREE_EXISTS", "still registered", "git worktree remove --force", 3),
    "a-moved-worktree": (_stale_and_moved, "WORKTREE_EXISTS", "still registered", "git worktree", 3),
    "base-is-a-file": (_files(**{".worktrees": "x"}), "STATE_DIR", "worktrees: it is not a folder", "base_path", 2),
    "base-is-a-link": (_base_link, "SYMLINK", "worktrees: it is a symbolic link", "plain folder", 2),
    "base-is-a-dangling-link": (_base_dangling, "SYMLINK", "worktrees: it is a symbolic link", "plain folder", 2),
    "base-is-tracked": (_base_tracked, "STATE_DIR", r"\.worktrees: .*history", "base_path", 2),
    "base-is-tracked-and-gone": (_base_tracked_and_gone, "STATE_DIR", r"\.worktrees: .*history", "base_path", 2),
    "state-is-a-file": (_files(**{".swarm": "x"}), "STATE_DIR", r"\.swarm: it is not a folder", "move it", 2),
    "state-is-a-link": (_state_link, "SYMLINK", r"\.swarm: it is a symbolic link", "plain folder", 2),
    "state-is-tracked": (_state_tracked, "STATE_DIR", r"\.swarm: .*history", "git rm -r --cached", 2),
    "state-is-shared": (_state_shared, "STATE_DIR", "others can write", "chmod 700", 2),
    "state-is-someone-else-s": (_state_foreign, "STATE_DIR", r"another user \(uid 65534\)", ".", 2),
}


@pytest.mark.parametrize(("build", "code", "says", "hint", "exit_code"), IN_THE_WAY.values(), ids=IN_THE_WAY.keys())
def test_what_is_in_the_way_is_named_and_nothing_is_made(
    lab: Lab, build: Callable[[Lab], None], code: str, says: str, hint: str, exit_code: int
) -> None:
    build(lab)

    for dry_run in (True, False):
        with refused(lab.root.parent, code, says=says, hint=hint, exit_code=exit_code) as caught:
            lab.swarm.create(SESSION, AGENTS, dry_run=dry_run)
        assert not isinstance(caught.error, Refused)

    assert lab.git("for-each-ref", "refs/swarm/op/", f"refs/heads/swarm/researcher-{SESSION}") == ""


def test_a_base_path_whose_parent_is_a_link_does_not_lead_out(lab: Lab) -> None:
    (lab.root.parent / "outside").mkdir()
    (lab.root / "deep").symlink_to(lab.root.parent / "outside")

    with refused(lab.root.parent, "SYMLINK", says="deep is a symbolic link", hint="plain folder", exit_code=2):
        lab.open(worktrees__base_path="deep/trees").create(SESSION, AGENTS)


def test_a_base_path_whose_parent_is_a_file_is_refused(lab: Lab) -> None:
    with refused(lab.root.parent, "STATE_DIR", says="README.* not a folder", hint="base_path", exit_code=2):
        lab.open(worktrees__base_path="README/trees").create(SESSION, AGENTS)


def test_a_base_path_with_tracked_files_is_refused(lab: Lab) -> None:
    with refused(lab.root.parent, "STATE_DIR", says="src: .*history", hint="base_path", exit_code=2):
        lab.open(worktrees__base_path="src").create(SESSION, AGENTS)


def test_a_base_path_inside_a_submodule_is_refused(lab: Lab) -> None:
    lab.git("submodule", "--quiet", "add", str(lab.root), "part")
    lab.commit("a submodule")

    with refused(lab.root.parent, "STATE_DIR", says="part", hint="base_path", exit_code=2):
        lab.open(worktrees__base_path="part/trees").create(SESSION, AGENTS)


@pytest.mark.parametrize("kind", ["state-is-shared", "a-branch-named-swarm", "a-stale-registration"])
def test_the_hint_can_be_pasted_and_helps(lab: Lab, kind: str) -> None:
    build, *_ = IN_THE_WAY[kind]
    build(lab)
    with pytest.raises(SwarmError) as caught:
        lab.swarm.create(SESSION, AGENTS)
    command = re.search(r"(git|chmod) .*?(?=, or |$)", caught.value.hint)
    assert command is not None

    subprocess.run(["sh", "-ec", command[0]], cwd=lab.root, env=lab.env, check=True)

    assert shlex.split(command[0])
    assert len(lab.open(worktrees__durable=False).create(SESSION, AGENTS).agents) == 2


def test_the_same_session_again_is_refused_and_the_first_stays(lab: Lab) -> None:
    lab.swarm.create(SESSION, AGENTS)

    with refused(
        lab.root.parent, "WORKTREE_EXISTS", says=f"developer-{SESSION}", hint="different session", exit_code=3
    ):
        lab.swarm.create(SESSION, ["developer"], dry_run=True)
    with refused(
        lab.root.parent,
        "WORKTREE_EXISTS",
        says=f"developer-{SESSION}",
        hint="different session",
        exit_code=3,
        left=NOTES,
    ):
        lab.swarm.create(SESSION, ["developer"])

    assert [info.agent for info in lab.swarm.worktrees()] == list(AGENTS)


def test_a_session_that_differs_only_in_case_is_refused(lab: Lab) -> None:
    lab.swarm.create(SESSION, AGENTS)

    with refused(lab.root.parent, "NAME_COLLISION", says="only in case", exit_code=2, left=NOTES):
        lab.swarm.create(SESSION.upper(), ["architect"])


# --- several problems -------------------------------------------------------------------------------


def test_all_problems_are_shown_at_once(lab: Lab) -> None:
    lab.git("branch", BRANCH)
    lab.git("branch", f"swarm/architect-{SESSION}/x")
    lab.git("branch", f"swarm/REVIEWER-{SESSION}")
    lab.write({f".worktrees/researcher-{SESSION}": "in the way\n"})
    (lab.root / ".swarm").mkdir()
    (lab.root / ".swarm").chmod(0o777)
    before = lab.fingerprint()

    with refused(
        lab.root.parent, "STATE_DIR", says="cannot create session feature-x: ", hint="chmod", exit_code=2
    ) as caught:
        lab.swarm.create(SESSION, ["researcher", "developer", "architect", "reviewer"])

    error = caught.error
    assert isinstance(error, Refused)
    assert [problem.code for problem in error.problems] == [
        *("STATE_DIR", "WORKTREE_EXISTS", "BRANCH_EXISTS", "REF_CONFLICT", "NAME_COLLISION")
    ]
    for problem in error.problems:
        odd.reads_well(problem)
        assert problem.message in error.message
    assert [one["code"] for one in error.as_dict()["details"]["problems"]] == [p.code for p in error.problems]
    assert lab.fingerprint() == before
    assert not (lab.root / ".worktrees" / f"developer-{SESSION}").exists()


def test_an_unknown_role_does_not_hide_the_other_problems(lab: Lab) -> None:
    lab.git("branch", BRANCH)

    with refused(lab.root.parent, "ROLE_NOT_FOUND", says="nobody", exit_code=6) as caught:
        lab.swarm.create(SESSION, ["nobody", "developer", "no-one"])

    error = caught.error
    assert isinstance(error, Refused)
    assert [problem.code for problem in error.problems] == ["ROLE_NOT_FOUND", "ROLE_NOT_FOUND", "BRANCH_EXISTS"]


def test_an_unknown_role_is_named_once(lab: Lab) -> None:
    with refused(lab.root.parent, "ROLE_NOT_FOUND", says="nobody", exit_code=6) as caught:
        lab.swarm.create(SESSION, "nobody:3")

    assert not isinstance(caught.error, Refused)


# --- what is not there ------------------------------------------------------------------------------

ABSENT: dict[str, tuple[Callable[[Any], object], str, str]] = {
    "session": (lambda swarm: swarm.sessions.get("nope"), "SESSION_NOT_FOUND", "no session nope"),
    "worktrees": (lambda swarm: swarm.worktrees("nope"), "SESSION_NOT_FOUND", "no session nope"),
    "show": (lambda swarm: swarm.worktrees.show("nope"), "WORKTREE_NOT_FOUND", "no agent nope"),
    "show-in": (lambda swarm: swarm.worktrees.show("developer", "nope"), "SESSION_NOT_FOUND", "no session nope"),
    "cleanup": (lambda swarm: swarm.cleanup(["nope"]), "SESSION_NOT_FOUND", "no session nope"),
    "cleanup-force": (lambda swarm: swarm.cleanup(["nope"], force=True), "SESSION_NOT_FOUND", "nope"),
    "remove": (lambda swarm: swarm.worktrees.remove("nope"), "WORKTREE_NOT_FOUND", "no agent nope"),
    "restore": (lambda swarm: swarm.restore("nope"), "SALVAGE_NOT_FOUND", "nope"),
    "restore-agent": (lambda swarm: swarm.restore("nope/developer@1"), "SALVAGE_NOT_FOUND", "nope"),
    "lock": (lambda swarm: swarm.worktrees.lock("nope"), "WORKTREE_NOT_FOUND", "no agent nope"),
    "unlock": (lambda swarm: swarm.worktrees.unlock("nope"), "WORKTREE_NOT_FOUND", "no agent nope"),
    "update-role": (lambda swarm: swarm.worktrees.update_role("nope"), "WORKTREE_NOT_FOUND", "no agent nope"),
    "role": (lambda swarm: swarm.roles.get("nope"), "ROLE_NOT_FOUND", "nope"),
    "salvage": (lambda swarm: swarm.salvage.get("nope/developer"), "SALVAGE_NOT_FOUND", "nope"),
}


@pytest.mark.parametrize(("act", "code", "says"), ABSENT.values(), ids=ABSENT.keys())
def test_what_is_not_there_is_said_and_nothing_is_made(
    lab: Lab, act: Callable[[Any], object], code: str, says: str
) -> None:
    with refused(lab.root.parent, code, says=says, exit_code=6):
        act(lab.swarm)

    assert not (lab.root / ".swarm").exists()


@pytest.mark.parametrize(
    "target", ["", "/", "a/b/c", "../x", "a@", "@", "a/@1", "a/b@../..", "\0", "a\n", "é/x", "-x/--y"]
)
def test_a_hostile_restore_target_is_refused(lab: Lab, target: str) -> None:
    before = lab.fingerprint()
    for act in (lab.swarm.restore, lab.swarm.salvage.get, lambda target: lab.person.salvage.drop([target])):
        with pytest.raises(SwarmError) as caught:
            act(target)
        assert caught.value.exit_code in (2, 6), caught.value.message
        odd.reads_well(caught.value)
    assert lab.fingerprint() == before


def test_looking_never_makes_anything(lab: Lab) -> None:
    before = lab.fingerprint()
    swarm = lab.swarm

    assert swarm.sessions() == ()
    assert swarm.worktrees() == ()
    assert swarm.salvage() == ()
    assert swarm.operations() == ()
    assert swarm.operations.unfinished() == ()
    assert swarm.create(SESSION, AGENTS, dry_run=True).dry_run
    assert swarm.cleanup(everything=True, dry_run=True).removed == ()
    assert swarm.cleanup(everything=True).removed == ()
    assert swarm.recover().rolled_back == ()
    assert swarm.worktrees.prune().removed == ()

    nothing_was_made(lab, before)


def test_refused_can_be_sent_to_another_process(lab: Lab) -> None:
    import pickle

    lab.git("branch", BRANCH)
    lab.write({f".worktrees/researcher-{SESSION}": "x"})
    with pytest.raises(Refused) as caught:
        lab.swarm.create(SESSION, AGENTS)

    again = pickle.loads(pickle.dumps(caught.value))

    assert again.as_dict() == caught.value.as_dict()
    assert (again.code, again.exit_code) == (caught.value.code, caught.value.exit_code)
    assert [type(one) for one in again.problems] == [type(one) for one in caught.value.problems]
