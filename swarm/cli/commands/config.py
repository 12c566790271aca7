"""``swarm config …``: the settings in effect."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm.cli import completion
from swarm.cli.output import Answer, Output
from swarm.cli.table import Column
from swarm.cli.text import place, plain
from swarm.cli.verb import Run, group, verb
from swarm.git.errors import NotARepo

if TYPE_CHECKING:
    from swarm.project.config.settings import Origin, Setting, Settings

app = group("config", "Show the settings.", "swarm config show")


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
    from swarm.project.config.settings import describe, find_setting

    settings = _settings(run)
    section = tuple(one for one in describe() if key is not None and one.key.startswith(f"{key}."))
    if key is not None and not section:
        settings.value_of(key)  # says what was meant, if it is none
    one = find_setting(key) if key is not None and not section else None
    chosen = (one,) if one is not None else section or describe()
    data = {"settings": [_data(setting, settings) for setting in chosen]}
    return Answer(data, lambda output: _show(output, settings, chosen, only_value=one is not None))


def _settings(run: Run) -> Settings:
    from swarm.project import dirs
    from swarm.project.config.file import load_settings

    try:
        return run.open().settings
    except NotARepo:
        return load_settings(None, user_dir=dirs.user_dir(os.environ), environ=os.environ)


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
