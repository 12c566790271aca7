"""``wrap``: a launch specification in, one in a box out; nothing is looked at and nothing is run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from swarm.kit.errors import SwarmError
from swarm.programs.values import LaunchSpec
from swarm.sandbox import command
from swarm.sandbox.values import Box, Mount, PrivateGit

pytestmark = pytest.mark.unit

SYSTEM = (Mount("--ro-bind", "/usr", "/usr"), Mount("--symlink", "usr/bin", "/bin"))
GIT = PrivateGit("/r/.git", "/p/git", ("/r/.git/objects", "/x/objects"), ("/x/objects/info/alternates",), "/p/empty")
BOX = Box("/r/tree", "/p/home", SYSTEM, GIT, env={"PATH": "/usr/bin"})
SPEC = LaunchSpec(("program", "--flag"), {"KEY": "s3cret"}, {"a.json": "{}"}, pulls=True, without=("DROPPED",))


def mounts(options: tuple[str, ...]) -> list[tuple[str, str, str]]:
    return [
        (word, *options[at + 1 : at + 3])  # type: ignore[misc]  # two words follow
        for at, word in enumerate(options)
        if word in ("--bind", "--ro-bind", "--symlink")
    ]


def test_the_program_runs_by_notes_that_hold_what_nobody_may_read_in_a_list_of_processes() -> None:
    made = command.wrap(SPEC, BOX, "/run/dir", "/usr/bin/bwrap")

    assert made.argv[-2:] == SPEC.argv
    assert f"/run/dir/{command.NOTES}" in made.argv
    assert not any("s3cret" in word for word in made.argv)
    assert made.env == {}
    assert made.files["a.json"] == "{}"
    program, calls, ports, passes, *options = made.files[command.NOTES].split("\0")
    at = options.index("KEY")
    assert options[at - 1 : at + 2] == ["--setenv", "KEY", "s3cret"]
    assert (program, ports) == ("/usr/bin/bwrap", "")
    assert bytes.fromhex(calls) == command.call_filter()
    assert "TERM" in passes.split()
    assert (made.pulls, made.without) == (SPEC.pulls, SPEC.without)


def test_it_is_pure() -> None:
    assert command.wrap(SPEC, BOX, "/run/dir", "bwrap") == command.wrap(SPEC, BOX, "/run/dir", "bwrap")
    assert SPEC.argv == ("program", "--flag")


def test_a_box_has_nothing_in_common_with_the_machine_and_ends_read_only() -> None:
    options = command.options(BOX)

    assert {f"--unshare-{one}" for one in ("user", "pid", "ipc", "uts", "cgroup", "net")} <= set(options)
    assert {"--clearenv", "--die-with-parent"} <= set(options)
    assert "--new-session" not in options  # a program could not be told that its window has another size
    assert options[-2:] == ("--remount-ro", "/")
    assert options.index("--clearenv") < options.index("--setenv")


def test_later_mounts_lie_on_earlier_ones_and_none_where_the_agent_could_exchange_a_folder() -> None:
    found = mounts(command.options(BOX))
    targets = [target for _, _, target in found]

    assert targets.index("/r/tree") < targets.index("/r/tree/.git")
    assert ("--bind", "/p/git", "/r/.git") in found
    assert ("--ro-bind", "/x/objects", "/run/swarm/objects/1") in found
    assert ("--ro-bind", "/p/empty", "/run/swarm/objects/1/info/alternates") in found
    written = [target for option, _, target in found if option == "--bind"]
    below = {t for t in targets for w in written if t.startswith(f"{w}/")}
    assert below == {"/r/tree/.git"}


def test_the_kernels_settings_are_read_only() -> None:
    assert ("--ro-bind", "/proc/sys", "/proc/sys") in mounts(command.options(BOX))


def test_a_value_with_a_nul_is_no_further_option() -> None:
    evil = replace(BOX, env={"NAME": "x\0--bind\0/\0/host"})

    with pytest.raises(SwarmError) as caught:
        command.options(evil)

    assert caught.value.code == "SANDBOX_UNAVAILABLE"
