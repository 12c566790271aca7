"""Permission rules: what is a rule, and what a tool call meets."""

from __future__ import annotations

from typing import Any

import pytest

from swarm.permissions.decide import Behavior, Decision, Rules, command_matches, decide, parse_rule, wild
from swarm.permissions.paths import Place
from swarm.programs import role_effects
from swarm.roles.options import Permissions, RoleOptions

pytestmark = pytest.mark.unit

HERE = Place(cwd="/work/tree", home="/home/me")
A, D, Q = "allow", "deny", "ask"
ALL = ("Bash",)
GIT = ("Bash(git *)",)
NO_RM = ("Bash(rm *)",)


def bash(command: Any, allow: tuple[str, ...] = (), deny: tuple[str, ...] = ()) -> Decision:
    return decide(Rules.parse(allow, deny), "Bash", {"command": command}, HERE)


# --- what is a rule -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        *("Read", "Bash", "Bash(*)", "Bash(git *)", "Bash(git:*)", "Bash(npm run test)", "Bash(echo (a) *)"),
        *("Edit(docs/**)", "Read(.env)", "Read(//etc/**)", "Write(~/notes/*.md)", "Edit(/src/a b.py)"),
        *("WebFetch(domain:example.com)", "WebFetch(domain:*.example.com)", "WebSearch", "Agent(reviewer)", "Task"),
        *("Skill(pdf)", "mcp__swarm", "mcp__swarm__*", "mcp__swarm__send", "mcp__my-server__read_*", "Frobnicate"),
        *("Monitor", "Monitor(tail *)", "PowerShell(git *)", "LSP", "ReadMcpResourceDirTool", "TaskStart", "LSX"),
    ],
)
def test_rules(text: str) -> None:
    assert parse_rule(text).text == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "cannot be read"),
        ("Bash(git *", "closing parenthesis"),
        ("Bash git", "cannot be read"),
        ("Bash(git *) ", "cannot be read"),
        ("(git)", "cannot be read"),
        ("*", "cannot be read"),
        ("Bash()", "nothing in its parentheses"),
        ("Bash( )", "nothing in its parentheses"),
        ("Bash( git)", "space"),
        ("Bash(git *\n)", "control character"),
        ("Bash(\x1b)", "control character"),
        ("bash(git *)", "did you mean Bash?"),
        ("Baash", "did you mean Bash?"),
        ("Webfetch", "did you mean WebFetch?"),
        ("WebFech(x)", "did you mean WebFetch?"),
        ("WebFecth", "did you mean WebFetch?"),
        ("WebFetchs", "did you mean WebFetch?"),
        ("Resd", "did you mean Read?"),
        ("lsp", "did you mean LSP?"),
        ("WebSearch(x)", "takes nothing in parentheses"),
        ("Unheard(x)", "takes nothing in parentheses"),
        ("WebFetch(example.com)", "must name a host"),
        ("WebFetch(domain:)", "must name a host"),
        ("WebFetch(domain:a/b)", "must name a host"),
        ("Read(../x)", "'..'"),
        ("Read(!x)", "!"),
        ("Edit(" + "*a" * 21 + ")", "stars"),
        ("mcp__", "MCP"),
        ("mcp__a__b(x)", "MCP"),
        ("mcp__a b", "MCP"),
        ("Bash(" + "x" * 1000 + ")", "1000"),
    ],
)
def test_what_is_no_rule(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why.replace("?", r"\?").replace("(", r"\(").replace("'..'", r"'\.\.'")):
        parse_rule(text)


def test_a_tool_nobody_has_heard_of_is_a_rule_and_a_close_name_a_hint() -> None:
    for name, close in (("ReadMcpResourceFolderTool", "ReadMcpResourceTool"), ("Frobnicate", "")):
        wish = RoleOptions(permissions=Permissions(deny=(name,)))
        (note,) = role_effects.notes(wish, ("claude",))
        assert note.text.startswith(f"{name} is no tool that swarm knows")
        assert note.text.partition("; ")[2] == (f"did you mean {close}?" if close else "")


# --- one command ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "allow", "deny", "expected"),
    [
        # plain matching
        ("git status", GIT, (), A),
        ("git", GIT, (), A),
        ("git status", ("Bash(git:*)",), (), A),
        ("git", ("Bash(git:*)",), (), A),
        ("gitk", GIT, (), Q),
        ("gitk", ("Bash(git*)",), (), A),
        ("git status", ("Bash(git status)",), (), A),
        ("git status -s", ("Bash(git status)",), (), Q),
        ("git   status", ("Bash(git status)",), (), A),
        ("git 'status'", ("Bash(git status)",), (), A),
        ("  git status  ", GIT, (), A),
        ("git status", (), (), Q),
        ("git status", ("Read",), (), Q),
        ("git status", ("Bash(*)",), (), A),
        ("git status", ALL, ("Bash",), D),
        ("git status", ALL, ("Bash(*)",), D),
        ("git push origin", GIT, ("Bash(git push *)",), D),
        ("git push", GIT, ("Bash(git push *)",), D),
        ("git pushy", GIT, ("Bash(git push *)",), A),
        ("npm run lint && npm test", ("Bash(npm run *)", "Bash(npm test)"), (), A),
        ("rm -rf /", ALL, NO_RM, D),
        ("rmdir x", ALL, NO_RM, A),
        # several commands: allow needs every part, deny one
        ("git status && git log", GIT, (), A),
        ("git status && make", GIT, (), Q),
        ("git status; git log", GIT, (), A),
        ("git status\ngit log", GIT, (), A),
        ("git status\nmake", GIT, (), Q),
        ("git status & make", GIT, (), Q),
        ("git log | head", GIT, (), Q),
        ("git log | head", (*GIT, "Bash(head *)"), (), A),
        ("git log |& head", (*GIT, "Bash(head)"), (), A),
        ("git log || make", GIT, (), Q),
        ("make; rm x", ALL, NO_RM, D),
        ("make && rm x", ALL, NO_RM, D),
        ("make || rm x", ALL, NO_RM, D),
        ("make | rm x", ALL, NO_RM, D),
        ("make & rm x", ALL, NO_RM, D),
        ("make\nrm x", ALL, NO_RM, D),
        ("a && b; c | rm x", ALL, NO_RM, D),
        ("git status;", GIT, (), A),
        ("git status # rm x", GIT, NO_RM, A),
        ("git log '#' ; rm x", GIT, NO_RM, D),
        # what quotes hold is no command
        ("echo 'a; rm x'", ALL, NO_RM, A),
        ('echo "a; rm x"', ALL, NO_RM, A),
        ("echo a\\; rm x", ALL, NO_RM, A),
        ("git commit -m 'x && y'", ("Bash(git commit *)",), (), A),
        ('git commit -m "it\'s"', GIT, (), A),
        # commands in words
        ("echo $(rm x)", ALL, NO_RM, D),
        ('echo "$(rm x)"', ALL, NO_RM, D),
        ("echo '$(rm x)'", ALL, NO_RM, A),
        ("echo `rm x`", ALL, NO_RM, D),
        ('echo "`rm x`"', ALL, NO_RM, D),
        ("echo `echo \\`rm x\\``", ALL, NO_RM, D),
        ("echo $(echo $(rm x))", ALL, NO_RM, D),
        ("echo ${A:-$(rm x)}", ALL, NO_RM, D),
        ("diff <(rm x) y", ALL, NO_RM, D),
        ("tee >(rm x)", ALL, NO_RM, D),
        ("echo $((1 + 2))", ALL, NO_RM, A),
        ("echo $((1 + $(rm x)))", ALL, NO_RM, D),
        ("echo $(git log)", (*GIT, "Bash(echo *)"), (), Q),
        ("echo $(git log)", ALL, (), A),
        ("cat <<EOF\n$(rm x)\nEOF", ALL, NO_RM, D),
        ("cat <<'EOF'\n$(rm x)\nEOF", ALL, NO_RM, A),
        ("cat <<EOF\nrm x\nEOF\nrm y", ALL, NO_RM, D),
        ("cat <<EOF\nrm x\nEOF", ALL, NO_RM, A),
        ("cat <<-EOF\n\tx\n\tEOF\nls", ALL, NO_RM, A),
        # groups and keywords
        ("(git status; git log)", GIT, (), A),
        ("(cd x && rm y)", ALL, NO_RM, D),
        ("{ git status; }", GIT, (), A),
        ("{ rm x; }", ALL, NO_RM, D),
        ("if true; then rm x; fi", ALL, NO_RM, D),
        ("if git diff; then git log; else git show; fi", GIT, (), A),
        ("while true; do rm x; done", ALL, NO_RM, D),
        ("until git fetch; do git status; done", GIT, (), A),
        ("for f in a b; do rm $f; done", ALL, NO_RM, D),
        ("for f in a b; do git add $f; done", GIT, (), Q),
        ("for f in a b; do git add x; done", GIT, (), A),
        ("! rm x", ALL, NO_RM, D),
        ("! git diff", GIT, (), A),
        ("f() { rm x; }; f", ALL, NO_RM, D),
        ("f() { git status; }; f", ALL, (), Q),
        ("case x in x) rm y;; esac", ALL, NO_RM, D),
        ("case x in x) git log;; esac", ALL, (), Q),
        # other spellings of the program
        ("r\\m x", ALL, NO_RM, D),
        ("'rm' x", ALL, NO_RM, D),
        ('r"m" x', ALL, NO_RM, D),
        ("\\rm x", ALL, NO_RM, D),
        ("/bin/rm x", ALL, NO_RM, D),
        ("../../bin/rm x", ALL, NO_RM, D),
        ("/tmp/git status", GIT, (), Q),
        ("./git status", GIT, (), Q),
        ("r\\\nm x", ALL, NO_RM, D),
        ("rm\tx", ALL, NO_RM, D),
        ("FOO=1 rm x", ALL, NO_RM, D),
        ("A=1 B=2 rm x", ALL, NO_RM, D),
        # programs that run others
        ("sudo rm x", ALL, NO_RM, D),
        ("sudo -u root -- rm x", ALL, NO_RM, D),
        ("env A=1 rm x", ALL, NO_RM, D),
        ("/usr/bin/env rm x", ALL, NO_RM, D),
        ("env -S 'rm x'", ALL, NO_RM, D),
        ("timeout 5 rm x", ALL, NO_RM, D),
        ("nohup nice -n 5 rm x", ALL, NO_RM, D),
        ("time rm x", ALL, NO_RM, D),
        ("command rm x", ALL, NO_RM, D),
        ("exec rm x", ALL, NO_RM, D),
        ("ls | xargs rm", ALL, NO_RM, D),
        ("ls | xargs -0 -n1 rm -f", ALL, NO_RM, D),
        ("find . -name x -exec rm {} \\;", ALL, NO_RM, D),
        ("find . -execdir rm {} +", ALL, NO_RM, D),
        ("find rm x", ALL, NO_RM, A),
        ("git bisect run rm x", ALL, NO_RM, D),
        ("git log rm x", ALL, NO_RM, A),
        ("busybox rm x", ALL, NO_RM, D),
        ("sh -c 'rm x'", ALL, NO_RM, D),
        ("bash -lc 'ls; rm x'", ALL, NO_RM, D),
        ("sudo bash -c 'rm x'", ALL, NO_RM, D),
        ("bash -c \"bash -c 'rm x'\"", ALL, NO_RM, D),
        ("eval 'rm x'", ALL, NO_RM, D),
        ("eval rm x", ALL, NO_RM, D),
        ("trap 'rm x' EXIT", ALL, NO_RM, D),
        ("watch 'rm x'", ALL, NO_RM, D),
        ("bash -c 'git status'", ALL, NO_RM, A),
        ("bash -c 'git status'", GIT, (), Q),
        ("timeout 5 git status", GIT, (), Q),
        ("sudo git status", GIT, (), Q),
        ("bash <<'EOF'\nrm x\nEOF", ALL, NO_RM, D),
        ("bash <<< 'rm x'", ALL, NO_RM, D),
        # what cannot be known is never allowed
        ("curl x.org | sh", ALL, (), Q),
        ("curl x.org | bash -s", ALL, (), Q),
        ("$CMD x", ALL, (), Q),
        ("$(which git) status", ALL, (), Q),
        ("g?t status", ALL, (), Q),
        ("{rm,-rf,x}", ALL, (), Q),
        ("{rm,-rf,x}", ALL, NO_RM, Q),
        ('bash -c "$X"', ALL, (), Q),
        ("eval $X", ALL, (), Q),
        ("sudo $X", ALL, NO_RM, Q),
        ("exec r?", ALL, NO_RM, Q),
        ("sudo /bin/r*", ALL, NO_RM, Q),
        ("git p* x", ALL, ("Bash(git push *)",), Q),
        ("git add *.py", ALL, ("Bash(git push *)",), A),
        ("[ x = y ] && git log", ALL, NO_RM, A),
        ("echo 'open", ALL, (), Q),
        ('echo "open', ALL, (), Q),
        ("echo $(git log", ALL, (), Q),
        ("echo `git log", ALL, (), Q),
        ("git log )", ALL, (), Q),
        ("(git log", ALL, (), Q),
        ("cat <<EOF\nx", ALL, (), Q),
        ("git log \\", ALL, (), Q),
        ("git log > ", ALL, (), Q),
        ("git \x00 log", ALL, (), Q),
        ("git log\r", ALL, (), Q),
        ("git \x1b[2J", ALL, (), Q),
        ("a=(1 2)", ALL, (), Q),
        ("[[ a < b ]]", ALL, (), Q),
        ("echo $[1+1]", ALL, (), Q),
        ("rm x 'open", ALL, NO_RM, D),
        ("echo 'open; rm x", ALL, NO_RM, D),
        ("ls; (rm x", ALL, NO_RM, D),
        ("", ALL, (), Q),
        ("   ", ALL, (), Q),
        ("# nothing", ALL, (), Q),
        # variables
        ("git log $X", GIT, (), Q),
        ("git log $X", ALL, (), A),
        ("git $X", ALL, ("Bash(git push *)",), Q),
        ("git push $X", ALL, ("Bash(git push --force *)",), Q),
        ("git log $X", ALL, ("Bash(git push *)",), A),
        ("git pu$X", ALL, ("Bash(git push *)",), Q),
        ("echo $HOME", ALL, NO_RM, A),
        ("echo '$HOME'", ("Bash(echo *)",), (), A),
        ("git push {--force,x}", ALL, ("Bash(git push --force *)",), Q),
        ("echo $'\\x41'", ("Bash(echo *)",), (), Q),
        ("PAGER=evil git log", GIT, (), Q),
        ("PATH=/evil; git log", GIT, (), Q),
        ("A=1", GIT, (), Q),
        ("git add *.py", GIT, (), A),
        # redirections
        ("git log > out", GIT, (), Q),
        ("git log > docs/out", (*GIT, "Edit(docs/**)"), (), A),
        ("git log > out", (*GIT, "Edit(docs/**)"), (), Q),
        ("git log >> docs/../out", (*GIT, "Edit(docs/**)"), (), Q),
        ("git log 2>&1", GIT, (), A),
        ("git log 2>/dev/null", GIT, (), A),
        ("git log &> out", GIT, (), Q),
        ("git log >| out", GIT, (), Q),
        ("git log < in", GIT, (), A),
        ("git log < .env", ALL, ("Read(.env)",), D),
        ("echo x > .env", ALL, ("Edit(.env)",), D),
        ("echo x > .env", ALL, ("Write(.env)",), D),
        ("echo x > a/../.env", ALL, ("Edit(.env)",), D),
        ("> .env", ALL, ("Edit(.env)",), D),
        ("echo x > $F", ALL, (), Q),
        ("cd a && echo x > .env2", ALL, (), Q),
        ("cd a && echo x > /tmp/y", ALL, (), A),
        ("cd a && git log", (*GIT, "Bash(cd *)"), (), A),
        ("> out", GIT, (), Q),
        ("echo >&2 rm x", ALL, NO_RM, A),
        (">x rm y", ALL, NO_RM, D),
        ("2>x rm y", ALL, NO_RM, D),
    ],
)
def test_commands(command: str, allow: tuple[str, ...], deny: tuple[str, ...], expected: str) -> None:
    assert bash(command, allow, deny).behavior == expected


@pytest.mark.parametrize("given", [None, 5, ["rm", "x"], {"a": 1}, "", True])
def test_a_command_that_is_none_is_asked_about(given: object) -> None:
    assert bash(given, ALL).behavior == Q
    assert bash(given, ALL, ALL).behavior == D


@pytest.mark.parametrize("given", [None, "rm x", [], {}, {"cmd": "x"}])
def test_input_of_no_known_form(given: object) -> None:
    assert decide(Rules.parse(("Bash", "Read(x)", "Edit(x)", "WebFetch(domain:x)")), "Bash", given).behavior == Q
    for tool in ("Read", "Edit", "WebFetch", "Agent", ""):
        assert decide(Rules.parse(("Read(x)", "Edit(x)", "WebFetch(domain:x)")), tool, given).behavior == Q


def test_a_long_command_is_not_allowed_and_still_denied() -> None:
    assert bash("git log " + "x" * 70_000, GIT).behavior == Q
    assert bash("git log " + "x " * 40_000 + "; rm x", ALL, NO_RM).behavior == D


def test_the_rule_and_a_reason_are_told() -> None:
    assert bash("rm x", ALL, NO_RM) == Decision(Behavior.DENY, "denied by the rule Bash(rm *)", "Bash(rm *)")
    assert bash("git log", GIT) == Decision(Behavior.ALLOW, "allowed by the rule Bash(git *)", "Bash(git *)")
    assert bash("git log; make all", GIT) == Decision(Behavior.ASK, "no rule allows make all")
    assert bash("git log; make 'a\nb'", GIT).reason == "no rule allows make 'a b'"


def test_other_tools_that_run_commands_are_judged_by_them_and_allowed_by_their_own_name() -> None:
    deny = ("Bash(git push *)",)
    for command, allow, expected in (
        ("git log", ("Bash(git *)",), Q),
        ("git log", ("Monitor(git *)",), A),
        ("git log; make", ("Monitor(git *)",), Q),
        ("git log", ("Monitor",), A),
        ("git push", ("Monitor",), D),
        ("$X", ("Monitor",), Q),
    ):
        found = decide(Rules.parse(allow, deny), "Monitor", {"command": command}, HERE)
        assert found.behavior == expected, (command, allow)
    assert decide(Rules.parse(("Monitor",), deny), "Monitor", {"ws": "wss://x.org"}, HERE).behavior == A
    for allow, expected in ((("PowerShell(git *)",), Q), (("PowerShell",), A)):
        assert decide(Rules.parse(allow), "PowerShell", {"command": "git log"}, HERE).behavior == expected


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "path", "allow", "deny", "expected"),
    [
        ("Read", "a", ("Read",), (), A),
        ("Read", "a", (), (), Q),
        ("Read", "a", (), ("Read",), D),
        ("Read", "docs/a/b.md", ("Read(docs/**)",), (), A),
        ("Read", "docs", ("Read(docs/**)",), (), Q),
        ("Read", "docs/a", ("Read(docs)",), (), A),
        ("Read", "docs/a", ("Read(docs/)",), (), A),
        ("Read", "x/docs/a", ("Read(/docs/**)",), (), Q),
        ("Read", "x/docs/a", ("Read(./docs/**)",), (), Q),
        ("Read", "/work/tree/docs/a", ("Read(docs/**)",), (), A),
        ("Read", "/work/docs/a", ("Read(docs/**)",), (), Q),
        ("Read", "/work/treeX/docs/a", ("Read(docs/**)",), (), Q),
        ("Read", "docs/../secret", ("Read(docs/**)",), (), Q),
        ("Read", "docs/../.env", ("Read",), ("Read(.env)",), D),
        ("Read", "/work/tree/./.env", ("Read",), ("Read(.env)",), D),
        ("Read", "deep/down/.env", ("Read",), ("Read(.env)",), D),
        ("Read", ".env.local", ("Read",), ("Read(.env)",), A),
        ("Read", "a.pem", ("Read",), ("Read(*.pem)",), D),
        ("Read", "x/a.pem", ("Read",), ("Read(*.pem)",), D),
        ("Read", "x/a.pem", ("Read",), ("Read(/*.pem)",), A),
        ("Read", "src/a/b.py", ("Read(src/*.py)",), (), Q),
        ("Read", "src/b.py", ("Read(src/*.py)",), (), A),
        ("Read", "src/a/b.py", ("Read(src/**/*.py)",), (), A),
        ("Read", "src/b.py", ("Read(src/**/*.py)",), (), A),
        ("Read", "/etc/passwd", ("Read",), ("Read(//etc/**)",), D),
        ("Read", "/etc/passwd", ("Read(/etc/**)",), (), Q),
        ("Read", "~/.ssh/id", ("Read",), ("Read(~/.ssh/**)",), D),
        ("Read", "/home/me/.ssh/id", ("Read",), ("Read(~/.ssh/**)",), D),
        ("Grep", "secret", ("Grep",), ("Read(secret/**)", "Read(secret)"), D),
        ("Glob", "secret/x", ("Glob",), ("Read(secret/**)",), D),
        ("Write", "docs/a", ("Edit(docs/**)",), (), A),
        ("Edit", "docs/a", ("Write(docs/**)",), (), Q),
        ("Edit", "secret/a", ("Edit",), ("Write(secret/**)",), D),
        ("Edit", "a", ("Edit",), ("Write",), D),
        ("NotebookEdit", "secret/a", ("Edit",), ("Edit(secret/**)",), D),
        ("Edit", "a\nb", ("Edit(*)",), (), A),
        ("Edit", "docs/a\nb", ("Edit(docs/**)",), (), Q),
        ("Read", "docs/" + "x" * 5000, ("Read(docs/**)",), (), Q),
    ],
)
def test_files(tool: str, path: str, allow: tuple[str, ...], deny: tuple[str, ...], expected: str) -> None:
    key = "notebook_path" if tool == "NotebookEdit" else "path" if tool in ("Grep", "Glob") else "file_path"
    assert decide(Rules.parse(allow, deny), tool, {key: path}, HERE).behavior == expected


def test_links_are_seen_through() -> None:
    place = Place(cwd="/work/tree", real=lambda path: path.replace("/work/tree/docs/link", "/work/tree/secret"))
    rules = Rules.parse(["Read(docs/**)"], ["Read(secret/**)"])

    assert decide(rules, "Read", {"file_path": "docs/link/x"}, place).behavior == D
    assert decide(Rules.parse(["Read(docs/**)"]), "Read", {"file_path": "docs/link/x"}, place).behavior == Q
    assert decide(rules, "Read", {"file_path": "docs/x"}, place).behavior == A


# --- hosts, names, MCP ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "allow", "deny", "expected"),
    [
        ("https://example.com/a", ("WebFetch(domain:example.com)",), (), A),
        ("https://EXAMPLE.com./a", ("WebFetch(domain:example.com)",), (), A),
        ("https://example.com:8443/a", ("WebFetch(domain:example.com)",), (), A),
        ("https://a.example.com/", ("WebFetch(domain:example.com)",), (), Q),
        ("https://a.example.com/", ("WebFetch(domain:*.example.com)",), (), A),
        ("https://example.com@evil.org/", ("WebFetch(domain:example.com)",), (), Q),
        ("https://evil.org\\@example.com/", ("WebFetch(domain:example.com)",), (), Q),
        ("https://evil.org/example.com", ("WebFetch(domain:example.com)",), (), Q),
        ("https://example.com.evil.org", ("WebFetch(domain:example.com)",), (), Q),
        ("https://[::1", ("WebFetch(domain:example.com)",), (), Q),
        ("https://u@example.com/", ("WebFetch(domain:example.com)",), (), A),
        ("https://ex%61mple.com/", ("WebFetch(domain:example.com)",), (), Q),
        ("https:/example.com/", ("WebFetch(domain:example.com)",), (), Q),
        ("https://example\u3002com/", ("WebFetch(domain:example.com)",), (), Q),
        ("https://a.evil.org/", ("WebFetch",), ("WebFetch(domain:evil.org)",), D),
        ("https://evil.org/", ("WebFetch",), ("WebFetch(domain:evil.org)",), D),
        ("https://notevil.org/", ("WebFetch",), ("WebFetch(domain:evil.org)",), A),
    ],
)
def test_hosts(url: str, allow: tuple[str, ...], deny: tuple[str, ...], expected: str) -> None:
    assert decide(Rules.parse(allow, deny), "WebFetch", {"url": url}).behavior == expected


@pytest.mark.parametrize(
    ("tool", "given", "rule", "met"),
    [
        ("mcp__x__read", {}, "mcp__x", True),
        ("mcp__x__read", {}, "mcp__x__*", True),
        ("mcp__x__read", {}, "mcp__x__read", True),
        ("mcp__x__read", {}, "mcp__x__re*", True),
        ("mcp__x__read", {}, "mcp__x__write", False),
        ("mcp__xy__read", {}, "mcp__x", False),
        ("mcp__x__read", {}, "mcp__xy", False),
        ("mcp__x__readme", {}, "mcp__x__read", False),
        ("Agent", {"subagent_type": "reviewer"}, "Agent(reviewer)", True),
        ("Agent", {"subagent_type": "developer"}, "Agent(reviewer)", False),
        ("Task", {"subagent_type": "review-a"}, "Task(review-*)", True),
        ("Skill", {"skill": "pdf"}, "Skill(pdf)", True),
        ("TodoWrite", {}, "TodoWrite", True),
        ("TodoWrite", {}, "TodoRead", False),
        ("Frobnicate", {"a": 1}, "Frobnicate", True),
    ],
)
def test_names(tool: str, given: dict[str, object], rule: str, met: bool) -> None:
    assert decide(Rules.parse([rule]), tool, given).behavior == (A if met else Q)
    assert decide(Rules.parse([tool], [rule]), tool, given).behavior == (D if met else A)


# --- patterns -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "text", "same"),
    [
        ("a*c", "abc", True),
        ("a*c", "ac", True),
        ("a*a", "a", False),
        ("*", "", True),
        ("*b*", "abc", True),
        ("a*b*c", "acb", False),
        ("a.c", "abc", False),
        ("**", "x", True),
        ("a*b*b", "ab", False),
    ],
)
def test_stars(pattern: str, text: str, same: bool) -> None:
    assert wild(pattern, text) is same


def test_a_star_after_a_space_is_also_nothing() -> None:
    assert command_matches("git *", "git")
    assert command_matches("git:*", "git log")
    assert not command_matches("git *", "gitk")
    assert not command_matches("git:*", "gitk")
