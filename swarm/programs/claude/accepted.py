"""Whether the installed Claude Code would take a settings file: its own ``doctor`` is asked, and no model.

A wrong value of any key makes the program drop the whole file, deny rules and hooks included, in print mode without a
word.  There are more keys than swarm can know, and each version has others; so the program says itself.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.kit import files, limited

if TYPE_CHECKING:
    from collections.abc import Mapping

#: An event that there is not: only where the program complains of that, its silence on the rest means something.
_ASKED = "SwarmAsksWhetherThisIsRead"
#: The words with which it leaves out one entry, and takes the file.
_MILD = ("was skipped", "was ignored")
#: It must ask nobody, and leave the user's own configuration alone.
_ALONE = {
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
}
_PATIENCE = 60.0
_FILE = "swarm-asks.json"


def complaints(executable: str, settings: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the program's complaints about some settings; None if it cannot be asked, such as an old version."""
    asked = {**settings, "hooks": {**settings.get("hooks", {}), _ASKED: []}}
    return _complaints(executable, json.dumps(asked), tuple(sorted({**environ, **_ALONE}.items())))


@lru_cache(maxsize=64)
def _complaints(executable: str, text: str, environ: tuple[tuple[str, str], ...]) -> tuple[str, ...] | None:
    """Ask once for all agents of a role."""
    with tempfile.TemporaryDirectory(prefix="swarm-") as name:
        folder = Path(name)
        (folder / _FILE).write_text(f"{text}\n", encoding="utf-8", errors="surrogatepass")
        files.make_private_dir(folder / "config")
        alone = {**dict(environ), "CLAUDE_CONFIG_DIR": str(folder / "config")}
        argv = [executable, "--settings", str(folder / _FILE), "doctor"]
        try:
            said = limited.run(argv, environ=alone, limit=_PATIENCE, cwd=folder).stdout
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return None
    return _read(said)


def _read(said: str) -> tuple[str, ...] | None:
    """Read lines such as ``- /…/swarm-asks.json > statusLine: Expected object, but received number``."""
    ends = [line.partition(_FILE)[2] for line in said.splitlines() if _FILE in line]
    found = [end.lstrip(" \u203a>:") for end in ends if end.startswith(" ")]  # else it is advice about a rule
    if not any(_ASKED in one for one in found):
        return None
    return tuple(one for one in found if not any(word in one for word in _MILD))
