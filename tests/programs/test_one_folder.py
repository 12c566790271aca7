"""An agent program is one folder: its name stands nowhere else in the code."""

from __future__ import annotations

import re

import pytest

from swarm.programs.registry import program
from swarm.project.names import PROGRAMS
from tests.support.sources import SWARM, files, text_of

pytestmark = pytest.mark.unit

NAMES = ("claude", "codex", "gemini", "opencode")
#: Words of the user's documents: names of files, keys and folders that stay as they are.
OF_DOCUMENTS = re.compile(
    r"CLAUDE(\.local)?\.md|claude_(config_dir|permission_mode|error)|claude[- ](config|work)|GEMINI_API_KEY"
)
#: The one list of the programs; the test kit answers in the place of their services.
ELSEWHERE = {"project/names.py", "roles/template.py"}


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_program_stands_in_its_folder_and_in_the_list_alone(name: str) -> None:
    found = [
        f"{path.relative_to(SWARM)}:{number}"
        for path in files()
        if not {f"programs/{name}", "demo", "testing"} & {str(one) for one in path.relative_to(SWARM).parents}
        and str(path.relative_to(SWARM)) not in ELSEWHERE
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if name in OF_DOCUMENTS.sub("", line).casefold()
    ]

    assert found == []


@pytest.mark.parametrize("name", [one for one in PROGRAMS if one != "shell"])
def test_the_folder_of_a_program_has_its_name(name: str) -> None:
    assert type(program(name)).__module__ == f"swarm.programs.{name}.program"
    assert program(name).name == name
