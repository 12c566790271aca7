"""docs/configuration.md is made from the settings themselves.

After a change of a setting: ``SWARM_UPDATE_DOCS=1 pytest tests/docs/test_config_docs.py``.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swarm.project.config.settings import SECTIONS, Setting, describe

pytestmark = pytest.mark.component

PAGE = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"

HEAD = """\
# Configuration

<!-- Made by tests/docs/test_config_docs.py from swarm/project/config/sections.py; do not edit by hand. -->

Each layer overrides the one before:

1. the defaults below
2. `~/.swarm/config.yaml`: for all your projects
3. `config.yaml` of the [swarm directory in use](roles.md#where-swarm-looks-for-a-role), if that is another one: the
   one that `SWARM_DIR` names, or one above the project. One in the repository does not count: agents can write there
4. `.swarm/config.yaml`: for this project
5. `.swarm/config.local.yaml`: for this checkout only
6. environment variables; an empty one counts as not set, lists are separated by commas
7. flags of the command line

Files are plain YAML. Only `true` and `false` are booleans, and only plain decimal numbers are numbers.
Every other word, such as `no`, `010` or `1:20`, is a text. swarm refuses double keys, tags, merge keys,
tabs as indentation and unknown keys. It reports all problems at once as `file:line:column`, and changes
nothing. `swarm init` writes a file with every key commented out.

```yaml
worktrees:
  base_path: .worktrees
  auto_cleanup_age: 7d
cleanup:
  precious: [".env*", "*.pem"]
```
"""


def page() -> str:
    parts = [HEAD]
    for section, about in SECTIONS.items():
        parts += [f"## {section}", "", about, ""]
        parts += [line for row in describe() if row.section == section for line in entry(row)]
    return "\n".join(parts).rstrip() + "\n"


def entry(row: Setting) -> list[str]:
    aliases = ", ".join(f"`{alias}`" for alias in row.aliases)
    also = [f"- also written: {aliases}"] if aliases else []
    return [
        f"### `{row.key}`",
        "",
        row.help,
        "",
        f"- value: {row.form.name}",
        f"- default: `{row.default_text}`",
        f"- environment: `{row.variable}`",
        *also,
        "",
    ]


def test_the_page_is_current() -> None:
    if os.environ.get("SWARM_UPDATE_DOCS"):
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page(), encoding="utf-8")

    assert PAGE.read_text(encoding="utf-8") == page()
