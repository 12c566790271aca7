"""Documentation pages that are executed: what a page shows is what happens.

A page is worked through from top to bottom in one scratch repository, ``~/project``; the README where there is none.

* ```` ```console ```` blocks: ``$ `` starts a command, ``> `` goes on with it, the lines below are what it prints
  (both streams).
  A line with only ``…`` stands for any number of lines.
* ```` ```python ```` blocks: run in the repository; a ```` ```text ```` block right after one is what it prints.
* ``<!-- wait: condition -->``: readers do not see it; here the shell command is tried until it succeeds.
* All other blocks are only read.

Agents run in a tmux server of the page's own, which is the default one for every command of the page.
Ids, times, ages and process numbers are compared by shape, runs of spaces and columns as one space.  With
``SWARM_UPDATE_DOCS=1`` the output of a page is written anew where it differs.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.callers.caller import user_name
from swarm.testing.panes import PaneLab
from swarm.testing.terminal import at_terminal, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_WAIT = re.compile(r"^<!-- wait: (.*) -->$", re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_SHAPES = (
    (re.compile(r"\b\d{8}T\d{6}-[0-9a-f]{11}\b"), "ID"),
    (re.compile(r"\b[0-9a-f]{40}\b|\b[0-9a-f]{7,12}\b"), "COMMIT"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?Z?"), "TIME"),
    (re.compile(r"(?<= )\d+[smhd]\b"), "AGE"),
    (re.compile(r"\(\d+[smhd] ago\)"), "(AGE ago)"),
    (re.compile(r"\b(pid|process|process:)\s+\d+"), r"\1 N"),
    (re.compile(r"[ \t]+"), " "),
    # Whoever runs this, and however long the name is; on the pages it is Ada.
    (re.compile(rf"\b(?:ada|{re.escape(user_name())}) +(?=done$)", re.MULTILINE), "WHO "),
)


@dataclass
class Shown:
    """One thing a page shows: what is run, and the place of its output in the page."""

    command: list[str]
    output: str
    start: int
    end: int


@contextlib.contextmanager
def scratch(folder: Path) -> Iterator[PaneLab]:
    """Give the repository of a page, with the swarm of this checkout on the PATH."""
    lab = PaneLab(folder, "home/project")
    # As a reader has it: no setting, tmux's default server; only that tmux looks for it elsewhere.
    del lab.env["SWARM_TMUX_SOCKET"]
    lab.env |= {"TMUX_TMPDIR": str(lab.tmux.folder), "COLUMNS": "80", "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    lab.tmux.socket = str(lab.tmux.folder / f"tmux-{os.geteuid()}" / "default")
    try:
        yield lab
    finally:
        lab.close()


def run_page(page: Path, lab: PaneLab, begin: Path | None = None) -> None:
    """Run everything the page shows, first in *begin* (default: the repository), and compare; or write it anew."""
    text = page.read_text(encoding="utf-8")
    wrong: list[str] = []
    changes: list[tuple[int, int, str]] = []
    where = begin or lab.root
    waits = [(found.start(), found[1]) for found in _WAIT.finditer(text)]
    for shown in _shown(text):
        while waits and waits[0][0] < shown.start:
            condition = waits.pop(0)[1]
            wait_for(lambda: _holds(condition, where, lab), condition, 60)  # noqa: B023  # called right here
        printed, where = _run(shown.command, where, lab)
        if not _same(shown.output, printed):
            line = text.count("\n", 0, shown.start)
            wrong.append(f"{page.name}:{line}: {shown.command[-1]}\n--- shown\n{shown.output}--- printed\n{printed}")
            changes.append((shown.start, shown.end, printed))
    if wrong and os.environ.get("SWARM_UPDATE_DOCS"):
        for start, end, printed in reversed(changes):
            text = text[:start] + printed + text[end:]
        page.write_text(text, encoding="utf-8")
        return
    assert not wrong, "\n\n".join(wrong)


def _shown(text: str) -> Iterator[Shown]:
    blocks = list(_BLOCK.finditer(text))
    for number, block in enumerate(blocks):
        if block[1] == "console":
            yield from _commands(block[2], block.start(2))
        elif block[1] == "python":
            after = blocks[number + 1] if number + 1 < len(blocks) else None
            if after is not None and after[1] == "text" and not text[block.end() : after.start()].strip():
                yield Shown([sys.executable, "-c", block[2]], after[2], after.start(2), after.end(2))
            else:
                yield Shown([sys.executable, "-c", block[2]], "", block.end(), block.end())


def _commands(body: str, at: int) -> Iterator[Shown]:
    form = r"^\$ (?P<command>.*(?:\\\n.*)*(?:\n> .*)*)\n(?P<output>(?:(?!\$ ).*\n)*)"
    for part in re.finditer(form, body, re.MULTILINE):
        start, end = part.span("output")
        command = part["command"].replace("\n> ", "\n")
        yield Shown(["bash", "-c", command], part["output"], at + start, at + end)


def _run(command: list[str], where: Path, lab: PaneLab) -> tuple[str, Path]:
    """Run and return what it printed, and the directory it ended in."""
    note = lab.root.parent / "where"
    if command[0] == "bash":
        command = ["bash", "-c", f"{command[-1]}\ncode=$?; pwd > {shlex.quote(str(note))}; exit $code"]
    done = _typed(command, where, lab)
    printed = done.stdout.decode("utf-8", "replace").replace(str(lab.root.parent), "~")
    assert command[0] == "bash" or done.returncode == 0, f"{command[-1]}\n{printed}"
    return printed, Path(note.read_text().strip()) if note.exists() else where


def _holds(condition: str, where: Path, lab: PaneLab) -> bool:
    time.sleep(0.1)
    return _typed(["bash", "-c", condition], where, lab).returncode == 0


def _typed(command: list[str], where: Path, lab: PaneLab) -> subprocess.CompletedProcess[bytes]:
    """Run as the reader does, who has a terminal; what is printed goes into one pipe."""
    done: subprocess.CompletedProcess[bytes] = at_terminal(
        lambda: subprocess.run(
            command,
            cwd=where,
            env=lab.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=60,
        )
    )
    return done


def _same(shown: str, printed: str) -> bool:
    parts = [re.escape(_shape(part)) for part in re.split(r"^…\n", shown, flags=re.MULTILINE)]
    return re.fullmatch(r"(?:.*\n)*".join(parts), _shape(printed)) is not None


def _shape(text: str) -> str:
    for pattern, name in _SHAPES:
        text = pattern.sub(name, text)
    return text


def broken_links(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere; those to other sites are not followed."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    bad = []
    for link in _LINK.findall(text):
        target, _, anchor = link.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (anchor and anchor not in _anchors(path)):
            bad.append(link)
    return bad


def _anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}
