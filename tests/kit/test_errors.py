"""Errors: one tree, one code a class, one exit status a code; and the documentation says the same."""

from __future__ import annotations

import importlib
import json
import pickle
import pkgutil
import re
from pathlib import Path

import pytest

import swarm
from swarm.kit import errors
from swarm.kit.errors import Interrupted, Refused, SwarmError, raise_all
from swarm.project.errors import InvalidName
from swarm.sessions.errors import CleanupFailed
from swarm.worktrees.errors import WorkAtRisk, WorktreeExists

pytestmark = pytest.mark.unit

DOCS = Path(__file__).parents[2] / "docs" / "errors.md"
EXIT_STATUSES = {0, 1, 2, 3, 4, 5, 6, 70, 75}
SEED_CODES = {
    "NOT_A_REPO": 5,
    "WORKTREE_EXISTS": 3,
    "WORKTREE_NOT_FOUND": 6,
    "BRANCH_EXISTS": 3,
    "GIT_FAILED": 1,
    "ROLE_NOT_FOUND": 6,
    "CLEANUP_FAILED": 1,
    "INVALID_NAME": 2,
    "REF_CONFLICT": 2,
    "WORK_AT_RISK": 4,
    "LOCKED": 75,
    "NO_SPACE": 5,
}


def _classes() -> tuple[type[SwarmError], ...]:
    for module in pkgutil.walk_packages(swarm.__path__, "swarm."):
        if not module.name.startswith(("swarm.cli", "swarm.__main__", "swarm.builtin", "swarm.demo")):
            importlib.import_module(module.name)
    return tuple(cls for cls in errors.all_error_classes() if cls.__module__.startswith("swarm."))


CLASSES = _classes()


def own(cls: type[SwarmError], name: str) -> bool:
    return name in vars(cls)


def concrete() -> list[type[SwarmError]]:
    """The classes with a code of their own; the others only group."""
    return [cls for cls in CLASSES if own(cls, "code")]


def test_every_error_is_at_home_in_the_errors_of_a_room() -> None:
    assert all(re.fullmatch(r"swarm\.\w+\.errors", cls.__module__) for cls in CLASSES)


def test_each_code_has_one_class() -> None:
    codes = [cls.code for cls in concrete()]
    assert sorted(codes) == sorted(set(codes))
    assert all(re.fullmatch(r"[A-Z][A-Z_]*", code) for code in codes)


def test_classes_without_a_code_have_that_of_what_they_are_or_group() -> None:
    groups = {cls.__name__ for cls in CLASSES if not own(cls, "code")}
    assert groups == {"BareRepository", "Refused"}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_an_error_is_fit_for_use(cls: type[SwarmError]) -> None:
    assert cls.exit_code in EXIT_STATUSES - {0}
    assert cls.__doc__
    error = Refused("both", [InvalidName("x"), WorktreeExists("y")]) if cls is Refused else cls("it failed", path="/x")
    shape = error.as_dict()
    assert set(shape) == {"code", "message", "hint", "details"}
    assert json.loads(json.dumps(shape, default=str)) == shape
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is cls
    assert copy.as_dict() == shape
    assert copy.exit_code == error.exit_code
    assert str(error) == error.message


def test_every_error_a_user_can_meet_has_a_hint() -> None:
    without = {cls.code for cls in concrete() if not cls.default_hint}
    assert without == {"FAILED", "USAGE", "INTERRUPTED"}


def test_the_codes_of_the_design_have_their_exit_status() -> None:
    known = {cls.code: cls.exit_code for cls in concrete()}
    assert {code: known.get(code) for code in SEED_CODES} == SEED_CODES


@pytest.mark.parametrize(
    ("code", "way_out"),
    [
        ("NOT_A_REPO", "git init.*first commit"),
        ("WORKTREE_EXISTS", "remove the existing worktree.*different session"),
        ("WORKTREE_NOT_FOUND", "already be removed"),
        ("BRANCH_EXISTS", "different session.*delete that branch"),
        ("GIT_FAILED", "what git printed.*disk space and permissions"),
        ("ROLE_NOT_FOUND", "create roles/<role>/CLAUDE.md first"),
        ("CLEANUP_FAILED", "look at the cause.*--force"),
    ],
)
def test_the_codes_of_the_design_have_its_recovery_as_hint(code: str, way_out: str) -> None:
    (cls,) = (one for one in concrete() if one.code == code)
    assert re.search(way_out, cls("x").hint)


def test_the_exit_statuses_are_the_table() -> None:
    table = {name: value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert table == {
        "EXIT_OK": 0,
        "EXIT_FAILED": 1,
        "EXIT_USAGE": 2,
        "EXIT_EXISTS": 3,
        "EXIT_REFUSED": 4,
        "EXIT_ENVIRONMENT": 5,
        "EXIT_NOT_FOUND": 6,
        "EXIT_BUG": 70,
        "EXIT_TRY_AGAIN": 75,
    }


def test_details_carry_what_git_printed_and_the_facts() -> None:
    error = CleanupFailed("no", details="fatal: no", failed=["a"])
    assert error.as_dict()["details"] == {"text": "fatal: no", "failed": ["a"]}


def test_an_own_hint_replaces_the_default_even_when_empty() -> None:
    assert WorkAtRisk("x").hint == WorkAtRisk.default_hint
    assert WorkAtRisk("x", hint="do this").hint == "do this"
    assert WorkAtRisk("x", hint="").hint == ""


def test_a_message_is_one_line_whatever_is_in_it() -> None:
    assert str(SwarmError("a\nb\x1b[31m")) == "a\\nb\\x1b[31m"


def test_an_interruption_knows_its_signal() -> None:
    assert Interrupted("stopped", signum=15).facts["signum"] == 15


def test_several_problems_are_raised_as_one() -> None:
    raise_all("nothing", [])
    with pytest.raises(InvalidName, match=r"^one$"):
        raise_all("cannot", [InvalidName("one")])
    with pytest.raises(Refused, match=r"^cannot: one; two$") as caught:
        raise_all("cannot", [InvalidName("one"), WorktreeExists("two")])
    assert caught.value.code == "INVALID_NAME"
    assert caught.value.exit_code == 2
    assert [problem.code for problem in caught.value.problems] == ["INVALID_NAME", "WORKTREE_EXISTS"]
    assert Refused.code == SwarmError.code  # the instance speaks for its first problem, not the class


# --- docs/errors.md -----------------------------------------------------------------------------------

_ROW = re.compile(r"^\| `([A-Z_]+)` \| (?:\d+|128 \+ signal) \| .+ \|$", re.MULTILINE)


def meaning_of(cls: type[SwarmError]) -> str:
    """The first paragraph of a class's words, on one line, without what only programs need."""
    text = " ".join((cls.__doc__ or "").split("\n\n")[0].split())
    return re.split(r"[.;] ``facts", text)[0].rstrip(".").replace("``", "`")


def test_every_code_is_documented_and_nothing_else() -> None:
    documented = _ROW.findall(DOCS.read_text(encoding="utf-8"))
    assert sorted(documented) == sorted(cls.code for cls in concrete())


@pytest.mark.parametrize("cls", concrete(), ids=lambda cls: cls.code)
def test_the_documentation_says_what_the_class_says(cls: type[SwarmError]) -> None:
    status = "128 + signal" if cls is Interrupted else str(cls.exit_code)
    row = f"| `{cls.code}` | {status} | {meaning_of(cls)} | {cls.default_hint} |"
    assert row in DOCS.read_text(encoding="utf-8").splitlines(), f"docs/errors.md needs this line: {row}"


def test_the_kinds_of_risk_are_documented() -> None:
    from swarm.worktrees.reports import RiskKind

    text = DOCS.read_text(encoding="utf-8").partition("The kinds of risk:")[2]
    assert set(re.findall(r"`([a-z-]+)`", text)) == {str(kind) for kind in RiskKind}


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("there is no session fx", "cannot resume session fx: there is no session fx"),
        ("cannot open panes: tmux is not installed", "cannot open panes: tmux is not installed"),
    ],
)
def test_one_problem_alone_says_what_was_attempted_too(message: str, said: str) -> None:
    with pytest.raises(InvalidName) as raised:
        raise_all("cannot resume session fx", [InvalidName(message)])
    assert (str(raised.value), raised.value.message, raised.value.args) == (said, said, (said,))
