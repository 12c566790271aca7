"""The matching that allow and deny rules share."""

from __future__ import annotations

from swarm.permissions.rules import COMMANDS, KNOWN, NAMED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm.permissions.rules import Rule
    from swarm.permissions.shell.parts import Script


def is_for(rule: Rule, tool: str) -> bool:
    """Whether a rule names a tool."""
    if not rule.tool.startswith("mcp__"):
        return bool(rule.tool == tool)
    if "*" in rule.tool:
        return wild(rule.tool, tool)
    return rule.tool == tool or (rule.tool.count("__") == 1 and tool.startswith(rule.tool + "__"))


def wild(pattern: str, text: str) -> bool:
    """Whether *text* is of the pattern's form, where ``*`` stands for anything; in linear time."""
    first, *rest = pattern.split("*")
    if not rest:
        return text == pattern
    last = rest.pop()
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in rest:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def command_matches(pattern: str, text: str) -> bool:
    """Whether a command is of a rule's form; ``git *`` and the older ``git:*`` are ``git`` alone as well."""
    if pattern.endswith(":*"):
        pattern = pattern.removesuffix(":*") + " *"
    if pattern.endswith(" *") and wild(pattern.removesuffix(" *"), text):
        return True
    return wild(pattern, text)


def text_of(given: object, *keys: str) -> str | None:
    """Return the first of these fields that is text, or None."""
    if not isinstance(given, dict):
        return None
    found = (given.get(key) for key in keys)
    return next((one for one in found if isinstance(one, str) and one), None)


def path_of(given: object) -> str | None:
    """Return the file that a tool is given."""
    return text_of(given, "file_path", "notebook_path", "path")


def is_named(rule: Rule, given: object) -> bool:
    """Whether the agent or skill that is used is the rule's."""
    name = text_of(given, NAMED.get(rule.tool, ""))
    return name is not None and wild(rule.pattern or "", name)


def command_of(tool: str, given: object) -> str | None:
    """Return the command of a tool that runs one, also of an unknown tool; None for others."""
    if tool in COMMANDS:
        return text_of(given, "command")
    if tool in KNOWN or not isinstance(given, dict):
        return None
    return "\n".join(text for key in ("command", "cmd") if (text := _joined(given.get(key)))) or None


def _joined(command: object) -> str:
    """Return a command as a shell is given it, also one that is a list of words."""
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        from swarm.permissions.shell.programs import quoted

        return quoted(command)
    return command if isinstance(command, str) else ""


def script_of(tool: str, given: object) -> Script | None:
    """Return the commands of a tool that runs some; None for any other tool."""
    command = command_of(tool, given)
    must = tool in COMMANDS and not (tool == "Monitor" and isinstance(given, dict) and "command" not in given)
    if command is None and not must:
        return None
    from swarm.permissions.shell import parts

    return parts.Script((), understood=False) if command is None else parts.split(command)
