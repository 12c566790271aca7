"""Print everything the program says, for people or as JSON.

Data goes to stdout, all else to stderr.  Colour repeats what the words say already, and only on a
terminal.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, NamedTuple, TextIO

from swarm.cli import table as tables
from swarm.cli.text import lead_of, lines_of, plain, reflowed, shorten, width, wrapped

SCHEMA = 1
_NARROWEST = 20
_STYLES = {"heading": "1", "bad": "1;31", "warn": "33", "good": "32", "hint": "36", "dim": "2"}


class OutputLost(Exception):
    """The reader of the output is gone, or the output cannot be written."""


class Answer(NamedTuple):
    """The result of a command, for people and machines.

    Attributes:
        data: for machines.
        show: prints the same for people.
        warnings: what the user should know; for machines they are in *data*.
        next: what to type next, as ``label: command``.
        errors: for machines, what did not work of a thing that was partly done.
        exit_code: of the process; another than 0 means partly done.
        status: of the envelope, where it is not what *exit_code* says.
    """

    data: Mapping[str, Any]
    show: Callable[[Output], None]
    warnings: Sequence[str] = ()
    next: Sequence[str] = ()
    errors: Sequence[Mapping[str, Any]] = ()
    exit_code: int = 0
    status: str = ""


class Output:
    """Where the words go.

    Attributes:
        json: one envelope on stdout instead of words.
        quiet: no progress and no suggestions.
        color: False after ``--no-color``.
    """

    def __init__(self) -> None:
        self.json = False
        self.quiet = False
        self.color = True
        self._progress_shown = False

    # --- for people ----------------------------------------------------------------------------

    def out(self, text: str = "", style: str = "") -> None:
        """Print a line of data. The caller has made foreign text safe with ``plain``."""
        self._write(sys.stdout, self.paint(text, style, sys.stdout))

    def raw(self, text: str, style_of: Callable[[str], str] = lambda _line: "") -> None:
        """Print data as it is, byte for byte; on a terminal each line is made safe first.

        Args:
            style_of: gives the style of a line there.
        """
        if _is_terminal(sys.stdout):
            for line in text.splitlines():
                self.out(plain(line.expandtabs(8)), style_of(line))
            return
        self.clear_progress()
        write_bytes(sys.stdout, text.encode("utf-8", "surrogateescape"))

    def err(self, text: str = "", style: str = "") -> None:
        """Print a line of anything else."""
        self._write(sys.stderr, self.paint(text, style, sys.stderr))

    def label(self, label: str, text: str, style: str) -> None:
        """Print ``label: text`` on stderr, the label in colour; of a suggestion the command stays on one line."""
        self.item(f"{label}: ", text, style, err=True, command_last=style == "hint")

    def table(self, columns: Sequence[tables.Column], rows: Sequence[Sequence[str | tables.Cell]]) -> None:
        """Print a table of data."""
        for line in tables.table(columns, rows, self.room(), lambda text, style: self.paint(text, style, sys.stdout)):
            self.out(line)

    def pairs(self, pairs: Sequence[tuple[str, str | tables.Cell]], prose: Sequence[str] = ()) -> None:
        """Print ``name  value`` lines, aligned; a value is never cut, one can copy it.

        Args:
            prose: names of those values that are sentences, and are broken at words.
        """
        longest = max((len(name) for name, _ in pairs), default=0)
        for name, value in pairs:
            cell = value if isinstance(value, tables.Cell) else tables.Cell(value)
            gap = " " * (longest - len(name))
            if name in prose and not cell.style:
                self.item(f"{name}:{gap} ", cell.text, "heading")
                continue
            head = self.paint(f"{name}:", "heading", sys.stdout) + gap
            self.out(f"{head} {self.paint(plain(cell.text), cell.style, sys.stdout)}".rstrip())

    def prose(self, text: str, margin: str = "") -> None:
        """Print a text in Markdown; where the terminal is too narrow, paragraphs are broken anew."""
        lines, room = lines_of(text), self.room()
        if room is not None and any(width(margin + line) > room for line in lines):
            lines = reflowed(lines)
        for line in lines:
            head = lead_of(line)
            if line.strip():
                self.item(margin + head, line[len(head) :])
            else:
                self.out()

    def item(self, head: str, text: str, style: str = "", *, err: bool = False, command_last: bool = False) -> None:
        """Print a text of any length behind a head; on a terminal its further lines begin where the first one does.

        Args:
            style: of the head.
            err: it is no data, and goes to stderr.
            command_last: a command at the end of the text stays on one line.
        """
        stream = sys.stderr if err else sys.stdout
        indent, room = width(head), self.room(stream)
        lines = [plain(text)]
        if room is not None:
            lines = wrapped(lines[0], max(room - indent, _NARROWEST), command_last=command_last)
        word = head.rstrip()
        self._write(stream, self.paint(word, style, stream) + head[len(word) :] + lines[0])
        for line in lines[1:]:
            self._write(stream, " " * indent + line)

    def room(self, stream: TextIO | None = None) -> int | None:
        """Return the columns of the terminal behind a stream, stdout by itself; None when it is no terminal.

        Nothing is cut then.
        """
        with contextlib.suppress(ValueError):
            if (columns := int(os.environ.get("COLUMNS", ""))) > 0:
                return columns
        return shutil.get_terminal_size().columns if _is_terminal(stream or sys.stdout) else None

    def paint(self, text: str, style: str, stream: TextIO | None) -> str:
        """Give *text* a colour where colour is wanted."""
        code = _STYLES.get(style)
        return f"\x1b[{code}m{text}\x1b[0m" if code and text and self._may_paint(stream) else text

    def _may_paint(self, stream: TextIO | None) -> bool:
        wanted = self.color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        return wanted and not self.json and _is_terminal(stream)

    # --- progress ------------------------------------------------------------------------------

    def progress(self, text: str) -> None:
        """Show the current step on one line that is rewritten."""
        if self.quiet or self.json or os.environ.get("TERM") == "dumb" or not _is_terminal(sys.stderr):
            return
        room = shutil.get_terminal_size().columns - 1
        self._progress_shown = True
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"\r\x1b[K{self.paint(shorten(plain(text), room), 'dim', sys.stderr)}")
            sys.stderr.flush()

    def clear_progress(self) -> None:
        """Take the progress line away."""
        if self._progress_shown:
            self._progress_shown = False
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()

    def interject(self, text: str) -> None:
        """Print a line on stderr at once, from a handler of a signal: another line may be half written."""
        if self.quiet or self.json:
            return
        lead = "\r\x1b[K" if self._progress_shown else ""
        with contextlib.suppress(OSError, ValueError, AttributeError):  # nobody may be listening
            os.write(sys.stderr.fileno(), f"{lead}{text}\n".encode())

    def clear_screen(self) -> None:
        """Begin a fresh screen, for repeated views on a terminal."""
        write(sys.stdout, "\x1b[H\x1b[2J")

    def _write(self, stream: TextIO | None, line: str) -> None:
        self.clear_progress()
        write(stream, line + "\n")

    # --- whole answers -------------------------------------------------------------------------

    def answer(self, command: str, answer: Answer) -> int:
        """Print the result of a command; return the exit status."""
        if self.json:
            status = answer.status or ("partial" if answer.exit_code else "ok")
            self.envelope(command, status, answer.exit_code, answer.data, answer.errors)
            return answer.exit_code
        answer.show(self)
        for warning in answer.warnings:
            self.label("warning", warning, "warn")
        for step in () if self.quiet else answer.next:
            label, _, text = step.partition(": ")
            self.label(label, text, "hint")
        return answer.exit_code

    def envelope(
        self,
        command: str,
        status: str,
        exit_code: int,
        data: Mapping[str, Any],
        errors: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Print the one JSON object of a command."""
        whole = {
            "schema": SCHEMA,
            "command": command,
            "status": status,
            "exit_code": exit_code,
            "data": jsonable(data),
            "errors": jsonable(list(errors)),
        }
        self._write(sys.stdout, json.dumps(whole, ensure_ascii=True))


def jsonable(value: object) -> object:
    """Return *value* as JSON knows it: dataclasses become objects, paths text, enums their value."""
    result: object = str(value)
    if value is None or (isinstance(value, (bool, int, float, str)) and not isinstance(value, Enum)):
        result = value
    elif isinstance(value, Enum):
        result = jsonable(value.value)
    elif is_dataclass(value) and not isinstance(value, type):
        result = {field.name: jsonable(getattr(value, field.name)) for field in fields(value)}
    elif isinstance(value, Mapping):
        result = {str(key): jsonable(item) for key, item in value.items()}
    elif isinstance(value, (list, tuple, set, frozenset)):
        result = [jsonable(item) for item in value]
    elif isinstance(value, bytes):
        result = os.fsdecode(value)
    return result


def write(stream: TextIO | None, text: str) -> None:
    """Write at once, in any encoding of the stream.

    Raises:
        OutputLost: stdout is closed or full. stderr may be: there is nobody to tell.
    """
    if stream is None:  # closed by the parent process
        return
    try:
        try:
            stream.write(text)
        except UnicodeEncodeError:
            encoding = stream.encoding or "ascii"
            stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except (OSError, ValueError) as error:
        if stream is sys.stdout:
            raise OutputLost(str(error)) from error


def write_bytes(stream: TextIO | None, data: bytes) -> None:
    """Write bytes at once.

    Raises:
        OutputLost: the stream is closed or full.
    """
    if stream is None:
        return
    try:
        stream.flush()
        stream.buffer.write(data)
        stream.buffer.flush()
    except (OSError, ValueError) as error:
        raise OutputLost(str(error)) from error


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def lost_output() -> int:
    """Return the exit status after `OutputLost`, and let Python's own last flush find nothing wrong."""
    error = sys.exc_info()[1]
    cause = error.__cause__ if isinstance(error, OutputLost) else error
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    if isinstance(cause, BrokenPipeError):
        return 141  # as if ended by SIGPIPE: the reader has seen enough
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"error: cannot write the output: {plain(cause)}\n\ncode: ENVIRONMENT\n")
    return 5
