"""The page about served agents shows what happens, on a port that is free here."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
from typing import TYPE_CHECKING

import pytest

from swarm.api import serving
from tests.support.pages import PROJECT, run_page, scratch

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration
PAGE = PROJECT / "docs/service.md"


def free_port() -> int:
    """Return a port below those that the system gives out by itself, so that nobody takes it meanwhile."""
    for port in random.sample(range(20_000, 30_000), 100):
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


@pytest.mark.timeout(400)
@pytest.mark.skipif(shutil.which("curl") is None, reason="the page needs curl")
def test_the_page_shows_what_happens(tmp_path: Path) -> None:
    port, other, text = free_port(), free_port(), PAGE.read_text()
    with scratch(tmp_path.resolve()) as lab:
        copy = tmp_path / "service.md"
        text = text.replace(":9050", f":{other}").replace("--port 9050", f"--port {other}")
        copy.write_text(text.replace(":9000", f":{port}").replace("port: 9000", f"port: {port}"))
        try:
            run_page(copy, lab)
        finally:
            lab.swarm.services.kill()
            project = serving.status(lab.root)
            if project is not None:
                os.kill(project.pid, signal.SIGKILL)
        if os.environ.get("SWARM_UPDATE_DOCS"):
            shown = copy.read_text().replace(f":{other}", ":9050").replace(f"--port {other}", "--port 9050")
            PAGE.write_text(shown.replace(f":{port}", ":9000").replace(f"port: {port}", "port: 9000"))
