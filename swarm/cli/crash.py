"""Write the traceback of a bug into a private file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from swarm import SwarmError
from swarm.api.problems import bug_report, write_bug_report


class Bug(SwarmError):
    """Something in swarm itself went wrong."""

    code = "BUG"
    exit_code = 70
    default_hint = "please report it with that file; it holds no content of your files"


def write_report(error: BaseException, args: Sequence[str]) -> Bug:
    """Write a crash report and return an error that names the file."""
    what = f"this is a bug in swarm: {type(error).__name__}: {error}"
    text = bug_report(error, args)
    path = write_bug_report(text, Path(os.curdir))
    if path is None:
        return Bug(what, hint="please report it", details=text)
    return Bug(f"{what}; details are in {path}", file=str(path))
