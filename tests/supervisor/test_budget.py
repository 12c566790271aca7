"""An agent's supervisor warns at 80 % of a limit, once, and ends it at 100 %."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from swarm.agents.budgets.limits import limits_of
from swarm.kit.errors import ConfigProblem
from swarm.machine.run_folder import drawn, runfiles, runtime
from swarm.programs import role_effects
from swarm.programs.status import PaneFacts, ProgramFacts, State, conclude
from swarm.project.config.layers import build_settings, flag_layer
from swarm.roles.options import Limits, RoleOptions
from swarm.supervisor.budget import Budget

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

TREE = "/work/tree"
PRICES = {"as_of": "", "models": {"known": [10, 10, 10, 10, 10]}}


class Chores:
    """Takes down what it is told to run."""

    def __init__(self) -> None:
        self.started: list[SimpleNamespace] = []

    def start(self, argv: list[bytes], env: object) -> SimpleNamespace:
        self.started.append(SimpleNamespace(argv=argv, env=env, status=None))
        return self.started[-1]


class Scene:
    def __init__(self, folder: Path) -> None:
        self.home, self.run = folder / "home", folder / "run"
        self.run.mkdir()
        self.chores = Chores()

    def use(self, tokens: int, model: str = "known") -> None:
        """Let the agent use tokens."""
        folder = self.home / "projects" / "-work-tree"
        folder.mkdir(parents=True, exist_ok=True)
        message = {"id": f"m{tokens}", "model": model, "usage": {"input_tokens": tokens}}
        line = {"type": "assistant", "timestamp": "3", "cwd": TREE, "message": message}
        with (folder / "s.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")

    def budget(self, *, ran_ms: int = 0, **limits: float) -> Budget:
        source = {"program": "claude", "home": str(self.home), "cwd": TREE, "since_ms": 1}
        spec = {**limits, "source": source, "prices": PRICES}
        launch: Any = SimpleNamespace(run_dir=str(self.run), budget=spec, disk={}, tell_budget=[b"tell"], label_env={})
        chores: Any = self.chores
        return Budget(launch, chores, ran_ms)

    def notes_or_none(self) -> list[str]:
        return self.notes() if (self.run / runfiles.BUDGET).exists() else []

    def notes(self) -> list[str]:
        record = runfiles.read(str(self.run), runfiles.BUDGET) or {}
        notes: Any = record.get("notes")
        return [str(note["words"]) for note in notes]


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr("swarm.supervisor.budget.COUNT_EVERY", 0.0)
    return Scene(tmp_path)


def test_below_eighty_percent_nothing_is_said(scene: Scene) -> None:
    budget = scene.budget(tokens=1000)
    scene.use(799)
    assert budget.look() > 0
    assert (budget.over, scene.chores.started) == ("", [])
    assert not (scene.run / runfiles.BUDGET).exists()


def test_at_eighty_percent_people_are_told_once(scene: Scene) -> None:
    budget = scene.budget(tokens=1000)
    scene.use(800)
    budget.look()
    assert scene.notes() == ["80 % of its budget of 1,000 tokens used"]
    scene.chores.started[0].status = 0
    scene.use(50)
    budget.look()
    assert scene.notes() == ["85 % of its budget of 1,000 tokens used"]
    budget.look()
    assert [one.argv for one in scene.chores.started] == [[b"tell"]]

    again = scene.budget(tokens=1000)  # the agent was started again
    again.look()

    assert len(scene.chores.started) == 1
    raised = scene.budget(tokens=2000)
    raised.look()
    assert scene.notes() == []


def test_what_could_not_be_told_is_told_again_later(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = scene.budget(tokens=1000)
    scene.use(900)
    budget.look()
    scene.chores.started[0].status = 1
    budget.look()
    assert len(scene.chores.started) == 1
    monkeypatch.setattr("swarm.supervisor.budget._TELL_AGAIN", 0.0)
    budget._tell_at = 0.0
    budget.look()
    assert len(scene.chores.started) == 2


def test_at_a_hundred_percent_it_is_over(scene: Scene) -> None:
    budget = scene.budget(tokens=1000, cost=100)
    scene.use(400)
    scene.use(600)
    assert budget.look() == 0
    assert budget.over == "over its budget of 1,000 tokens (1,000 used)"
    assert scene.notes() == [budget.over]
    assert scene.chores.started == []  # whoever tells of ends tells of this one


def test_the_cost_is_held_and_an_unknown_price_is_told(scene: Scene) -> None:
    budget = scene.budget(cost=0.01)
    scene.use(500, "odd")
    budget.look()
    assert scene.notes() == ["its budget of $0.01 cannot be enforced: no price is known for odd"]
    scene.use(900)
    budget.look()
    assert scene.notes() == ["90 % of its budget of $0.01 used"]
    scene.use(100)
    budget.look()
    assert budget.over == "over its budget of $0.01 ($0.01 used)"


def test_what_children_draw_is_gone(scene: Scene) -> None:
    budget = scene.budget(tokens=1000, cost=100)
    runfiles.write(str(scene.run), drawn.name_of("auth", "lead"), {"tokens": 400, "cost": 0.001})
    scene.use(400)
    budget.look()
    assert (budget.over, scene.notes_or_none()) == ("", [])
    scene.use(100)
    budget.look()
    assert scene.notes() == ["90 % of its budget of 1,000 tokens used or drawn by its children"]
    scene.use(101)
    assert budget.look() == 0
    assert budget.over == "over its budget of 1,000 tokens (601 used, 400 drawn by its children)"
    runfiles.write(str(scene.run), drawn.name_of("auth", "lead"), {"tokens": 100})  # it has ended, and used less
    again = scene.budget(tokens=1000)
    again.look()
    assert again.over == ""


def test_a_limit_that_cannot_be_counted_any_more_is_told(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = scene.budget(tokens=10)

    def changed() -> bool:
        raise KeyError("usage")

    with monkeypatch.context() as patch:
        patch.setattr(budget._meter, "look", changed)
        for _ in range(9):
            budget.look()
        assert scene.chores.started == [], "it may just be being written"
        budget.look()
    assert scene.notes() == ["its budget cannot be enforced: its program's record is unreadable (KeyError: 'usage')"]
    assert len(scene.chores.started) == 1
    scene.use(10)
    budget.look()
    assert budget.over


def test_minutes_of_earlier_starts_count(scene: Scene) -> None:
    assert scene.budget(minutes=10, ran_ms=7 * 60_000).look() > 0
    near = scene.budget(minutes=10, ran_ms=9 * 60_000)
    near.look()
    assert scene.notes() == ["90 % of its budget of 10 minutes used"]
    over = scene.budget(minutes=10, ran_ms=10 * 60_000)
    over.look()
    assert over.over == "over its budget of 10 minutes (10 used)"
    short = scene.budget(minutes=0.1, ran_ms=12_000)
    short.look()
    assert short.over == "over its budget of 0.1 minutes (0.2 used)"


def test_a_full_disk_does_not_lift_a_limit(scene: Scene) -> None:
    budget = scene.budget(tokens=10)
    scene.use(10)
    scene.run.rmdir()
    budget.look()
    assert budget.over


def test_limits_are_the_roles_and_else_the_configurations() -> None:
    flags = {"limits.tokens": 5, "limits.cost": "2.50", "limits.agents": 4}
    world: Any = SimpleNamespace(settings=build_settings([flag_layer(flags)]))
    options = RoleOptions(limits=Limits(tokens=7, minutes=0.5))
    assert limits_of(world, options) == Limits(7, 2.5, 0.5, 4)
    for wrong in ({"limits.cost": "-1"}, {"limits.tokens": "many"}, {"usage.prices": "x = 1"}):
        with pytest.raises(ConfigProblem):
            build_settings([flag_layer(wrong)])


def test_what_cannot_be_counted_is_said_to_be_without_effect() -> None:
    options = RoleOptions(limits=Limits(5, 5, 5, 5))
    assert [note.key for note in role_effects.notes(options, ("demo", "claude"))] == ["limits.tokens", "limits.cost"]
    assert role_effects.notes(options, ("claude", "codex", "gemini", "opencode")) == ()


def test_runs_are_added_up(tmp_path: Path) -> None:
    folder = str(tmp_path)
    whose = {"pid": 1, "pid_start": 2, "boot_id": "b"}
    assert runtime.ran_before(folder) == 0
    runfiles.write(folder, runfiles.PROCESS, {**whose, "started_ms": 1000, "ran_ms": 500})
    assert runtime.ran_before(folder) == 500  # killed with its supervisor, and nothing tells when
    runfiles.write(folder, runfiles.EXIT, {**whose, "ended_ms": 4000})
    assert runtime.ran_before(folder) == 3500
    runfiles.write(folder, runfiles.EXIT, {**whose, "pid": 9, "ended_ms": 4000})
    assert runtime.ran_before(folder) == 500


def test_the_state_tells_of_the_budget() -> None:
    alive = ProgramFacts(True, 1, alive=True, said_state="idle", said_ms=5, budget="85 % of its budget used")
    ended = ProgramFacts(True, 1, exit_cause="budget", exit_signal=15, ended_ms=7, budget="over its budget of 5 tokens")
    found = conclude("demo", alive, PaneFacts())
    assert (found.state, found.detail) == (State.IDLE, "85 % of its budget used")
    found = conclude("demo", ended, PaneFacts())
    assert (found.state, found.detail, found.runs) == (State.STOPPED, "over its budget of 5 tokens", False)
    assert "budget" in {one.source for one in found.evidence}
