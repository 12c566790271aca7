"""The files of served agents: what is accepted, and where each mistake is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm.kit.errors import SwarmError
from swarm.services import definition

if TYPE_CHECKING:
    from swarm.services.values import ServedAgent

pytestmark = pytest.mark.component
FIXTURES = Path(__file__).with_name("fixtures")
MINIMAL, FULL, DIRECTOR = (
    (FIXTURES / f"{name}.yaml").read_text() for name in ("minimal-agent", "full-agent", "github-director")
)


def read(tmp_path: Path, text: str, name: str = "rev.yaml") -> ServedAgent:
    (tmp_path / name).write_text(text)
    return definition.read(tmp_path / name)


def test_the_fixtures_of_agents_are_read(tmp_path: Path) -> None:
    """TEST-08, CONF-01."""
    small = read(tmp_path, MINIMAL, "minimal-agent.yaml")
    assert (small.name, small.says.port, small.says.model, small.says.timeout) == ("minimal-agent", 9000, "sonnet", 300)
    full = read(tmp_path, FULL).says
    assert (full.port, full.log_level, full.model, full.timeout, full.program) == (
        9001,
        "debug",
        "opus",
        1800,
        "claude",
    )


def test_an_agent_is_called_as_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "agents/tester"
    folder.mkdir(parents=True)
    assert read(folder, "port: 9000\nprogram: demo\n", "config.yaml").name == "tester"
    assert definition.files_of(tmp_path) == {"tester": folder / "config.yaml"}


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("roles: [agent]\n", "1:1", "port is required"),
        ("port: 9000\nroles: [invalid]\n", "2:9", "unknown role"),
        ("port: 9000\ntype: invalid\n", "2:7", "unknown type"),
        ("port: 0\n", "1:7", "must be from 1 to 65535"),
        ("port: '9000'\n", "1:7", "must be a whole number"),
        ("port: 9000\nprot: 1\n", "2:1", "unknown key"),
        ("port: 9000\nclaude: {model: gpt}\n", "2:17", "unknown model"),
        ("port: 9000\nprogram: codex\nclaude: {model: opus}\n", "3:9", "is for the program claude alone"),
        ("port: 9000\nmodel: opus\nclaude: {model: opus}\n", "2:8", "keep one of the two"),
        ("port: 9000\nprogram: demo\ncommand: cat\n", "3:10", "there is a program already"),
        ("port: 9000\ntimeout: never\n", "2:10", "must be a number of seconds"),
        ("port: 9000\nlog_level: loud\n", "2:12", "must be one of debug"),
        ("port: 9000\nbind: -x\n", "2:7", "no name of a machine"),
        ("port: 9000\ntls: {}\n", "2:6", "needs cert and key"),
        ("port: 9000\ntls: {cert: x}\n", "2:6", "needs cert and key"),
        ("port: 9000\ntls: {cert: x, key: y, auto_generate: true}\n", "2:6", "needs cert and key"),
        ("port: 9000\ntelemetry: true\ntls: {auto_generate: true}\n", "2:12", "do not know the certificate"),
        ("port: 9000\nsandbox: true\n", "2:10", "must be a mapping"),
        ("port: 9000\nsandbox: {hosts: [x]}\n", "2:11", "unknown key"),
        ("port: 9000\nsandbox: {network: all, allow_network: true}\n", "2:40", "keep one of the two"),
        ("port: 9000\nsandbox: {read_write_paths: [x]}\n", "2:30", "must be an absolute path"),
        ("port: 9000\nsession_dir: here\n", "2:14", "must be an absolute path"),
        ("port: 9000\nname: ../x\n", "2:7", "invalid agent name"),
        (DIRECTOR, "1:7", "unknown type"),
    ],
)
def test_a_mistake_has_its_line_and_column(text: str, place: str, words: str, tmp_path: Path) -> None:
    """CONF-05; no type is accepted whose component is not there, and no box is silently left out."""
    with pytest.raises(SwarmError) as caught:
        read(tmp_path, text)
    whole = str(caught.value)
    assert words in whole or words in caught.value.hint, (whole, caught.value.hint)
    assert f"rev.yaml:{place}" in whole, whole


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "rev.yaml"
    path.write_text("port: x\nlog_level: loud\nnothing: 1\n")
    assert len(definition.problems_of(path)) == 3
    path.write_text("port: [\n")
    assert len(definition.problems_of(path)) == 1
    assert len(definition.problems_of(tmp_path / "none.yaml")) == 1
