"""Take a shell script apart into the simple commands in it, wherever they hide.

Not a shell: it only finds where commands begin and end.  It gives up (``understood`` is False) at syntax that it
does not know for sure, such as functions, ``case`` and quotes without an end.  Commands in
``$(…)``, backquotes, ``<(…)``, subshells and here-documents are found like all others.
"""

from __future__ import annotations

from swarm.permissions.shell.words import (
    DIGITS,
    ENDS_WORD,
    UNKNOWN_NUMBER,
    Unclear,
    Word,
    WordReader,
    is_number,
    name_end,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST = 1 << 16
_CONTROL = frozenset(map(chr, (*range(9), *range(0xB, 0x20), 0x7F)))
_BLANK = " \t"
#: The longer ones first.
_REDIRECTIONS = ("&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", ">>", ">|", ">&", "<", ">")


#: Variables that are numbers by themselves.
_COUNTERS = frozenset(
    {"RANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID", "BASHPID", "EPOCHSECONDS", "COLUMNS", "LINES"}
)


_SEQUENCE = frozenset("{}0123456789.,-")
#: So many words such as `do` and `then` can come before a loop.
_MOST_KEYWORDS = 4


class Command:
    """One simple command, as it stands there.

    Attributes:
        writes, reads: files it is redirected to and from.
        fed: texts of its here-documents and here-strings.
        piped: another command's output goes in.
    """

    __slots__ = ("fed", "piped", "reads", "words", "writes")

    def __init__(self, *, piped: bool = False) -> None:
        self.words: list[Word] = []
        self.writes: list[str] = []
        self.reads: list[str] = []
        self.fed: list[str] = []
        self.piped = piped


def is_assignment(word: Word) -> bool:
    """Whether a word before a command sets a variable."""
    return assigns(word.raw)


def assigns(raw: str) -> bool:
    """Whether a word as written is ``NAME=…``, ``NAME+=…`` or ``NAME[…]=…``."""
    end = name_end(raw, 0)
    if end == 0:
        return False
    if raw.startswith("[", end):
        end = raw.find("]", end) + 1
    return end > 0 and raw.startswith(("=", "+="), end)


def scan(text: str) -> tuple[list[Command], bool]:
    """Return the commands found, and whether that was all of it for sure."""
    scanner = _Scanner(text)
    if len(text) > LONGEST or not _CONTROL.isdisjoint(text):
        return [], False
    try:
        scanner.read_list("")
    except (Unclear, IndexError):
        return scanner.found, False
    return scanner.found, scanner.clear and _are_numbers(scanner.numbers, scanner.found)


def _are_numbers(names: set[str], commands: Sequence[Command]) -> bool:
    """Whether variables in an arithmetic expression hold numbers; any other value may run a command."""
    left = names - _COUNTERS
    if not left:
        return True
    known: dict[str, bool] = {}
    for words in (command.words for command in commands):
        loop = next((n for n, word in enumerate(words[:_MOST_KEYWORDS]) if word.raw == "for"), None)
        if loop is not None and loop + 1 < len(words):
            name = words[loop + 1].raw
            known[name] = known.get(name, True) and all(_counts(word.raw) for word in words[loop + 3 :])
            continue
        for word in words:
            name, sign, value = word.raw.partition("=")
            name = name.removesuffix("+")
            if word.text in left:  # as in `read x`
                known[word.text] = False
            elif sign and name in left:
                known[name] = known.get(name, True) and is_number(value)
    return UNKNOWN_NUMBER not in left and all(known.get(name, False) for name in left)


def _counts(raw: str) -> bool:
    """Whether a word of a loop becomes numbers."""
    return is_number(raw) or (raw.startswith("{") and raw.endswith("}") and set(raw) <= _SEQUENCE)


class _Scanner(WordReader):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.found: list[Command] = []
        self.bodies: list[tuple[Command, Word, bool]] = []  # here-documents whose text comes after the line

    # --- lists of commands -----------------------------------------------------------------------

    def read_list(self, closer: str) -> None:
        """Read commands up to *closer*, or the end."""
        self._deeper()
        command = Command()
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == closer:
                self._end(command)
                self.at += 1
                self.depth -= 1
                return
            command = self._take(command, char)
        self._end(command)
        if closer:
            raise Unclear
        if self.bodies:
            raise Unclear  # a here-document without its text
        self.depth -= 1

    def _take(self, command: Command, char: str) -> Command:
        if char in _BLANK or self.text.startswith("\\\n", self.at):
            self.at += 1 if char in _BLANK else 2
        elif char == "#":
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end
        elif char in "<>" and self.text.startswith("(", self.at + 1):
            command.words.append(self.word())
        elif char in "<>" or self.text.startswith("&>", self.at):
            self._redirect(command)
        elif char in "\n;&|":
            return self._operator(command, char)
        elif char == "(":
            self._subshell(command)
        elif char == ")":
            raise Unclear
        else:
            self._put_word(command)
        return command

    def _end(self, command: Command) -> None:
        if command.words or command.writes or command.reads or command.fed:
            self.found.append(command)

    def _operator(self, command: Command, char: str) -> Command:
        self._end(command)
        if self.text.startswith((";;", ";&"), self.at):
            raise Unclear  # the inside of a `case`
        both = self.text[self.at : self.at + 2]
        self.at += 2 if both in ("&&", "||", "|&") else 1
        if char == "\n":
            self._read_bodies()
        return Command(piped=char == "|" and both != "||")

    def _subshell(self, command: Command) -> None:
        if any(word.raw not in ("!", "if", "then", "else", "elif", "do", "while", "until") for word in command.words):
            raise Unclear  # a function, an array, a pattern
        if self.text.startswith("((", self.at):
            raise Unclear  # arithmetic, in most shells
        self.at += 1
        self.read_list(")")

    def _put_word(self, command: Command) -> None:
        word = self.word()
        follows = self.text[self.at : self.at + 1]
        if follows in ("<", ">") and follows and word.raw.isdigit():
            return  # the number of a descriptor
        if follows == "(":
            raise Unclear
        command.words.append(word)

    # --- redirections ----------------------------------------------------------------------------

    def _redirect(self, command: Command) -> None:
        sign = next((one for one in _REDIRECTIONS if self.text.startswith(one, self.at)), None)
        if sign is None:
            raise Unclear
        self.at += len(sign)
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1
        if self.text[self.at] in ENDS_WORD and self.text[self.at : self.at + 2] not in ("<(", ">("):
            raise Unclear
        word = self.word()
        if sign in ("<<", "<<-"):
            if word.dynamic:
                raise Unclear  # it does not end where it seems to
            self.bodies.append((command, word, sign == "<<-"))
        elif sign == "<<<":
            command.fed.append(word.text)
            self.clear &= not word.dynamic
        elif sign in (">&", "<&") and DIGITS.issuperset(word.text.removesuffix("-")):
            pass  # another descriptor
        else:
            if sign in (">&", "<&") and not set("$`").isdisjoint(word.text):
                raise Unclear  # bash expands it twice, whatever its quotes
            self.clear &= not (word.dynamic or word.globs)
            (command.reads if sign in ("<", "<&") else command.writes).append(word.text)
            if sign == "<>":
                command.reads.append(word.text)

    def _read_bodies(self) -> None:
        waiting, self.bodies = self.bodies, []
        for command, delimiter, tabs in waiting:
            lines: list[str] = []
            while (line := self._body_line(delimiter, tabs=tabs)) is not None:
                lines.append(line)
            body = "\n".join(lines)
            command.fed.append(body if delimiter.quoted else self._look_into(body))

    def _body_line(self, delimiter: Word, *, tabs: bool) -> str | None:
        """Read a line of a here-document; None when it is the one that ends it."""
        line = ""
        while True:
            if self.at >= len(self.text):
                raise Unclear
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            piece = self.text[self.at : end]
            self.at = end + 1
            joined = bool(line)
            line += piece
            ends = (line.lstrip("\t") if tabs else line) == delimiter.text
            if joined and (ends or (piece.lstrip("\t") if tabs else piece) == delimiter.text):
                self.clear = False  # shells differ about a line that goes on at such a place
            if ends:
                return None
            if delimiter.quoted or (len(line) - len(line.rstrip("\\"))) % 2 == 0:
                return line
            line = line[:-1]

    def _look_into(self, text: str) -> str:
        """Find the commands in a text that is expanded as in double quotes; return it as far as it is known."""
        inner = self.begin(text)
        word = Word()
        inner.read_quoted(word, "")
        self.adopt(inner)
        return word.text

    def adopt(self, inner: WordReader) -> None:
        """Add the findings of a part of the text."""
        super().adopt(inner)
        self.found += inner.found if isinstance(inner, _Scanner) else ()

    def substitution(self, word: Word, opening: int) -> None:
        """Read the commands behind so many characters, and the parenthesis that closes them."""
        start = self.at
        self.at += opening
        waiting, self.bodies = self.bodies, []
        self.read_list(")")
        if self.bodies or (waiting and "\n" in self.text[start : self.at]):
            raise Unclear  # where the text of a here-document begins that was opened before
        self.bodies = waiting
        word.add_unknown(self.text[start : self.at])
