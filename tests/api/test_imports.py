"""Importing costs nothing that is not used, and imports only go down."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.sources import SWARM, files, nodes_of

pytestmark = pytest.mark.component

ROOT = Path(__file__).parents[2]
HEAVY = ("git", "libtmux", "yaml", "filelock", "typer", "click", "rich", "subprocess", "asyncio", "sqlite3")


def loaded_by(code: str) -> list[str]:
    """Return the modules of HEAVY, and of swarm, that are loaded after *code*."""
    tail = f"; import json, sys; print(json.dumps([m for m in sys.modules if m in {HEAVY!r} or m.startswith('swarm')]))"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}{tail}"],
        capture_output=True,
        check=True,
        text=True,
    )
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    "code",
    [
        "import swarm",
        "from swarm import SwarmError, WorkAtRisk",
        "import swarm.worktrees",
        "from swarm import Swarm",
        "import swarm.api.swarm",
    ],
)
def test_importing_loads_no_library_and_no_program_runner(code: str) -> None:
    assert not set(loaded_by(code)) & set(HEAVY)


def test_the_bare_package_loads_only_its_version() -> None:
    assert set(loaded_by("import swarm")) == {"swarm", "swarm.version"}


def test_looking_up_all_public_names_works_and_loads_no_library() -> None:
    loaded = loaded_by("import swarm; [getattr(swarm, name) for name in swarm.__all__]")
    assert not set(loaded) & {"git", "libtmux", "typer", "filelock", "yaml"}


# --- imports only go down -----------------------------------------------------------------------------


def imports_of(path: Path) -> set[str]:
    """Return every module that a file names in an import, wherever in it that stands."""
    found: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            found.add(module)
            found.update(f"{module}.{alias.name}" for alias in node.names)
    return found


def files_of(layer: str) -> list[Path]:
    return [path for path in files() if path.is_relative_to(SWARM / layer)]


def test_every_room_has_its_place_and_a_page_of_its_own() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    placed = {
        name.strip().removeprefix("swarm.")
        for layer in config["tool"]["importlinter"]["contracts"][0]["layers"]
        for name in layer.split("|")
    }
    rooms = {path.parent.name for path in (ROOT / "swarm").glob("*/__init__.py")}

    assert rooms <= placed
    assert {room for room in rooms if not (ROOT / "swarm" / room / "README.md").is_file()} <= {"demo", "testing"}
    assert all(f"| `{room}/` |" in (ROOT / "DESIGN.md").read_text(encoding="utf-8") for room in rooms)


def test_only_the_history_uses_gitpython() -> None:
    users = [path.relative_to(ROOT) for path in files_of(".") if imports_of(path) & {"git", "gitdb"}]
    assert users == [Path("swarm/git/history.py")]


def test_the_engine_of_the_bus_is_named_where_it_is_opened_and_nowhere_else_above_it() -> None:
    users = {str(path.relative_to(ROOT / "swarm")) for path in files_of(".") if "swarm.bus.filebus" in imports_of(path)}
    assert users == {"messages/settings.py"}


#: What changes names and makes them durable, and what locks: the one place of each.
ONE_PLACE = {
    "os.rename": "machine/own.py",
    "os.replace": "machine/own.py",
    "os.fsync": "machine/atomic.py",
    "os.fdatasync": "machine/atomic.py",
    "flock": "machine/locks.py",
    "fcntl.flock": "machine/locks.py",
}


def test_files_are_renamed_synced_and_locked_in_one_place_each() -> None:
    found = [
        (name, str(path.relative_to(ROOT / "swarm")))
        for path in files_of(".")
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and (name := ast.unparse(node.func)) in ONE_PLACE
    ]

    assert {place for _, place in found} == {"machine/own.py", "machine/atomic.py", "machine/locks.py"}
    assert [one for one in found if ONE_PLACE[one[0]] != one[1]] == []


#: Files that are run by themselves.
PROGRAMS = {
    "bridges/desktop.py",
    "bridges/webhook.py",
    "chores.py",
    "machine/mcp/door.py",
    "machine/mcp/wait.py",
    "machine/hook.py",
    "machine/turn_end.py",
    "mcp_door/__main__.py",
    "permissions/guard.py",
    "testing/guardian.py",
}


#: Processes of their own that reach a socket by a short path, and go back before anything else runs.
IN_ONE_THREAD = {"machine/mcp/forward.py", "listening/places.py"}


def test_the_library_never_prints_or_exits() -> None:
    wrong = []
    for path in files_of("."):
        relative = path.relative_to(ROOT / "swarm")
        if relative.parts[0].startswith(("cli", "supervisor", "demo", "__main__")) or str(relative) in PROGRAMS:
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                if name == "os.chdir" and str(relative) in IN_ONE_THREAD:
                    continue
                if name in {"print", "input", "exit", "quit", "sys.exit", "sys.stdout.write", "os.chdir"}:
                    wrong.append(f"{relative}:{node.lineno} calls {name}")
    assert wrong == []
