"""The test kit for others: what its page shows is what a project beside this one gets."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)
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


def test_swarm_itself_does_not_need_it() -> None:
    seen = "[m for m in sys.modules if 'pytest' in m or '.testing' in m]"
    code = f"import sys, swarm.api, swarm.cli.main; assert not {seen}"
    subprocess.run([sys.executable, "-c", code], check=True)
