"""What an agent's program is told of where to send its measurements."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

from swarm.agents.launching import telemetry
from swarm.kit.errors import ConfigProblem, SwarmError
from swarm.programs.registry import program
from swarm.programs.values import Launch
from swarm.project.config.layers import build_settings, environment_layer
from swarm.project.config.sections import Telemetry
from swarm.project.config.settings import Settings
from swarm.roles.options import Env, RoleOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.project.world import World

pytestmark = pytest.mark.unit

TOKEN = "Bearer s3cret, with = and é"


def world(folder: Path, environ: Mapping[str, str] | None = None, **settings: Any) -> World:
    """Return as much of a world as telemetry looks at."""
    made: Any = SimpleNamespace(
        settings=Settings(telemetry=Telemetry(**settings)),
        environ={"HOME": str(folder), **(environ or {})},
        layout=SimpleNamespace(root=folder / "my project, v=1"),
    )
    found: World = made
    return found


def launch(options: RoleOptions | None = None) -> Launch:
    places = dict.fromkeys(("worktree", "run_dir", "role_file", "task_file"), Path("/x"))
    words = {"task": "", "conversation": "", "resume": False, "executable": "x", **places}
    fields: dict[str, Any] = {"agent": "developer-2", "role": "developer", "session": "fx", **words}
    return Launch(**fields, options=options or RoleOptions())


def given(where: World, name: str = "claude", options: RoleOptions | None = None) -> dict[str, str]:
    return telemetry.variables(where, program(name, ("x",)), launch(options))


def secret(folder: Path, text: str = f"# of the collector\n\nAuthorization: {TOKEN}\nx-team=blue\n") -> Path:
    file = folder / "headers"
    file.write_text(text)
    file.chmod(0o600)
    return file


def test_it_is_off_by_itself(tmp_path: Path) -> None:
    where = world(tmp_path, endpoint="http://collector:4318", headers_file="/not/there")

    assert given(where) == {}
    assert list(telemetry.problems(where, RoleOptions())) == []
    assert telemetry.switches(where, program("claude"), RoleOptions()) == frozenset()


def test_what_claude_code_is_told(tmp_path: Path) -> None:
    secret(tmp_path)

    found = given(world(tmp_path, enabled=True, endpoint="http://collector:4318", headers_file="~/headers"))

    headers = found.pop("OTEL_EXPORTER_OTLP_HEADERS")
    assert found == {
        "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
        "OTEL_METRICS_EXPORTER": "otlp",
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
        "OTEL_LOG_USER_PROMPTS": "0",
        "OTEL_RESOURCE_ATTRIBUTES": "swarm.session=fx,swarm.agent=developer-2,swarm.role=developer,"
        "swarm.repository=my%20project%2C%20v%3D1",
    }
    pairs = dict(one.split("=", 1) for one in headers.split(","))
    assert {name: unquote(value) for name, value in pairs.items()} == {"authorization": TOKEN, "x-team": "blue"}


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("gemini", {"GEMINI_TELEMETRY_LOG_PROMPTS": "false", "GEMINI_TELEMETRY_OTLP_PROTOCOL": "http"}),
        ("codex", {}),
        ("command", {}),
    ],
)
def test_other_programs_get_the_standard_variables_and_their_own(
    tmp_path: Path, name: str, own: dict[str, str]
) -> None:
    found = given(world(tmp_path, enabled=True), name)

    assert found["OTEL_METRICS_EXPORTER"] == "otlp"
    assert own.items() <= found.items()
    assert not {"CLAUDE_CODE_ENABLE_TELEMETRY", "OTEL_EXPORTER_OTLP_ENDPOINT"} & found.keys()


def test_prompts_are_sent_only_when_wanted(tmp_path: Path) -> None:
    where = world(tmp_path, enabled=True, prompts=True)

    assert given(where)["OTEL_LOG_USER_PROMPTS"] == "1"
    assert given(where, "gemini")["GEMINI_TELEMETRY_LOG_PROMPTS"] == "true"


def test_a_role_decides_for_itself(tmp_path: Path) -> None:
    on, off = world(tmp_path, enabled=True), world(tmp_path)
    quiet = RoleOptions(telemetry=False)

    assert given(off, options=RoleOptions(telemetry=True))["CLAUDE_CODE_ENABLE_TELEMETRY"] == "1"
    assert given(on, options=quiet) == {}
    assert "CLAUDE_CODE_ENABLE_TELEMETRY" in telemetry.switches(on, program("claude"), quiet)
    dropped = given(on, options=RoleOptions(env=Env(drop=("OTEL_RES*",))))
    assert "OTEL_RESOURCE_ATTRIBUTES" not in dropped
    assert "OTEL_METRICS_EXPORTER" in dropped


def test_the_callers_attributes_stay_and_an_outer_agents_go(tmp_path: Path) -> None:
    outer = "deployment.environment=test, swarm.session=outer,swarm.agent=boss"

    found = given(world(tmp_path, {"OTEL_RESOURCE_ATTRIBUTES": outer}, enabled=True))["OTEL_RESOURCE_ATTRIBUTES"]

    assert found.startswith("deployment.environment=test,swarm.session=fx,swarm.agent=developer-2,")
    assert "outer" not in found
    assert "boss" not in found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "No such file"),
        ("no header s3cret\n", "line 1 is not a header"),
        ("a: b\nauthorization:\n", "line 2 is not a header"),
        ("a: s3cret\x07\n", "line 1 is not a header"),
        ("x" * 70_000, "not a small text file"),
    ],
)
def test_a_headers_file_that_cannot_be_used_is_refused_without_a_word_of_it(
    tmp_path: Path, text: str | None, reason: str
) -> None:
    if text is not None:
        secret(tmp_path, text)

    (problem,) = telemetry.problems(world(tmp_path, enabled=True, headers_file="~/headers"), RoleOptions())

    assert isinstance(problem, ConfigProblem)
    assert reason in str(problem)
    assert str(tmp_path / "headers") in str(problem)
    assert "s3cret" not in f"{problem} {problem.hint}"


def test_a_headers_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    secret(tmp_path).chmod(0o640)

    (problem,) = telemetry.problems(world(tmp_path, enabled=True, headers_file="~/headers"), RoleOptions())

    assert "others may read it" in str(problem)
    assert problem.hint == f"chmod 600 {tmp_path / 'headers'}"


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("ENDPOINT", "collector:4318", "must be an address"),
        ("ENDPOINT", "ftp://collector", "must be an address"),
        ("ENDPOINT", "http://", "must be an address"),
        ("ENDPOINT", "http://a b", "must be an address"),
        ("ENDPOINT", "http://a:b", "must be an address"),
        ("ENDPOINT", "https://me:pw@collector", "must not hold a password"),
        ("PROTOCOL", "http", "must be one of http/protobuf, http/json, grpc"),
        ("HEADERS_FILE", "headers", "absolute path"),
    ],
)
def test_values_that_cannot_be_meant(key: str, value: str, words: str) -> None:
    with pytest.raises(SwarmError) as raised:
        build_settings([environment_layer({f"SWARM_TELEMETRY_{key}": value})])

    assert words in str(raised.value)
