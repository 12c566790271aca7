"""Pod templates: where they are, what they may say, and the agents that come of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jsonschema
import pytest

from swarm.kit import yaml
from swarm.kit.errors import SwarmError
from swarm.roles import schemas
from swarm.roles.find import RolePlaces, find_role, role_names
from swarm.roles.pods import find
from swarm.roles.pods.init import write
from swarm.roles.pods.template import Pod, PodAgent

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.component

FULL = """\
pod_name: backend
description: Two coders
  and a reviewer
vars:
  coders: {type: int, default: 2, min: 1, max: 8, description: how many write code}
  focus: {description: what they work on}
  tier: {choices: [fast, careful], default: fast}
  detached: false
env: {TIER: "${tier}"}
x-common: &common {model: opus}
agents:
  - {name: lead, role: architect, task: "Split up: ${focus}, for $$5, in ${pod}"}
  - name: coder
    role: developer
    count: ${coders}
    task: "${name}: part ${index} of ${count}: ${focus} at ${env.HOME}"
    overrides: {model: "m-${tier}", worktree.use_detached_head: "${detached}"}
    env: {NUMBER: "${index}"}
  - {name: reviewer, role: reviewer, overrides: *common, after: [coder, lead]}
"""


@pytest.fixture
def places(tmp_path: Path) -> RolePlaces:
    (tmp_path / "home").mkdir()
    return RolePlaces(tmp_path / "project", tmp_path / "home")


def put(places: RolePlaces, text: str, name: str = "odd") -> Path:
    assert places.swarm_dir is not None
    path = places.swarm_dir / "pods" / "templates" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def made(places: RolePlaces, text: str, name: str = "", **values: object) -> Pod:
    put(places, text)
    return find.expand(find.find("odd", places), values, {"HOME": "/h"}, name)


def test_everything_at_once(places: RolePlaces) -> None:
    found = made(places, FULL, focus="parser", coders="2", tier="careful")

    env = (("TIER", "careful"),)
    changes = (("model", "m-careful"), ("worktree.use_detached_head", "false"))
    assert found == Pod(
        "backend",
        "odd",
        (
            PodAgent("lead", "architect", "Split up: parser, for $5, in backend", (), env),
            PodAgent(
                "coder-1",
                "developer",
                "coder-1: part 1 of 2: parser at /h",
                changes,
                (*env, ("NUMBER", "1")),
            ),
            PodAgent(
                "coder-2",
                "developer",
                "coder-2: part 2 of 2: parser at /h",
                changes,
                (*env, ("NUMBER", "2")),
            ),
            PodAgent("reviewer", "reviewer", "", (("model", "opus"),), env, ("coder-1", "coder-2", "lead")),
        ),
    )
    assert find.find("ODD", places).description == "Two coders and a reviewer"


def test_the_users_design_runs_as_written(places: RolePlaces) -> None:
    found = made(
        places,
        "pod_name: web-team\n\nagents:\n  - name: builder\n    role: developer\n  - name: qa\n    role: tester\n",
    )

    assert (found.name, [(one.name, one.role) for one in found.members]) == (
        "web-team",
        [("builder", "developer"), ("qa", "tester")],
    )


@pytest.mark.parametrize(("count", "names"), [("0", ["b"]), ("1", ["a", "b"]), ("3", ["a-1", "a-2", "a-3", "b"])])
def test_a_count(places: RolePlaces, count: str, names: list[str]) -> None:
    text = f"agents:\n- {{name: a, role: x, count: {count}}}\n- {{name: b, role: y}}\n"

    assert [one.name for one in made(places, text, "p").members] == names


def test_a_name_of_its_own_for_each(places: RolePlaces) -> None:
    text = "agents:\n- {name: 'w${index}', role: x, count: 2}\n"

    assert [one.name for one in made(places, text, "p").members] == ["w1", "w2"]


def test_a_text_of_a_variable_is_no_template_again(places: RolePlaces) -> None:
    text = "vars: {goal: null}\nagents:\n- {name: a, role: x, task: 'Do ${goal}'}\n"

    assert made(places, text, "p", goal="${env.HOME} $$ {x}").members[0].task == "Do ${env.HOME} $$ {x}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("agents: [{name: a, role: x}]\nagent: 1", "2:1: agent: unknown key"),
        ("pod_name: b", "1:1: agents: must name at least one agent"),
        ("agents: []", "1:9: agents: must name at least one agent"),
        ("agents: {a: x}", "1:9: agents: must be a list"),
        ("agents:\n- {name: a}", "2:3: agents.role: is missing"),
        ("agents:\n- {role: a}", "2:3: agents.name: is missing"),
        ("agents:\n- {name: a, role: x, rolle: y}", "2:22: agents.rolle: unknown key"),
        ("agents:\n- {name: a, role: x}\n- {name: A, role: x}", "3:10: agents.name: the name A is there twice"),
        ("agents:\n- {name: a-1, role: x}\n- {name: a, role: x, count: 2}", "the name a-1 is there twice"),
        ("agents:\n- {name: ../a, role: x}", "2:10: agents.name '../a': invalid agent name"),
        ("agents:\n- {name: a, role: 'a b'}", "2:19: agents.role 'a b': invalid role name"),
        ("agents:\n- {name: a, role: x, count: many}", "2:29: agents.count 'many': must be a whole number"),
        ("agents:\n- {name: a, role: x, count: 9999}", "2:29: agents.count: must be from 0 to"),
        ("agents:\n- {name: a, role: x, count: 0}", "2:1: agents: every agent is left out"),
        ("agents:\n- {name: a, role: x, after: [b]}", "agents.after: there is no agent b"),
        ("agents:\n- {name: a, role: x, after: [a]}", "agents.after: a would wait for itself"),
        ("agents:\n- {name: a, role: x, overrides: {modle: y}}", "2:34: agents.overrides.modle: is no key"),
        ("agents:\n- {name: a, role: x, overrides: {permissions: y}}", "this key cannot be overridden"),
        ("agents:\n- {name: a, role: x, overrides: {worktree.enabled: yes}}", "2:52: agents.overrides.worktree"),
        ("agents:\n- {name: a, role: x, env: {SWARM_DIR: y}}", "2:28: agents.env.SWARM_DIR: is a variable"),
        ("agents:\n- {name: a, role: x, task: 'Do ${nothing}'}", "agents.task: there is no variable 'nothing'"),
        ("agents:\n- {name: a, role: x, task: '${env.NOPE}'}", "the environment has no variable 'NOPE'"),
        ("vars: {Bad: 1}\nagents:\n- {name: a, role: x}", "1:8: vars.Bad: must be small letters"),
        ("vars: {name: 1}\nagents:\n- {name: a, role: x}", "1:8: vars.name: must be small letters"),
        ("vars: {n: {type: float}}\nagents:\n- {name: a, role: x}", "1:18: vars.n.type 'float': must be one of text"),
        ("vars: {n: {type: int, default: x}}\nagents:\n- {name: a, role: x}", "1:32: vars.n.default 'x': must be"),
        ("vars: {n: {choices: [a], default: b}}\nagents:\n- {name: a, role: x}", "vars.n.default 'b': must be one"),
        ("pod_name: Big Team\nagents:\n- {name: a, role: x}", "1:11: pod_name 'Big Team': must be small letters"),
        ("agents:\n- name: a\n  role: x\n  role: y", "4:3: the key 'role' is there twice"),
    ],
)  # fmt: skip
def test_mistakes_name_their_place(places: RolePlaces, text: str, problem: str) -> None:
    path = put(places, text)

    with pytest.raises(SwarmError) as raised:
        made(places, text, "p")

    assert raised.value.code == "CONFIG"
    assert problem in raised.value.message
    assert raised.value.message.startswith(str(path))


def test_a_circle_names_all_that_are_in_it(places: RolePlaces) -> None:
    text = "agents:\n" + "".join(f"- {{name: {a}, role: x, after: [{b}]}}\n" for a, b in ("ab", "bc", "ca"))

    with pytest.raises(SwarmError) as raised:
        made(places, text, "p")

    for place, name in (("2:29", "a"), ("3:29", "b"), ("4:29", "c")):
        assert f"{place}: " in raised.value.message
        assert f"{name} would wait for itself" in raised.value.message


@pytest.mark.parametrize(
    ("values", "why", "hint"),
    [
        ({}, "the variable focus (what they work on) has no value", "--var focus=VALUE"),
        ({"focus": "x", "foucs": "y"}, "there is no variable 'foucs'", "coders, focus"),
        ({"focus": "x", "coders": "9"}, "--var coders: must be from 1 to 8, not 9", ""),
        ({"focus": "x", "coders": "two"}, "--var coders: 'two': must be a whole number", ""),
        ({"focus": "x", "tier": "slow"}, "--var tier: 'slow': must be one of fast, careful", ""),
        ({"focus": "x", "detached": "yes"}, "--var detached: 'yes': must be true or false", ""),
    ],
)
def test_values_of_variables(places: RolePlaces, values: dict[str, object], why: str, hint: str) -> None:
    with pytest.raises(SwarmError) as raised:
        made(places, FULL, "", **values)

    assert (raised.value.code, raised.value.exit_code) == ("USAGE", 2)
    assert why in raised.value.message
    assert hint in raised.value.hint


def test_the_name_of_the_pod(places: RolePlaces) -> None:
    text = "agents: [{name: a, role: x}]"

    assert made(places, text).name == "odd"
    assert made(places, f"pod_name: own\n{text}").name == "own"
    assert made(places, f"pod_name: own\n{text}", "asked-for").name == "asked-for"
    for wrong in ("A", "a b", "../x", "-x", "x" * 41, "a_b"):
        with pytest.raises(SwarmError, match="must be small letters"):
            made(places, text, wrong)


def test_where_templates_are(places: RolePlaces) -> None:
    assert find.scan(places) == ((), ())
    put(places, "agents: [{name: a, role: x}]", "one")
    put(places, "agents: [", "two")
    put(places, "agents: [{name: home, role: x}]", "three")
    assert places.root is not None
    own = places.root / ".swarm" / "pods" / "templates"
    own.mkdir(parents=True)
    (own / "three.yml").write_text("agents: [{name: project, role: x}]")

    found, problems = find.scan(places)

    assert [one.name for one in found] == ["one", "three"]
    assert found[1].raw["agents"][0]["name"] == "project"
    assert len(problems) == 1
    assert "two.yaml:1:" in problems[0].message
    with pytest.raises(SwarmError) as raised:
        find.find("four", places)
    assert (raised.value.code, raised.value.exit_code) == ("POD_NOT_FOUND", 6)
    assert "one" in raised.value.hint


def test_roles_of_pods_come_first_for_pods_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for folder, text in (("roles", "Everybody"), ("pods/roles", "Pods")):
        (home / folder).mkdir(parents=True)
        (home / folder / "tester.yaml").write_text(f"name: tester\ninstructions: {text}\n")
    (home / "pods/roles/only.yaml").write_text("name: only\ninstructions: Pods\n")
    plain, pods = RolePlaces(None, home), RolePlaces(None, home, pod=True)

    assert find_role("tester", plain).instructions == "Everybody"
    assert find_role("tester", pods).instructions == "Pods"
    assert "only" not in role_names(plain)
    assert "only" in role_names(pods)


def editor_says(text: str) -> list[str]:
    checker = jsonschema.Draft7Validator(schemas.schema("pod"))
    return [error.message for error in checker.iter_errors(yaml.load(text.encode()).plain())]


def test_editors_say_the_same(places: RolePlaces) -> None:
    assert editor_says(FULL) == []
    assert editor_says(write("new", places, private=True).read_text()) == []
    for wrong in (
        "agents: []",
        "agents: [{name: a, role: x}]\nagent: 1",
        "agents: [{name: a, role: x, rolle: y}]",
        "agents: [{name: a, role: x, count: 9999}]",
        "agents: [{name: a, role: x, count: many}]",
        "agents: [{name: a, role: x, overrides: {modle: y}}]",
        "agents: [{name: a, role: x, after: {b: 1}}]",
        "vars: {n: {type: float}}\nagents: [{name: a, role: x}]",
        "pod_name: Big Team\nagents: [{name: a, role: x}]",
    ):
        assert editor_says(wrong), wrong
        with pytest.raises(SwarmError):
            made(places, wrong, "p" if "pod_name" not in wrong else "")


def test_a_new_template_is_one_and_nothing_is_overwritten(places: RolePlaces) -> None:
    path = write("backend", places, private=True)

    pod = find.expand(find.find("backend", places), {"developers": 2}, {})
    assert [one.name for one in pod.members] == ["lead", "developer-1", "developer-2", "reviewer"]
    assert (path.parent / path.read_text().splitlines()[0].partition("$schema=")[2]).is_file()
    before = path.read_text()
    with pytest.raises(SwarmError) as raised:
        write("backend", places, private=True)
    assert (raised.value.code, path.read_text()) == ("POD_EXISTS", before)


def test_a_team_that_runs_becomes_a_template(places: RolePlaces) -> None:
    team = [("a", "developer", 'Cost: $5 "now"\nand: more', (("model", "x"),), ()), ("b", "reviewer", "", (), ("a",))]
    write("again", places, team, private=True)

    assert find.expand(find.find("again", places), {}, {}).members == (
        PodAgent("a", "developer", 'Cost: $5 "now"\nand: more', (("model", "x"),)),
        PodAgent("b", "reviewer", after=("a",)),
    )
