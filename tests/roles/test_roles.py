"""Roles: where they are found, which one wins, and what is refused."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from swarm.kit.errors import ConfigProblem, Refused, SymlinkInTheWay
from swarm.project.errors import InvalidName, ReservedName
from swarm.project.names import VALID_ROLES
from swarm.roles.errors import RoleNotFound
from swarm.roles.find import (
    RolePlaces,
    builtin_roles_dir,
    check_file,
    find_role,
    ignore_template,
    list_roles,
    misnamed,
    overridden,
    role_names,
    scan_roles,
)
from swarm.roles.options import plain
from swarm.roles.role import RoleKind, first_sentence

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


class Lab:
    """Four places for roles."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "repo"
        self.user = folder / "user"
        self.builtin = folder / "builtin"
        for made in (self.root, self.user, self.builtin):
            made.mkdir()
        self.places = RolePlaces(self.root, self.user, self.builtin)
        self.folders = {
            RoleKind.REPOSITORY: self.root / "roles",
            RoleKind.PROJECT: self.root / ".swarm/roles",
            RoleKind.SWARM_DIR: self.user / "roles",
            RoleKind.BUILTIN: self.builtin,
        }

    def write(self, path: str, text: str | bytes = "Do it.\n", kind: str = "repository") -> Path:
        target = self.folders[RoleKind(kind)] / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())
        return target


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def test_the_first_place_wins(lab: Lab) -> None:
    for kind in reversed(RoleKind):
        path = lab.write("dev/CLAUDE.md", f"from {kind}", kind)
        role = find_role("dev", lab.places)
        assert (role.kind, role.source, role.instructions) == (kind, path, f"from {kind}")

    assert [role.kind for role in list_roles(lab.places)] == [RoleKind.REPOSITORY]


@pytest.mark.parametrize("kind", ["project", "swarm-dir"])
def test_yaml_roles(lab: Lab, kind: str) -> None:
    text = "name: qa\ninstructions: |\n  Test.\nmodel: 4\nworktree: {enabled: true}\n"
    path = lab.write("qa.yaml", text, kind)

    role = find_role("QA", lab.places)

    assert (role.name, role.instructions, role.source) == ("qa", "Test.\n", path)
    assert role.description == "Test."
    assert plain(role.options) == {"model": "4", "worktree": {"enabled": True}}


def test_a_folder_with_yaml_alone_is_a_role(lab: Lab) -> None:
    path = lab.write("qa/role.yaml", "instructions: Test.\n")

    role = find_role("qa", lab.places)

    assert (role.source, role.instructions) == (path, "Test.")


def test_the_instructions_may_stand_in_a_file_beside_it(lab: Lab) -> None:
    lab.write("texts/qa.md", "Test it all.\n", "project")
    path = lab.write("qa.yaml", "name: qa\ninstructions_file: texts/qa.md\n", "project")

    role = find_role("qa", lab.places)

    assert (role.source, role.instructions) == (path, "Test it all.\n")
    path.write_text("name: qa\ninstructions_file: texts/gone.md\n")
    with pytest.raises(ConfigProblem, match=r"qa\.yaml:2:1: instructions_file: there is no .*texts/gone\.md"):
        find_role("qa", lab.places)
    path.write_text("name: qa\ninstructions: x\ninstructions_file: texts/qa.md\n")
    with pytest.raises(ConfigProblem, match=r"qa\.yaml:3:1: instructions_file: stands beside"):
        find_role("qa", lab.places)


def test_what_a_role_hides(lab: Lab) -> None:
    lab.write("dev/CLAUDE.md")
    user = lab.write("Dev.yaml", "name: dev\ninstructions: x", "swarm-dir")
    shipped = lab.write("dev/CLAUDE.md", kind="builtin")
    lab.write("other/CLAUDE.md", kind="builtin")

    assert overridden(lab.places) == {"dev": (user, shipped)}


def test_a_system_prompt_is_enough(lab: Lab) -> None:
    lab.write("qa.yaml", "name: qa\nsystem_prompt: You test.", "project")

    role = find_role("qa", lab.places)

    assert (role.instructions, role.system_prompt) == ("", "You test.")
    assert role.description == "You test."


def test_names_are_compared_without_case_and_spelled_as_the_folder(lab: Lab) -> None:
    lab.write("DevOps/CLAUDE.md")

    assert find_role("devops", lab.places).name == "DevOps"


def test_instructions_keep_every_byte(lab: Lab) -> None:
    lab.write("dev/CLAUDE.md", "\r\n# Dev\r\n\r\nBuild things.\r\n\n")

    role = find_role("dev", lab.places)

    assert role.instructions == "\r\n# Dev\r\n\r\nBuild things.\r\n\n"
    assert role.description == "Build things."


def test_extras_beside_the_instructions(lab: Lab) -> None:
    lab.write("dev/CLAUDE.md")
    lab.write("dev/role.yaml", "description: Builds.\nmodel: opus\n")

    role = find_role("dev", lab.places)

    assert (role.description, plain(role.options)) == ("Builds.", {"model": "opus"})


def test_extras_must_not_hold_instructions_too(lab: Lab) -> None:
    lab.write("dev/CLAUDE.md")
    lab.write("dev/role.yaml", "description: Builds.\ninstructions: x\n")

    with pytest.raises(ConfigProblem, match=r"role\.yaml:2:1: instructions"):
        find_role("dev", lab.places)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("instructions: x", ":1:1: name: is missing"),
        ("name: qa", ":1:1: instructions: are missing"),
        ("name: qa\ninstructions: ' '", "instructions: are missing"),
        ("name: other\ninstructions: x", ":1:7: name: must be the name of the file, qa"),
        ("name: qa\ninstructions: [x]", ":2:15: instructions: must be text"),
        ("name: qa\ninstructions: x\nmodle: y", ":3:1: modle: unknown key"),
        ("name: qa\ninstructions: x\nworktree: true", ":3:11: worktree: must be a mapping"),
        ("name: qa\ninstructions: x\nmodel: true", ":3:8: model: must be text"),
        ("name:\ninstructions: x", "name: must be"),
        ("- qa", ":1:1: the file must be a mapping"),
        ("", ":1:1: name: is missing"),
    ],
)
def test_a_wrong_yaml_role_names_the_place(lab: Lab, text: str, message: str) -> None:
    path = lab.write("qa.yaml", text, "swarm-dir")

    with pytest.raises(ConfigProblem) as caught:
        find_role("qa", lab.places)

    assert caught.value.message.startswith(str(path))
    assert message in caught.value.message


def test_all_problems_of_a_yaml_role_at_once(lab: Lab) -> None:
    lab.write("qa.yaml", "name: x\nmodel: []\nzzz: 1\n", "project")

    with pytest.raises(Refused) as caught:
        find_role("qa", lab.places)

    assert (caught.value.code, len(caught.value.problems)) == ("CONFIG", 3)


def test_no_such_role(lab: Lab) -> None:
    lab.write("dev/CLAUDE.md")
    lab.write("qa/CLAUDE.md", kind="builtin")

    with pytest.raises(RoleNotFound) as caught:
        find_role("ghost", lab.places)

    assert "ghost" in caught.value.message
    assert caught.value.message.endswith("dev, qa")
    assert str(lab.root / "roles/ghost/CLAUDE.md") in caught.value.hint


def test_names_that_cannot_be(lab: Lab) -> None:
    with pytest.raises(InvalidName):
        find_role("../dev", lab.places)
    with pytest.raises(ReservedName):
        find_role("all", lab.places)


def test_other_things_in_the_folder_are_no_roles(lab: Lab) -> None:
    lab.write("README.md")
    lab.write("common/notes.md")
    lab.write("two words/CLAUDE.md")
    lab.write("all/CLAUDE.md")
    lab.write("file")

    assert list_roles(lab.places) == ()


def test_a_file_instead_of_the_folder_holds_no_roles(lab: Lab) -> None:
    (lab.root / "roles").write_text("x")
    lab.write("dev/CLAUDE.md", kind="builtin")

    assert find_role("dev", lab.places).kind is RoleKind.BUILTIN


@pytest.mark.parametrize("content", [b"", b" \n\t\n", b"\xff\xfe", b"a\0b", b"x" * (1 << 20) + b"y"])
def test_a_broken_role_is_named_and_no_other_place_answers(lab: Lab, content: bytes) -> None:
    path = lab.write("dev/CLAUDE.md", content)
    lab.write("dev/CLAUDE.md", kind="builtin")

    with pytest.raises(ConfigProblem) as caught:
        find_role("dev", lab.places)

    assert str(path) in caught.value.message


@pytest.mark.parametrize("kind", ["fifo", "folder", "dangling", "loop"])
def test_a_role_is_a_regular_file(lab: Lab, kind: str) -> None:
    folder = lab.root / "roles/dev"
    folder.mkdir(parents=True)
    path = folder / "CLAUDE.md"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("CLAUDE.md" if kind == "loop" else "nothing")

    with pytest.raises(ConfigProblem, match="CLAUDE"):
        find_role("dev", lab.places)


def test_a_link_inside_the_folder_is_fine(lab: Lab) -> None:
    lab.write("dev/CLAUDE.md", "Shared.")
    (lab.root / "roles/builder").mkdir()
    (lab.root / "roles/builder/CLAUDE.md").symlink_to("../dev/CLAUDE.md")
    (lab.root / "roles/coder").symlink_to("dev")

    assert find_role("builder", lab.places).instructions == "Shared."
    assert find_role("coder", lab.places).name == "coder"


@pytest.mark.parametrize("link", ["roles/dev/CLAUDE.md", "roles/dev", "roles", ".swarm/roles"])
def test_a_link_out_of_the_folder_is_refused(lab: Lab, tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    (outside / "dev").mkdir(parents=True)
    (outside / "dev/CLAUDE.md").write_text("secret")
    path = lab.root / link
    path.parent.mkdir(parents=True, exist_ok=True)
    depth = link.count("/") - link.startswith(".")
    path.symlink_to(outside / ("dev/CLAUDE.md" if depth == 2 else "dev" if depth else ""))

    with pytest.raises(SymlinkInTheWay):
        find_role("dev", lab.places)


def test_extras_must_not_lead_outside_either(lab: Lab, tmp_path: Path) -> None:
    lab.write("dev/CLAUDE.md")
    (tmp_path / "secret.yaml").write_text("description: x")
    (lab.root / "roles/dev/role.yaml").symlink_to(tmp_path / "secret.yaml")

    with pytest.raises(SymlinkInTheWay):
        find_role("dev", lab.places)


def test_the_users_folder_may_as_a_whole_be_a_link(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "dotfiles/qa").mkdir(parents=True)
    (tmp_path / "dotfiles/qa/CLAUDE.md").write_text("Test.")
    (lab.user / "roles").symlink_to(tmp_path / "dotfiles")

    assert find_role("qa", lab.places).instructions == "Test."


def test_the_short_suffix_does_as_well(lab: Lab) -> None:
    path = lab.write("dev.yml", "name: dev\ninstructions: x\n")

    assert find_role("dev", lab.places).source == path
    assert check_file(path).instructions == "x"


def test_files_that_cannot_be_roles_by_their_names_are_known(lab: Lab) -> None:
    lab.write("dev.yaml", "name: dev\ninstructions: x\n")
    lab.write(".hidden.yaml")
    named = [lab.write("all.yml"), lab.write("My Role.yaml", kind="project")]

    assert misnamed(lab.places) == tuple(named)


@pytest.mark.parametrize("twin", ["dev.yaml", "dev.yml", "DEV.yaml", "Dev/CLAUDE.md"])
def test_two_of_one_name_in_one_place(lab: Lab, twin: str) -> None:
    lab.write("dev/CLAUDE.md", kind="project")
    lab.write(twin, "name: dev\ninstructions: x", "project")

    with pytest.raises(ConfigProblem, match="twice"):
        find_role("dev", lab.places)


def test_a_list_names_the_usable_and_the_broken(lab: Lab) -> None:
    lab.write("b/CLAUDE.md")
    lab.write("a/CLAUDE.md", kind="builtin")
    lab.write("broken/CLAUDE.md", "")

    roles, problems = scan_roles(lab.places)

    assert [role.name for role in roles] == ["a", "b"]
    assert role_names(lab.places) == ("a", "b", "broken")
    assert len(problems) == 1
    with pytest.raises(ConfigProblem, match="broken"):
        list_roles(lab.places)


def test_outside_of_a_repository_there_are_the_shipped_roles() -> None:
    places = RolePlaces.standard(None, None)

    assert set(VALID_ROLES) <= set(role_names(places))
    assert all(find_role(name, places).source.is_relative_to(builtin_roles_dir()) for name in VALID_ROLES)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# Head\n\nProse here.\n", "Prose here."),
        ("# Head only\n- item\n", "Head only"),
        ("\ufeff# Head\n", "Head"),
        ("x" * 200, "x" * 99 + "…"),
        ("a\x1b[31mb", "a [31mb"),
        ("", ""),
    ],
)
def test_the_line_for_a_list(text: str, line: str) -> None:
    assert first_sentence(text) == line


def test_the_ignore_file_is_shipped() -> None:
    assert ignore_template().splitlines()[-1] == b"*"
