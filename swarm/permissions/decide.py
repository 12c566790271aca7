"""Decide which tool calls an agent may make without asking, and which never.

A deny rule wins over every allow rule (``permission_denials``).  What no rule settles is asked.  The other
direction is strict: something that cannot be understood is never allowed, and a shell command only when every part
of it is.  How rules are written: ``permission_rules``.
"""

from __future__ import annotations

from swarm.permissions import paths
from swarm.permissions.denials import could_be, forbid, shown
from swarm.permissions.hosts import host_of, is_host, is_plain
from swarm.permissions.match import command_matches, is_for, is_named, path_of, script_of, wild
from swarm.permissions.paths import Place
from swarm.permissions.rules import (
    COMMANDS,
    EDITORS,
    KNOWN,
    LONGEST_RULE,
    READERS,
    Behavior,
    Decision,
    Rule,
    Rules,
    is_known,
    like,
    parse_rule,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from swarm.permissions.shell.parts import Part, Script

__all__ = [
    "KNOWN",
    "LONGEST_RULE",
    "Behavior",
    "Decision",
    "Place",
    "Rule",
    "Rules",
    "command_matches",
    "decide",
    "forbid",
    "is_known",
    "like",
    "parse_rule",
    "wild",
]


def decide(rules: Rules, tool_name: str, tool_input: object, place: Place | None = None) -> Decision:
    """Return the rules' decision about one tool call.

    Never raises: input of any form is judged, and asked about where it makes no sense.
    """
    place = place or Place()
    forbidden = forbid(rules.deny, tool_name, tool_input, place)
    if forbidden is not None and forbidden.behavior == Behavior.DENY:
        return forbidden
    allowed = _allowed(rules, tool_name, tool_input, place)
    return forbidden if forbidden is not None and allowed.behavior == Behavior.ALLOW else allowed


def _allowed(rules: Rules, tool: str, given: object, place: Place) -> Decision:
    ours = [rule for rule in rules.allow if is_for(rule, tool) or (rule.tool == "Edit" and tool in EDITORS)]
    script = script_of(tool, given) if tool in COMMANDS else None
    if tool == "Bash" or script is not None:
        if tool == "PowerShell":  # its commands are not shell commands
            ours = [rule for rule in ours if rule.pattern is None]
        return _allowed_script(rules, ours, script, place)
    for rule in ours:
        if rule.pattern is None or _allows(rule, tool, given, place):
            return Decision(Behavior.ALLOW, f"allowed by the rule {rule.text}", rule.text)
    return Decision(Behavior.ASK, "no rule allows it")


def _allows(rule: Rule, tool: str, given: object, place: Place) -> bool:
    pattern = rule.pattern or ""
    if tool in EDITORS | READERS:
        path = path_of(given)
        if path is None or not path.isprintable() or ".." in path.split("/"):
            return False
        return all(paths.match(pattern, one, place) for one in paths.spellings(path, place))
    if tool == "WebFetch":
        host = host_of(given)
        return host is not None and is_plain(given, host) and is_host(pattern, host, below=False)
    return is_named(rule, given)


def _allowed_script(rules: Rules, ours: Sequence[Rule], script: Script | None, place: Place) -> Decision:
    if script is None or not script.understood:
        return Decision(Behavior.ASK, "the command cannot be understood, so no rule allows it")
    if script.moves() and not all(path.startswith("/") for path in (*script.written(), *script.read())):
        return Decision(Behavior.ASK, "it changes the folder, so where it reads and writes is not known")
    denials = [rule for rule in rules.deny if rule.tool == "Bash" and rule.pattern is not None]
    used = ""
    for part in script.parts:
        if any(could_be(rule.pattern or "", part) for rule in denials):
            return Decision(Behavior.ASK, f"what {shown(part.text)} does is only known when it runs")
        rule = next((one for one in ours if _allows_part(rules, one, part, place)), None)
        if rule is None:
            return Decision(Behavior.ASK, f"no rule allows {shown(part.text)}")
        used = used or rule.text
    if not script.parts:
        return Decision(Behavior.ASK, "there is no command in it")
    return Decision(Behavior.ALLOW, f"allowed by the rule {used}", used)


def _allows_part(rules: Rules, rule: Rule, part: Part, place: Place) -> bool:
    if rule.pattern is None:
        return True
    if part.dynamic or part.assigns:  # a variable can turn a harmless command into another
        return False
    if not any(command_matches(rule.pattern, text) for text in part.allow_texts()):
        return False
    return all(_may_write(rules, path, place) for path in part.writes)


def _may_write(rules: Rules, path: str, place: Place) -> bool:
    given: Mapping[str, object] = {"file_path": path}
    return bool(_allowed(rules, "Write", given, place).behavior == Behavior.ALLOW)
