"""Who is written down as having done something."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from swarm.callers.caller import user_name

if TYPE_CHECKING:
    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration


def test_the_log_names_the_account_and_believes_no_variable(lab: Lab) -> None:
    lab.env |= {"SWARM_ACTOR": "developer", "SWARM_SESSION": "fx", "USER": "somebody", "LOGNAME": "somebody"}

    lab.swarm.create("fx", "developer")

    assert [entry["actor"] for entry in lab.swarm.operations()] == [pwd.getpwuid(os.geteuid()).pw_name]


@pytest.mark.skipif(os.geteuid() != 0, reason="takes on another account")
def test_an_account_without_a_name_is_no_reason_to_fail() -> None:
    code = "import os, swarm.callers.caller as a; os.setuid(54321); print(a.user_name())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "uid 54321\n"
    assert user_name() == "root"
