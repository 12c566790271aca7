"""``swarm sandbox check``: a box is really made, and where that fails the cause is named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from swarm.kit.errors import SwarmError
from swarm.sandbox import check

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.testing.panes import PaneLab

pytestmark = pytest.mark.integration

CHECK = (sys.executable, "-m", "swarm", "sandbox", "check")
NO_MORE = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'


def run(*argv: str, path: str | None = None, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **({} if path is None else {"PATH": path})}
    return subprocess.run(argv, env=env, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("boxes")
def test_a_machine_that_can_make_boxes(tmp_path: Path) -> None:
    done = run(*CHECK, cwd=tmp_path)

    assert done.returncode == 0, done
    assert done.stdout.startswith("ok    this machine can make boxes, by bubblewrap 0.")
    assert json.loads(run(*CHECK, "--json", cwd=tmp_path).stdout)["data"]["available"] is True


def test_without_bubblewrap_it_says_how_to_get_it(tmp_path: Path) -> None:
    done = run(*CHECK, path=str(tmp_path), cwd=tmp_path)

    assert done.returncode == 5
    assert done.stdout.splitlines()[:2] == [
        "no    this machine cannot make boxes: bwrap is not installed",
        "      fix: install it, for example: sudo apt-get install bubblewrap",
    ]
    with pytest.raises(SwarmError) as caught:
        check.require({"PATH": str(tmp_path)})
    assert (caught.value.code, caught.value.exit_code) == ("SANDBOX_UNAVAILABLE", 5)


@pytest.mark.usefixtures("boxes")
def test_where_user_namespaces_are_refused_that_is_the_cause(tmp_path: Path) -> None:
    """A user namespace has a limit of its own, so the machine's stays as it is."""
    inside = ("unshare", "--user", "--map-root-user", "sh", "-c", NO_MORE, "sh")

    done = run(*inside, *CHECK, "--json", cwd=tmp_path)

    found = json.loads(done.stdout)["data"]
    assert (done.returncode, found["available"]) == (5, False)
    assert "user namespaces are switched off here" in found["cause"]
    assert found["hint"].startswith("sudo sysctl user.max_user_namespaces=")


@pytest.mark.usefixtures("boxes")
def test_a_program_that_only_says_its_version_is_not_believed(tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo bubblewrap 9.9 && exit\necho "bwrap: cannot" >&2\nexit 1\n'
    )
    fake.chmod(0o755)

    found = check.check({"PATH": f"{tmp_path}:{os.environ['PATH']}"})

    assert (found.available, found.by) == (False, "bubblewrap 9.9")
    assert "bwrap: cannot" in found.cause


@pytest.mark.parametrize(
    ("words", "settings", "cause", "hint"),
    [
        (
            "bwrap: setting up uid map: Permission denied",
            {check._APPARMOR: "1"},
            "AppArmor refuses user namespaces",
            "apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict",
        ),
        ("bwrap: No permissions to create new namespace", {}, "user namespaces are refused here", "in a container"),
        ("bwrap: x", {check._CLONE: "0"}, "only root may make", "unprivileged_userns_clone=1"),
        ("bwrap: prctl(PR_SET_SECCOMP) failed", {}, "takes no filter", "CONFIG_SECCOMP_FILTER"),
        ("bwrap: Unknown option --perms", {}, "too old", "0.8 or newer"),
        ("bwrap: Can't mount proc", {}, "could not be made (bwrap: Can't mount proc)", "dmesg"),
    ],
)
def test_the_words_of_bubblewrap_lead_to_the_cause(words: str, settings: dict[str, str], cause: str, hint: str) -> None:
    found = check.explain(words, settings)

    assert cause in found[0]
    assert hint in found[1]


@pytest.mark.usefixtures("boxes")
def test_a_box_that_was_made_is_known_until_something_changes_on_which_that_depends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin/bwrap"
    program.parent.mkdir()
    shutil.copy2(shutil.which("bwrap") or "", program)
    environ = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    assert not check.is_known(tmp_path, environ)
    check.note(tmp_path, environ)
    assert check.is_known(tmp_path, environ)

    with monkeypatch.context() as an_hour_later:
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        an_hour_later.setattr(time, "clock_gettime", lambda _: now + 3601)
        assert not check.is_known(tmp_path, environ)
    with monkeypatch.context() as with_a_rule:
        told = check._setting
        with_a_rule.setattr(check, "_setting", lambda path: "1" if path == check._APPARMOR else told(path))
        assert not check.is_known(tmp_path, environ)
    os.utime(program, ns=(0, 0))

    assert not check.is_known(tmp_path, environ)
    program.unlink()
    assert not check.is_known(tmp_path, {"PATH": str(program.parent)})


@pytest.mark.usefixtures("boxes")
def test_where_boxes_cannot_be_made_any_more_a_resume_says_so(panes: PaneLab) -> None:
    """Although one was made a moment before: the program is another one now."""
    fake = panes.root.parent / "bin"
    panes.swarm.start("s", ["developer"], command="sleep 1000", sandbox=True)
    panes.swarm.stop(["s"])
    fake.mkdir()
    (fake / "bwrap").write_text("#!/bin/sh\necho 'bwrap: cannot' >&2\nexit 1\n")
    (fake / "bwrap").chmod(0o755)
    panes.env["PATH"] = f"{fake}:{panes.env['PATH']}"

    with pytest.raises(SwarmError) as caught:
        panes.open().resume(["s"])

    assert "SANDBOX_UNAVAILABLE" in (caught.value.code, *(one.code for one in getattr(caught.value, "problems", ())))
