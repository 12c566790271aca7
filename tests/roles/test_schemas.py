"""The JSON Schemas for editors say what swarm itself says of the same files."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from swarm.bridges.init import _TEXTS as BRIDGES
from swarm.kit import yaml
from swarm.kit.errors import SwarmError
from swarm.project.config.file import default_config_text, load_settings
from swarm.project.config.settings import SECTIONS, describe
from swarm.roles import schemas, workflows
from swarm.roles.agent_file import AGENT
from swarm.roles.bridge_file import BRIDGE
from swarm.roles.file import ROLE
from swarm.roles.find import builtin_roles_dir
from swarm.roles.pods.template import POD
from swarm.roles.template import TEMPLATE
from swarm.roles.workflows import WORKFLOW
from tests.roles.test_role_file import FULL
from tests.support.pages import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from swarm.kit.forms import Form

pytestmark = pytest.mark.component

FORMS: dict[str, Form[Any]] = {"role": ROLE, "workflow": WORKFLOW, "pod": POD, "bridge": BRIDGE, "agent": AGENT}


def editor_says(name: str, text: str) -> str | None:
    """Return the first complaint of the schema, as an editor would show it."""
    checker = jsonschema.Draft7Validator(schemas.schema(name))
    error = jsonschema.exceptions.best_match(checker.iter_errors(yaml.load(text.encode()).plain()))
    return None if error is None else error.message


def swarm_says(name: str, text: str, folder: Path) -> str | None:
    if name == "config":
        (folder / "config.yaml").write_text(text)
        try:
            load_settings(folder / "of no project", user_dir=folder, environ={})  # some keys count from there alone
        except SwarmError as error:
            return error.message
        return None
    try:
        FORMS[name].read(yaml.load(text.encode()).plain())
    except ValueError as error:
        return str(error)
    return None


def both(name: str, text: str, folder: Path) -> tuple[bool, bool]:
    return editor_says(name, text) is None, swarm_says(name, text, folder) is None


@pytest.mark.parametrize("name", schemas.SCHEMAS)
def test_each_is_a_schema(name: str) -> None:
    jsonschema.Draft7Validator.check_schema(schemas.schema(name))


def good() -> Iterator[tuple[str, str]]:
    yield "role", "name: qa\ninstructions: x\n" + FULL
    yield "role", TEMPLATE
    for file in builtin_roles_dir().rglob("*.yaml"):
        yield "role", file.read_text()
    for file in (PROJECT / "swarm" / "workflows").iterdir():
        yield "workflow", file.read_text()
    for text in BRIDGES.values():
        yield "bridge", text
    yield "agent", "port: 9000\nclaude:\n  model: sonnet\n  timeout: 5m\n"
    yield "agent", "port: 9001\nlog_level: debug\nroles: [agent]\ncommand: [tr, a-z, A-Z]\nhold: true\ntries: 2\n"
    yield "config", default_config_text()
    yield "config", default_config_text().replace("\n  # ", "\n  ")
    yield "config", "worktree_base: trees\ngit.timeout: 2m\nworktrees: {branchPrefix: team/x}\nsetup: {symlink: [a]}\n"


@pytest.mark.parametrize(("name", "text"), list(good()))
def test_a_good_file_is_good_for_both(tmp_path: Path, name: str, text: str) -> None:
    assert (editor_says(name, text), swarm_says(name, text, tmp_path)) == (None, None)


def examples() -> Iterator[str]:
    for page in sorted((PROJECT / "docs").glob("*.md")):
        yield from re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def test_each_example_of_the_pages_is_good_for_both_as_one_kind_of_file(tmp_path: Path) -> None:
    assert [
        text for text in examples() if not any(both(name, text, tmp_path) == (True, True) for name in schemas.SCHEMAS)
    ] == []


def fields(form: Form[Any], before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, field in form.fields.items():
        yield (*before, name)
        yield from fields(field.form, (*before, name))


def nested(keys: tuple[str, ...], value: str) -> str:
    return "".join(f"{'  ' * depth}{key}:\n" for depth, key in enumerate(keys)).rstrip("\n") + f" {value}\n"


# A command may be a list of words; nothing may be a list of such lists in a list.
@pytest.mark.parametrize(("more", "value"), [("zz", "x"), ("", "[[[a]]]")], ids=["misspelt", "type"])
@pytest.mark.parametrize("name", ["role", "workflow", "config"])
def test_a_misspelt_key_and_a_wrong_type_are_wrong_for_both(tmp_path: Path, name: str, more: str, value: str) -> None:
    known = list(fields(FORMS[name])) if name in FORMS else [(one.section, one.name) for one in describe()]
    texts = [nested((*keys[:-1], keys[-1] + more), value) for keys in known]
    accepted = [text for text in texts if both(name, text, tmp_path) != (False, False)]

    assert accepted == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("role", "agent_type: clod"),
        ("role", "permission_mode: yolo"),
        ("role", "limits: {agents: 1000}"),
        ("role", "limits: {tokens: many}"),
        ("role", "heartbeat: {idle_timeout: soon, message: x}"),
        ("role", "hooks: {PostTool: [{command: x}]}"),
        ("role", "hooks: {Stop: [{command: x, type: http}]}"),
        ("role", "model: a b"),
        ("role", "print: sometimes"),
        ("role", "may: [fly]"),
        ("role", "env: {pass: [A-B]}"),
        ("role", "env: {set: {A: true}}"),
        ("role", "permissions: {unclear: allow}"),
        ("workflow", "roles: {developer: 1}"),
        ("config", "git: {retries: 101}"),
        ("config", "git: 5"),
        ("config", "tmux: {panes_per_window: 0}"),
        ("config", "agents: {nudge: often}"),
        ("config", "lock: {timeout: later}"),
        ("config", "messages: {keep_bytes: 1 GiBB}"),
        ("config", "nonsense: {a: 1}"),
    ],
)
def test_a_wrong_value_is_wrong_for_both(tmp_path: Path, name: str, text: str) -> None:
    assert both(name, text, tmp_path) == (False, False)


def test_every_key_explains_itself() -> None:
    for name, form in FORMS.items():
        for keys in fields(form):
            found = schemas.schema(name)
            for key in keys:
                found = found.get("items", found)["properties"][key]
            assert found["description"].endswith("."), keys
    assert set(schemas.schema("config")["properties"]) == set(SECTIONS)


def test_an_unknown_one_names_those_there_are() -> None:
    with pytest.raises(SwarmError) as raised:
        schemas.schema("rolle")

    assert (raised.value.code, raised.value.exit_code) == ("USAGE", 2)
    assert "config, pod, role" in raised.value.hint


def test_files_that_are_there_as_they_are_now_stay_untouched(tmp_path: Path) -> None:
    schemas.place(tmp_path)
    one, other = tmp_path / "schema" / "role.json", tmp_path / "schema" / "workflow.json"
    os.utime(one, (1, 1))
    other.write_text("{}")

    schemas.place(tmp_path)

    assert one.stat().st_mtime == 1
    assert other.read_text() != "{}"


def test_all_workflows_read(tmp_path: Path) -> None:
    assert len(workflows.all_workflows(workflows.places(tmp_path, None))) == 4
