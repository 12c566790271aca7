"""The test kit for others: what its page shows is what a project beside this one gets."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from swarm.testing.terminal import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing.md"


def test_the_examples_of_its_page_pass_in_a_project_of_somebody_else(tmp_path: Path) -> None:
    files = dict(re.findall(r"```python\n# (\S+\.py)\n(.*?)```", PAGE.read_text(), re.DOTALL))
    assert set(files) == {"conftest.py", "test_mine.py", "test_model.py"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


HANGS = """
import time

pytest_plugins = ["swarm.testing"]


def test_it(swarm_panes):
    swarm_panes.start("developer")
    swarm_panes.until("developer", "idle")
    (swarm_panes.root.parent.parent / "ready").write_text(f"{swarm_panes.env['HOME']}\\n{swarm_panes.tmux.folder}")
    time.sleep(600)
"""


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda signum: signum.name)
def test_a_run_that_is_ended_by_a_signal_leaves_no_agent_and_no_tmux_server(tmp_path: Path, signum: int) -> None:
    (tmp_path / "conftest.py").write_text(HANGS.partition("\n\n\n")[0])
    (tmp_path / "test_it.py").write_text("import time\n\n\n" + HANGS.partition("\n\n\n")[2])
    base = tmp_path / "base"
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={base}"]
    with subprocess.Popen([*argv, str(tmp_path)], cwd=tmp_path, stdout=subprocess.DEVNULL) as run:
        try:
            wait_for((base / "ready").exists, "the agent", 120)
            home, folder = (base / "ready").read_text().splitlines()
            assert len(_with_home(home)) > 2  # tmux, what supervises the agent, and the agent
            run.send_signal(signum)
            run.wait(60)
        finally:
            run.kill()

    wait_for(lambda: not _with_home(home) and not Path(folder).exists(), "the end of all that it started")


def _with_home(home: str) -> list[int]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if f"HOME={home}".encode() in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                found.append(int(name))
    return found


def test_swarm_itself_does_not_need_it() -> None:
    seen = "[m for m in sys.modules if 'pytest' in m or '.testing' in m]"
    code = f"import sys, swarm.api.swarm, swarm.cli.main; assert not {seen}"
    subprocess.run([sys.executable, "-c", code], check=True)
