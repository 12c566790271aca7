"""Nothing gets out of a box, judged from outside; each probe is seen to get out without one; ordinary work goes on."""

from __future__ import annotations

import os
import platform
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.sandbox.probes import ALL, GROUPS, TASKS, TOOLS
from tests.sandbox.stage import Probe, Stage, showing, without_option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600), pytest.mark.usefixtures("boxes")]

USERS = ("root", "user") if os.geteuid() == 0 else ("user",)


@pytest.fixture(params=USERS)
def stage(request: pytest.FixtureRequest, boxes: None) -> Iterator[Stage]:
    found = Stage(as_user=request.param == "user")
    try:
        yield found
    finally:
        found.close()


def suits(probe: Probe, who: str) -> bool:
    return probe.only in ("", who)


@pytest.mark.parametrize("group", GROUPS)
def test_nothing_gets_out(stage: Stage, group: str) -> None:
    """Also not what could only get out as another user: all of them are tried."""
    found = {name: stage.boxed_run(probe) for name, probe in GROUPS[group].items()}

    assert {name: one for name, one in found.items() if one.escapes} == {}
    done = stage.host_git("status", "--porcelain")
    assert (done.returncode, stage.host_git("fsck").returncode) == (0, 0), done.stderr
    assert not os.path.lexists(stage.names["CANARY"])


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the probes of the kernel are written for x86-64")
@pytest.mark.parametrize("group", GROUPS)
def test_each_probe_gets_out_without_a_box(stage: Stage, group: str) -> None:
    at, who, missed = stage, stage.who, {}
    try:
        for name, probe in GROUPS[group].items():
            if suits(probe, who):
                outcome = at.bare_run(probe)
                if not outcome.escapes and not probe.may_miss:
                    missed[name] = outcome
                at = at.restored()
    finally:
        if at is not stage:
            at.close()

    assert missed == {}


def test_ordinary_work_goes_on(stage: Stage) -> None:
    tasks = {
        **TASKS,
        **{name: script for name, (program, script) in TOOLS.items() if shutil.which(program, path="/usr/bin:/bin")},
    }
    scripts = {
        name: Probe(script if script.startswith("PY\n") else f"set -e\n{script}") for name, script in tasks.items()
    }

    found = {name: stage.boxed_run(probe) for name, probe in scripts.items()}

    assert {name: one for name, one in found.items() if one.code != 0 or one.escapes} == {}


def _with_environment(stage: Stage) -> dict[str, object]:
    stage.plant_in_enter(", kept_env)", ", dict(os.environ))")
    return {}


BUGS: dict[str, tuple[str, Callable[[Stage], dict[str, object]]]] = {
    "the network is shared": ("tcp to the host", lambda _: {"edit": without_option("--unshare-net")}),
    "processes are shared": ("see a process", lambda _: {"edit": without_option("--unshare-pid")}),
    "the environment is kept": (
        "read the environment",
        lambda s: _with_environment(s) | {"edit": without_option("--clearenv")},
    ),
    "the state folder is shown": ("write message", lambda s: {"change": showing(s.names["ROOT"] / ".swarm")}),
    "another tree is shown": ("read other tree", lambda s: {"change": showing(s.names["OTHER"])}),
    "the user's home is shown": ("read ssh key", lambda s: {"change": showing(s.names["USER"])}),
    "tmux is shown": ("tmux", lambda s: {"change": showing(s.names["TOP"] / "run")}),
    "the tree's git file is writable": (
        "exchange the tree's git file",
        lambda s: {"edit": without_option("--ro-bind", f"{s.boxed.tree}/.git", f"{s.boxed.tree}/.git")},
    ),
    "the repository's git folder is shown": (
        "set a file monitor",
        lambda s: {
            "edit": without_option("--bind", str(s.boxed.base / "git"), str(s.names["ROOT"] / ".git")),
            "change": showing(s.names["ROOT"] / ".git"),
        },
    ),
    "bubblewrap has an environment": ("read the environment of who started it", _with_environment),
    "rights are kept": (
        "rights of root",
        lambda _: {"edit": without_option("--uid", "1000", "--gid", "1000", "--die-with-parent", "--cap-drop", "ALL")},
    ),
    "the kernel's settings are writable": (
        "any file of the kernel",
        lambda _: {"edit": without_option("--ro-bind", "/proc/pressure", "/proc/pressure")},
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(stage: Stage, bug: str) -> None:
    name, plant = BUGS[bug]
    if stage.who == "user" and ALL[name].only == "root":
        pytest.skip("only root's box has it")

    assert stage.boxed_run(ALL[name]).escapes == ()
    planted = plant(stage)
    assert stage.boxed_run(ALL[name], **planted).escapes != ()  # type: ignore[arg-type]  # as they are named


def test_a_box_without_the_filter_is_found(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    from swarm.sandbox import command, seccomp

    monkeypatch.setattr(command, "call_filter", lambda: seccomp._line(seccomp.RETURN, seccomp.ALLOW))

    assert stage.boxed_run(ALL["a new user namespace"]).escapes == ("says so",)


def test_descriptors_that_are_left_open_are_found(stage: Stage) -> None:
    stage.plant_in_enter("if int(name) > 2 and int(name) not in (to, made, kept):", "if False:")

    assert stage.boxed_run(ALL["read by any open folder"]).escapes == ("read a secret",)
