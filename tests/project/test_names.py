"""Names: what is one, what is not and why, and how role lists become agents."""

from __future__ import annotations

import json
import re
import string
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm.kit.errors import UsageProblem, one_line
from swarm.project import names
from swarm.project.errors import InvalidName, ReservedName
from tests.support.odd import reads_well

pytestmark = pytest.mark.unit

#: Name → a pattern that the cause must contain.
HOSTILE: dict[str, str] = {
    "": "is empty|is required",
    ".": r"contains '\.'",
    "..": r"contains '\.'",
    "...": r"contains '\.'",
    "../../etc/passwd": r"contains '\.'",
    "/": "contains '/'",
    "/etc/passwd": "contains '/'",
    "a/b": "contains '/'",
    "a/../b": "contains '/'",
    "a\\b": r"contains '\\\\'",
    "-": "starts with '-'",
    "-a": "starts with '-'",
    "--force": "starts with '-'",
    "-rf": "starts with '-'",
    "_": "starts with '_'",
    "_a": "starts with '_'",
    ".hidden": r"contains '\.'",
    "a.lock": r"contains '\.'",
    "a.": r"contains '\.'",
    "a..b": r"contains '\.'",
    "a.git": r"contains '\.'",
    " ": "contains ' '",
    " a": "contains ' '",
    "a ": "contains ' '",
    "a b": "contains ' '",
    "a\n": r"contains '\\n'",
    "\na": r"contains '\\n'",
    "a\nb": r"contains '\\n'",
    "a\r": r"contains '\\r'",
    "a\tb": r"contains '\\t'",
    "a\0": r"contains '\\x00'",
    "\0": r"contains '\\x00'",
    "a\x07": r"contains '\\x07'",
    "a\x1b[31mred": r"contains '\\x1b'",
    "a\x7f": r"contains '\\x7f'",
    "a\x85b": r"contains '\\x85'",
    "a\x0bb": r"contains '\\x0b'",
    "a\u2028b": r"contains '\\u2028'",
    "é": r"contains '\\xe9'",
    "entwickler-ü": r"contains '\\xfc'",
    "разработчик": r"contains '\\u0440'",
    "аdmin": r"contains '\\u0430'",  # the first letter is Cyrillic  # noqa: RUF001
    "开发者": r"contains '\\u5f00'",
    "ﬁx": r"contains '\\ufb01'",
    "a\u0301": r"contains '\\u0301'",
    "ſwarm": r"contains '\\u017f'",  # noqa: RUF001  # folds to "swarm"
    "\u212aey": r"contains '\\u212a'",
    "٣": r"contains '\\u0663'",
    "a²": r"contains '\\xb2'",
    "a\u202eb": r"contains '\\u202e'",
    "\u2066a": r"contains '\\u2066'",
    "a\u200bb": r"contains '\\u200b'",
    "a\u200db": r"contains '\\u200d'",
    "\ufeffa": r"contains '\\ufeff'",
    "a\u00a0b": r"contains '\\xa0'",
    "a\u00adb": r"contains '\\xad'",
    "🐝": r"contains '\\U0001f41d'",
    "a🐝": r"contains '\\U0001f41d'",
    "\udcff": r"contains '\\udcff'",
    "caf\udce9": r"contains '\\udce9'",
    "a" * 41: "41 characters, at most 40",
    "a" * 300: "300 characters, at most 40",
    "a" * 100_000: "100000 characters, at most 40",
    "-" + "a" * 300: "starts with '-'",
    "é" * 300: r"contains '\\xe9'",
    "a" * 50 + "/": "51 characters|contains '/'",
    "'a'": 'contains "\'"',
    '"a"': "contains '\"'",
    "`touch x`": "contains '`'",
    "$(touch x)": r"contains '\$'",
    "${HOME}": r"contains '\$'",
    "$HOME": r"contains '\$'",
    "a;b": "contains ';'",
    "a;": "contains ';'",
    "a&b": "contains '&'",
    "a|b": r"contains '\|'",
    "a>b": "contains '>'",
    "a<b": "contains '<'",
    "#(touch x)": "contains '#'",
    "#{pane_id}": "contains '#'",
    "a#b": "contains '#'",
    "%": "contains '%'",
    "%s%n": "contains '%'",
    "@": "contains '@'",
    "a@{1}": "contains '@'",
    "@{upstream}": "contains '@'",
    "~": "contains '~'",
    "a~1": "contains '~'",
    "~root": "contains '~'",
    "a^": r"contains '\^'",
    "a?": r"contains '\?'",
    "a*": r"contains '\*'",
    "[a]": r"contains '\['",
    "{a,b}": r"contains '\{'",
    "!a": "contains '!'",
    "a+b": r"contains '\+'",
    "C:\\x": "contains ':'",
    "a:b": "contains ':'",
    "=": "contains '='",
    "a,b": "contains ','",
    "(a)": r"contains '\('",
}
NOT_TEXT = [None, 1, 0, 1.5, True, b"developer", ["developer"], ("a",), {"a": 1}, object(), Ellipsis]
RESERVED = ["all", "user", "operator", "broadcast", "swarm", "head", "parent", "root"]
IN_ANY_CASE = [form for word in RESERVED for form in (word, word.upper(), word.capitalize())]
VALID = ["a", "A", "0", "9", "developer", "feature-x", "a_b", "a-", "a_", "a--b", "1e3", "007", "a" * 40]
VALID += ["1763461881234", "CON", "nul", "con", "HEAD1", "swarm-1", "lock", "refs", "x-lock", "Feature-X"]
LETTERS = string.ascii_letters + string.digits


# --- one name ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["session", "role", "agent"])
@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name)[1:30])
def test_a_hostile_name_is_refused_with_its_reason(kind: str, name: str) -> None:
    with pytest.raises(InvalidName) as caught:
        names.check_session(name) if kind == "session" else names.check_name(kind, name)

    error = caught.value
    assert (error.code, error.exit_code) == ("INVALID_NAME", 2)
    assert re.search(HOSTILE[name], error.message), error.message
    assert error.hint == "use 1 to 40 letters, digits, - and _, starting with a letter or digit"
    assert len(error.message) < 200
    assert error.message.isascii()
    reads_well(error)


def test_there_are_enough_hostile_names() -> None:
    assert len(HOSTILE) + len(NOT_TEXT) + len(IN_ANY_CASE) + len(LISTS) >= 140


@pytest.mark.parametrize("name", NOT_TEXT, ids=lambda name: type(name).__name__)
def test_what_is_not_text_is_no_name(name: object) -> None:
    for kind in ("role", "agent", "session"):
        with pytest.raises(InvalidName, match=f"invalid {kind} name .*: it must be text") as caught:
            names.check_name(kind, name)
        reads_well(caught.value)


@pytest.mark.parametrize("name", [None, ""])
def test_a_missing_session_is_said_in_the_words_of_the_design(name: object) -> None:
    with pytest.raises(InvalidName) as caught:
        names.check_session(name)

    assert caught.value.message == "session_id is required"
    reads_well(caught.value)


def test_a_huge_value_that_is_not_text_does_not_flood_the_message() -> None:
    with pytest.raises(InvalidName) as caught:
        names.check_name("role", ["x" * 1_000_000])

    assert len(caught.value.message) < 200


def test_a_value_whose_repr_is_hostile_stays_one_plain_line() -> None:
    class Hostile:
        def __repr__(self) -> str:
            return "\x1b]0;title\x07\n" * 3

    with pytest.raises(InvalidName) as caught:
        names.check_name("role", Hostile())

    reads_well(caught.value)


@pytest.mark.parametrize("word", IN_ANY_CASE)
def test_a_word_with_a_meaning_is_reserved_in_any_case(word: str) -> None:
    for kind in ("role", "agent", "session"):
        with pytest.raises(ReservedName) as caught:
            names.check_name(kind, word)
        assert (caught.value.code, caught.value.exit_code) == ("NAME_RESERVED", 2)
        assert f"invalid {kind} name '{word}': the word is reserved" == caught.value.message
        assert caught.value.hint == "choose another name"


@pytest.mark.parametrize("name", VALID)
def test_a_valid_name_is_returned_as_it_is(name: str) -> None:
    for kind in ("role", "agent", "session"):
        assert names.check_name(kind, name) == name
    assert names.check_session(name) == name
    assert names.expand_roles([name]) == (names.AgentSpec(name, name),)


class Text(str):
    """A kind of text, such as an enumeration's value."""

    __slots__ = ()


def test_a_kind_of_text_becomes_plain_text() -> None:
    """A subclass could behave differently later on, for instance in a path or in JSON."""
    assert type(names.check_name("role", Text("developer"))) is str


@pytest.mark.parametrize("prefix", ["swarm", "a", "team/swarm", "a/b/c", "A_1-x"])
def test_a_branch_prefix_may_have_parts(prefix: str) -> None:
    assert names.check_prefix(prefix) == prefix


@pytest.mark.parametrize("prefix", ["", "/", "a/", "/a", "a//b", ".", "a/..", "-a", "a b", "a\n", "a.lock", "é", "@"])
def test_a_hostile_branch_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(InvalidName) as caught:
        names.check_prefix(prefix)
    reads_well(caught.value)


# --- lists of roles --------------------------------------------------------------------------------

#: What was asked for → (code, a pattern of the message).
LISTS: dict[str, tuple[object, str, str]] = {
    "nothing": ("", "USAGE", "no roles given"),
    "spaces": ("  ", "USAGE", "no roles given"),
    "comma": (",", "USAGE", "no roles given"),
    "commas": (" , ,", "USAGE", "no roles given"),
    "hole": ("a,,b", "USAGE", "an entry is empty"),
    "end": ("a,", "USAGE", "an entry is empty"),
    "start": (",a", "USAGE", "an entry is empty"),
    "empty-list": ([], "USAGE", "no roles given"),
    "empty-tuple": ((), "USAGE", "no roles given"),
    "none": (None, "USAGE", "must be a list of names, not NoneType"),
    "number": (3, "USAGE", "must be a list of names, not int"),
    "bytes": (b"developer", "USAGE", "must be a list of names, not bytes"),
    "mapping": ({"developer": 2}, "USAGE", "must be a list of names, not dict"),
    "set": ({"developer"}, "USAGE", "must be a list of names, not set"),
    "generator": ((x for x in "ab"), "USAGE", "must be a list of names, not generator"),
    "none-in-it": ([None], "INVALID_NAME", "must be text"),
    "number-in-it": (["a", 1], "INVALID_NAME", "must be text"),
    "bytes-in-it": ([b"a"], "INVALID_NAME", "must be text"),
    "list-in-it": ([["a"]], "INVALID_NAME", "must be text"),
    "empty-in-it": (["a", ""], "INVALID_NAME", "is empty"),
    "comma-in-it": (["a,b"], "INVALID_NAME", "contains ','"),
    "zero": ("a:0", "USAGE", "number from 1 to 256"),
    "negative": ("a:-1", "USAGE", "number from 1 to 256"),
    "many": ("a:257", "USAGE", "number from 1 to 256"),
    "too-many": ("a:999999", "USAGE", "number from 1 to 256"),
    "far-too-many": ("a:" + "9" * 5000, "USAGE", "number from 1 to 256"),
    "slightly-hidden": ("a:0000001000", "USAGE", "number from 1 to 256"),
    "hidden-by-zeros": ("a:000001999999999", "USAGE", "number from 1 to 256"),
    "zeros": ("a:000", "USAGE", "number from 1 to 256"),
    "exponent": ("a:1e3", "USAGE", "number from 1 to 256"),
    "hexadecimal": ("a:0x2", "USAGE", "number from 1 to 256"),
    "fraction": ("a:1.5", "USAGE", "number from 1 to 256"),
    "plus": ("a:+2", "USAGE", "number from 1 to 256"),
    "underscore": ("a:1_0", "USAGE", "number from 1 to 256"),
    "spaced": ("a: 2", "USAGE", "number from 1 to 256"),
    "arabic-digits": ("a:٢", "USAGE", "number from 1 to 256"),
    "superscript": ("a:²", "USAGE", "number from 1 to 256"),
    "no-count": ("a:", "USAGE", "number from 1 to 256"),
    "two-counts": ("a:2:3", "USAGE", "number from 1 to 256"),
    "count-only": (":2", "INVALID_NAME", "is empty"),
    "equals": ("=", "INVALID_NAME", "is empty"),
    "no-role": ("x=", "INVALID_NAME", "role name '': it is empty"),
    "no-name": ("=y", "INVALID_NAME", "agent name '': it is empty"),
    "two-equals": ("x=y=z", "INVALID_NAME", "contains '='"),
    "named-and-counted": ("x=y:2", "USAGE", "a named agent is one agent"),
    "long-with-count": ("a" * 40 + ":2", "INVALID_NAME", "42 characters"),
    "twice": ("a,a", "NAME_COLLISION", "agent a is asked for twice"),
    "twice-and-count": ("a:2,a:2", "NAME_COLLISION", "agent a-1 is asked for twice"),
    "count-meets-name": ("a:2,a-1", "NAME_COLLISION", "agent a-1 is asked for twice"),
    "named-twice": ("x=a,x=b", "NAME_COLLISION", "agent x is asked for twice"),
    "case": ("Developer,developer", "NAME_COLLISION", "Developer and developer differ only in case"),
    "case-of-count": ("Dev:2,dev-2", "NAME_COLLISION", "Dev-2 and dev-2 differ only in case"),
    "three-hundred": ([f"role-{n}" for n in range(300)], "USAGE", "300 agents asked for, at most 256"),
    "counts-add-up": ("a:200,b:200", "USAGE", "400 agents asked for, at most 256"),
    "reserved": ("developer,all", "NAME_RESERVED", "reserved"),
    "reserved-agent": ("HEAD=developer", "NAME_RESERVED", "reserved"),
    "newline": ("a\n,b\x1b", "INVALID_NAME", r"contains '\\x1b'"),
    "bad-spec": ([names.AgentSpec("../x", "developer")], "INVALID_NAME", r"contains '\.'"),
    "bad-spec-role": ([names.AgentSpec("x", "")], "INVALID_NAME", "is empty"),
}


@pytest.mark.parametrize(("given_", "code", "says"), LISTS.values(), ids=LISTS.keys())
def test_a_list_of_roles_that_cannot_be_meant_is_refused(given_: object, code: str, says: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        names.expand_roles(given_)

    assert caught.value.code == code
    assert caught.value.exit_code == 2
    assert re.search(says, caught.value.message), caught.value.message
    reads_well(caught.value)


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ("researcher, developer", [("researcher", "researcher"), ("developer", "developer")]),
        (" a ", [("a", "a")]),
        ("developer:1", [("developer", "developer")]),
        ("developer:3", [(f"developer-{n}", "developer") for n in (1, 2, 3)]),
        ("a:007", [(f"a-{n}", "a") for n in range(1, 8)]),
        ("lead=architect,architect", [("lead", "architect"), ("architect", "architect")]),
        ("a:256", [(f"a-{n}", "a") for n in range(1, 257)]),
        (("a", "x=a", names.AgentSpec("y", "a")), [("a", "a"), ("x", "a"), ("y", "a")]),
    ],
)
def test_a_list_of_roles_becomes_agents_in_order(given_: object, expected: list[tuple[str, str]]) -> None:
    assert [(spec.name, spec.role) for spec in names.expand_roles(given_)] == expected


# --- spellings ---------------------------------------------------------------------------------------


def test_branch_and_tail_are_spelled_from_the_parts() -> None:
    assert names.tail("developer", "feature-x") == "developer-feature-x"
    assert names.branch_name("developer", "feature-x") == "swarm/developer-feature-x"
    assert names.branch_name("developer", "feature-x", "team/bees") == "team/bees/developer-feature-x"


def test_a_fresh_session_name_is_a_valid_name() -> None:
    fresh = names.new_session_id()

    assert names.check_session(fresh) == fresh
    assert fresh.isdigit()
    assert len(fresh) == 13


def test_no_fresh_session_name_comes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 1_703_849_234_567_000_000)  # a clock that stands, and was set back
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: names.new_session_id(), range(400)))

    assert len(set(found)) == 400
    assert {len(one) for one in found} == {13}
    newest = max(map(int, found))
    assert names.new_session_id({str(newest + 1), str(newest + 2)}) == str(newest + 3)


@pytest.mark.parametrize(
    ("branch", "expected"),
    [("swarm/developer-1763461881234", 1763461881234), ("swarm/developer-x", 0), ("main", 0), ("", 0), ("swarm/-1", 0)],
)
def test_a_time_is_guessed_from_a_branch_only_where_one_is(branch: str, expected: int) -> None:
    assert names.parse_created_at(branch) == expected


def test_a_folder_is_split_at_the_longest_known_role() -> None:
    known = ("dev", "dev-ops")

    assert names.split_tail("dev-ops-x", known) == ("dev-ops", "x")
    assert names.split_tail("dev-x", known) == ("dev", "x")
    assert names.split_tail("dev", known) == ("dev", "")
    assert names.split_tail("other-x", known) is None


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_becomes_one_line_that_changes_nothing_on_a_terminal(text: str) -> None:
    line = one_line(text)

    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]", line)
    assert one_line(line) == line
    if text.isprintable():
        assert line == text
    json.dumps(line)
