"""Read permission rules.

    Read                    every use of a tool
    Bash(git push *)        commands; * stands for anything, also for nothing with the space before it
    Edit(docs/**)           files, as in .gitignore: below the worktree, /… too, //… absolute, ~/… at home
    WebFetch(domain:x.org)  hosts; *.x.org for those below
    Agent(reviewer)         by name; so do Task and Skill
    mcp__server__tool       tools of MCP servers; mcp__server and mcp__server__* are all of one

A hook asks about rules at every tool call: what only reading needs is imported there.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

EDITORS = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})
READERS = frozenset({"Glob", "Grep", "LS", "NotebookRead", "Read"})
#: Run commands of a shell, or of one much like it.
COMMANDS = frozenset({"Bash", "Monitor", "PowerShell"})
NAMED = {"Agent": "subagent_type", "Task": "subagent_type", "Skill": "skill"}
#: Tools that take something in parentheses.
PATTERNED = frozenset({"WebFetch", *COMMANDS, *EDITORS, *READERS, *NAMED})
#: What tools are called in rules; others can be named, but not by a slip of the finger.
KNOWN = PATTERNED | {
    *("AskUserQuestion", "BashOutput", "Config", "CronCreate", "CronDelete", "CronList", "EnterPlanMode"),
    *("EnterWorktree", "ExitPlanMode", "ExitWorktree", "KillShell", "ListAgents", "ListMcpResourcesTool", "LSP"),
    *("PushNotification", "ReadMcpResourceDirTool", "ReadMcpResourceTool", "RemoteTrigger", "REPL", "ScheduleWakeup"),
    *("SendMessage", "SendUserFile", "SendUserMessage", "SlashCommand", "StructuredOutput", "TaskCreate", "TaskGet"),
    *(
        "TaskList",
        "TaskOutput",
        "TaskStop",
        "TaskUpdate",
        "TeamCreate",
        "TeamDelete",
        "TodoRead",
        "TodoWrite",
        "ToolSearch",
    ),
    *("WebSearch", "Workflow"),
}
LONGEST_RULE = 1000
#: Of names shorter than that every other one is a slip away.
_SHORT = 4
_RULE = r"([A-Za-z][A-Za-z0-9_-]*)(?:\((.*)\))?"
_MCP = r"mcp__[A-Za-z0-9_-]+(?:__[A-Za-z0-9_*-]+)?"
_HOST = r"(?:\*\.)?[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*"


class Behavior:
    """The answer to a tool call: one of these words. No enum, because its import would slow every hook."""

    ALLOW: Final = "allow"
    DENY: Final = "deny"
    ASK: Final = "ask"


class Rule(namedtuple("Rule", ("text", "tool", "pattern"), defaults=(None,))):
    """One rule, understood.

    Attributes:
        text: as written.
        tool: name of the tool, or a pattern of MCP tools' names.
        pattern: what stands in the parentheses; None without, and for a lone ``*``: every use.
    """

    __slots__ = ()


class Rules(namedtuple("Rules", ("allow", "deny"), defaults=((), ()))):
    """The rules of a role."""

    __slots__ = ()

    @classmethod
    def parse(cls, allow: Iterable[str] = (), deny: Iterable[str] = ()) -> Rules:
        """Understand rules as written.

        Raises:
            ValueError: one is none.
        """
        return cls(tuple(map(parse_rule, allow)), tuple(map(parse_rule, deny)))


class Decision(namedtuple("Decision", ("behavior", "reason", "rule"), defaults=("",))):
    """The rules' decision about one tool call.

    Attributes:
        rule: the rule that settled it, as written; empty when none did.
        reason: in words, for the agent and the user.
    """

    __slots__ = ()


def parse_rule(text: str) -> Rule:
    """Understand one rule.

    Raises:
        ValueError: it is none; the text says why.
    """
    import re

    if len(text) > LONGEST_RULE:
        raise ValueError(f"has more than {LONGEST_RULE} characters")
    if not text.isprintable():
        raise ValueError("holds a control character")
    if text.startswith("mcp__"):
        if re.fullmatch(_MCP, text) is None:
            raise ValueError("is no rule for MCP tools; write mcp__server, mcp__server__tool or mcp__server__*")
        return Rule(text, text)
    found = re.fullmatch(_RULE, text)
    if found is None:
        raise ValueError(f"cannot be read; write {_like(text)}")
    tool, pattern = found[1], found[2]
    _check_tool(tool)
    if pattern is not None:
        _check_pattern(tool, pattern)
    return Rule(text, tool, None if pattern == "*" else pattern)


def _like(text: str) -> str:
    import re

    word = re.match(r"[A-Za-z]+", text)
    tool = word[0] if word and word[0] in PATTERNED else "Bash"
    return f"a tool's name such as {tool}, or {tool}(…) with the closing parenthesis last"


def _check_tool(tool: str) -> None:
    """Refuse a likely typo; a merely similar name may be an unknown tool."""
    if tool in KNOWN:
        return
    same = [one for one in sorted(KNOWN) if _is_slip(tool, one)]
    if same:
        raise ValueError(f"names no tool; did you mean {same[0]}?")


def _is_slip(tool: str, known: str) -> bool:
    """Whether it is that name but for small and capital letters, or for one letter too many, missing or wrong."""
    if tool.casefold() == known.casefold():
        return True
    if len(known) < _SHORT or abs(len(tool) - len(known)) > 1:
        return False
    longer, shorter = (tool, known) if len(tool) > len(known) else (known, tool)
    at = next((n for n, pair in enumerate(zip(longer, shorter, strict=False)) if len(set(pair)) == 2), len(shorter))
    if len(longer) > len(shorter):
        return longer[at + 1 :] == shorter[at:]
    swapped = longer[at : at + 2] == shorter[at : at + 2][::-1] and longer[at + 2 :] == shorter[at + 2 :]
    return swapped or longer[at + 1 :] == shorter[at + 1 :]


def like(tool: str) -> str:
    """Return the known tool whose name is most like another one; empty when none is."""
    from swarm.kit.words import closest

    return closest(tool, sorted(KNOWN), 0.8)


def is_known(rule: Rule) -> bool:
    """Whether the rule is about a tool swarm has heard of."""
    return rule.tool in KNOWN or rule.tool.startswith("mcp__")


def _check_pattern(tool: str, pattern: str) -> None:
    if not pattern.strip():
        raise ValueError(f"has nothing in its parentheses; {tool} alone means every use")
    if pattern != pattern.strip():
        raise ValueError("has a space at the end or beginning of its parentheses")
    if pattern == "*":
        return
    import re

    from swarm.permissions import paths

    if tool not in PATTERNED:
        raise ValueError(f"is for a tool that takes nothing in parentheses; write {tool}")
    if tool == "WebFetch":
        kind, _, host = pattern.partition(":")
        if kind != "domain" or re.fullmatch(_HOST, host) is None:
            raise ValueError("must name a host, such as WebFetch(domain:example.com)")
    if tool in EDITORS | READERS:
        paths.check(pattern)
