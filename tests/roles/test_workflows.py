"""Workflow definitions: those that ship, the project's own, aliases, and what is wrong with a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from swarm.kit.errors import SwarmError
from swarm.roles import workflows
from swarm.roles.workflows import Workflow

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


def own(root: Path, name: str, text: str) -> Path:
    path = root / ".swarm" / "workflows" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_four_ship(tmp_path: Path) -> None:
    found = {one.name: one for one in workflows.all_workflows(workflows.places(tmp_path, None))}

    assert set(found) == {"research", "implement", "review", "full"}
    assert set(found["full"].roles) == {"researcher", "architect", "developer", "reviewer"}
    assert all(one.description and "{goal}" in one.task for one in found.values())


@pytest.mark.parametrize(
    ("word", "name"),
    [("implement", "implement"), ("development", "implement"), ("ARCHITECTURE", "full"), ("Full", "full")],
)
def test_a_name_or_an_alias_in_any_case(tmp_path: Path, word: str, name: str) -> None:
    assert workflows.find(word, workflows.places(tmp_path, None)).name == name


def test_a_project_has_its_own(tmp_path: Path) -> None:
    path = own(tmp_path, "triage", "roles: [tester:2, lead=architect]\ntask: 'Sort: {goal}'\naliases: [sort]\n")

    found = workflows.find("sort", workflows.places(tmp_path, None))

    assert found == Workflow("triage", "", ("tester:2", "lead=architect"), "Sort: {goal}", ("sort",), path)


def test_of_two_with_one_name_the_projects_wins(tmp_path: Path) -> None:
    own(tmp_path, "review", "roles: [reviewer]\n")
    own(tmp_path / "elsewhere", "review", "roles: [developer]\n")

    places = workflows.places(tmp_path, tmp_path / "elsewhere" / ".swarm")

    assert workflows.find("review", places).roles == ("reviewer",)
    assert len(workflows.all_workflows(places)) == 4


def test_the_swarm_directory_comes_second(tmp_path: Path) -> None:
    own(tmp_path / "elsewhere", "review", "roles: [developer]\n")

    places = workflows.places(tmp_path, tmp_path / "elsewhere" / ".swarm")

    assert workflows.find("review", places).roles == ("developer",)


@pytest.mark.parametrize(
    ("goal", "task", "told"),
    [
        ("make it fast", "", "make it fast"),
        ("make it fast", "Do: {goal}.", "Do: make it fast."),
        ("use {braces} and {goal} and {0} %s", "Do: {goal}", "Do: use {braces} and {goal} and {0} %s"),
        ("a}b{c", "{goal} in {here}", "a}b{c in {here}"),
        ("", "Do: {goal}", "Do: "),
        ("two\nlines", "{goal} | {goal}", "two\nlines | two\nlines"),
    ],
)
def test_the_goal_is_put_in_as_it_is(tmp_path: Path, goal: str, task: str, told: str) -> None:
    assert Workflow("x", "", ("developer",), task, (), tmp_path).tell(goal) == told


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("roles: [developer\n", "CONFIG", "odd.yaml"),
        ("roles: []\n", "CONFIG", "at least one role"),
        ("description: nothing\n", "CONFIG", "at least one role"),
        ("roles: {developer: 1}\n", "CONFIG", "odd.yaml:1:8: roles: must be a list"),
        ("roles: [developer, true]\n", "CONFIG", "odd.yaml:1:20: roles: must be text"),
        ("roles: [developer]\nrole: x\n", "CONFIG", "odd.yaml:2:1: role: unknown key"),
        ("roles: [developer]\ntask: [a]\n", "CONFIG", "odd.yaml:2:7: task: must be text"),
        ("roles: [developer]\nroles: [reviewer]\n", "CONFIG", "odd.yaml"),
        ("- developer\n", "CONFIG", "odd.yaml"),
        ("roles: [../x]\n", "CONFIG", "odd.yaml"),
        ("roles: [developer, developer]\n", "CONFIG", "odd.yaml"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, code: str, words: str) -> None:
    own(tmp_path, "odd", text)

    with pytest.raises(SwarmError) as raised:
        workflows.find("odd", workflows.places(tmp_path, None))

    assert (raised.value.code, words in str(raised.value)) == (code, True), str(raised.value)


@pytest.mark.parametrize("name", ["nothing", "implement2"])
def test_an_unknown_one_names_those_there_are(tmp_path: Path, name: str) -> None:
    with pytest.raises(SwarmError) as raised:
        workflows.find(name, workflows.places(tmp_path, None))

    assert raised.value.code == "WORKFLOW_NOT_FOUND"
    assert "implement" in raised.value.hint


@pytest.mark.parametrize("name", ["../implement", "a b", "", "."])
def test_a_name_is_no_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(SwarmError) as raised:
        workflows.find(name, workflows.places(tmp_path, None))

    assert raised.value.code == "INVALID_NAME"


def test_other_files_are_no_workflows(tmp_path: Path) -> None:
    path = own(tmp_path, "triage", "roles: [developer]\n")
    (path.parent / ".triage.yaml").write_text("{")
    (path.parent / "notes.txt").write_text("{")

    assert len(workflows.all_workflows(workflows.places(tmp_path, None))) == 5
