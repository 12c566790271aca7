"""Every command explains itself, with an example; the reference page is made of the same words."""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
import typer

from swarm.cli.app import build
from swarm.cli.command_table import ALIASES, COMMANDS, INTERNAL
from swarm.cli.help import GLOBAL_NAMES
from tests.cli.conftest import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.integration

#: Asked before a test has an environment of its own.
UPDATES = bool(os.environ.get("SWARM_UPDATE_DOCS"))
TREE: Any = build()


def commands(command: Any = TREE, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Walk the tree, groups first, in the order of the help."""
    yield path, command
    for name in command.list_commands(None) if hasattr(command, "commands") else ():
        below = command.get_command(None, name)
        if not below.hidden:  # those are swarm's own, not the user's
            yield from commands(below, (*path, name))


ALL = [path for path, _ in commands()]
VERBS = [path for path, command in commands() if not hasattr(command, "commands")]


def test_the_table_names_what_each_module_adds_and_nothing_else() -> None:
    added = {}
    for module in {entry.module for entry in COMMANDS.values()}:
        tree = typer.Typer()
        import_module(f"swarm.cli.commands.{module}").add_to(tree)
        added.update(dict.fromkeys(typer.main.get_group(tree).commands, module))

    assert added == {name: entry.module for name, entry in COMMANDS.items()}
    assert {name for name in COMMANDS if name.startswith("_")} == {name for name in INTERNAL if name.startswith("_")}
    assert not set(ALIASES) & set(COMMANDS)
    assert set(ALIASES.values()) <= set(COMMANDS)


def test_no_command_has_got_lost() -> None:
    assert {" ".join(path) for path in VERBS} >= {
        *(
            "version",
            "init",
            "diff",
            "conflicts",
            "merge",
            "cleanup",
            "recover",
            "restore",
            "validate",
            "log",
            "config show",
        ),
        *(
            f"worktree {verb}"
            for verb in ("create", "list", "show", "lock", "unlock", "remove", "prune", "update-role")
        ),
        *("salvage list", "salvage show", "salvage drop", "role list", "role show"),
    }


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help_has_an_example_and_fits_the_terminal(cli: Cli, path: tuple[str, ...], monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = cli.ok(*path, "--help")

    assert said.out == cli.ok(*path, "-h").out
    assert said.err == ""
    if path:
        assert "  Example" in said.out
        assert f"    swarm {' '.join(path)}".rstrip() in said.out
    assert max(len(line) for line in said.out.splitlines()) <= 80


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_every_command_takes_the_global_options(path: tuple[str, ...]) -> None:
    command = dict(commands())[path]

    assert set(GLOBAL_NAMES) <= {parameter.name for parameter in command.params}
    assert all(parameter.help for parameter in command.params)


def reference() -> str:
    """Return the reference of all commands, as Markdown."""
    lines = [
        "# Commands",
        "",
        "Made from the help of the commands; `SWARM_UPDATE_DOCS=1 scripts/test tests/cli/test_help.py` writes it anew.",
        "What `--json` prints is in [json.md](json.md).",
    ]
    for path, command in commands():
        lines += _chapter(("swarm", *path), command)
    return "\n".join(lines) + "\n"


def _chapter(path: tuple[str, ...], command: Any) -> list[str]:
    is_group = hasattr(command, "commands")
    usage = "[OPTIONS] COMMAND" if is_group else " ".join(command.collect_usage_pieces(None))
    about = "\n".join(line.strip() for line in command.help.splitlines())
    lines = ["", f"## {' '.join(path)}", "", f"    {' '.join(path)} {usage}", "", about]
    records = []
    for one in command.params:
        if one.name in GLOBAL_NAMES and len(path) > 1:
            continue
        name = one.metavar if one.param_type_name == "argument" else ", ".join((*one.opts, *one.secondary_opts))
        if one.param_type_name == "option" and one.metavar:
            name += f" {one.metavar}"
        shows = one.show_default and isinstance(one.default, (str, int)) and not isinstance(one.default, bool)
        default = f" (default: `{one.default}`)" if shows else ""
        records.append(f"- `{name}`: {one.help}{default}")
    if records:
        lines += ["", *records]
    if is_group and len(path) == 1:
        lines += [
            "",
            "`-C`, `--json`, `--no-color` and `--quiet` are taken by every command, before and after its name.",
        ]
    examples = (command.epilog or "").splitlines()[2:]
    if not examples:
        return lines
    return [*lines, "", "```console", *(f"$ {line.strip()}" for line in examples), "```"]


def test_the_reference_page_is_up_to_date() -> None:
    page = PROJECT / "docs" / "commands.md"
    if UPDATES:
        page.parent.mkdir(exist_ok=True)
        page.write_text(reference(), encoding="utf-8")

    assert page.read_text(encoding="utf-8") == reference(), "run with SWARM_UPDATE_DOCS=1"


def test_the_first_page_fits_a_small_terminal_and_names_every_command(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    page = cli.ok("--help").out

    assert [cli.ok(*words).out for words in (("-h",), ("help",))] == [page] * 2
    assert len(page.splitlines()) <= 24
    assert set(re.split(r"[\s,]+", page)) >= {name for name in COMMANDS if name not in INTERNAL}
    assert not [name for name in INTERNAL if name in page]


def test_help_shows_each_command_as_the_command_itself_does(cli: Cli) -> None:
    assert cli.ok("help", "inbox", "take").out == cli.ok("inbox", "take", "--help").out
    assert cli.ok("help", "logs").out == cli.ok("transcript", "--help").out
    every = cli.ok("help", "--all")
    assert all(
        f"  {name} " in every.out and COMMANDS[name].summary in every.out for name in COMMANDS if name not in INTERNAL
    )
    wrong = cli("help", "inbox", "taek")
    assert (wrong.code, "did you mean 'take'" in wrong.err.casefold()) == (2, True)
    assert cli("help", "version", "x").code == 2


def test_words_of_other_tools_mean_the_same(cli: Cli) -> None:
    assert cli.ok("ls", "--json").out == cli.ok("list", "--json").out
    assert cli.ok("ps").err == cli.ok("status").err


def test_swarm_alone_shows_the_state_of_a_repository_and_elsewhere_the_help(cli: Cli, tmp_path: Path) -> None:
    assert (cli.ok().out, cli.ok().err) == (cli.ok("status").out, cli.ok("status").err)
    outside = cli.program(cwd=tmp_path)
    assert (outside.code, outside.out) == (0, cli.program("--help", cwd=tmp_path).out)


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_the_page_about_json_describes_every_command(path: tuple[str, ...]) -> None:
    page = (PROJECT / "docs" / "json.md").read_text(encoding="utf-8")

    assert f"`{' '.join(path)}`" in page


def test_a_command_of_swarms_own_is_not_suggested(cli: Cli) -> None:
    assert "did you mean 'status'" in cli("statsu").err.casefold()
    said = cli("budget")
    assert (said.code, "no such command 'budget'" in said.err, "_budget" in said.err) == (2, True, False)
