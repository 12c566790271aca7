"""Translate a role's rules for opencode, which matches the text of a tool's arguments; the last match counts.

Its ``*`` stands for anything, slashes too, and ``?`` for one character.  So a deny rule may forbid more here than
it says, never less without being named; an allow rule that would allow more than it says is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from swarm.permissions.rules import EDITORS, READERS, Behavior
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
    from collections.abc import Iterator, Mapping, Sequence

    from swarm.permissions.rules import Rule, Rules

#: Its names for the tools in rules.  One permission is for all tools that write.
_TOOLS = {
    "Bash": ("bash",),
    **dict.fromkeys(EDITORS, ("edit",)),
    "Read": ("read",),
    "Glob": ("glob",),
    "Grep": ("grep",),
    "LS": ("list",),
    "WebFetch": ("webfetch",),
    "WebSearch": ("websearch",),
    "Agent": ("task",),
    "Task": ("task",),
    "Skill": ("skill",),
    "TodoWrite": ("todowrite",),
}
_BUILT_IN = frozenset(name for names in _TOOLS.values() for name in names)
#: Shells, which run a text.
_SHELLS = ("*sh -*", "*sh  *-*", "*sh\t*-*", "eval *", "eval\t*")
#: How white space begins that is more than one blank; a backslash continues a line.
_BLANKS = ("  ", " \t", "\t", " \\\n", "\\\n")
#: It asks for no permission for these.
_NEVER_ASKED = ("cd", "popd", "pushd")
#: A command with one of these can do more than its first words say; one that a rule allows is asked about again.
_MORE = ("*>*", "*<*", "*$*", "*`*")

_NEVER = "it asks for no permission there"


class Translation(NamedTuple):
    """Rules in the form of the program's configuration.

    Attributes:
        permission: what is allowed, then what is denied, by tool.
        denials: what is denied alone.
        gaps: what is not held, or only in part.
    """

    permission: dict[str, dict[str, str]]
    denials: dict[str, dict[str, str]]
    gaps: Gaps = Gaps()


def translate(rules: Rules, otherwise: str = Behavior.ASK) -> Translation:
    """Translate rules into the program's language.

    Args:
        rules: of the role.
        otherwise: what is done with a command that no rule is about.
    """
    allows: dict[str, dict[str, str]] = {}
    allow_gaps = []
    for rule in rules.allow:
        found, gap = _allowance(rule)
        allow_gaps += [gap] if gap else []
        for tool, pattern in found:
            allows.setdefault(tool, {})[pattern] = Behavior.ALLOW
    for tool, patterns in allows.items():
        if tool == "bash" and "*" not in patterns:
            patterns.update(dict.fromkeys(_MORE, otherwise))
    denials: dict[str, dict[str, str]] = {}
    deny_gaps = []
    for rule in rules.deny:
        found, gap = _denial(rule)
        deny_gaps += [gap] if gap else []
        for tool, pattern in found:
            denials.setdefault(tool, {})[pattern] = Behavior.DENY
    return Translation(_both(allows, denials), _both({}, denials), Gaps(tuple(allow_gaps), tuple(deny_gaps)))


def _both(allows: Mapping[str, dict[str, str]], denials: Mapping[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Put denials last, where they win, under tool names that no other configuration uses.

    The program merges configurations, and a name that is there already would keep its place before others.
    """
    made = {}
    for tool in (*(name for name in allows if name not in denials), *denials):
        denied = denials.get(tool, {})
        kept = {pattern: action for pattern, action in allows.get(tool, {}).items() if pattern not in denied}
        if kept or denied:
            made[_own(tool) if denied or tool in _BUILT_IN else tool] = {**kept, **denied}
    return made


def _own(tool: str) -> str:
    """Return another pattern for the same tools, of an MCP server's perhaps for some more."""
    return f"{tool}*" if tool.endswith("*") else f"{tool[:-1]}?"


# --- denials --------------------------------------------------------------------------------------


def _denial(rule: Rule) -> tuple[list[tuple[str, str]], Gap | None]:
    """Return denials for everything that a rule matches, as tools and patterns, and the gaps."""
    pattern = rule.pattern
    tools = _mcp(rule) if rule.tool.startswith("mcp__") else _TOOLS.get(rule.tool, ())
    if not tools:
        return [], Gap(rule.text, NO_TOOL)
    if pattern is None:
        tools = ("read", "glob", "grep", "list") if rule.tool == "Read" else tools
        return [(tool, "*") for tool in tools], None
    if rule.tool in READERS:
        return [("read", form) for form in _files(pattern)], Gap(rule.text, ITS_READS, in_part=True)
    if rule.tool == "Bash" and pattern.split(" ", 1)[0].removesuffix(":*") in _NEVER_ASKED:
        return [], Gap(rule.text, _NEVER)
    forms, why = denied_forms(rule.tool, pattern, _WAY)
    return [(tools[0], form) for form in forms], Gap(rule.text, why, in_part=True) if why else None


def _commands(pattern: str) -> Iterator[str]:
    """Give the forms of a command: by its path, behind a variable, a redirection or another program, for a shell."""
    form = spaced(pattern)
    stem = form.removesuffix(" *")
    first, _, rest = form.partition(" ")
    yield form
    if form.startswith("*"):
        return
    yield f"*/{form}"
    yield f"*=* {form}"
    yield f"?{first}? {rest}" if rest else f"?{first}?"
    yield from (f"*{sign}* {form}" for sign in "<>")
    yield from (f"*{blank}{form}" for blank in ("\t", "\\\n*"))
    yield from (f"{wrapper} *{form}" for wrapper in WRAPPERS)
    yield from (f"{shell}{stem}*" for shell in _SHELLS)
    yield from (f"{stem}{sign}*" for sign in "<>" if form != stem)
    yield from _unusually_spaced(form)


def _unusually_spaced(form: str) -> Iterator[str]:
    """Give the forms of a command that has something else than one blank in one place, and anything in the others."""
    words = [word for word in form.removesuffix(" *").split(" ") if word]
    for place in range(1, len(words)):
        before, behind = "?*".join(words[:place]), "?*".join(words[place:])
        yield from (f"*{before}{blanks}*{behind}*" for blanks in _BLANKS)
    if form.endswith(" *"):
        yield from (f"*{'?*'.join(words)}{blanks}*" for blanks in _BLANKS if blanks[0] != " ")


def _files(pattern: str) -> Iterator[str]:
    """Give the forms of a path, from the worktree: the files themselves and all below them, wherever they may lie."""
    anywhere, path = _place(pattern)
    name = path.removesuffix("/**").replace("/**/", "/*")
    yield from (name, f"{name}/*")
    if anywhere:
        yield from (f"*/{name}", f"*/{name}/*")


_WAY = Way(_commands, _files, lambda host: f"*{host}*", str)


def _place(pattern: str) -> tuple[bool, str]:
    """Return whether a path may lie anywhere, as seen from the worktree, and its fixed end."""
    if pattern.startswith(("//", "~/")):
        return True, pattern[2:].rstrip("/")
    path = pattern.removeprefix("./").strip("/")
    name = path.removeprefix("**/")
    return "/" not in pattern.rstrip("/") or name != path, name


# --- allowances -----------------------------------------------------------------------------------


def _allowance(rule: Rule) -> tuple[list[tuple[str, str]], Gap | None]:
    """Return a permission that allows no more than a rule; nothing if opencode cannot express it."""
    pattern = rule.pattern
    tools = _mcp(rule) if rule.tool.startswith("mcp__") else _TOOLS.get(rule.tool, ())
    if not tools:
        return [], Gap(rule.text, NO_TOOL)
    if rule.tool in EDITORS and rule.tool != "Edit":  # it does not tell writing a file from changing one
        return [], Gap(rule.text, MORE_THAN_SAID)
    if pattern is None:
        return [(tool, "*") for tool in tools], None
    found: Sequence[str] = ()
    if "?" in pattern or "\\" in pattern:
        pass
    elif rule.tool == "Bash":
        found = (spaced(pattern),)
    elif rule.tool in ("Edit", "Read"):
        found = _allowed_files(pattern)
    elif rule.tool == "WebFetch" and "*" not in pattern:
        host = pattern.removeprefix("domain:")
        found = [f"{scheme}://{host}{rest}" for scheme in ("https", "http") for rest in ("", "/*")]
    elif rule.tool in ("Agent", "Task", "Skill"):
        found = (pattern,)
    return [(tools[0], one) for one in found], None if found else Gap(rule.text, MORE_THAN_SAID)


def _allowed_files(pattern: str) -> Sequence[str]:
    """Return a file, or all below a folder, in the worktree; nothing for patterns with other stars."""
    if pattern.startswith(("//", "~")):
        return ()
    path = pattern.removeprefix("./").strip("/").removesuffix("/**")
    if not path or "*" in path:
        return ()
    below = f"{path}/*"
    return (below,) if pattern.rstrip("/").endswith("/**") else (path, below)


def _mcp(rule: Rule) -> tuple[str, ...]:
    """Return a tool of an MCP server as it is called here: ``server_tool``."""
    _, server, *tool = rule.tool.split("__", 2)
    return (f"{server}_{tool[0] if tool else '*'}",)
