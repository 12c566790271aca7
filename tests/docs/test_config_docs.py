"""docs/configuration.md and docs/files.md are made from the descriptions that read the files.

After a change of a setting: ``SWARM_UPDATE_DOCS=1 pytest tests/docs/test_config_docs.py``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm.project.config.settings import SECTIONS, Setting, describe
from swarm.roles.agent_file import AGENT
from swarm.roles.bridge_file import BRIDGE
from swarm.roles.file import ROLE
from swarm.roles.pods.template import POD
from swarm.roles.workflows import WORKFLOW

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.kit.forms import Form

pytestmark = pytest.mark.component

PAGE = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"
FILES = PAGE.with_name("files.md")

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


FILES_HEAD = """\
# Files: every key

<!-- Made by tests/docs/test_config_docs.py from the descriptions that read the files; do not edit by hand. -->

Every key of the files that you write. [Roles](roles.md), [Pods](pods.md), [Bridges](bridges.md) and
[Serve an agent](service.md) explain keys with examples; [Configuration](configuration.md) lists the settings. Each key
may also be written in camelCase.
✎ marks what `swarm start --override` can change, too.

Editors that speak JSON Schema complete and check these files. `swarm init`, and `init` of `role`, `pod` and `bridge`,
write the schemas into `schema/` of the swarm directory, and a first line into the new file:

```yaml
# yaml-language-server: $schema=../.swarm/schema/role.json
```

The path is relative, so the line works offline, on every machine and for every colleague with a `.swarm`. In an older
file, add the line by hand. `swarm config schema role` prints a schema.
"""


def files_page() -> str:
    parts = [FILES_HEAD]
    for name, form in (
        ("Role", ROLE),
        ("Pod template", POD),
        ("Workflow", WORKFLOW),
        ("Bridge", BRIDGE),
        ("Served agent", AGENT),
    ):
        parts += [f"## {name}", "", "| key | value | means |", "|---|---|---|", *rows(form), ""]
    return "\n".join(parts).rstrip() + "\n"


def rows(form: Form[Any], before: str = "") -> Iterator[str]:
    for name, field in form.fields.items():
        also = f" Also written {', '.join(f'`{alias}`' for alias in field.aliases)}." if field.aliases else ""
        mark = " ✎" if field.override else ""
        yield f"| `{before}{name}`{mark} | {field.form.name.replace('|', '&#124;')} | {field.help}{also} |"
        yield from rows(field.form, f"{before}{name}.")


@pytest.mark.parametrize(("path", "made"), [(PAGE, page), (FILES, files_page)], ids=["configuration", "files"])
def test_the_page_is_current(path: Path, made: Any) -> None:
    if os.environ.get("SWARM_UPDATE_DOCS"):
        path.write_text(made(), encoding="utf-8")

    assert path.read_text(encoding="utf-8") == made()
