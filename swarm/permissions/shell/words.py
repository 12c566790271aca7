"""The words of a shell's commands: their values after quotes and expansions, and the commands within.

Who reads a list of commands reads their words with this, and is asked for the lists in ``$(…)`` in turn.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

_DEEPEST = 20
ENDS_WORD = frozenset(" \t\n;&|<>()")
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
DIGITS = frozenset("0123456789")
#: Characters of an arithmetic expression besides names, numbers, parentheses and expansions.
_COUNTS = frozenset(" \t\n+-*/%<>=!&|^~?:,#@.[]")
#: Stands for an unknown number.
UNKNOWN_NUMBER = "$"
#: Programs that print numbers.
_NUMBERS = ("$(date ", "$(wc ", "$(seq ", "$(nproc", "$(expr ", "$(id -", "$(grep -c ")
_COUNTED = ("| wc -l)", "|wc -l)", "| wc -c)", "| wc -w)")


class Unclear(Exception):
    """Something is not known for sure."""


class Word:
    """One word of a command.

    Attributes:
        text: without its quotes; what only a shell could tell stays as written.
        raw: as written.
        known: the beginning of *text* that holds no matter what; all of it in a plain word.
        dynamic: it depends on a variable, another command, or expands to several words.
        quoted: some of it is in quotes.
        globs: files with matching names take its place.
    """

    __slots__ = ("dynamic", "globs", "known", "quoted", "raw", "text")

    def __init__(self) -> None:
        self.text = self.raw = self.known = ""
        self.dynamic = self.quoted = self.globs = False

    def add(self, text: str) -> None:
        """Add literal text."""
        self.text += text
        if not (self.dynamic or self.globs):
            self.known += text

    def add_unknown(self, raw: str) -> None:
        """Take text that becomes something else."""
        self.dynamic = True
        self.text += raw


def is_number(raw: str) -> bool:
    """Whether a word as written becomes a number for sure, or nothing."""
    raw = raw.strip('"')
    if "[" in raw:
        return False
    if DIGITS.issuperset(raw.removeprefix("-")) or raw in ("$#", "$?", "$$"):
        return True
    return (raw.startswith("$((") and raw.endswith("))")) or raw.startswith(_NUMBERS) or raw.endswith(_COUNTED)


def name_end(text: str, at: int) -> int:
    """Return where the name of a variable ends that may begin here."""
    if text[at : at + 1] not in LETTERS:
        return at
    while at < len(text) and (text[at] in LETTERS or text[at] in DIGITS):
        at += 1
    return at


def _closing(text: str, at: int, quote: str) -> int:
    """Return where a quote closes in which a backslash hides the next character."""
    while at < len(text) and text[at] != quote:
        at += 2 if text[at] == "\\" else 1
    if at >= len(text):
        raise Unclear
    return at


def _without_backslashes(text: str, hidden: str) -> str:
    """Return the text between backquotes as a shell reads it: a backslash hides another one, ``$`` or a backquote."""
    made, at = "", 0
    while at < len(text):
        at += text[at] == "\\" and text[at + 1 : at + 2] in tuple(hidden)
        made += text[at]
        at += 1
    return made


class WordReader:
    """Reads words out of a text.

    Attributes:
        at: where it is.
        clear: all was understood so far.
        numbers: variables that were calculated with, so that what is in them may be run: ``a[$(x)]`` is a number.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.clear = True
        self.numbers: set[str] = set()

    def read_list(self, closer: str) -> None:
        """Read commands up to *closer*, or the end."""
        raise NotImplementedError

    def substitution(self, word: Word, opening: int) -> None:
        """Read the commands behind so many characters, and the parenthesis that closes them."""
        raise NotImplementedError

    def adopt(self, inner: WordReader) -> None:
        """Add the findings of a part of the text."""
        self.clear &= inner.clear
        self.numbers |= inner.numbers

    def begin(self, text: str) -> Self:
        """Return the reader of a part of the text."""
        inner = type(self)(text)
        inner.depth = self.depth
        return inner

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise Unclear

    def word(self) -> Word:
        """Read the word that begins here."""
        word = Word()
        start = self.at
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in "<>" and self.text.startswith("(", self.at + 1):
                self.substitution(word, 2)
            elif char in ENDS_WORD:
                break
            else:
                if char == "[" and self.at > start and name_end(self.text, start) == self.at:
                    self._element()
                self._piece(word, char)
        word.raw = self.text[start : self.at]
        return word

    def _element(self) -> None:
        """Look at the index of a variable that is set: the shell evaluates it as arithmetic."""
        end = self.text.find("]", self.at)
        if end < 0 or not self.text.startswith(("=", "+="), end + 1):
            return
        inner = self.begin(self.text[self.at + 1 : end + 1])
        inner.count("]")
        self.adopt(inner)

    def _piece(self, word: Word, char: str) -> None:
        if char == "\\":
            if self.text[self.at + 1] != "\n":
                word.quoted = True
                word.add(self.text[self.at + 1])
            self.at += 2
        elif char == "'":
            end = self.text.find("'", self.at + 1)
            if end < 0:
                raise Unclear
            word.quoted = True
            word.add(self.text[self.at + 1 : end])
            self.at = end + 1
        elif char == '"':
            word.quoted = True
            self.at += 1
            self.read_quoted(word, '"')
        elif char in "$`":
            self._expansion(word, char, quoted=False)
        else:
            self._plain(word, char)

    def _plain(self, word: Word, char: str) -> None:
        alone = char == "[" and self.text[self.at + 1 : self.at + 2] in (" ", "[")  # a command, no pattern
        word.globs |= char in "*?[" and not alone
        if char == "{" and self.text[self.at + 1 : self.at + 2] not in ("}", "", " ", "\t", "\n"):
            word.dynamic = True  # {a,b}: may be several words
        word.add(char) if not word.dynamic else word.add_unknown(char)
        self.at += 1

    def read_quoted(self, word: Word, closer: str) -> None:
        """Read the text in double quotes, up to *closer* or the end."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == closer:
                self.at += 1
                return
            if char == "\\" and self.at + 1 < len(self.text):
                following = self.text[self.at + 1]
                hides = following in "$`\\" or (following == '"' and closer)
                word.add(following if hides else "" if following == "\n" else char + following)
                self.at += 2
            elif char in "$`":
                self._expansion(word, char, quoted=True)
            else:
                word.add(char)
                self.at += 1
        if closer:
            raise Unclear

    def _expansion(self, word: Word, char: str, *, quoted: bool) -> None:
        if char == "`":
            self._backquotes(word, quoted=quoted)
            return
        following = self.text[self.at + 1 : self.at + 2]
        if self.text.startswith("((", self.at + 1):
            self._arithmetic(word)
        elif following == "(":
            self.substitution(word, 2)
        elif following == "{":
            self._braces(word)
        elif following == "[":
            raise Unclear
        elif following == "'" and not quoted:
            end = _closing(self.text, self.at + 2, "'") + 1
            word.add_unknown(self.text[self.at : end])
            self.at = end
        elif following == '"' and not quoted:
            word.add_unknown("$")
            self.at += 1
        elif following and (following in LETTERS or following in "0123456789@*#?-$!"):
            end = name_end(self.text, self.at + 1) if following in LETTERS else self.at + 2
            word.add_unknown(self.text[self.at : end])
            self.at = end
        else:
            word.add("$")
            self.at += 1

    def _backquotes(self, word: Word, *, quoted: bool) -> None:
        end = _closing(self.text, self.at + 1, "`")
        text = self.text[self.at + 1 : end]
        if quoted and '\\"' in text:  # in a here-document shells differ about it
            self.clear = False
        inner = self.begin(_without_backslashes(text, '`$\\"' if quoted else "`$\\"))
        inner.read_list("")
        self.adopt(inner)
        word.add_unknown(self.text[self.at : end + 1])
        self.at = end + 1

    def _braces(self, word: Word) -> None:
        """Read ``${…}``, in which there may be commands."""
        start = self.at
        self.at += 2
        self._deeper()
        self._parameter()
        ignored = Word()
        while self.text[self.at] != "}":
            char = self.text[self.at]
            if char in "'\\":
                raise Unclear
            if char == '"':
                self.at += 1
                self.read_quoted(ignored, '"')
            elif char in "$`":
                self._expansion(ignored, char, quoted=True)
            elif char in "<>" and self.text.startswith("(", self.at + 1):
                self.substitution(ignored, 2)
            else:
                self.at += 1
        self.at += 1
        self.depth -= 1
        word.add_unknown(self.text[start : self.at])

    def _parameter(self) -> None:
        """Read the start of ``${``: a name, its index, and the operator."""
        if self.text[self.at] == "!":  # of another name, which may be that of an element
            end = name_end(self.text, self.at + 1)
            if end > self.at + 1 and not self.text.startswith(("*}", "@}", "[@]}", "[*]}"), end):
                raise Unclear
            self.at = end
            return
        self.at += self.text[self.at] == "#" and self.text[self.at + 1] != "}"
        self.at = max(name_end(self.text, self.at), self.at + (self.text[self.at] in "0123456789@*#?-$!"))
        if self.text.startswith(("[@]", "[*]"), self.at):
            self.at += 3
        elif self.text[self.at] == "[":
            self.at += 1
            self.count("]")
        if self.text[self.at] == "@" and self.text[self.at + 1] == "P":
            raise Unclear  # its value is expanded again
        if self.text[self.at] == ":" and self.text[self.at + 1] not in "-=?+":
            self.at += 1
            self.count("}")
            self.at -= 1

    # --- numbers ---------------------------------------------------------------------------------

    def _arithmetic(self, word: Word) -> None:
        start = self.at
        self.at += 3
        self._deeper()
        self.count("))")
        self.depth -= 1
        word.add_unknown(self.text[start : self.at])

    def count(self, closer: str) -> None:
        """Read an arithmetic expression and its closing characters."""
        opened = 0
        while opened or not self.text.startswith(closer, self.at):
            char = self.text[self.at]
            if char in LETTERS:
                end = name_end(self.text, self.at)
                self.numbers.add(self.text[self.at : end])
                self.at = end
            elif char in DIGITS:  # 16#ff and 0xff, too
                while self.text[self.at] in DIGITS or self.text[self.at] in LETTERS or self.text[self.at] == "#":
                    self.at += 1
            elif char in "$`":
                self._counted_with(char)
            elif char in "()":
                opened += 1 if char == "(" else -1
                self.at += 1
            elif char in _COUNTS and opened >= 0:
                self.at += 1
            else:
                raise Unclear
        self.at += len(closer)

    def _counted_with(self, char: str) -> None:
        """Read an expansion in an arithmetic expression; the shell evaluates its value as arithmetic, too."""
        start = self.at
        ignored = Word()
        self._expansion(ignored, char, quoted=True)
        raw = self.text[start : self.at]
        name = raw[2:-1] if raw.startswith("${") else raw[1:]
        if name and name_end(name, 0) == len(name):
            self.numbers.add(name)
        elif not is_number(raw) and not raw.startswith("${#"):
            self.numbers.add(UNKNOWN_NUMBER)
