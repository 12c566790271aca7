"""Secrets of a swarm directory: who may read them, and what programs get of them."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from swarm.kit.errors import SwarmError
from swarm.services import credentials
from swarm.services.errors import LooseMode

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.component


def test_the_token_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = set(pool.map(lambda _: credentials.token(tmp_path), range(32)))
    finally:
        os.umask(before)
    path = tmp_path / "credentials/api-token"
    assert found == {path.read_bytes().strip()}
    assert len(found.pop()) >= 40
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert os.listdir(path.parent) == ["api-token"]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o700 | 0o001])
@pytest.mark.parametrize("name", ["credentials/api-token", "credentials/claude-token", ".env"])
def test_a_secret_that_others_can_read_is_refused(name: str, mode: int, tmp_path: Path) -> None:
    """CRED-02."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("x" * 40)
    path.chmod(mode)
    with pytest.raises(LooseMode) as caught:
        credentials.check(tmp_path)
    assert f"{mode:04o}" in caught.value.message
    assert "chmod 600" in caught.value.hint


def test_no_link_and_no_folder_is_a_secret(tmp_path: Path) -> None:
    (tmp_path / "credentials").mkdir()
    path = tmp_path / "credentials/api-token"
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises((SwarmError, OSError)):
        credentials.token(tmp_path)
    path.unlink()
    path.write_text("short\n")
    path.chmod(0o600)
    with pytest.raises(SwarmError, match="this is no token"):
        credentials.token(tmp_path)


def test_programs_get_the_tokens_the_file_and_the_identity_and_the_environment_wins(tmp_path: Path) -> None:
    """CRED-01, 03 and 05."""
    (tmp_path / "credentials").mkdir(mode=0o700)
    for name, text in (
        ("credentials/claude-token", "of claude\n"),
        ("credentials/github-token", "of github\n"),
        (".env", "# here\nA=1\nexport B='two words' # said\nSWARM_WEB_TOKEN=ff\nSWARM_PORT=9123\n"),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    (tmp_path / "git-config").write_text('name: "Claude Agent"\nemail: claude@example.org\n')
    found = credentials.environment(tmp_path, {"A": "real", "GH_TOKEN": "mine", "SWARM_WEB_TOKEN": "x"})
    assert found == {
        "A": "real",
        "B": "two words",
        "SWARM_PORT": "9123",
        "CLAUDE_CODE_OAUTH_TOKEN": "of claude",
        "GH_TOKEN": "mine",
        "GITHUB_TOKEN": "of github",
        "GIT_AUTHOR_NAME": "Claude Agent",
        "GIT_COMMITTER_NAME": "Claude Agent",
        "GIT_AUTHOR_EMAIL": "claude@example.org",
        "GIT_COMMITTER_EMAIL": "claude@example.org",
    }


@pytest.mark.parametrize("text", ["no pair\n", "A='open\n", "1A=x\n"])
def test_a_line_that_is_no_variable_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text(f"GOOD=1\n{text}")
    path.chmod(0o600)
    with pytest.raises(SwarmError, match=r"\.env:2:1: "):
        credentials.environment(tmp_path, {})
