"""Settings: one declaration per key, layers with origins, and every problem at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from swarm.kit import yaml
from swarm.kit.errors import ConfigProblem, Refused, SwarmError
from swarm.project.config.file import default_config_text, load_settings
from swarm.project.config.layers import Entry, Layer, build_settings, environment_layer, flag_layer
from swarm.project.config.settings import Origin, OriginKind, Settings, describe, find_setting

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


def flagged(key: str, value: object) -> Settings:
    return build_settings([flag_layer({key: value})])


class Home:
    """A project and a user's directory with configuration files."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project/.swarm"
        self.user = folder / "user"
        self.project.mkdir(parents=True)
        self.user.mkdir()

    def write(self, where: str, text: str) -> Path:
        folder = self.user if where == "user" else self.project
        path = folder / ("config.local.yaml" if where == "local" else "config.yaml")
        path.write_text(text)
        return path

    def load(self, environ: dict[str, str] | None = None, **flags: object) -> Settings:
        dotted = {name.replace("__", "."): value for name, value in flags.items()}
        return load_settings(self.project, user_dir=self.user, environ=environ or {}, flags=dotted)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


# --- layers -----------------------------------------------------------------------------------


def test_the_last_layer_wins_and_every_value_knows_its_origin(home: Home) -> None:
    text = "git:\n  retries: {}\n"
    assert home.load().git.retries == 5
    assert home.load().origins["git.retries"] == Origin(OriginKind.DEFAULT)

    for number, where in enumerate(("user", "project", "local"), 10):
        path = home.write(where, text.format(number))
        settings = home.load()
        assert settings.git.retries == number
        assert settings.origins["git.retries"] == Origin(OriginKind(where), f"{path}:2:3")

    environ = {"SWARM_GIT_RETRIES": "20"}
    settings = home.load(environ)
    assert settings.git.retries == 20
    assert settings.origins["git.retries"] == Origin(OriginKind.ENVIRONMENT, "SWARM_GIT_RETRIES")

    settings = home.load(environ, git__retries=30)
    assert settings.git.retries == 30
    assert settings.origins["git.retries"].kind is OriginKind.FLAG
    assert settings.origins["git.jobs"].kind is OriginKind.DEFAULT


def test_without_files_variables_and_flags_there_are_the_defaults(home: Home) -> None:
    settings = load_settings(None, user_dir=None, environ={}, flags={"git.jobs": None})

    assert settings == Settings() == home.load()
    assert settings.worktrees.base_path == ".worktrees"
    assert settings.worktrees.branch_prefix == "swarm"
    assert settings.worktrees.auto_cleanup_age == 86_400_000
    assert set(settings.origins) == {row.key for row in describe()}


def test_home_as_the_project_reads_its_file_once(tmp_path: Path) -> None:
    (tmp_path / ".swarm").mkdir()
    (tmp_path / ".swarm/config.yaml").write_text("git: {jobs: 3}")

    settings = load_settings(tmp_path / ".swarm", user_dir=tmp_path / ".swarm", environ={})

    assert settings.origins["git.jobs"].kind is OriginKind.PROJECT


@pytest.mark.parametrize("text", ["worktrees: {basePath: trees}", "worktree_base: trees", "worktrees.base_path: trees"])
def test_all_spellings_of_a_key(home: Home, text: str) -> None:
    home.write("project", text)

    assert home.load().worktrees.base_path == "trees"


def test_the_names_of_the_users_design(home: Home) -> None:
    home.write("user", "worktrees:\n  branchPrefix: team/x\n  autoCleanupAge: 3600000\n")

    worktrees = home.load().worktrees

    assert (worktrees.branch_prefix, worktrees.auto_cleanup_age) == ("team/x", 3_600_000)


def test_two_spellings_of_one_key_in_one_file(home: Home) -> None:
    home.write("project", "worktree_base: a\nworktrees:\n  basePath: b\n")

    with pytest.raises(ConfigProblem, match=r"config\.yaml:3:3: .*twice.*config\.yaml:1:1"):
        home.load()


def test_two_spellings_in_two_files_are_two_layers(home: Home) -> None:
    home.write("project", "worktree_base: a")
    home.write("local", "worktrees: {base_path: b}")

    assert home.load().worktrees.base_path == "b"


# --- problems ---------------------------------------------------------------------------------


def test_every_problem_of_every_layer_at_once(home: Home) -> None:
    user = home.write("user", "git:\n  jobs: 65\n  retires: 3\n")
    project = home.write("project", "a: [")
    home.write("local", "lock: {timeout: soon}")

    with pytest.raises(Refused) as caught:
        home.load({"SWARM_CLEANUP_LARGE_FILE": "huge"})

    assert caught.value.code == "CONFIG"
    assert caught.value.exit_code == 2
    messages = sorted(problem.message for problem in caught.value.problems)
    assert len(messages) == 5
    assert any(m.startswith(f"{user}:2:9: git.jobs: must be from 0 to 64") for m in messages)
    assert any(m.startswith(f"{user}:3:3: git.retires: unknown key") for m in messages)
    assert any(m.startswith(f"{project}:1:5: ") for m in messages)
    assert any(m.startswith("SWARM_CLEANUP_LARGE_FILE: cleanup.large_file: ") for m in messages)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("git: {retires: 3}", "did you mean git.retries?"),
        ("worktree: {base_path: x}", "did you mean worktrees"),
        ("worktreeBase: x", "did you mean worktrees.base_path?"),
        ("base_path: x", "did you mean worktrees.base_path?"),
        ("zzz: {a: 1}", "the sections are worktrees, git"),
        ("zzz:", "the sections are worktrees, git"),
    ],
)
def test_an_unknown_key_gets_a_hint(home: Home, text: str, hint: str) -> None:
    home.write("project", text)

    with pytest.raises(ConfigProblem, match="unknown key") as caught:
        home.load()

    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize("value", ["5", "word", "[a]", "true"])
def test_a_section_is_a_mapping(home: Home, value: str) -> None:
    home.write("project", f"git: {value}")

    with pytest.raises(ConfigProblem, match="git: is a section"):
        home.load()


def test_an_empty_section_sets_nothing(home: Home) -> None:
    home.write("project", "git:\nlock: {}\n")

    assert home.load() == Settings()


BAD: dict[str, list[object]] = {
    "worktrees.base_path": [
        *("", " ", "/abs", "..", "a/../b", ".", "./", ".git", ".git/x", "a/.GIT", ".swarm", "~/x"),
        *(".Swarm/x", "a\nb", "a\0b", True, ["a"], {}),
    ],
    "worktrees.branch_prefix": ["", "a b", "-a", "a//b", "a.lock", "a/"],
    "worktrees.layout": ["flat", "", True, 1, ["role"]],
    "worktrees.instructions_file": ["a/b", "..", ".", ".git", "x" * 256],
    "worktrees.auto_cleanup_age": ["1 year", -1, "24 hh", True, "", "99999d"],
    "worktrees.durable": ["yes", 1, "on", []],
    "git.timeout": [0, "0s", "8d", "1e3", "-1", [1]],
    "git.retries": [-1, 101, "many", "010", True],
    "git.jobs": [65, "1.5", "0x10"],
    "lock.timeout": ["later", -1, "999w"],
    "cleanup.precious": [[""], [["a"]], [True], {"a": 1}, 7, ["a\nb"]],
    "cleanup.ignored_file_limit": ["1 MiBB", "-1", "big", "2000GiB"],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in BAD.items() for value in values])
def test_a_wrong_value_names_place_and_key(key: str, value: object) -> None:
    entry = Entry(key, value, "f:1:1", "f:1:9", is_text=isinstance(value, str))

    with pytest.raises(ConfigProblem) as caught:
        build_settings([Layer(OriginKind.USER, (entry,))])

    assert caught.value.message.startswith((f"f:1:9: {key}: ", f"f:1:9: {key} "))
    assert caught.value.message.isprintable()


def test_a_key_without_a_value(home: Home) -> None:
    home.write("project", "git:\n  jobs:\n")

    with pytest.raises(ConfigProblem, match=r"config\.yaml:\d+:\d+: git\.jobs: has no value"):
        home.load()


@pytest.mark.parametrize(
    ("key", "value", "read"),
    [
        ("worktrees.base_path", "./trees//x/", "trees/x"),
        ("worktrees.branch_prefix", 7, "7"),
        ("worktrees.auto_cleanup_age", "30m", 1_800_000),
        ("worktrees.auto_cleanup_age", "7d", 604_800_000),
        ("worktrees.auto_cleanup_age", 500, 500),
        ("worktrees.durable", "False", False),
        ("git.timeout", "1.5", 1.5),
        ("git.timeout", "2m", 120),
        ("lock.timeout", "500ms", 0.5),
        ("lock.timeout", 0, 0),
        ("cleanup.large_file", "1.5KiB", 1536),
        ("cleanup.large_file", "2MB", 2_000_000),
        ("cleanup.large_file", 4096, 4096),
        ("cleanup.bulk", "a, b,,*.c", ("a", "b", "*.c")),
        ("cleanup.bulk", [], ()),
    ],
)
def test_good_values(key: str, value: object, read: object) -> None:
    assert flagged(key, value).value_of(key) == read


def test_asking_for_a_key_that_is_none() -> None:
    with pytest.raises(ConfigProblem) as caught:
        Settings().value_of("git.job")

    assert caught.value.hint == "did you mean git.jobs?"


# --- the environment --------------------------------------------------------------------------


def test_other_variables_are_left_alone() -> None:
    environ = dict.fromkeys(("SWARM_DIR", "SWARM_ROOT", "SWARM_SESSION", "SWARM_SESSION_DIR"), "x")
    environ |= {"SWARM_GITHUB_TOKEN": "x", "SWARM_ROLE": "x", "LOCK_TIMEOUT": "x", "SWARM_GIT": "x"}

    assert environment_layer(environ).entries == ()


def test_an_empty_variable_is_not_set() -> None:
    assert environment_layer({"SWARM_GIT_JOBS": ""}).entries == ()


def test_a_variable_that_looks_like_a_setting_and_is_none() -> None:
    with pytest.raises(ConfigProblem, match=r"SWARM_WORKTREES_FOO: .*unknown key"):
        build_settings([environment_layer({"SWARM_WORKTREES_FOO": "x"})])
    with pytest.raises(ConfigProblem) as caught:
        build_settings([environment_layer({"SWARM_GIT_JOB": "1"})])

    assert caught.value.hint == "did you mean SWARM_GIT_JOBS?"


# --- what is derived --------------------------------------------------------------------------


def test_keys_variables_and_spellings_are_distinct() -> None:
    rows = describe()
    spellings = [spelling for row in rows for spelling in (row.key, *row.aliases)]

    assert len({row.variable for row in rows}) == len(rows)
    assert len(set(spellings)) == len(spellings)
    assert all(row.help.endswith(".") for row in rows)
    assert find_setting("worktrees.basePath") is find_setting("worktrees.base_path")


@pytest.mark.parametrize("row", describe(), ids=lambda row: row.key)
def test_each_default_is_what_its_own_spelling_means(row: Any) -> None:
    text = f"{row.section}:\n  {row.name}: {row.default_text}\n"
    value = yaml.load(text.encode()).plain()[row.section][row.name]

    assert row.form.read(value) == row.default
    assert Settings().value_of(row.key) == row.default


def test_the_default_file_sets_nothing_and_shows_everything(home: Home) -> None:
    text = default_config_text()
    home.write("project", text)
    assert home.load() == Settings()

    home.write("project", text.replace("\n  # ", "\n  "))
    settings = home.load()
    assert settings == Settings()
    assert {origin.kind for origin in settings.origins.values()} == {OriginKind.PROJECT}


def test_a_file_that_is_none_is_a_problem(home: Home) -> None:
    (home.user / "config.yaml").mkdir()

    with pytest.raises(SwarmError) as caught:
        home.load()

    assert caught.value.code == "CONFIG"
