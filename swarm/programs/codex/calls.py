"""Translate Codex tool calls into the words of rules.

What its tools are called there, and what they are given, is said here in the words of rules.  A hook imports this.
"""

from __future__ import annotations

from swarm.permissions.match import text_of
from swarm.permissions.rules import EDITORS, NAMED, READERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.permissions.rules import Rule, Rules
    from swarm.permissions.translation import Gap, Gaps

_PATCH = "*** Begin Patch"
#: Before the name of a file in a patch.
_FILES = ("*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:")
#: What else begins a line of one with stars.
_MARKS = (_PATCH, "*** End Patch", "*** End of File", "*** Environment ID:")
_SEARCHES = frozenset({"WebFetch", "WebSearch"})

#: A call that may write anything: no rule allows it, and rules about files or commands make it a request.
_ANYTHING: tuple[tuple[str, object], ...] = (("Write", None), ("Bash", None))

_BY_COMMANDS = "by its image viewer: it reads files by commands"
_WHERE_ASKED = "where it asks, so not in print mode, nor in the modes plan and dontAsk"


def calls(tool: str, given: object) -> tuple[tuple[str, object], ...]:
    """Return a tool call of Codex as the calls that rules are about; all of them are made."""
    if tool == "apply_patch":
        return tuple(_patches("\n".join(_texts(given)))) or _ANYTHING
    if tool == "view_image":
        return (("Read", given),)
    if tool.endswith("spawn_agent"):
        return (("Agent", {"subagent_type": text_of(given, "agent_type") or "default"}),)
    command = None if tool.startswith("mcp__") else text_of(given, "command", "cmd")
    return ((tool, given), *_patches(command or ""))


def _texts(given: object) -> Iterator[str]:
    """Yield all texts in a tool's input."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, dict):
        for one in given.values():
            yield from _texts(one)
    elif isinstance(given, list):
        for one in given:
            yield from _texts(one)


def _patches(text: str) -> Iterator[tuple[str, object]]:
    """Give a call for each file that a patch writes or removes, or that a command with a patch does, where it goes."""
    if _PATCH not in text:
        return
    lines = [line.strip() for line in text.splitlines()]
    paths = [line.removeprefix(mark).strip() for mark in _FILES for line in lines if line.startswith(mark)]
    if not paths or any(_is_odd(line) for line in text.splitlines()):
        yield from _ANYTHING
    for folder in ("", *_folders(text)):
        if folder is None:
            yield from _ANYTHING
        else:
            yield from (("Write", {"file_path": path if path.startswith("/") else folder + path}) for path in paths)


def _is_odd(line: str) -> bool:
    """Whether a line looks like one that names a file, but is none."""
    return line.startswith("***") and line[3:].strip() != "" and not line.startswith((*_FILES, *_MARKS))


def _folders(command: str) -> list[str | None]:
    """Return the folders that a command goes to; None for one that is known only when it runs."""
    if "cd" not in command and "pushd" not in command:
        return []
    from swarm.permissions.shell import parts as shellparts

    parts = [part for part in shellparts.split(command).parts if part.words and part.words[0] in ("cd", "pushd")]
    return [f"{part.words[-1]}/" if part.knowns[-1] is None else None for part in parts]


def without_web(deny: Sequence[Rule]) -> bool:
    """Whether to switch its web search off, which asks for no permission and also opens pages."""
    return any(rule.tool in _SEARCHES for rule in deny)


def gaps(rules: Rules) -> Gaps:
    """Name the rules that it enforces only in part."""
    from swarm.permissions.translation import Gaps

    return Gaps(
        tuple(gap for rule in rules.allow if (gap := _allow_gap(rule)) is not None),
        tuple(gap for rule in rules.deny if (gap := _deny_gap(rule)) is not None),
    )


def _deny_gap(rule: Rule) -> Gap | None:
    from swarm.permissions.translation import NO_TOOL, Gap

    if rule.pattern is None and rule.tool == "Read":
        return Gap(rule.text, _BY_COMMANDS, in_part=True)
    by_command = rule.tool == "Bash" or rule.tool in EDITORS or (rule.tool in READERS and rule.pattern is not None)
    known = by_command or rule.tool in _SEARCHES or rule.tool in NAMED.keys() - {"Skill"}
    return None if known or rule.tool.startswith("mcp__") else Gap(rule.text, NO_TOOL)


def _allow_gap(rule: Rule) -> Gap | None:
    from swarm.permissions.translation import NO_TOOL, Gap

    if rule.tool == "Bash" or rule.tool in EDITORS or rule.tool.startswith("mcp__"):
        return Gap(rule.text, _WHERE_ASKED, in_part=True)
    never_asked = READERS | _SEARCHES | (NAMED.keys() - {"Skill"})
    return None if rule.tool in never_asked else Gap(rule.text, NO_TOOL)
