"""Take a shell script apart into the simple commands in it, wherever they hide.

Not a shell: it only finds where commands begin and end, and gives up (``understood`` is False) at
whatever it does not know for sure, such as functions, ``case`` and quotes without an end.  Commands in
``$(…)``, backquotes, ``<(…)``, subshells and here-documents are found like all others.
"""

from __future__ import annotations

LONGEST = 1 << 16
_DEEPEST = 20
_CONTROL = frozenset(map(chr, (*range(9), *range(0xB, 0x20), 0x7F)))
_BLANK = " \t"
_ENDS_WORD = frozenset(" \t\n;&|<>()")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_DIGITS = frozenset("0123456789")
#: The longer ones first.
_REDIRECTIONS = ("&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", ">>", ">|", ">&", "<", ">")


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
        """Take more text that is what it is."""
        self.text += text
        if not (self.dynamic or self.globs):
            self.known += text

    def add_unknown(self, raw: str) -> None:
        """Take text that becomes something else."""
        self.dynamic = True
        self.text += raw


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
    end = _name_end(raw, 0)
    if end == 0:
        return False
    if raw.startswith("[", end):
        end = raw.find("]", end) + 1
    return end > 0 and raw.startswith(("=", "+="), end)


def _name_end(text: str, at: int) -> int:
    """Return where the name of a variable ends that may begin here."""
    if text[at : at + 1] not in _LETTERS:
        return at
    while at < len(text) and (text[at] in _LETTERS or text[at] in _DIGITS):
        at += 1
    return at


def _closing(text: str, at: int, quote: str) -> int:
    """Return where a quote closes in which a backslash hides the next character."""
    while at < len(text) and text[at] != quote:
        at += 2 if text[at] == "\\" else 1
    if at >= len(text):
        raise Unclear
    return at


def scan(text: str) -> tuple[list[Command], bool]:
    """Return the commands found, and whether that was all of it for sure."""
    scanner = _Scanner(text)
    if len(text) > LONGEST or not _CONTROL.isdisjoint(text):
        return [], False
    try:
        scanner.read_list("")
    except (Unclear, IndexError):
        return scanner.found, False
    return scanner.found, scanner.clear


def _without_backslashes(text: str) -> str:
    """Return what a shell reads between backquotes: a backslash hides a backquote, a dollar sign or another one."""
    made, at = "", 0
    while at < len(text):
        at += text[at] == "\\" and text[at + 1 : at + 2] in ("`", "$", "\\")
        made += text[at]
        at += 1
    return made


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.found: list[Command] = []
        self.clear = True
        self.bodies: list[tuple[Command, str, bool, bool]] = []  # here-documents whose text comes after the line

    # --- lists of commands -----------------------------------------------------------------------

    def read_list(self, closer: str) -> None:
        """Read commands up to *closer*, or the end."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise Unclear
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
            command.words.append(self._word())
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
        self.at += 1
        self.read_list(")")

    def _put_word(self, command: Command) -> None:
        word = self._word()
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
        if self.text[self.at] in _ENDS_WORD and self.text[self.at : self.at + 2] not in ("<(", ">("):
            raise Unclear
        word = self._word()
        if sign in ("<<", "<<-"):
            self.bodies.append((command, word.text, word.quoted, sign == "<<-"))
        elif sign == "<<<":
            command.fed.append(word.text)
            self.clear &= not word.dynamic
        elif sign in (">&", "<&") and _DIGITS.issuperset(word.text.removesuffix("-")):
            pass  # another descriptor
        else:
            self.clear &= not (word.dynamic or word.globs)
            (command.reads if sign in ("<", "<&") else command.writes).append(word.text)
            if sign == "<>":
                command.reads.append(word.text)

    def _read_bodies(self) -> None:
        waiting, self.bodies = self.bodies, []
        for command, delimiter, quoted, tabs in waiting:
            lines: list[str] = []
            while True:
                if self.at >= len(self.text):
                    raise Unclear
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end]
                self.at = end + 1
                if (line.lstrip("\t") if tabs else line) == delimiter:
                    break
                lines.append(line)
            body = "\n".join(lines)
            command.fed.append(body)
            if not quoted:
                self._look_into(body, "")

    def _look_into(self, text: str, closer: str) -> None:
        """Find the commands in a text that is expanded as in double quotes."""
        inner = _Scanner(text)
        inner.depth = self.depth
        inner._quoted(Word(), closer)
        self._adopt(inner)

    def _adopt(self, inner: _Scanner) -> None:
        self.found += inner.found
        self.clear &= inner.clear

    # --- words -----------------------------------------------------------------------------------

    def _word(self) -> Word:
        word = Word()
        start = self.at
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in "<>" and self.text.startswith("(", self.at + 1):
                self._substitution(word, 2)
            elif char in _ENDS_WORD:
                break
            else:
                self._piece(word, char)
        word.raw = self.text[start : self.at]
        return word

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
            self._quoted(word, '"')
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

    def _quoted(self, word: Word, closer: str) -> None:
        """Read what stands in double quotes, up to *closer* or the end."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == closer:
                self.at += 1
                return
            if char == "\\" and self.at + 1 < len(self.text):
                following = self.text[self.at + 1]
                word.add(following if following in '$`"\\' else "" if following == "\n" else char + following)
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
            self._backquotes(word)
            return
        following = self.text[self.at + 1 : self.at + 2]
        if following == "(":
            self._substitution(word, 2)
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
        elif following and (following in _LETTERS or following in "0123456789@*#?-$!"):
            end = _name_end(self.text, self.at + 1) if following in _LETTERS else self.at + 2
            word.add_unknown(self.text[self.at : end])
            self.at = end
        else:
            word.add("$")
            self.at += 1

    def _substitution(self, word: Word, opening: int) -> None:
        start = self.at
        self.at += opening
        waiting, self.bodies = self.bodies, []
        self.read_list(")")
        self.bodies = waiting
        word.add_unknown(self.text[start : self.at])

    def _backquotes(self, word: Word) -> None:
        end = _closing(self.text, self.at + 1, "`")
        inner = _Scanner(_without_backslashes(self.text[self.at + 1 : end]))
        inner.depth = self.depth
        inner.read_list("")
        self._adopt(inner)
        word.add_unknown(self.text[self.at : end + 1])
        self.at = end + 1

    def _braces(self, word: Word) -> None:
        """Read ``${…}``; what is in it may hold commands."""
        start = self.at
        self.at += 2
        self.depth += 1
        if self.depth > _DEEPEST:
            raise Unclear
        ignored = Word()
        while self.text[self.at] != "}":
            char = self.text[self.at]
            if char in "'\\":
                raise Unclear
            if char == '"':
                self.at += 1
                self._quoted(ignored, '"')
            elif char in "$`":
                self._expansion(ignored, char, quoted=True)
            else:
                self.at += 1
        self.at += 1
        self.depth -= 1
        word.add_unknown(self.text[start : self.at])
