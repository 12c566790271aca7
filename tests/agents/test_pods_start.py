"""Pods that run: one transaction, their environment and roles, held tasks, stop and list."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from swarm import SwarmError, chores
from swarm.testing.panes import QUICK
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

TEAM = """\
pod_name: team
vars: {{what: null}}
env: {{SHARED: "yes"}}
agents:
  - {{name: coder, role: developer, task: {quick}}}
  - name: critic
    role: reviewer
    task: "Look at ${{what}}"
    env: {{OWN: "${{what}}"}}
    after: [coder]
"""


def put(lab: PaneLab, text: str, name: str = "team") -> Path:
    path = lab.root / ".swarm" / "pods" / "templates" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def record(lab: PaneLab, session: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((lab.root / ".swarm/sessions" / session / "session.json").read_text())
    return found


def given(lab: PaneLab, agent: str, session: str = "team") -> list[str]:
    return [one.message.body for one in lab.swarm.messages.history(f"{agent}@{session}") if one.message.type == "task"]


def test_a_held_task_comes_when_the_others_have_finished_and_only_once(panes: PaneLab) -> None:
    put(panes, TEAM.format(quick=json.dumps(QUICK)))

    team = panes.swarm.pods.launch("team", {"what": "x"}, program="demo")

    assert [agent.name for agent in team.agents] == ["coder", "critic"]
    assert (panes.run("critic", "team") / "task.md").read_text() == ""
    wait_for(lambda: given(panes, "critic"), "the task")
    assert given(panes, "critic") == ["Look at x"]
    assert record(panes, "team")["pod"] == "team"

    panes.all_until("idle")
    (panes.run("critic", "team") / "task-given.json").unlink()  # as if the process that sent it had died right then
    assert chores.label(panes.swarm) == 0
    assert (panes.run("critic", "team") / "task-given.json").exists()
    assert given(panes, "critic") == ["Look at x"]
    panes.swarm.stop(everything=True)
    panes.swarm.resume(everything=True)
    panes.all_until("idle")
    panes.swarm.send("coder@team", "Again")
    panes.swarm.wait_for(["coder@team"], timeout=60)
    assert given(panes, "critic") == ["Look at x"]


def test_a_pod_of_another_swarm_directory_is_listed_with_all_alone(panes: PaneLab, tmp_path: Path) -> None:
    other = {"SWARM_DIR": str(tmp_path / "other")}
    assert panes.cli("init", other["SWARM_DIR"]).returncode == 0
    put(panes, TEAM.format(quick=json.dumps(QUICK)))
    launched = panes.cli("pod", "launch", "team", "--var", "what=x", "--agent", "demo", env=other)
    assert launched.returncode == 0, launched

    mine, all_of_them = panes.json("pod", "list")["data"], panes.json("pod", "list", "--all")["data"]

    pods = [{"pod": "team", "sessions": ["team"]}]
    assert (mine["pods"], mine["elsewhere"]) == ([], ["team"])
    assert (all_of_them["pods"], all_of_them["elsewhere"]) == (pods, [])
    assert json.loads(panes.cli("pod", "list", "--json", env=other).stdout)["data"]["pods"] == pods
    assert "1 session of another swarm directory: swarm list --all" in panes.cli("pod", "list").stderr


def test_a_task_stays_held_while_one_of_several_is_at_work(panes: PaneLab) -> None:
    agents = "- {name: a, role: developer, task: x}\n- {name: b, role: developer, task: x}\n"
    put(panes, f"agents:\n{agents}- {{name: c, role: reviewer, task: Now, after: [a, b]}}\n")
    panes.swarm.pods.launch("team", program="shell")

    for agent in ("a", "b"):
        panes.until(agent, "idle")
    panes.type("a", "true", "team")
    panes.swarm.stop(agent="b")
    assert chores.label(panes.swarm) == 0

    assert given(panes, "c") == []
    assert "its task waits for a, b" in panes.until("c", "idle").status.detail


def test_a_task_whose_predecessor_failed_is_told_of_and_released(panes: PaneLab) -> None:
    """Nobody is left to wait for ever: status, why and the inbox say what holds the task, and one command gives it."""
    put(panes, "agents:\n- {name: a, role: developer}\n- {name: c, role: reviewer, task: Now, after: [a]}\n")
    panes.swarm.pods.launch("team", program="shell")
    for agent in ("a", "c"):
        panes.until(agent, "idle")
    panes.type("a", "exit 3", "team")
    panes.until("a", "failed")
    wait_for(lambda: panes.swarm.messages.inbox("user"), "the notice")

    (notice,) = (one.message for one in panes.swarm.messages.inbox("user"))
    assert "The task of c@team waits for it; give it now: `swarm pod release c@team`." in notice.body
    held = "its task waits for a; a ended before that: swarm pod release c@team"
    assert panes.one("c", "team").status.detail == held
    assert held in " ".join(panes.cli("why", "c@team").stdout.split())
    assert given(panes, "c") == []
    done = panes.cli("pod", "release", "c")
    assert (done.returncode, done.stdout) == (0, "c has its task; it waited for a\n"), done.stderr
    assert given(panes, "c") == ["Now"]
    again = panes.cli("pod", "release", "c@team")
    assert (again.returncode, "code: NOT_HELD" in again.stderr) == (3, True)
    assert "waits for" not in panes.one("c", "team").status.detail
    (panes.run("c", "team") / "task-given.json").unlink()  # as if it had been killed in between
    assert panes.swarm.pods.release("c", "team") == ("a",)
    assert given(panes, "c") == ["Now"]
    with pytest.raises(SwarmError) as raised:
        panes.swarm.pods.release("a")
    assert raised.value.code == "NOT_HELD"


def test_environment_and_pod_reach_the_agents_and_what_they_start(panes: PaneLab, tmp_path: Path) -> None:
    put(panes, TEAM.format(quick="x"))
    panes.swarm.pods.launch("team", {"what": "x"}, pod="blue", program="shell")
    panes.until("critic", "idle")
    out = tmp_path / "env"

    panes.type("critic", f"env > {out}.tmp; mv {out}.tmp {out}", "blue")
    wait_for(out.exists, "the environment")

    there = dict(line.partition("=")[::2] for line in out.read_text().splitlines())
    assert (there["SWARM_POD"], there["SHARED"], there["OWN"]) == ("blue", "yes", "x")
    inside = panes.swarm.open(panes.root, environ={**panes.env, "SWARM_POD": "blue"})
    inside.start("sub", "developer", program="demo", task=QUICK)
    assert record(panes, "sub")["pod"] == "blue"
    assert "template" not in record(panes, "sub")


def test_empty_and_missing_folders_of_pods_are_empty_lists(panes: PaneLab) -> None:
    """POD-05."""
    assert panes.swarm.pods() == ()
    assert panes.swarm.roles.of_pods.names() == panes.swarm.roles.names()
    for name in ("templates", "roles"):
        (panes.root / ".swarm/pods" / name).mkdir(parents=True)
    assert panes.swarm.pods() == ()
    assert panes.swarm.roles.of_pods.names() == panes.swarm.roles.names()
    (panes.root / ".swarm/pods/roles/only.yaml").write_text("name: only\ninstructions: x\n")
    put(panes, "agents: [{name: a, role: only}]\n")
    assert [one.name for one in panes.swarm.pods()] == ["team"]
    assert set(panes.swarm.roles.of_pods.names()) - set(panes.swarm.roles.names()) == {"only"}


@pytest.mark.parametrize("template", ["", "pod_name: of-the-file\n"])
def test_which_name_a_pod_gets(panes: PaneLab, template: str) -> None:
    """POD-02: ``--pod``, then ``SWARM_POD``, then the template's; else that of its file."""
    put(panes, template + "agents: [{name: a, role: developer}]\n")

    def named(*args: str, **env: str) -> str:
        done = panes.cli("pod", "show", "team", *args, "--json", env=env)
        found: str = json.loads(done.stdout)["data"]["pod"]
        return found

    assert named() == ("of-the-file" if template else "team")
    assert named("--pod", "asked", SWARM_POD="around") == "asked"
    launched = panes.cli("pod", "launch", "team", "--agent", "demo", "--json", env={"SWARM_POD": "around"})
    assert launched.returncode == 0, launched
    (session,) = panes.swarm.sessions()
    assert session.pod == "around"


def test_stop_ends_one_pod_and_no_other_agent(panes: PaneLab) -> None:
    put(panes, "agents: [{name: a, role: developer}, {name: b, role: developer}]\n")
    for pod in ("one", "two"):
        panes.swarm.pods.launch("team", pod=pod, program="demo")
    panes.start("developer", "alone")
    panes.all_until("idle")

    report = panes.swarm.pods.stop("one")

    assert sorted(report.stopped) == [("one", "a"), ("one", "b")]
    states = {s.session.name: {str(a.status.state) for a in s.agents} for s in panes.swarm.status(look=False)}
    assert states == {"one": {"stopped"}, "two": {"idle"}, "alone": {"idle"}}
    assert set(panes.swarm.pods.running()) == {"one", "two"}


def test_list_groups_and_filters(panes: PaneLab) -> None:
    put(panes, "agents: [{name: a, role: developer}]\n")
    panes.start("developer", "alone")
    assert "pod" not in panes.cli("list").stdout
    panes.swarm.pods.launch("team", pod="one", program="demo")

    def listed(*args: str, pod: str = "") -> list[str]:
        found = panes.cli("list", *args, env={"SWARM_POD": pod} if pod else {}).stdout.splitlines()
        return [line.split()[0] if not line.startswith(("pod ", "without ")) else line for line in found[:-1] if line]

    whole = ["pod one", "SESSION", "one", "without a pod", "SESSION", "alone"]
    assert listed() == whole
    assert listed("--pod", "*", pod="one") == whole
    assert listed(pod="one") == listed("--pod", "one") == whole[:3]
    assert listed("--pod", "nothing") == []
    data = panes.json("list", "--pod", "one")["data"]["sessions"]
    assert [(one["session"], one["pod"], one["template"]) for one in data] == [("one", "one", "team")]


def test_a_restored_pod_is_one_still(panes: PaneLab) -> None:
    put(panes, "agents: [{name: a, role: developer, task: x}]\n")
    panes.swarm.pods.launch("team", program="demo")
    panes.all_until("idle")
    panes.swarm.stop(everything=True)
    before = record(panes, "team")
    panes.swarm.cleanup(["team"], force=True)

    panes.swarm.restore("team")

    after = record(panes, "team")
    assert (after["pod"], after["template"]) == (before["pod"], before["template"]) == ("team", "team")
    assert after["agents"][0]["env"] == {"SWARM_POD": "team"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("agents: [{name: a, role: developer}, {name: b, role: nobody}]\n", "ROLE_NOT_FOUND"),
        ("agents: [{name: a, role: developer}, {name: a, role: developer}]\n", "CONFIG"),
        ("agents: [{name: a, role: developer, after: [a]}]\n", "CONFIG"),
        ("agents: [{name: a, role: developer, rolle: x}]\n", "CONFIG"),
        ("vars: {focus: null}\nagents: [{name: a, role: developer}]\n", "USAGE"),
        ("agents: [{name: a, role: developer, overrides: {heartbeat.message: x}}]\n", "OVERRIDE"),
    ],
)
def test_one_mistake_and_nothing_runs(panes: PaneLab, text: str, code: str) -> None:
    put(panes, text)

    with pytest.raises(SwarmError) as raised:
        panes.swarm.pods.launch("team", program="demo")

    assert raised.value.code == code
    assert not (panes.root / ".swarm" / "sessions" / "team").exists()
    assert not (panes.root / ".worktrees").exists()


#: What the user's design writes into its files, in other words.
ROLES = {
    "planner": """\
name: planner
description: "Plans systems"
model: opus
instructions: |
  You plan.
  - Begin with the problem.
permissions:
  allow:
    - "Read"
    - "Grep"
    - "WebFetch"
    - "Write(docs/**)"
  deny:
    - "Bash(rm -rf *)"
  agent:
    enabled: true
    instructions: |
      ALLOW: reading
      ASK_USER: the rest
settings:
  enabledPlugins: {}
""",
    "maker": """\
name: maker
instructions: |
  You write code.
permissions:
  allow:
    - "Bash"
    - "Edit"
  agent:
    instructions: |
      ALLOW: all tools of a developer
""",
    "keeper": """\
name: keeper
model: sonnet
instructions: |
  You keep things running.
hooks:
  PostToolUse:
    - matcher: "Bash"
      command: "tell-somebody.sh"
      timeout: 10
""",
    "builder": """\
name: builder
instructions: |
  You build features.
description: "Builds"
agent_type: claude
model: ""
root_dir: "."
claude_config_dir: ""
permissions:
  allow: ["Bash(make build)"]
  deny: []
  agent:
    enabled: true
    instructions: "Only safe operations"
heartbeat:
  idle_timeout: "10m"
  message: "How far are you?"
  condition: ""
worktree:
  enabled: false
  branch_from: main
  use_detached_head: false
hooks: {}
settings: {}
""",
}


def test_the_files_of_the_users_design_run_as_they_are_written_there(panes: PaneLab) -> None:
    folder = panes.root / ".swarm" / "pods" / "roles"
    folder.mkdir(parents=True)
    for name, text in ROLES.items():
        (folder / f"{name}.yaml").write_text(text)
    put(panes, "pod_name: back-end\n\nagents:\n" + "".join(f"  - name: {one}-x\n    role: {one}\n" for one in ROLES))

    team = panes.swarm.pods.launch("team", program="demo")

    assert team.session == "back-end"
    panes.all_until("idle")


def test_the_role_files_of_the_users_design_run_one_by_one(panes: PaneLab) -> None:
    folder = panes.root / ".swarm" / "roles"
    folder.mkdir(parents=True)
    for name, text in ROLES.items():
        (folder / f"{name}.yaml").write_text(text)

    for name in ROLES:
        done = panes.cli("run", "--role", name, "--agent", "demo", "--task", QUICK, "--detach")
        assert (done.returncode, done.stdout) == (0, f"runs {name}@{name} in .\n"), done.stderr

    panes.all_until("idle")
    assert panes.swarm.worktrees() == ()


def test_a_fork_of_an_agent_of_a_pod_belongs_to_it(panes: PaneLab) -> None:
    put(panes, TEAM.format(quick=json.dumps(QUICK)))
    panes.swarm.pods.launch("team", {"what": "x"}, program="demo")
    panes.all_until("idle")

    panes.swarm.fork("critic", "second", "team")

    found = record(panes, "team")
    assert (found["pod"], found["template"]) == ("team", "team")
    assert found["agents"][2]["env"] == {"SHARED": "yes", "OWN": "x", "SWARM_POD": "team"}


def test_a_start_makes_swarm_root_ready_and_two_of_them_share_no_template(panes: PaneLab, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    (other / "pods" / "templates").mkdir(parents=True)
    (other / "pods" / "templates" / "theirs.yaml").write_text("agents: [{name: a, role: developer}]\n")
    (other / ".swarm-dir.txt").write_text("v0.1.0\n")

    first = panes.swarm.open(panes.root, environ={**panes.env, "SWARM_ROOT": str(one)})
    assert not one.exists()
    first.start("fx", "developer", program="demo", task=QUICK)
    second = panes.swarm.open(panes.root, environ={**panes.env, "SWARM_ROOT": str(other)})

    assert (one / ".swarm-dir.txt").is_file()
    assert record(panes, "fx")["swarm_dir"] == str(one)
    assert [template.name for template in first.pods()] == []
    assert [template.name for template in second.pods()] == ["theirs"]
