"""Judge tool calls by deny rules; unclear calls become requests.

A command is forbidden under every name it could run by: behind ``sudo`` and ``sh -c``, in quotes, in ``$(…)``.
A file is forbidden under every name it has: by links, by ``..``, and as a word of a command.
"""

from __future__ import annotations

from swarm.permissions import paths
from swarm.permissions.match import command_matches, command_of, is_for, is_named, path_of, script_of, text_of
from swarm.permissions.rules import COMMANDS, EDITORS, NAMED, READERS, Behavior, Decision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.permissions.paths import Place
    from swarm.permissions.rules import Rule
    from swarm.permissions.shell.parts import Part, Script

#: So many commands that a program may run are looked at.
_MOST_MAYBES = 2000
_AGENTS = frozenset({"Agent", "Task"})


def tools_of(rule: Rule) -> frozenset[str]:
    """Return the tools that a deny rule can be about; for MCP tools the beginning of their names."""
    if rule.tool.startswith("mcp__"):
        return frozenset({"mcp__"})
    for family in (EDITORS, READERS):
        if rule.tool in family:
            return family | ({"Bash"} if rule.pattern is not None else set())
    return _AGENTS if rule.tool in _AGENTS else frozenset({rule.tool})


def forbid(deny: Sequence[Rule], tool: str, given: object, place: Place) -> Decision | None:
    """Return the deny rules' decision about a tool call: denied, unclear, or nothing.

    Never raises: input of any form is judged, and asked about where it makes no sense.
    """
    runs = tool in COMMANDS or command_of(tool, given) is not None
    mine = [rule for rule in deny if _is_about(rule, tool, runs=runs)]
    if not mine:
        return None
    script = script_of(tool, given)
    if script is not None:
        return _forbid_script(mine, script, place)
    met = next((rule for rule in mine if _denies(rule, tool, given, place)), None)
    if met is not None:
        return _denied(met)
    return _unclear_address(given) if tool == "WebFetch" else None


def _unclear_address(given: object) -> Decision | None:
    from swarm.permissions.hosts import host_of

    if host_of(given) is not None:
        return None
    return Decision(Behavior.ASK, "its address cannot be understood, and there are rules about addresses")


def _is_about(rule: Rule, tool: str, *, runs: bool) -> bool:
    """Whether a deny rule has a say about a tool, which runs commands or does not."""
    tools = tools_of(rule)
    if tool in tools or (tool.startswith("mcp__") and is_for(rule, tool)):
        return True
    # plain Bash does not mean all tools of a server with an argument called command
    return runs and "Bash" in tools and not (rule.pattern is None and tool.startswith("mcp__"))


def _denied(rule: Rule) -> Decision:
    return Decision(Behavior.DENY, f"denied by the rule {rule.text}", rule.text)


def _denies(rule: Rule, tool: str, given: object, place: Place) -> bool:
    if rule.pattern is None:
        same = (rule.tool in EDITORS and tool in EDITORS) or (rule.tool == "Read" and tool in READERS)
        return same or is_for(rule, tool) or {rule.tool, tool} <= _AGENTS
    if tool in EDITORS | READERS:
        return any(paths.forbids(rule.pattern, path, place) for path in _paths_of(tool, given))
    if tool == "WebFetch":
        from swarm.permissions.hosts import host_of, is_host

        host = host_of(given)
        return host is not None and is_host(rule.pattern, host, below=True)
    return rule.tool in NAMED and is_named(rule, given)


def _paths_of(tool: str, given: object) -> Iterator[str]:
    path = path_of(given)
    if path is not None:
        yield path
    wanted = text_of(given, "pattern" if tool == "Glob" else "glob") if tool in ("Glob", "Grep") else None
    if wanted is not None:  # where it looks, by a pattern
        yield wanted if path is None or wanted.startswith("/") else f"{path}/{wanted}"


# --- commands -------------------------------------------------------------------------------------


def _forbid_script(rules: Sequence[Rule], script: Script, place: Place) -> Decision | None:
    files = [rule for rule in rules if rule.tool in EDITORS | READERS]
    commands = [rule for rule in rules if rule.tool not in EDITORS | READERS]
    suspects = frozenset(script.suspects()) if commands else frozenset()
    for rule in commands:
        if rule.pattern is None or any(command_matches(rule.pattern, text) for text in suspects):
            return _denied(rule)
    unclear = None
    if files:
        from swarm.permissions import files as permission_files

        met, unclear = permission_files.judge(files, script, place)
        if met is not None:
            return _denied(met)
    if not script.understood:
        return Decision(Behavior.ASK, "the command cannot be understood, and there are rules about commands")
    long = [rule.pattern for rule in commands if rule.pattern is not None and _is_telling(rule.pattern)]
    for number, text in enumerate(script.maybes() if long else ()):
        if number > _MOST_MAYBES or any(command_matches(pattern, text) for pattern in long):
            return Decision(Behavior.ASK, "a program in it may run what is denied")
    for part in (*script.parts, *script.hidden):
        if any(could_be(rule.pattern or "", part) for rule in commands):
            return Decision(Behavior.ASK, f"what {shown(part.text)} does is only known when it runs")
    return unclear


def could_be(pattern: str, part: Part) -> bool:
    """Whether a partly unknown command could match a deny rule."""
    if part.fed and any(_overlap(pattern, inner) for inner in part.runs()):
        return True
    return (part.dynamic or part.globs) and any(_overlap(pattern, begin) for begin in part.beginnings())


def _is_telling(pattern: str) -> bool:
    """Whether a rule names more than a program, so that its words behind another one are hardly there by chance."""
    return len(pattern.removesuffix(":*").split("*", 1)[0].split()) > 1


def _overlap(pattern: str, known: str) -> bool:
    """Whether a text that begins with *known* can be of the pattern's form."""
    fixed = pattern.removesuffix(":*").split("*", 1)[0].rstrip()
    return fixed.startswith(known) or known.startswith(fixed)


def shown(text: str) -> str:
    """Return a command fit for one line of output."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return line if len(line) <= 60 else line[:59] + "…"
