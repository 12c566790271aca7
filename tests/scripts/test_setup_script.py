"""``scripts/setup`` on a machine where something is missing."""

from __future__ import annotations

import os
import re
from importlib import metadata
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

from tests.support.machine import Machine
from tests.support.odd import read_only
from tests.support.procs import PROJECT

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

pytestmark = pytest.mark.e2e


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, "scripts/setup", "scripts/constraints.txt", "pyproject.toml")


def log(machine: Machine) -> Path:
    return machine.root / ".cache/setup.log"


def add_everything(machine: Machine, pip: str) -> None:
    """Add all that it asks for; the virtual environment and *pip* are stand-ins."""
    machine.add("tmux", "echo tmux 3.4")
    machine.add("ps", "exit 0")
    machine.add("bwrap", "exit 0")
    folders = "mkdir -p .venv/bin; echo $PWD/.venv >.venv/bin/activate; cp $0 .venv/bin/python"
    machine.add(
        "python3",
        f'case "$*" in -V) echo Python 3.11.9 ;; "-m venv"*) {folders} ;; "-m pip"*) {pip} ;; *) exit 0 ;; esac',
    )


def _told(done: subprocess.CompletedProcess[str], machine: Machine, why: str) -> str:
    """Check that one line says what is missing; return the hint."""
    *_, error, empty, hint = done.stderr.splitlines()
    assert done.returncode == 5
    assert (done.stdout, empty) == ("", "")
    assert error == (
        f"error: cannot set up {machine.root}: missing tmux 3.2 or newer (found: none), "
        f"python 3.11 or newer with its venv module, ps, bwrap; {why}"
    )
    assert set(os.listdir(machine.root)) == {"pyproject.toml", "scripts"}
    return hint


def test_without_apt_it_says_what_is_missing(machine: Machine) -> None:
    machine.add("id", "echo 0")

    hint = _told(machine.run("scripts/setup"), machine, "there is no apt-get to install it with")

    assert hint.startswith("hint: install it with your system's package manager")


@pytest.mark.parametrize(("sudo", "by"), [(True, "sudo sh"), (False, "su")])
def test_who_is_not_root_is_told_what_root_has_to_do(machine: Machine, sudo: bool, by: str) -> None:
    machine.add("id", "echo 1000")
    machine.add("apt-get", "echo must not run; touch ran")
    if sudo:
        machine.add("sudo", "exit 1")  # asks for a password

    hint = _told(machine.run("scripts/setup"), machine, "only root may install it")

    assert hint == f"hint: {by} -c 'apt-get update && apt-get install git tmux python3 python3-venv procps bubblewrap'"


def test_root_installs_it_and_is_told_when_that_was_not_enough(machine: Machine) -> None:
    machine.add("id", "echo 0")
    machine.add("apt-get", 'echo "apt-get $DEBIAN_FRONTEND $*"; echo much more >&2; exit 100')

    done = machine.run("scripts/setup")

    assert done.returncode == 5
    assert done.stderr.splitlines()[:2] == [
        "setup: reading apt-get's lists",
        "setup: installing with apt-get: git tmux python3 python3-venv procps bubblewrap",
    ]
    assert len(done.stderr.splitlines()) == 5  # and the error
    assert "; apt-get did not bring it\n" in done.stderr
    assert f"hint: see {log(machine)}, " in done.stderr
    talk = log(machine).read_text().splitlines()
    assert "apt-get noninteractive update" in talk
    assert (
        "apt-get noninteractive install -y --no-install-recommends git tmux python3 python3-venv procps bubblewrap"
        in talk
    )
    assert talk.count("much more") == 2


def test_apt_without_a_network_is_told_as_that(machine: Machine) -> None:
    machine.add("id", "echo 0")
    machine.add("apt-get", "echo \"W: Failed to fetch it  Temporary failure resolving 'host'\" >&2; exit 100")

    done = machine.run("scripts/setup")

    assert (done.returncode, "; apt-get could not download it\n" in done.stderr) == (5, True)
    assert f"hint: bring this machine to the network, or tell apt of your proxy; what it said is in {log(machine)}" in (
        done.stderr
    )


@pytest.mark.parametrize(
    ("says", "error", "hint"),
    [
        (
            "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError'",
            "pip cannot reach its index of packages",
            "bring this machine to the network, or tell pip of your mirror or proxy",
        ),
        ("ERROR: No space left on device", "pip failed: ERROR: No space left on device", "see "),
    ],
)
def test_what_pip_failed_at_is_told(machine: Machine, says: str, error: str, hint: str) -> None:
    add_everything(machine, pip=f'echo "{says}" >&2; exit 1')

    done = machine.run("scripts/setup")

    assert done.returncode == 5
    assert done.stderr.splitlines() == [
        "setup: making .venv with Python 3.11.9",
        "setup: installing what builds swarm",
        f"error: cannot set up {machine.root}: {error}",
        "",
        next(line for line in done.stderr.splitlines() if line.startswith(f"hint: {hint}")),
    ]
    assert says in log(machine).read_text()


def test_what_is_ready_is_left_alone_and_every_version_is_pinned(machine: Machine) -> None:
    add_everything(machine, pip='echo "pip $*"')
    first, second = machine.run("scripts/setup"), machine.run("scripts/setup")

    assert (first.returncode, first.stderr.splitlines()[-1]) == (0, f"ready: {machine.root}/.venv (Python 3.11.9)")
    assert (second.returncode, second.stderr) == (0, "")
    asked = [line for line in log(machine).read_text().splitlines() if line.startswith("pip ")]
    assert len(asked) == 2
    assert all("--constraint scripts/constraints.txt" in line for line in asked)
    (machine.root / "scripts/constraints.txt").write_text("pytest==9\n")
    assert "setup: installing swarm and its tools" in machine.run("scripts/setup").stderr


def test_a_checkout_that_cannot_be_written_to_is_told_as_that(machine: Machine) -> None:
    add_everything(machine, pip="exit 0")

    with read_only(machine.root):
        done = machine.run("scripts/setup")

    assert done.returncode == 5
    assert done.stderr == (
        f"error: cannot set up {machine.root}: it cannot be written to\n\n"
        f"hint: set up a copy in a place of your own: cp -R '{machine.root}' ~/swarm && ~/swarm/scripts/setup\n"
    )


def test_every_package_that_the_tools_need_has_one_version_and_no_origin() -> None:
    lines = (PROJECT / "scripts/constraints.txt").read_text().splitlines()
    pinned = {line.partition("==")[0] for line in lines if not line.startswith("#")}

    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9a-z.]*", line) for line in lines if not line.startswith("#"))
    assert _needed("tmux-swarm", {"dev"}) - {"tmux-swarm"} <= {_plain(name) for name in pinned}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _needed(name: str, extras: set[str]) -> set[str]:
    """Return the names of all packages that one needs here, itself included."""
    found = set()
    ahead = [(name, extras)]
    while ahead:
        name, extras = ahead.pop()
        if _plain(name) in found:
            continue
        found.add(_plain(name))
        for text in metadata.requires(name) or ():
            need = Requirement(text)
            if any(need.marker is None or need.marker.evaluate({"extra": extra}) for extra in extras | {""}):
                ahead.append((need.name, set(need.extras)))
    return found
