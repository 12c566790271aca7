"""No credential is in what is kept of a task: record, events, output, history, journal, log."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm.kit import redaction
from swarm.testing.terminal import wait_for
from tests.tasks.conftest import LONG

if TYPE_CHECKING:
    from tests.tasks.conftest import TaskLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]
#: With characters that JSON and regular expressions write otherwise.
KEY = 'wholly"se\\cret+key.of*mine'
FORMED = "sk-ant-" + "a1B2" * 10


def holding(top: Path, text: str) -> set[str]:
    """Return the files below a folder that hold a text, in whatever form JSON gives it."""
    forms = {text.encode(), json.dumps(text)[1:-1].encode(), json.dumps(json.dumps(text)[1:-1])[1:-1].encode()}
    found = set()
    for where, _, names in os.walk(top):
        for name in names:
            path = os.path.join(where, name)
            with contextlib.suppress(FileNotFoundError):  # one for a moment, of somebody who writes another one
                if stat.S_ISREG(os.lstat(path).st_mode):
                    data = Path(path).read_bytes()
                    found |= {os.path.relpath(path, top)} if any(form in data for form in forms) else set()
    return found


@pytest.mark.parametrize("how", [{}, {"worktree": True, "role": "developer"}], ids=["folder", "worktree"])
def test_hist_06_a_credential_that_a_program_prints_is_not_kept(lab: TaskLab, how: dict[str, object]) -> None:
    lab.env["MY_API_KEY"] = KEY
    script = f'printf "%s\\n" "$MY_API_KEY"; echo {FORMED}; printf "%s\\n" "$MY_API_KEY" >&2; exit 3'
    task = lab.over(lab.shell(script, **how))

    assert task.output.count(redaction.REMOVED) == 2
    assert task.failure is not None
    assert KEY not in task.failure.message
    assert redaction.REMOVED in task.failure.message
    (out,) = lab.swarm.tasks.output(task.id)
    assert out.stdout.decode() == f"{redaction.REMOVED}\n" * 2
    assert out.stderr.decode() == f"{redaction.REMOVED}\n"
    assert holding(lab.root / ".swarm", KEY) == set()
    # The prompt is the user's, and is kept as it was given.
    kept = {path.rpartition("/")[2] for path in holding(lab.root / ".swarm", FORMED)}
    assert kept <= {"task.json", "prompt.md", "task.md", "session.json"}


def test_what_a_task_is_given_is_stored_for_its_owner_alone_and_until_it_is_over(lab: TaskLab) -> None:
    lab.env["MY_API_KEY"] = KEY
    value = "the value of a variable"
    task = lab.shell(f'echo "$COLOUR" >>"{lab.file}"; printf "%s\\n" "$MY_API_KEY"; sleep 1000', env={"COLOUR": value})
    lab.running(task)
    assert lab.ledger() == [value]
    top = lab.root / ".swarm"
    folder = top / "tasks" / task.id
    assert {path.name for path in map(folder.joinpath, ("env.json", "secrets.json")) if path.exists()} == {
        "env.json",
        "secrets.json",
    }
    assert [f"{(folder / name).stat().st_mode:o}"[-3:] for name in ("env.json", "secrets.json")] == ["600", "600"]
    assert holding(top, value) == {f"tasks/{task.id}/env.json"}  # also not in the record, the launch file, the journal
    wait_for(lambda: bool(lab.swarm.tasks.output(task.id)[0].stdout), "its first line", LONG)
    assert lab.swarm.tasks.output(task.id)[0].stdout.decode() == f"{redaction.REMOVED}\n"  # while it runs, too

    lab.swarm.tasks.cancel(task.id)

    assert holding(top, value) == set()
    assert holding(top, KEY) == set()
    assert not (folder / "env.json").exists()
    assert not (folder / "secrets.json").exists()


def test_the_variables_of_a_task_in_a_worktree_are_in_one_private_file(lab: TaskLab) -> None:
    value = "the value of a variable"
    script = f'echo "$COLOUR" >>"{lab.file}"; sleep 1000'
    task = lab.shell(script, env={"COLOUR": value}, worktree=True, role="developer")
    lab.running(task)

    assert lab.ledger() == [value]
    assert holding(lab.root / ".swarm", value) == {f"tasks/{task.id}/env.json"}
    lab.swarm.tasks.cancel(task.id)
    assert holding(lab.root / ".swarm", value) == set()


def test_a_box_gets_no_credential(lab: TaskLab, boxes: None) -> None:
    names = ("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "GH_TOKEN", "OPENAI_API_KEY", "MY_API_KEY")
    lab.env |= dict.fromkeys(names, KEY)
    task = lab.over(lab.shell("env; cat /proc/1/environ /proc/$$/environ; cat /proc/*/cmdline", sandbox=True))

    (out,) = lab.swarm.tasks.output(task.id)
    assert b"SWARM_TASK=" in out.stdout
    assert redaction.REMOVED.encode() not in out.stdout + out.stderr
    assert not any(name.encode() in out.stdout for name in names)


def test_a_stream_that_only_looks_large_costs_nothing_and_pushes_nothing_out(lab: TaskLab) -> None:
    """A program can make the file of its output as large as it likes, without a byte in it."""
    lab.env["SWARM_TASKS_KEEP_BYTES"] = "100MiB"
    first = lab.over(lab.shell("echo kept"))
    large = lab.over(lab.shell("echo large; truncate -s 100G /proc/self/fd/1; exit 0"))

    assert large.state == "completed"
    assert {one.id for one in lab.swarm.tasks.history().tasks} == {first.id, large.id}
