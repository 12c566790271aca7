"""Translate a role's rules for Gemini CLI's policy engine, which matches the text of a tool's arguments.

Its rules are regular expressions on the arguments as JSON.  A deny rule forbids more than it says where that cannot
be said exactly; an allow rule that would allow more than it says is left out.
"""

from __future__ import annotations

import json
import re
from functools import partial
from itertools import product
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from swarm.permissions.rules import EDITORS, READERS
from swarm.permissions.translation import (
    ITS_READS,
    MORE_THAN_SAID,
    NO_TOOL,
    WRAPPERS,
    Gap,
    Gaps,
    Way,
    denied_forms,
    spaced,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from swarm.permissions.rules import Rule, Rules

_READS = ("read_file", "read_many_files", "list_directory", "glob", "grep_search")
#: Its names for the tools in rules.
_TOOLS = {
    "Bash": ("run_shell_command",),
    **dict.fromkeys(EDITORS, ("replace", "write_file")),
    "Read": _READS,
    "Glob": ("glob",),
    "Grep": ("grep_search",),
    "LS": ("list_directory",),
    "WebFetch": ("web_fetch",),
    "WebSearch": ("google_web_search",),
    "Agent": ("invoke_agent",),
    "Task": ("invoke_agent",),
    "Skill": ("activate_skill",),
    "TodoWrite": ("write_todos",),
}
#: The argument that holds a name.
_NAMES = {"Agent": "agent_name", "Task": "agent_name", "Skill": "name"}
#: The same for allow rules, where one tool must not stand for another. The others have no tool of their own here.
_ALLOWED_TOOLS = {
    **{tool: names for tool, names in _TOOLS.items() if tool not in EDITORS},
    "Edit": ("replace", "write_file"),
    "Write": ("write_file",),
}
#: Anything within one argument: the program puts a null character before and after each.
_ANY = "[^\\x00]*"
#: White space between words as it stands in JSON, lines that go on included. A literal parenthesis before a group
#: that is repeated looks to the program like one that it refuses; then letters may count as blanks, and more is denied.
_BLANK = r"( |\\[tnr]|\\\\\\n)+"
_BLANK_WITHOUT_GROUP = r"[ \\][ \\tnr]*"
#: Anything in a command that cannot make it do more than its first words say.
_HARMLESS = r'([^\x00\\$`<>;&|()]|\\")*'
#: Anything within one text, and within one part of a path.
_PLAIN, _PART = r'[^"\\]*', r'[^"/\\]*'
#: How a path begins that counts from where the agent works; `..` leads elsewhere.
_HERE = r'(?!/|~|[^"]*\.\.)'
_DENIED, _ALLOWED = 999, 0
#: In the others nothing is opened by a rule.
_OPEN_MODES = ("default", "autoEdit", "yolo")

_TOO_LONG = "it takes no rule of that length or form"
_LONGEST = 2048
#: What the program refuses: a repeated group that holds a repetition.
_NESTED = re.compile(r"\([^)]*[*+?{].*\)[*+?{]")


class Translation(NamedTuple):
    """Rules as the texts of two policy files, and the parts that the program does not enforce.

    They are apart since what an administrator allows would win over what the user denies.
    """

    denied: str
    allowed: str
    gaps: Gaps


class _Said(NamedTuple):
    """One rule: its tools, the forms of arguments (empty is any), and the parts not enforced."""

    tools: dict[str, object]
    forms: Sequence[str]
    gap: Gap | None = None


def translate(rules: Rules, root: str = "", folder: str = ".") -> Translation:
    """Translate rules into the program's language.

    Args:
        rules: of the role.
        root: the worktree, for paths that are given whole.
        folder: where in it the agent works, and other paths count from.
    """
    below = "/".join(PurePosixPath(folder).parts)
    denials = [_taken(rule, _denial(rule, below)) for rule in rules.deny]
    starts = [*([] if below else [_HERE]), *([rf'(?![^"]*\.\.){_literal(root)}/'] if root else [])]
    allowances = [_taken(rule, _allowance(rule, starts)) for rule in rules.allow]
    denied = [
        {**said.tools, **_about(form), "decision": "deny", "denyMessage": f"Denied by the rule {rule.text}"}
        for rule, said in zip(rules.deny, denials, strict=True)
        for form in said.forms
    ]
    allowed = [
        {**said.tools, **_about(form), "decision": "allow", "modes": _OPEN_MODES}
        for said in allowances
        for form in said.forms
    ]
    gaps = Gaps(_gaps(allowances), _gaps(denials))
    return Translation(_policy(denied, _DENIED), _policy(allowed, _ALLOWED), gaps)


def _taken(rule: Rule, said: _Said) -> _Said:
    """Leave out a rule that the program would not take."""
    if any(len(form) > _LONGEST or _NESTED.search(form) for form in said.forms):
        return _Said({}, (), Gap(rule.text, _TOO_LONG))
    return said


def _gaps(said: Iterable[_Said]) -> tuple[Gap, ...]:
    return tuple(one.gap for one in said if one.gap)


def _about(form: str) -> dict[str, object]:
    return {"argsPattern": form} if form else {}


def _policy(tables: Iterable[dict[str, object]], priority: int) -> str:
    """Return rules as TOML; JSON's strings and lists of them are a part of that, but for the delete character."""
    return "\n".join(
        "\n".join(
            ["[[rule]]", f"priority = {priority}", *(f"{key} = {json.dumps(one)}" for key, one in table.items()), ""]
        )
        for table in tables
    )


# --- denials --------------------------------------------------------------------------------------


def _denial(rule: Rule, folder: str) -> _Said:
    pattern = rule.pattern
    if rule.tool.startswith("mcp__"):
        _, server, *tool = rule.tool.split("__", 2)
        exact = tool and "*" not in tool[0]
        return _Said({"mcpName": server, "toolName": tool[0] if exact else "*"}, ("",))
    tools = _TOOLS.get(rule.tool, ())
    if not tools:
        return _Said({}, (), Gap(rule.text, NO_TOOL))
    if pattern is None:
        return _Said({"toolName": list(tools)}, ("",))
    if rule.tool in READERS:
        return _Said({"toolName": "read_file"}, tuple(_files(pattern, folder)), Gap(rule.text, ITS_READS, in_part=True))
    files = partial(_files, folder=folder)
    way = Way(_commands, files, _literal, lambda name: f'"{_NAMES[rule.tool]}":"{_wild(name, _ANY)}"')
    forms, why = denied_forms(rule.tool, pattern, way)
    return _Said({"toolName": list(tools)}, forms, Gap(rule.text, why, in_part=True) if why else None)


def _commands(pattern: str) -> Iterator[str]:
    """Give the forms of a command: by its path, behind a variable, a redirection or another program, for a shell."""
    form = spaced(pattern)
    blank = _BLANK if "(" not in form else _BLANK_WITHOUT_GROUP
    stem = blank.join(_wild(word, _ANY) for word in form.removesuffix(" *").split(" ") if word)
    whole = f'{stem}[ "\\\\<>&|;]' if form.endswith(" *") else f'{stem}"'
    yield f'"command":"{whole}'
    yield f'"command":"[^ ]*/{whole}'
    yield f'"command":"[^ ]*={_ANY}{blank}{whole}'
    yield f'"command":"[0-9&]*[<>]{_ANY}{blank}{whole}'
    yield f'"command":"({"|".join(WRAPPERS)}){blank}{_ANY}{whole}'
    yield f'"command":"[a-z/]*sh{blank}-{_ANY}{stem}'
    yield f'"command":"eval{blank}{_ANY}{stem}'


def _files(pattern: str, folder: str) -> Iterator[str]:
    """Give the forms of a path: as it is from the worktree or the agent's folder in it, and as the end of any other."""
    path = pattern.removeprefix("./").removeprefix("~/").strip("/").removeprefix("**/").removesuffix("/**")
    for seen in dict.fromkeys((path, *_seen_from(folder, path))):
        yield f'"file_path":"{_anywhere(seen)}["/]' if seen else '"file_path":"(?!/)'
    yield f'"file_path":"[^"]*/{_anywhere(path)}["/]'


def _seen_from(folder: str, pattern: str) -> Iterator[str]:
    """Yield the patterns that a path's pattern means for paths in a folder; empty is all of them."""
    if not folder or not pattern:
        yield pattern
        return
    (here, _, below), (first, _, rest) = folder.partition("/"), pattern.partition("/")
    if first == "**":
        yield from (pattern, rest)
        yield from _seen_from(folder, rest)
    elif re.fullmatch(_path(first, "[^/]*"), _escaped(here)):
        yield from _seen_from(below, rest)


def _anywhere(pattern: str) -> str:
    return '[^"]*'.join(_path(part, '[^"/]*') for part in pattern.replace("/**/", "/**").split("**"))


# --- allowances -----------------------------------------------------------------------------------


def _allowance(rule: Rule, starts: Sequence[str]) -> _Said:
    """Return a policy that allows no more than a rule; empty if Gemini cannot express it."""
    if rule.tool.startswith("mcp__"):
        _, server, *tool = rule.tool.split("__", 2)
        name = tool[0] if tool else "*"
        tools: dict[str, object] = {"mcpName": server, "toolName": name}
        forms: Sequence[str] = ("",) if name == "*" or "*" not in name else ()
    elif rule.tool not in _ALLOWED_TOOLS:
        return _Said({}, (), Gap(rule.text, NO_TOOL))
    else:
        names = ("read_file",) if rule.tool == "Read" and rule.pattern else _ALLOWED_TOOLS[rule.tool]
        tools = {"toolName": list(names)}
        forms = ("",) if rule.pattern is None else _allowed_forms(rule.tool, rule.pattern, starts)
    return _Said(tools, forms, None if forms else Gap(rule.text, MORE_THAN_SAID))


def _allowed_forms(tool: str, pattern: str, starts: Sequence[str]) -> Sequence[str]:
    if tool == "Bash":
        return _allowed_commands(pattern)
    if tool == "Read" or tool in EDITORS:
        return _allowed_files(pattern, starts)
    return (f'\\x00"{_NAMES[tool]}":"{_wild(pattern, _PLAIN)}"\\x00',) if tool in _NAMES else ()


def _allowed_commands(pattern: str) -> Sequence[str]:
    form = spaced(pattern)
    forms = [form, form.removesuffix(" *")] if form.endswith(" *") else [form]
    return [f'\\x00"command":"{_wild(one, _HARMLESS)}"\\x00' for one in forms]


def _allowed_files(pattern: str, starts: Sequence[str]) -> Sequence[str]:
    """Return the forms of files in the worktree; none for others, and for patterns with ``**`` within them."""
    name = pattern.removeprefix("./").removesuffix("/**").strip("/").removeprefix("**/")
    if pattern.startswith(("//", "~")) or "**" in name.removeprefix("**"):
        return ()
    anywhere = pattern.startswith("**/") or "/" not in pattern.rstrip("/")
    between = ("", f"{_PLAIN}/") if anywhere else ("",)
    ends = (f"/{_PLAIN}",) if pattern.endswith(("/", "/**")) else ("", f"/{_PLAIN}")
    if name in ("", "**"):
        between, name, ends = ("",), "", (_PLAIN,)
    return [
        f'\\x00"file_path":"{start}{way}{_path(name, _PART)}{end}"\\x00'
        for start, way, end in product(starts, between, ends)
    ]


# --- texts ----------------------------------------------------------------------------------------


def _wild(pattern: str, star: str) -> str:
    return star.join(_literal(part) for part in pattern.split("*"))


def _path(pattern: str, star: str) -> str:
    return star.removesuffix("*").join(_wild(part, star) for part in pattern.split("?"))


def _literal(text: str) -> str:
    """Return an expression that matches a text as JSON spells it."""
    return re.escape(_escaped(text))


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
