"""A role's deny rules as Gemini CLI's policy engine holds them: by the text of what a tool is given.

Its rules are regular expressions on the arguments as JSON.  They forbid more than a rule says where they cannot say
exactly that.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from swarm.domain.permission_rules import EDITORS, READERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.domain.permission_rules import Rule, Rules

_READS = ("read_file", "read_many_files", "list_directory", "glob", "grep_search")
#: What it calls the tools that rules name.
_TOOLS = {
    "Bash": ("run_shell_command",),
    **dict.fromkeys(EDITORS, ("replace", "write_file")),
    "Read": _READS,
    "Glob": ("glob",),
    "Grep": ("grep_search",),
    "LS": ("list_directory",),
    "WebFetch": ("web_fetch",),
    "WebSearch": ("google_web_search",),
    "Skill": ("activate_skill",),
    "TodoWrite": ("write_todos",),
}
#: Anything within one argument: the program puts a null character after each.
_ANY = "[^\\x00]*"
_WRAPPERS = "command|doas|env|exec|find|nice|nohup|sudo|time|timeout|xargs"

_BY_TEXT = "by the text of each command, so one hidden in quotes, variables or a script is not seen"
_ITS_WRITES = "by its own tools, not by what a command writes"
_ITS_READS = "by its read tool, not by searches and commands"
_BY_ADDRESS = "by the text of an address, so one written otherwise is not seen"
_NO_TOOL = "it has no such tool"
_TOO_LONG = "it takes no rule of that length"
_LONGEST = 2048


class Gap(NamedTuple):
    """What is not held as a rule says; see `permission_opencode`."""

    rule: str
    why: str
    in_part: bool = False


class Translation(NamedTuple):
    """Deny rules as the text of a policy file, and what of them is not held."""

    policy: str
    deny_gaps: tuple[Gap, ...] = ()
    allow_gaps: tuple[Gap, ...] = ()


def translate(rules: Rules) -> Translation:
    """Say deny rules as the program does."""
    said: list[str] = []
    gaps: list[Gap] = []
    for rule in rules.deny:
        keys = {"decision": "deny", "denyMessage": f"Denied by the rule {rule.text}"}
        tools, forms, gap = _denial(rule)
        if any(len(form) > _LONGEST for form in forms):
            forms, gap = (), Gap(rule.text, _TOO_LONG)
        gaps += [gap] if gap else []
        said += [_table({**tools, **({"argsPattern": form} if form else {}), **keys}) for form in forms]
    return Translation("\n".join(said), tuple(gaps))


def _table(keys: dict[str, object]) -> str:
    """Return a rule as TOML; JSON's strings and lists of them are a part of that, but for the delete character."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    return "\n".join(["[[rule]]", "priority = 999", *lines, ""])


def _denial(rule: Rule) -> tuple[dict[str, object], Sequence[str], Gap | None]:
    """Return the tools of a rule, the forms of arguments that it is about, and what is not held."""
    pattern = rule.pattern
    if rule.tool.startswith("mcp__"):
        _, server, *tool = rule.tool.split("__", 2)
        exact = tool and "*" not in tool[0]
        return {"mcpName": server, "toolName": tool[0] if exact else "*"}, ("",), None
    tools = _TOOLS.get(rule.tool, ())
    if not tools:
        return {}, (), Gap(rule.text, _NO_TOOL)
    if pattern is None:
        return {"toolName": list(tools)}, ("",), None
    if rule.tool in READERS:
        return {"toolName": "read_file"}, tuple(_files(pattern)), Gap(rule.text, _ITS_READS, in_part=True)
    forms, why = _forms(rule.tool, pattern)
    return {"toolName": list(tools)}, forms, Gap(rule.text, why, in_part=True) if why else None


def _forms(tool: str, pattern: str) -> tuple[Sequence[str], str]:
    if tool == "Bash":
        return tuple(_commands(pattern)), _BY_TEXT
    if tool in EDITORS:
        return tuple(_files(pattern)), _ITS_WRITES
    if tool == "WebFetch":
        return (_literal(pattern.removeprefix("domain:").removeprefix("*")),), _BY_ADDRESS
    return (f'"name":"{_wild(pattern, _ANY)}"',), ""


def _commands(pattern: str) -> Iterator[str]:
    """Give the forms of a command: by its path, behind a variable or another program, quoted, as a shell's text."""
    form = pattern.removesuffix(":*") + " *" if pattern.endswith(":*") else pattern
    stem = _wild(form.removesuffix(" *"), _ANY)
    whole = f'{stem}[ "\\\\]' if form.endswith(" *") else f'{stem}"'
    yield f'"command":"{whole}'
    yield f'"command":"[^ ]*/{whole}'
    yield f'"command":"[^ ]*={_ANY} {whole}'
    yield f'"command":"({_WRAPPERS}) {_ANY}{whole}'
    yield f'"command":"[a-z/]*sh -{_ANY}{stem}'
    yield f'"command":"eval {_ANY}{stem}'


def _files(pattern: str) -> Iterator[str]:
    """Give the forms of a path: as it is from the worktree, and as the end of any other."""
    path = pattern.removeprefix("./").removeprefix("~/").strip("/").removeprefix("**/").removesuffix("/**")
    name = '[^"]*'.join(_wild(part, '[^"/]*') for part in path.replace("/**/", "/**").split("**"))
    yield f'"file_path":"{name}["/]'
    yield f'"file_path":"[^"]*/{name}["/]'


def _wild(pattern: str, star: str) -> str:
    return star.join(_literal(part) for part in pattern.split("*"))


def _literal(text: str) -> str:
    """Return what matches a text as it stands in JSON."""
    return re.escape(json.dumps(text, ensure_ascii=False)[1:-1])
