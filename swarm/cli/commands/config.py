"""``swarm config …``: the settings in effect, and the schemas of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm.cli import completion
from swarm.cli.output import Answer, Output
from swarm.cli.table import Column
from swarm.cli.text import place, plain
from swarm.cli.verb import Run, group, verb

if TYPE_CHECKING:
    from swarm import Origin, Setting, Settings

app = group("config", "Show the settings, and the schemas of files.", "swarm config show")


def add_to(root: typer.Typer) -> None:
    """Add the group to the tree."""
    root.add_typer(app)


@verb(
    app,
    "show",
    attempt="cannot show the settings",
    examples="""
    swarm config show
    swarm config show git.timeout
    swarm config show tmux
    """,
)
def show(
    run: Run,
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="[KEY]",
            help="Only this setting or section.",
            autocompletion=completion.settings,
            show_default=False,
        ),
    ] = None,
) -> Answer:
    """Show every setting with its value and origin."""
    from swarm import Config

    config = Config.around(run.directory)
    settings, chosen = config.settings, config(key)
    is_one = key is not None and chosen[0].key == key
    data = {"settings": [_data(setting, settings) for setting in chosen]}
    return Answer(data, lambda output: _show(output, settings, chosen, only_value=is_one))


@verb(
    app,
    "schema",
    attempt="cannot print the schema {name}",
    examples="""
    swarm config schema role
    swarm config schema config > config.schema.json
    """,
)
def schema(
    run: Run,  # noqa: ARG001  # it looks at no folder
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="bridge, config, role, pod or workflow.", show_default=False)
    ],
) -> Answer:
    """Print the JSON Schema of a kind of file, by which editors complete and check it.

    `swarm init`, and `init` of `role`, `pod` and `bridge`, write the schemas into `schema/` of the swarm directory, and
    a first line into the new file that names its schema.
    """
    import json

    from swarm import Config

    found = Config.schema(name)
    text = json.dumps(found, indent=2, ensure_ascii=False)
    return Answer({"name": name, "schema": found}, lambda output: output.out(text))


def _data(setting: Setting, settings: Settings) -> dict[str, Any]:
    value = settings.value_of(setting.key)
    origin = settings.origins[setting.key]
    return {
        "key": setting.key,
        "value": value,
        "text": setting.form.show(value),
        "origin": origin.kind,
        "where": origin.where,
        "default": setting.default,
        "variable": setting.variable,
        "help": setting.help,
    }


def _show(output: Output, settings: Settings, chosen: tuple[Setting, ...], *, only_value: bool) -> None:
    if only_value:
        output.out(plain(chosen[0].form.show(settings.value_of(chosen[0].key))))
        return
    rows = [(one.key, one.form.show(settings.value_of(one.key)), _from(settings.origins[one.key])) for one in chosen]
    output.table((Column("KEY", keep="all"), Column("VALUE"), Column("FROM", keep="end")), rows)


def _from(origin: Origin) -> str:
    return str(origin.kind) if not origin.where or origin.where == "command line" else place(origin.where)
