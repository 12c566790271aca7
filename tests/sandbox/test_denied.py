"""Deny rules of a role are held by its agent's box: files are hidden or fixed, hosts refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm import Swarm
from swarm.sandbox import private
from swarm.sandbox.bounds import denied
from swarm.sandbox.network.policy import policy
from swarm.sandbox.values import Box, Mount
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from swarm.testing.panes import PaneLab

pytestmark = pytest.mark.integration

SYSTEM = (Mount("--ro-bind", "/usr", "/usr"), Mount("--symlink", "usr/bin", "/bin"))


@pytest.fixture
def box(tmp_path: Path) -> Box:
    """Return a box whose worktree and home are there."""
    for name in ("tree/docs", "tree/a/b", "home/.ssh", "base", "shared/inner"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "tree/a/b/file").write_text("x")
    (tmp_path / "tree/secret").write_text("x")
    (tmp_path / "tree/linked").symlink_to(tmp_path / "shared")
    return Box(str(tmp_path / "tree"), str(tmp_path / "base"), SYSTEM, read_write=(str(tmp_path / "shared"),))


def cover(box: Box, *deny: str, tracked: bool = False, shared: bool = False) -> denied.Covered:
    top = Path(box.tree).parent
    return denied.covered(box, deny, denied.Mine(top / "base", str(top / "home"), shared, lambda _: tracked))


def test_what_is_edited_is_fixed_and_the_folders_above_cannot_be_moved(box: Box) -> None:
    tree = box.tree
    found = cover(box, "Edit(a/b/**)")

    assert found.options == ("--bind", f"{tree}/a", f"{tree}/a", "--ro-bind", f"{tree}/a/b", f"{tree}/a/b")
    assert [one.by_box for one in found.held] == [True]


def test_what_is_read_is_hidden_unless_git_has_it(box: Box) -> None:
    tree, base = box.tree, Path(box.tree).parent / "base"

    assert cover(box, "Read(docs/**)").options[-2:] == ("--remount-ro", f"{tree}/docs")
    assert cover(box, "Read(secret)").options == ("--ro-bind", f"{base}/closed", f"{tree}/secret")
    assert (base / "closed").stat().st_mode & 0o777 == 0
    found = cover(box, "Read(secret)", tracked=True)
    assert (found.options, found.held[0].by_box) == ((), False)
    assert "git" in found.held[0].note


@pytest.mark.parametrize("rule", ["Edit(linked/inner/**)", "Read(linked)", "Edit(nothing)", "Read(**/x)", "Read(**)"])
def test_what_cannot_be_held_is_said_and_nothing_is_mounted(box: Box, rule: str) -> None:
    found = cover(box, rule)

    assert (found.options, found.held[0].by_box) == ((), False)
    assert found.held[0].note


def test_where_another_agent_works_nothing_of_the_worktree_is_mounted(box: Box) -> None:
    found = cover(box, "Edit(docs/**)", "Read(secret)", "Edit(//etc/**)", shared=True)

    assert found.options == ()
    assert [one.by_box for one in found.held] == [False, False, True]


def test_what_is_not_in_the_box_needs_nothing(box: Box, tmp_path: Path) -> None:
    for rule in ("Read(~/.ssh/**)", "Edit(//etc/**)", f"Read(/{tmp_path}/elsewhere)", "Edit(//usr/**)"):
        assert cover(box, rule) == ((), (), (denied.Held(rule, by_box=True),)), rule


def test_what_the_box_shows_beside_the_worktree_is_covered_or_named(box: Box, tmp_path: Path) -> None:
    inner = f"{tmp_path}/shared/inner"

    assert cover(box, f"Edit(/{inner}/**)").options == ("--ro-bind", inner, inner)
    found = cover(box, f"Edit(/{tmp_path}/**)")
    assert (found.options, found.held[0].by_box) == ((), False)
    assert f"{tmp_path}/tree" in found.held[0].note


def test_a_denied_host_is_refused_whatever_allows_it() -> None:
    rules = policy("all", ("evil.org", "*.evil.org"), (), denied.hosts_of(["WebFetch(domain:evil.org)"]))

    assert not rules.decide("evil.org", 443).allowed
    assert not rules.decide("API.Evil.org.", 443).allowed
    assert "rule of its role" in rules.decide("evil.org", 443).reason
    assert rules.decide("good-evil.org", 443).allowed


TRIES = """sh -c '
test -d vault || { touch first; sleep 600; }
{ echo new >> docs/page && echo wrote-page; rm -rf docs && echo removed; mv docs d && echo moved
mv a other && echo moved-above; echo x > a/b/new && echo wrote-deep
cat hidden.txt && echo read; cat vault/key && echo read; echo free > a/free && echo wrote-free
git commit -qam work --allow-empty && echo committed; } > said 2> errors; touch done; sleep 600'"""
RULES = ("Edit(docs/**)", "Edit(a/b/**)", "Read(hidden.txt)", "Read(vault/**)", "WebFetch(domain:evil.org)")


def test_an_agent_in_a_box_is_held_to_the_rules_of_its_role(panes: PaneLab, boxes: None) -> None:
    ignored = "hidden.txt\nvault/\nfirst\nsaid\nerrors\ndone"
    panes.write({"docs/page": "old\n", "a/b/file": "old\n", ".gitignore": ignored})
    panes.commit("pages")
    role = {"name": "careful", "instructions": "go", "permissions": {"deny": [*RULES, "Bash(x *)"]}}
    panes.write({".swarm/roles/careful.yaml": json.dumps(role)})
    swarm = Swarm.open(panes.root, environ={**panes.env, "SWARM_SANDBOX_NETWORK": "all"})
    swarm.start("s", ["careful"], command=TRIES, sandbox=True)
    tree = panes.tree("careful", "s")
    wait_for((tree / "first").exists, "the agent in its box")
    swarm.stop(["s"])
    (tree / "hidden.txt").write_text("SECRET\n")
    (tree / "vault").mkdir()
    (tree / "vault/key").write_text("SECRET\n")

    swarm.resume(["s"])
    wait_for((tree / "done").exists, "the agent in its box")

    assert (tree / "said").read_text().split() == ["wrote-free", "committed"]
    assert (tree / "docs/page").read_text() == "old\n"
    assert {rule: held for rule, held, _ in swarm.boxes.explain("careful", "s").rules} == {
        **dict.fromkeys(RULES, True),
        "Bash(x *)": False,
    }


def test_looking_and_taking_in_see_what_is_hidden_from_the_agent(panes: PaneLab, boxes: None) -> None:
    world = panes.swarm._opened.world
    panes.swarm.start("s", ["developer"], command="sleep 600", sandbox=True)
    tree = panes.tree("developer", "s")

    made = private.box_of(tree, world.git.common, world.layout.box_folder("s", "developer"))

    assert made.covers == ()
    assert os.listdir(tree)
