"""Tasks: accepted once, done once, tried again, held, ended, found again, kept."""

from __future__ import annotations

import json
import os
import signal
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm import Swarm, TaskBusy, TaskNotFound, TaskNotIdle, TaskOver, TaskTaken, UsageProblem, WaitOver
from swarm.machine import processes
from swarm.testing.terminal import wait_for
from tests.tasks.conftest import LONG

if TYPE_CHECKING:
    from swarm import TaskRun
    from tests.tasks.conftest import TaskLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


def kinds(lab: TaskLab, task_id: str) -> list[str]:
    return [one.kind for one in lab.swarm.tasks.events(task_id)]


def launch(lab: TaskLab, task_id: str, run: TaskRun) -> Path:
    return lab.root / ".swarm/tasks" / task_id / "runs" / run.operation


# --- the life of a task ---------------------------------------------------------------------------


def test_a_task_is_done_in_a_folder_of_its_own_and_its_result_kept(lab: TaskLab) -> None:
    before = lab.fingerprint()

    task = lab.shell("pwd; git rev-parse --show-toplevel 2>&1; echo $GREETING >&2", env={"GREETING": "hello"})
    done = lab.over(task)

    first, second = done.output.splitlines()
    assert (done.state, done.exit_code, done.failure) == ("completed", 0, None)
    assert first == str(lab.root / ".swarm/workspaces" / done.session_id / "work")
    assert "not a git repository" in second
    (found,) = lab.swarm.tasks.output(task.id)
    assert found.stderr == b"hello\n"
    assert kinds(lab, task.id) == ["accepted", "starting", "started", "completed"]
    assert lab.fingerprint() == before


def test_its_files_are_private_and_its_variables_go_with_its_end(lab: TaskLab) -> None:
    done = lab.over(lab.shell("echo ok", env={"GREETING": "hello"}))
    folder = lab.root / ".swarm/tasks" / done.id
    modes = {stat.S_IMODE(path.lstat().st_mode) & 0o077 for path in folder.rglob("*")}

    assert modes == {0}
    assert not any(b"hello" in path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert not list(folder.rglob("launch.json"))


def test_an_error_that_may_pass_is_tried_again_in_the_same_conversation(lab: TaskLab) -> None:
    done = lab.over(
        lab.demo(lab.write_down("one"), "once error retryable no network", lab.write_down("two"), "say well")
    )

    assert (done.state, done.output) == ("completed", "well")
    assert lab.ledger() == ["one", "two"]
    assert [(one.resumed, one.failure and one.failure.message) for one in done.runs] == [
        (False, "no network"),
        (True, None),
    ]
    assert kinds(lab, done.id).count("retry") == 1


def test_an_error_that_will_not_pass_is_not(lab: TaskLab) -> None:
    done = lab.over(lab.demo("error fatal bad key"))

    assert done.failure is not None
    assert (done.state, done.failure.type, done.failure.message, len(done.runs)) == (
        *("failed", "program_error", "bad key", 1),
    )


def test_tries_come_to_an_end_and_a_rate_limit_is_called_so(lab: TaskLab) -> None:
    done = lab.over(lab.demo("error rate_limited slow down", tries=2))

    assert done.failure is not None
    assert (done.state, done.failure.type, len(done.runs)) == ("failed", "rate_limited", 2)


def test_a_retry_waits_for_its_pause(lab: TaskLab) -> None:
    lab.env["SWARM_TASKS_RETRY_PAUSE"] = "3000"
    task = lab.demo("error retryable x")

    wait_for(lambda: "retry" in kinds(lab, task.id), "the retry", LONG)

    waiting = lab.swarm.tasks.get(task.id)
    assert (waiting.state, len(waiting.runs)) == ("queued", 1)
    assert waiting.due_ms > time.time() * 1000 + 500_000
    with pytest.raises(WaitOver):
        lab.swarm.tasks.wait(task.id, 0.1)


def test_a_script_that_fails_is_not_run_twice(lab: TaskLab) -> None:
    done = lab.over(lab.shell(f"echo x >>'{lab.file}'; echo 'connection reset' >&2; exit 1"))

    assert (done.state, done.exit_code, lab.ledger()) == ("failed", 1, ["x"])


def test_a_program_that_is_not_there_fails_before_anything_is_written(lab: TaskLab) -> None:
    with pytest.raises(Exception, match="is not installed"):
        lab.swarm.tasks.submit("x", command="no-such-program-here")

    assert not (lab.root / ".swarm").exists()


def test_a_held_task_goes_on_in_its_conversation_until_it_is_ended(lab: TaskLab) -> None:
    task = lab.over(lab.demo("say first", hold=True))
    assert (task.state, task.output) == ("idle", "first")

    assert lab.swarm.tasks.continue_(task.id, "demo: say second").shown == "working"
    task = lab.over(task)
    assert (task.state, task.output, [run.turn for run in task.runs]) == ("idle", "second", [1, 2])
    assert task.runs[1].resumed

    assert lab.swarm.tasks.end(task.id).state == "completed"
    with pytest.raises(TaskOver, match="it is completed"):
        lab.swarm.tasks.continue_(task.id, "more")
    with pytest.raises(TaskOver, match="it is completed"):
        lab.swarm.tasks.cancel(task.id)


def test_what_is_held_too_long_is_completed(lab: TaskLab) -> None:
    task = lab.over(lab.demo("say first", hold=True))
    lab.env["SWARM_TASKS_IDLE_LIMIT"] = "1s"

    wait_for(lambda: lab.swarm.tasks.get(task.id).state == "completed", "its end", LONG)


def test_a_later_task_of_the_session_goes_on_there(lab: TaskLab) -> None:
    first = lab.over(lab.shell("echo kept > file"))

    second = lab.over(lab.shell("cat file", session_id=first.session_id))

    assert second.output == "kept\n"
    assert second.session_id == first.session_id


def test_the_role_and_the_preamble_stand_before_the_prompt(lab: TaskLab) -> None:
    lab.write({"roles/poet.yaml": "name: poet\ninstructions: Write in verse.\n"})

    done = lab.over(lab.swarm.tasks.submit("the task", command="cat", role="poet", preamble="of the project"))

    assert done.output == "of the project\n\nthe task"
    assert (launch(lab, done.id, done.runs[0]) / "role.md").read_text() == "Write in verse."
    bare = lab.over(lab.swarm.tasks.submit("the task", command="cat"))
    assert "Do not mention AI" in (launch(lab, bare.id, bare.runs[0]) / "role.md").read_text()


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prompt": ""}, "prompt is required"),
        ({"prompt": " \n"}, "prompt is required"),
        ({"prompt": "a\0b"}, "must be text"),
        ({"prompt": "x" * ((1 << 20) + 1)}, "too long"),
        ({"timeout": 0}, "timeout must be a number above 0"),
        ({"timeout": -1}, "timeout must be a number above 0"),
        ({"timeout": float("inf")}, "timeout must be a number above 0"),
        ({"timeout": float("nan")}, "timeout must be a number above 0"),
        ({"tries": 0}, "tries must be a number above 0"),
        ({"task_id": "../x"}, "invalid task id"),
        ({"task_id": "x" * 65}, "invalid task id"),
        ({"task_id": "٣"}, "invalid task id"),
        ({"task_id": ".open"}, "invalid task id"),
        ({"session_id": "a/b"}, "invalid session id"),
        ({"session_id": ".."}, "invalid session id"),
        ({"agent": "a b"}, "invalid agent name"),
        ({"model": "a\nb"}, "model must be one printable line"),
        ({"program": "nothing"}, "unknown agent program"),
        ({"program": "demo", "command": "cat"}, "both a program and a command"),
        ({"role": "nobody"}, "role"),
        ({"worktree": True}, "needs a role"),
        ({"env": {"API_KEY": "x"}}, "looks like a secret"),
        ({"env": {"GITHUB_TOKEN": "x"}}, "looks like a secret"),
        ({"env": {"LD_PRELOAD": "x"}}, "cannot be set"),
        ({"env": {"SWARM_DIR": "x"}}, "cannot be set"),
        ({"env": {"A=B": "x"}}, "cannot name a variable"),
        ({"env": {"A": 3}}, "must be text"),
    ],
)
def test_a_wrong_request_leaves_nothing_behind(lab: TaskLab, options: dict[str, object], words: str) -> None:
    how = {"prompt": "x", **({} if "program" in options else {"program": "shell"}), **options}

    with pytest.raises(Exception, match=words):
        lab.swarm.tasks.submit(**how)  # type: ignore[arg-type]  # by name

    assert not (lab.root / ".swarm").exists()


def test_one_id_is_one_task(lab: TaskLab) -> None:
    first = lab.over(lab.shell(f"echo x >>'{lab.file}'", task_id="mine"))

    assert lab.shell(f"echo x >>'{lab.file}'", task_id="mine").id == first.id
    with pytest.raises(TaskTaken):
        lab.shell("something else", task_id="mine")
    assert lab.ledger() == ["x"]


def test_a_session_and_an_agent_have_one_task_at_a_time(lab: TaskLab) -> None:
    task = lab.shell("sleep 1000", agent="bob", session_id="room")

    with pytest.raises(TaskBusy) as caught:
        lab.shell("true", session_id="room")
    assert caught.value.facts == {"current_task": task.id}
    with pytest.raises(TaskBusy, match="agent bob is busy"):
        lab.shell("true", agent="bob", alone=True)
    with pytest.raises(TaskNotIdle, match="it is working"):
        lab.swarm.tasks.continue_(task.id, "more")
    assert [one.id for one in lab.swarm.tasks.list(agent="bob")] == [task.id]


def test_an_unknown_task_is_named(lab: TaskLab) -> None:
    for verb in ("get", "cancel", "end", "events", "output"):
        with pytest.raises(TaskNotFound, match="no task nope"):
            getattr(lab.swarm.tasks, verb)("nope")
    with pytest.raises(UsageProblem):
        lab.swarm.tasks.get("../../etc")


def test_a_folder_that_swarm_did_not_make_is_not_worked_in(lab: TaskLab) -> None:
    lab.over(lab.shell("true"))
    lab.write({".swarm/workspaces/mine/precious": "x"})

    done = lab.over(lab.shell("rm -rf *", session_id="mine"))

    assert done.failure is not None
    assert (done.state, done.failure.type) == ("failed", "not_started")
    assert (lab.root / ".swarm/workspaces/mine/precious").exists()


# --- ends -----------------------------------------------------------------------------------------

#: A program that hears nothing, has left its group and session, and has many children.
STUBBORN = """
trap '' INT TERM HUP
echo begun >>'{file}'
setsid sh -c 'sleep 1000 & sleep 1000' &
(sh -c 'sleep 1000 & exit 0')
i=0; while [ $i -lt {many} ]; do sleep 1000 & i=$((i+1)); done
echo said
kill -STOP $$
wait
"""


def test_a_cancel_ends_every_descendant_in_time(lab: TaskLab) -> None:
    task = lab.shell(STUBBORN.format(file=lab.file, many=200))
    wait_for(lambda: len(lab.started()) > 200, "its children", LONG)

    began = time.monotonic()
    done = lab.swarm.tasks.cancel(task.id)
    took = time.monotonic() - began

    assert lab.started() == []
    assert (done.state, done.output) == ("cancelled", "said\n")
    assert done.runs[0].cause == "stopped"
    # 10.5 s on a quiet machine; the kill itself waits for nothing but the clock.
    assert took < 30, took
    assert done.runs[0].ended_ms
    assert kinds(lab, task.id)[-2:] == ["cancelling", "cancelled"]


def test_a_cancel_may_be_ordered_without_waiting(lab: TaskLab) -> None:
    task = lab.shell(f"echo begun >>'{lab.file}'; sleep 1000")
    lab.running(task)

    assert lab.swarm.tasks.cancel(task.id, wait=False).state == "cancelling"

    assert lab.over(task).state == "cancelled"
    assert lab.started() == []


def test_what_waits_is_cancelled_at_once(lab: TaskLab) -> None:
    lab.env["SWARM_TASKS_AT_ONCE"] = "1"
    first = lab.shell("sleep 1000")
    second = lab.shell(f"echo x >>'{lab.file}'")
    assert (first.state, second.state) == ("working", "queued")

    assert lab.swarm.tasks.cancel(second.id).state == "cancelled"
    lab.swarm.tasks.cancel(first.id)

    assert lab.ledger() == []


def test_a_cancel_that_died_before_its_signal_is_carried_out_by_the_next_who_looks(lab: TaskLab) -> None:
    task = lab.shell(f"echo begun >>'{lab.file}'; sleep 1000")
    lab.running(task)
    store = lab.swarm.tasks._bench().store
    with store.acting(30):
        store.change(store.get(task.id), type(task.state).CANCELLING, "cancelling")
    file = store.record(task.id)
    record = json.loads(file.read_text())
    record["last_event"]["time_ms"] -= 60_000
    file.write_text(json.dumps(record))

    assert lab.over(task).state == "cancelled"


def test_a_turn_has_its_time(lab: TaskLab) -> None:
    done = lab.over(lab.shell("echo said; sleep 1000", timeout=1))

    assert done.failure is not None
    assert (done.state, done.failure.type) == ("failed", "timeout")
    assert done.failure.message == "Task exceeded timeout of 1 seconds"
    assert (done.runs[0].cause, done.output) == ("timeout", "said\n")
    assert lab.started() == []


# --- found again ----------------------------------------------------------------------------------


def test_a_task_outlives_the_process_that_submitted_it(lab: TaskLab) -> None:
    """V1 in short: a server is killed while its task works; the next one finds the same process at work."""
    pid = os.fork()
    if pid == 0:
        lab.shell(
            f"echo begun >>'{lab.file}'; while [ ! -e '{lab.file}.go' ]; do sleep 0.05; done; echo end", task_id="t"
        )
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)

    run = lab.running(lab.swarm.tasks.get("t"))
    assert processes.is_alive(run.supervisor, run.supervisor_start)
    assert lab.swarm.tasks.get("t").state == "working"
    Path(f"{lab.file}.go").touch()

    done = lab.over(lab.swarm.tasks.get("t"))
    assert (done.state, done.output, lab.ledger()) == ("completed", "end\n", ["begun"])
    assert [one.supervisor for one in done.runs] == [run.supervisor]


def test_the_end_is_written_down_although_nobody_looks(lab: TaskLab) -> None:
    task = lab.shell("true")
    file = lab.root / ".swarm/tasks" / task.id / "task.json"

    wait_for(lambda: json.loads(file.read_text())["state"] == "completed", "the record of the end", LONG)


@pytest.mark.parametrize("who", ["supervisor", "both"])
def test_without_its_supervisor_a_task_is_taken_up_again(lab: TaskLab, who: str) -> None:
    """V3: the supervisor alone, or with the program; what it left is ended, and nothing is done twice."""
    task = lab.demo(lab.write_down("one"), "once sleep 1000", lab.write_down("two"))
    run = lab.running(task)
    wait_for((launch(lab, task.id, run) / "process.json").exists, "its process", LONG)
    program = json.loads((launch(lab, task.id, run) / "process.json").read_text())["pid"]
    said = launch(lab, task.id, run) / "state.json"
    wait_for(lambda: said.exists() and "busy" in said.read_text(), "the sleep", LONG)
    os.kill(run.supervisor, signal.SIGKILL)
    if who == "both":
        os.kill(program, signal.SIGKILL)

    done = lab.over(task)

    assert (done.state, lab.ledger()) == ("completed", ["one", "two"])
    assert [one.cause for one in done.runs] == ["lost", "exited"]
    assert "interrupted" in kinds(lab, task.id)
    assert lab.started() == []


def test_a_program_that_is_killed_alone_is_tried_again(lab: TaskLab) -> None:
    done = lab.over(lab.demo(lab.write_down("one"), "once crash", lab.write_down("two")))

    assert (done.state, lab.ledger()) == ("completed", ["one", "two"])
    assert [(one.cause, one.signal) for one in done.runs] == [("signal", 9), ("exited", None)]


def other_boot(lab: TaskLab, task_id: str, run: TaskRun) -> None:
    """Let what is known of a run be of another boot of the machine."""
    store = lab.swarm.tasks._bench().store
    os.kill(run.supervisor, signal.SIGKILL)
    lab.swarm.tasks._bench()
    for file in (store.record(task_id), launch(lab, task_id, run) / "process.json"):
        file.write_text(file.read_text().replace(processes.boot_id(), "another-boot"))


def test_after_a_reboot_a_conversation_is_taken_up_and_a_script_is_not_repeated(lab: TaskLab) -> None:
    """V2: interrupted, then resumed or failed by what the program can, or requeued where the caller allows it."""
    orders = (lab.write_down("one"), "once sleep 1000", lab.write_down("two"))
    task = lab.demo(*orders)
    run = lab.running(task)
    said = launch(lab, task.id, run) / "state.json"
    wait_for(lambda: said.exists() and "busy" in said.read_text(), "the sleep", LONG)
    other_boot(lab, task.id, run)
    assert lab.over(task).state == "completed"
    assert lab.ledger() == ["one", "two"]

    for repeatable, state in ((False, "failed"), (True, "completed")):
        lab.file.unlink()
        script = f"echo x >>'{lab.file}'; [ -e '{lab.file}.{repeatable}' ] || sleep 1000"
        task = lab.shell(script, repeatable=repeatable)
        run = lab.running(task)
        Path(f"{lab.file}.{repeatable}").touch()
        other_boot(lab, task.id, run)
        done = lab.over(task)
        assert (done.state, lab.ledger()) == (state, ["x"] * (1 + repeatable))


def test_a_result_counts_also_when_the_supervisor_died_behind_it(lab: TaskLab) -> None:
    done = lab.over(lab.demo(lab.write_down("one"), "say well"))
    store = lab.swarm.tasks._bench().store
    run = done.runs[0]
    record = json.loads(store.record(done.id).read_text())
    record |= {"state": "working", "operation": run.operation, "output": ""}
    store.record(done.id).write_text(json.dumps(record))
    (store._top / ".open" / done.id).touch()
    (launch(lab, done.id, run) / "exit.json").unlink()

    again = lab.over(done)

    assert (again.state, again.output, lab.ledger(), len(again.runs)) == ("completed", "well", ["one"], 1)


def test_a_record_that_cannot_be_read_is_passed_over(lab: TaskLab) -> None:
    done = lab.over(lab.shell("true"))
    lab.write({".swarm/tasks/odd/task.json": "{", ".swarm/tasks/.open/odd": ""})

    assert [one.id for one in lab.swarm.tasks.list(finished=True)] == [done.id]
    assert lab.over(lab.shell("true")).state == "completed"


# --- the queue and the history --------------------------------------------------------------------


def test_so_many_run_at_once_and_the_others_follow(lab: TaskLab) -> None:
    lab.env["SWARM_TASKS_AT_ONCE"] = "2"
    tasks = [lab.shell(f"echo {n} >>'{lab.file}'") for n in range(6)]
    running: list[int] = []

    def done() -> bool:
        states = [one.state for one in lab.swarm.tasks.list(finished=True)]
        running.append(states.count(type(tasks[0].state).WORKING))
        return states.count(type(tasks[0].state).COMPLETED) == 6

    wait_for(done, "all", LONG)
    assert max(running) <= 2
    assert sorted(lab.ledger()) == [str(n) for n in range(6)]


def test_the_history_has_pages_and_an_end(lab: TaskLab) -> None:
    lab.env["SWARM_TASKS_KEEP"] = "3"
    held = lab.over(lab.demo("say x", hold=True))
    ids = [lab.over(lab.shell("true")).id for _ in range(5)]

    tasks, work = lab.root / ".swarm/tasks", lab.root / ".swarm/workspaces"
    wait_for(lambda: lab.swarm.tasks.history().total == 3, "the oldest gone", LONG)
    assert names(tasks, "task-") == {held.id, *ids[2:]}

    found = lab.swarm.tasks.history(limit=2)

    assert ([one.id for one in found.tasks], found.total) == (ids[:-3:-1], 3)
    assert [one.id for one in lab.swarm.tasks.history(2, 2).tasks] == [ids[2]]
    assert lab.swarm.tasks.get(held.id).state == "idle"
    for page, limit in ((0, 20), (1, 0), (1, 101)):
        with pytest.raises(UsageProblem):
            lab.swarm.tasks.history(page, limit)
    rooms = {held.session_id, *(lab.swarm.tasks.get(one).session_id for one in ids[2:])}
    wait_for(lambda: names(work) == rooms, "their folders gone, too", LONG)


def names(folder: Path, beginning: str = "") -> set[str]:
    return {path.name for path in folder.iterdir() if path.name.startswith(beginning)}


def test_the_history_has_a_size(lab: TaskLab) -> None:
    lab.env["SWARM_TASKS_KEEP_BYTES"] = "1MiB"
    big = lab.over(lab.shell("head -c 2000000 /dev/zero"))
    small = lab.over(lab.shell("true"))

    wait_for(lambda: [one.id for one in lab.swarm.tasks.history().tasks] == [small.id], "the big one gone", LONG)
    with pytest.raises(TaskNotFound):
        lab.swarm.tasks.get(big.id)


def test_a_session_that_a_later_task_names_stays_with_that(lab: TaskLab) -> None:
    lab.env["SWARM_TASKS_KEEP"] = "1"
    first = lab.over(lab.shell("echo kept > file"))
    second = lab.over(lab.shell("cat file", session_id=first.session_id))

    assert second.output == "kept\n"
    wait_for(lambda: len(lab.swarm.tasks.history().tasks) == 1, "the first one gone", LONG)
    assert (lab.root / ".swarm/workspaces" / first.session_id / "work/file").exists()
    lab.over(lab.shell("true"))
    there = (lab.root / ".swarm/workspaces" / first.session_id).exists
    wait_for(lambda: lab.swarm.tasks.history().total == 1 and not there(), "its folder gone", LONG)


def test_events_are_numbered_also_where_a_line_was_lost(lab: TaskLab) -> None:
    task = lab.over(lab.demo("say x", hold=True))
    file = lab.root / ".swarm/tasks" / task.id / "events.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]) + lines[-1][:10])  # as a kill leaves it

    assert [one.number for one in lab.swarm.tasks.events(task.id)] == [1, 2, 3, 4]
    lab.swarm.tasks.end(task.id)

    assert [one.number for one in lab.swarm.tasks.events(task.id)] == [1, 2, 3, 4, 5]
    assert [one.number for one in lab.swarm.tasks.events(task.id, after=3)] == [4, 5]
    assert Swarm.open(lab.root, environ=lab.env).tasks.get(task.id).events == 5
