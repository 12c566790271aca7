"""Programs that an agent's git folders name do not run when swarm looks at its worktree, saves it or brings it back."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from swarm.git import gitdir
from swarm.kit.errors import SwarmError
from swarm.worktrees.reports import RiskKind
from tests.support import odd

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from swarm import Swarm
    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration

SESSION = "feature-x"


def _canary(lab: Lab) -> Path:
    return lab.root.parent / "canary"


def _program(lab: Lab, name: str) -> str:
    path = odd.program(lab.root.parent / "planted", name, f"echo {name} >> '{_canary(lab)}'\ncat")
    return f"'{path}'"


def _name_programs(lab: Lab, config: Path) -> None:
    """Name programs in a configuration, in every way in which git runs some by itself."""
    settings = {
        "filter.plant.clean": _program(lab, "clean"),
        "filter.plant.smudge": _program(lab, "smudge"),
        "filter.plant.required": "true",
        "core.fsmonitor": _program(lab, "monitor"),
        "core.hooksPath": str(_hooks(lab)),
        "diff.plant.textconv": _program(lab, "textconv"),
        "diff.plant.command": _program(lab, "diff"),
        "merge.plant.driver": _program(lab, "driver"),
        "diff.external": _program(lab, "external"),
    }
    for key, value in settings.items():
        lab.git("config", "--file", str(config), key, value)


def _hooks(lab: Lab) -> Path:
    folder = lab.root.parent / "planted hooks"
    for name in ("post-index-change", "reference-transaction", "post-checkout", "fsmonitor-watchman"):
        odd.program(folder, name, f"echo {name} >> '{_canary(lab)}'")
    return folder


def nested_repository(lab: Lab, tree: Path) -> None:
    """A repository in a worktree, committed as a submodule that has no line in ``.gitmodules``."""
    inner = tree / "inner"
    lab.git("init", "--quiet", str(inner), cwd=tree)
    lab.write({"inner.txt": "first\n", ".gitattributes": "*.txt filter=plant diff=plant\n"}, inner)
    lab.commit("inner", inner)
    lab.git("-c", "advice.addEmbeddedRepo=false", "add", "inner", cwd=tree)
    lab.git("commit", "--quiet", "-m", "a repository inside", cwd=tree)
    _name_programs(lab, inner / ".git" / "config")
    lab.write({"inner.txt": "other\n"}, inner)


def own_settings(lab: Lab, tree: Path) -> None:
    """The worktree's own part of the configuration."""
    lab.git("config", "extensions.worktreeConfig", "true")
    _attributes(lab, tree)
    admin = gitdir.pointer_of(tree)
    assert admin is not None
    _name_programs(lab, admin / "config.worktree")


def other_common_folder(lab: Lab, tree: Path) -> None:
    """Another repository in place of the one that all worktrees share."""
    _attributes(lab, tree)
    admin = gitdir.pointer_of(tree)
    assert admin is not None
    (admin / "commondir").write_text(f"{_other(lab)}\n")


def other_pointer(lab: Lab, tree: Path) -> None:
    """A ``.git`` file that leads to another repository."""
    _attributes(lab, tree)
    (tree / ".git").write_text(f"gitdir: {_other(lab)}\n")


def _attributes(lab: Lab, tree: Path) -> None:
    lab.write({".gitattributes": "*.py filter=plant diff=plant merge=plant\n"}, tree)
    lab.commit("attributes", tree)
    lab.write({"src/app.py": "print('changed')\n"}, tree)


def _other(lab: Lab) -> Path:
    folder = lab.root.parent / "other.git"
    shutil.copytree(lab.root / ".git", folder, ignore=shutil.ignore_patterns("worktrees"))
    _name_programs(lab, folder / "config")
    lab.git("config", "--file", str(folder / "config"), "core.bare", "false")
    return folder


def _verbs(lab: Lab, swarm: Swarm) -> dict[str, Callable[[], object]]:
    return {
        "status": lambda: swarm.status(SESSION),
        "worktree list": swarm.worktrees,
        "worktree show": lambda: swarm.worktrees.show("developer"),
        "why": lambda: swarm.why("developer"),
        "diff": lambda: swarm.diff("developer"),
        "conflicts": lambda: swarm.conflicts(SESSION),
        "merge": lambda: swarm.merge(SESSION),
        "merge --committed-only --with-nested": lambda: lab.person.merge(SESSION, committed_only=True, nested=True),
        "merge --into": lambda: swarm.merge("reviewer@feature-x", into="swarm/developer-feature-x"),
        "cleanup": lambda: swarm.cleanup([SESSION]),
        "cleanup --force": lambda: swarm.cleanup([SESSION], force=True),
        "restore": lambda: swarm.restore(SESSION),
        "show what was restored": lambda: swarm.worktrees.show("developer"),
    }


@pytest.mark.parametrize("plant", [nested_repository, own_settings, other_common_folder, other_pointer])
def test_no_verb_runs_what_an_agent_has_planted(lab: Lab, plant: Callable[[Lab, Path], None]) -> None:
    swarm = lab.open(worktrees__durable=False)
    trees = swarm.create(SESSION, ["developer", "reviewer"]).paths()
    plant(lab, trees["developer"])
    lab.write({"src/reviewed.py": "new\n"}, trees["reviewer"])
    lab.commit("reviewed", trees["reviewer"])
    lab.git("status", "--ignore-submodules=none", cwd=trees["developer"], env={"GIT_OPTIONAL_LOCKS": "0"})
    assert _canary(lab).exists(), "git itself runs it: else this test would show nothing"
    _canary(lab).unlink()

    refusals = set()
    for name, verb in _verbs(lab, swarm).items():
        try:
            verb()
        except SwarmError as error:
            refusals.add((name, error.code))
        assert not _canary(lab).exists(), f"{name} ran {_canary(lab).read_text().split()}"

    blocked = {("merge --into", "MERGE_BLOCKED")} if plant is other_pointer else set()  # its checkout would be written
    assert refusals == {("merge", "NOT_COMMITTED"), ("cleanup", "WORK_AT_RISK"), *blocked}
    assert trees["developer"].is_dir()


def test_changes_in_a_repository_inside_are_told_and_counted_as_work(lab: Lab) -> None:
    swarm = lab.open(worktrees__durable=False)
    tree = swarm.create(SESSION, ["developer"]).paths()["developer"]
    nested_repository(lab, tree)

    details = swarm.worktrees.show("developer")

    assert details.changes == (" M inner",)
    assert details.info.dirty
    assert (RiskKind.SUBMODULE, ("inner",)) in [(risk.kind, risk.items) for risk in details.risks]
    lab.write({"inner.txt": "first\n"}, tree / "inner")
    assert swarm.worktrees.show("developer").changes == ()


def test_the_user_s_own_filter_runs_for_swarm(lab: Lab) -> None:
    """As LFS does: named in the configuration that all worktrees share."""
    log = lab.root.parent / "log"
    for name, change in (("clean", "s/content/pointer/"), ("smudge", "s/pointer/content/")):
        path = odd.program(lab.root.parent / "bin", name, f"echo {name} >> '{log}'\nsed {change}")
        lab.git("config", f"filter.user.{name}", f"'{path}'")
    lab.write({".gitattributes": "*.bin filter=user\n", "a.bin": "content\n"})
    lab.commit("filtered")
    swarm = lab.open(worktrees__durable=False)
    tree = swarm.create(SESSION, ["developer"]).paths()["developer"]
    os.utime(tree / "a.bin")
    assert swarm.worktrees.show("developer").changes == ()
    lab.write({"a.bin": "content of the agent\n"}, tree)

    assert "+pointer of the agent" in swarm.diff("developer").uncommitted_patch
    lab.commit("by the agent", tree)
    swarm.merge(SESSION)
    swarm.cleanup([SESSION], force=True)

    assert (lab.root / "a.bin").read_text() == "content of the agent\n"
    assert set(log.read_text().split()) == {"clean", "smudge"}
