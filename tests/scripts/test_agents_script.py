"""How the agent programs of the tests get onto a machine: ``scripts/agents`` and ``.ci/node``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from swarm.testing.terminal import Pane
from tests.support.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.e2e

#: Installs what it is asked for: a folder with one program of the name that scripts/agents looks for.
NPM = """
echo "npm $*" >&2
while [ $# -gt 0 ]; do
  case $1 in --prefix) into=$2; shift ;; *@*) package=$1 ;; esac
  shift
done
case $package in
  *claude*) name=claude ;; *codex*) name=codex ;; *gemini*) name=gemini ;;
  opencode*) name=opencode ;; node@*) name=node ;;
  *conformance*) name=conformance ;; *inspector*) name=mcp-inspector ;;
esac
mkdir -p "$into/node_modules/.bin"
cp "${0%/*}/a-program" "$into/node_modules/.bin/$name"
"""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path, "scripts/agents", "scripts/agents.versions", ".ci/node")
    made.add("id", "echo 0")
    made.add("a-program", 'case "$*" in --version) echo v20.20.2 ;; esac')
    made.add("npm", NPM)
    made.add("node", "echo v20.1.0")
    return made


@pytest.fixture
def asked(machine: Machine) -> Iterator[Pane]:
    argv = [str(machine.root / "scripts/agents"), "--ask"]
    pane = Pane(argv, env=machine.env, cwd=machine.root, columns=200)
    try:
        pane.see("(1.3 GB for all)? [y/N]")
        yield pane
    finally:
        pane.close()


def test_a_no_at_the_terminal_downloads_nothing(machine: Machine, asked: Pane) -> None:
    asked.type("n\n")

    assert asked.ended() == 1
    assert "not downloaded, as you said" in asked.text
    assert list((machine.root / ".cache/agents").iterdir()) == []


def test_a_yes_at_the_terminal_installs_them_and_is_not_asked_again(machine: Machine, asked: Pane) -> None:
    asked.type("y\n")

    assert asked.ended() == 0
    assert machine.run("scripts/agents", "--check").returncode == 0
    again = machine.run("scripts/agents", "--ask")
    assert (again.returncode, again.stderr) == (0, "")


@pytest.mark.parametrize("ci", [True, False])
def test_where_nobody_can_be_asked_they_are_installed(machine: Machine, ci: bool) -> None:
    if ci:
        machine.env["CI"] = "true"
        pane = Pane([str(machine.root / "scripts/agents"), "--ask"], env=machine.env, cwd=machine.root)
        try:
            assert pane.ended() == 0
        finally:
            pane.close()
    else:
        assert machine.run("scripts/agents", "--ask").returncode == 0

    assert (machine.root / ".cache/agents/bin/gemini").exists()


def test_a_check_says_what_is_missing_and_makes_nothing(machine: Machine) -> None:
    done = machine.run("scripts/agents", "--check")

    assert (done.returncode, "missing claude, codex, gemini, opencode" in done.stderr) == (5, True)
    assert not (machine.root / ".cache").exists()


@pytest.mark.parametrize("installed", [True, False])
def test_an_old_node_counts_as_missing_also_for_what_is_installed(machine: Machine, installed: bool) -> None:
    if installed:
        assert machine.run("scripts/agents").returncode == 0
    machine.add("node", "echo v18.20.4")

    done = machine.run("scripts/agents", "--ask")

    assert done.returncode == 5
    assert "Node.js 20 or newer with npm is needed (found: v18.20.4)" in done.stderr


def test_ci_leaves_a_node_that_will_do_alone(machine: Machine) -> None:
    done = machine.run(".ci/node")

    assert (done.returncode, done.stderr) == (0, "")
    assert not (machine.root / ".cache").exists()


def test_ci_gets_node_by_apt_and_a_newer_one_by_npm(machine: Machine) -> None:
    for name in ("node", "npm"):
        (machine.bin / name).rename(machine.bin / f"{name}-of-apt")
    machine.add("node-of-apt", "echo v18.20.4")
    brought = "cp $0/../node-of-apt $0/../node; cp $0/../npm-of-apt $0/../npm".replace("$0/..", "${0%/*}")
    machine.add("apt-get", f'echo "apt-get $*"; case "$*" in install*) {brought} ;; esac')

    done = machine.run(".ci/node")

    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        "node: reading apt-get's lists",
        "node: installing nodejs and npm with apt-get",
        "node: installing Node.js 20 with npm",
    ]
    assert (machine.root / ".cache/node/node_modules/.bin/node").exists()
