"""Write tmux commands and parse tmux output. Pure functions."""

from __future__ import annotations

import contextlib
import functools
import re
from typing import TYPE_CHECKING

from swarm.terminal.values import Pane

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: A pane's mark: ``repository operation session``, in one option because every option of 64 panes takes its time.
MARK = "@swarm_mark"
FIELDS = (
    *("pane_id", "window_id", MARK, "@swarm_agent"),
    *("pane_pid", "pane_dead", "pane_in_mode", "pane_width", "pane_height", "session_name"),
)
SEPARATOR = "\t"
LIST = ("list-panes", "-a", "-F", SEPARATOR.join(f"#{{{name}}}" for name in FIELDS))
_BORDER = " #{@swarm_agent}#{?@swarm_state, · #{@swarm_state},} "


def literal(text: str) -> str:
    """Write a text so that tmux takes it as it is."""
    return text.replace("#", "##")


def read_panes(lines: Iterable[str]) -> tuple[Pane, ...]:
    """Parse the output of ``LIST``; panes without our mark are foreign."""
    return tuple(_pane(row) for row in read_rows(lines) if row[2].count(" ") == 2)


def read_rows(lines: Iterable[str]) -> Iterator[list[str]]:
    """Give the rows of a listing; a line that is none, such as a path with a tab, is left out."""
    rows = (line.split(SEPARATOR) for line in lines)
    return (row for row in rows if len(row) == len(FIELDS))


def _pane(row: list[str]) -> Pane:
    number = {name: int(row[at]) if row[at].isdigit() else 0 for name, at in (("pid", 4), ("w", 7), ("h", 8))}
    repository, operation, session = row[2].split(" ")
    return Pane(
        id=row[0],
        window=row[1],
        repository=repository,
        operation=operation,
        session=session,
        agent=row[3],
        pid=number["pid"],
        dead=row[5] == "1",
        in_mode=row[6] not in ("", "0"),
        width=number["w"],
        height=number["h"],
        tmux_session=row[9],
    )


def strip(lines: list[str]) -> None:
    """Take the empty lines off the end."""
    while lines and not lines[-1].strip():
        lines.pop()


def window_options(target: str) -> list[list[str]]:
    """Return the options with which a window keeps dead panes and its name, and labels its panes."""
    return [
        ["set-option", "-q", "-w", "-t", target, name, value]
        for name, value in (
            ("remain-on-exit", "on"),  # the exit status and the last words stay to be seen
            ("pane-died", ""),  # and no hook of the user's takes them away
            ("pane-exited", ""),
            ("remain-on-exit-format", ""),  # tmux 3.3: the launcher has said it; a line below would push the words away
            ("automatic-rename", "off"),
            ("allow-rename", "off"),
            ("pane-border-status", "top"),
            ("pane-border-format", _BORDER),
        )
    ]


def pane_options(target: str, mark: str, agent: str) -> list[list[str]]:
    """Mark a pane; of a window it is the active one, which is the newest."""
    return [["set-option", "-p", "-t", target, name, value] for name, value in ((MARK, mark), ("@swarm_agent", agent))]


@contextlib.contextmanager
def packed(commands: Sequence[Sequence[str]], longest: int) -> Iterator[list[str]]:
    """Give the arguments that make tmux run commands: these themselves, or a file of them if they are too long."""
    if length(commands) < longest:
        yield words_of(commands)
        return
    import tempfile

    with tempfile.NamedTemporaryFile("w", prefix="swarm-", suffix=".tmux", errors="surrogateescape") as file:
        file.write("".join(_line(command) + "\n" for command in commands))
        file.flush()
        yield ["source-file", file.name]


def words_of(commands: Iterable[Sequence[str]]) -> list[str]:
    """Join commands to one argument list; a semicolon at the end of a word would end the command there."""
    words: list[str] = []
    for command in commands:
        words += [f"{word[:-1]}\\;" if word.endswith(";") else word for word in command]
        words.append(";")
    return words[:-1]


def length(commands: Iterable[Sequence[str]]) -> int:
    """Return how many bytes commands take as arguments."""
    return sum(len(word.encode("utf-8", "surrogateescape")) + 1 for word in words_of(commands))


def _line(words: Iterable[str]) -> str:
    """Write a command for a tmux file: in double quotes, with a backslash before characters special in them."""
    return " ".join(_word(word) for word in words)


@functools.lru_cache(maxsize=1024)  # the same few words stand in the commands of every pane
def _word(word: str) -> str:
    escaped = re.sub(r'([\\"$]|^~)', r"\\\1", word).replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f'"{escaped}"'
