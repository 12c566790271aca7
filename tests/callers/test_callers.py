"""What counts as a person, as an agent, and as neither; the table is the one in docs/approvals.md."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm import Swarm
from swarm.approvals.grants import VARIABLE
from swarm.bus.filebus import FileBus
from swarm.bus.message import Message
from swarm.callers.caller import caller_of, of_processes
from swarm.callers.errors import IdentityRefused, NotAPerson, NotForAgents
from swarm.delivery.framing import batch
from swarm.machine import person, processes
from swarm.machine.identity import whoami
from swarm.testing.terminal import at_terminal, wait_for, without_terminal

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm.testing.lab import Lab
    from swarm.testing.panes import PaneLab

pytestmark = pytest.mark.integration

PROJECT = Path(__file__).parents[2]
#: Prints what its process is to the repository named by its first argument, into the file named by the second.
PROBE = """
import os, sys
sys.path.insert(0, {project!r})
from swarm.callers.caller import caller_of
found = caller_of(sys.argv[1], os.environ)
text = found.kind + " " + (found.who.address if found.who else found.grant)
open(sys.argv[2] + ".tmp", "w").write(text.strip())
os.rename(sys.argv[2] + ".tmp", sys.argv[2])
"""


def probe(lab: Lab, out: Path) -> list[str]:
    """Return the command that finds out what it is."""
    path = lab.root.parent / "probe.py"
    path.write_text(PROBE.format(project=str(PROJECT)))
    return [sys.executable, "-I", str(path), str(lab.root / ".swarm"), str(out)]


def told(out: Path) -> str:
    wait_for(out.exists, f"what {out.name} found")
    return out.read_text()


def here(lab: Lab) -> str:
    return caller_of(str(lab.root / ".swarm"), lab.env).kind


def can(*command: str) -> bool:
    """Whether the machine lets us do this."""
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run([*command, "true"], capture_output=True, check=False, timeout=20).returncode == 0


# --- what counts --------------------------------------------------------------------------------------------


def test_a_terminal_counts_and_nothing_without_one(lab: Lab) -> None:
    """A desktop terminal, an editor's, ssh and screen: all of them are a pseudo terminal below init."""
    assert at_terminal(lambda: here(lab)) == "person"
    assert without_terminal(lambda: here(lab)) == "nobody"
    assert at_terminal(lambda: without_terminal(lambda: here(lab))) == "nobody"


def test_another_process_is_judged_by_itself(lab: Lab) -> None:
    """As a server does, which sees who asks: the one with a terminal counts, and nobody else for it."""
    state = str(lab.root / ".swarm")

    def judged(*, alone: bool) -> tuple[str, str]:
        with subprocess.Popen(["sleep", "60"], start_new_session=alone) as one:
            try:
                found = of_processes(state, [one.pid])
                return found.kind, of_processes(state, [os.getpid(), one.pid]).kind
            finally:
                one.kill()

    assert at_terminal(lambda: judged(alone=False)) == ("person", "person")
    assert at_terminal(lambda: judged(alone=True)) == ("nobody", "nobody")
    assert of_processes(state, None).kind == "nobody"
    assert of_processes(state, None, by_person=True).kind == "person"
    with pytest.raises(IdentityRefused, match="cannot be seen"):
        of_processes(state, [])
    with pytest.raises(NotForAgents, match="an agent or a task started"):
        of_processes(state, [_ended()])
    with pytest.raises(IdentityRefused, match="a grant that does not count"):
        of_processes(state, None, "mine:nonsense")


def _ended() -> int:
    with subprocess.Popen(["true"]) as one:
        one.wait()
    return one.pid


@pytest.mark.skipif(os.geteuid() != 0, reason="takes on another account")
def test_an_ordinary_user_counts_who_may_not_look_at_init() -> None:
    person.doubt()  # loads what somebody else may not read

    def as_somebody() -> tuple[str, bool]:
        os.setgroups([])
        os.setgid(54321)
        os.setuid(54321)
        try:
            os.readlink("/proc/1/ns/pid")
        except PermissionError:
            return person.doubt(), True
        return person.doubt(), False

    assert at_terminal(as_somebody) == ("", True)


def test_a_terminal_put_into_a_container_counts_there(lab: Lab, tmp_path: Path) -> None:
    """As `docker exec -it` does: its parent is outside, and cannot be seen."""
    if not can("unshare", "-mpf", "--mount-proc"):
        pytest.skip("nobody but root makes such namespaces")
    held = tmp_path / "held"
    inside = (
        f"import os, pty; pid, _ = pty.fork(); pid or os.execv({sys.executable!r}, {probe(lab, tmp_path / 'out')!r})"
    )
    wait = "; os.waitpid(pid, 0)"
    with subprocess.Popen(
        ["unshare", "-mpf", "--mount-proc", "sh", "-c", f"echo > {shlex.quote(str(held))}; exec sleep 300"]
    ) as box:
        try:
            wait_for(held.exists, "the container")
            (init,) = processes.below(box.pid)
            enter = ["nsenter", "-t", str(init.pid), "-m", "-p", sys.executable, "-c", inside + wait]
            subprocess.run(enter, check=True, capture_output=True, timeout=60)
        finally:
            box.kill()
            for one in processes.below(box.pid):
                processes.send(one.pid, one.start, signal.SIGKILL)
    assert told(tmp_path / "out") == "person"


# --- what does not, from an agent's pane ----------------------------------------------------------------------

NEW = "unshare -Urpf"
#: What an agent tries, and what it is then. What the machine does not let it do is left out.
TRIES = {
    "plain": ("", "agent developer@fx"),
    "without its environment": ("env -i PATH=/usr/bin:/bin", "agent developer@fx"),
    "in a session and a terminal of its own": ("setsid -w script -qec", "agent developer@fx"),
    "in namespaces of its own": (NEW, "nobody"),
    "with a /proc of its own": (f"{NEW} --mount-proc", "nobody"),
    "with a terminal in there": (f"{NEW} --mount-proc script -qec", "nobody"),
    "behind a hidden /proc": ("unshare -Urm sh -c 'mount -t tmpfs none /proc && exec \"$@\"' sh", "nobody"),
}


@pytest.fixture
def shells(panes: PaneLab) -> PaneLab:
    """Two agents that are shells, and whom nobody types to."""
    panes.env["SWARM_AGENTS_NUDGE"] = "never"
    panes.start("developer,reviewer", program="shell", task="")
    panes.all_until("idle")
    return panes


def test_whatever_an_agent_does_from_its_pane_it_does_not_become_a_person(shells: PaneLab, tmp_path: Path) -> None:
    allowed = can("unshare", "-Urpf")
    lines, wanted = [], {}
    for number, (name, (before, expected)) in enumerate(TRIES.items()):
        if "unshare" in before and not allowed:
            continue
        words = shlex.join(probe(shells, tmp_path / str(number)))
        if before.endswith("script -qec"):
            words = f"{shlex.quote(words)} /dev/null"
        lines.append(f"{before} {words}")
        wanted[name] = (str(number), expected)
    script = tmp_path / "tries"
    script.write_text("\n".join(lines) + f"\necho >{shlex.quote(str(tmp_path / 'end'))}\n")

    shells.type("developer", f"sh {shlex.quote(str(script))}")

    wait_for((tmp_path / "end").exists, "the end of all tries")
    assert {name: told(tmp_path / number) for name, (number, _) in wanted.items()} == {
        name: expected for name, (_, expected) in wanted.items()
    }


def test_an_orphan_with_a_terminal_of_its_own_is_nobody_once_its_supervisor_was_killed(
    shells: PaneLab, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    asks = shlex.join(probe(shells, tmp_path / "out"))
    command = f"while ! test -e {shlex.quote(str(go))}; do sleep 0.05; done; exec {asks}"
    orphan = f"env -i PATH=/usr/bin:/bin HOME=/ setsid script -qec {shlex.quote(command)} /dev/null"
    shells.type("developer", f"({orphan} </dev/null >/dev/null 2>&1 &) ; echo >{shlex.quote(str(tmp_path / 'began'))}")
    wait_for((tmp_path / "began").exists, "the orphan")
    note = shells.note("developer", "process.json")
    for key in ("supervisor_pid", "pid"):
        os.kill(int(note[key]), signal.SIGKILL)
    wait_for(lambda: processes.start_of(int(note["supervisor_pid"])) is None, "the end of the supervisor")

    go.touch()

    assert told(tmp_path / "out") == "nobody"


@pytest.mark.parametrize("place", ["elsewhere", "of a colleague"])
def test_a_made_up_run_folder_makes_nobody_somebody_else(shells: PaneLab, tmp_path: Path, place: str) -> None:
    """The agent starts a supervisor of its own, in a folder that it wrote or in that of a colleague."""
    made = tmp_path / "fake/.swarm/sessions/fx/run/boss"
    folder = made if place == "elsewhere" else shells.run("reviewer")
    if place == "elsewhere":
        made.mkdir(parents=True)
    out = tmp_path / "out"
    # Looks like a supervisor by its arguments, and writes the record that names it as one.
    launcher = tmp_path / "launcher.py"
    launcher.write_text(
        "import json, os, subprocess, sys\n"
        f"sys.path.insert(0, {str(PROJECT)!r})\n"
        "from swarm.machine import processes as proc\n"
        "me = {'supervisor_pid': os.getpid(), 'supervisor_start': proc.start_of(os.getpid())}\n"
        "me |= {'schema': 1, 'boot_id': proc.boot_id(), 'pid': 1, 'pid_start': 1}\n"
        "folder = os.path.dirname(sys.argv[1])\n"
        "json.dump(me, open(folder + '/process.json', 'w'))\n"
        f"subprocess.run({probe(shells, out)!r}, env=os.environ | {{'SWARM_RUN_DIR': folder}})\n"
    )
    shells.type("developer", shlex.join([sys.executable, str(launcher), f"{folder}/launch.json"]))

    assert told(out) == "agent developer@fx"


def test_a_pane_of_the_users_own_in_the_same_tmux_server_counts(shells: PaneLab, tmp_path: Path) -> None:
    shells.tmux("new-window", "-d", "-t", "swarm", shlex.join(probe(shells, tmp_path / "out")))

    assert told(tmp_path / "out") == "person"


def test_a_message_of_the_users_says_when_nobody_typed_it_and_when_nothing_shows_it(lab: Lab) -> None:
    """Neither the library's bus nor a copy of a message to somebody else makes one of the user's."""
    lab.swarm.create("fx", "developer,reviewer")
    lab.person.send("developer", "by hand")
    without_terminal(lambda: lab.swarm.send("developer", "by cron"))
    lab.person.send("reviewer", "makes the inbox")
    bus = FileBus(lab.root / ".swarm" / "messages")
    bus.send(Message("developer@fx", "user", "by an agent"))
    (real, *_) = lab.swarm.messages.inbox("developer")
    bus.send(real.message._replace(to="reviewer@fx", generation=""))
    bus.close()

    found = [one.message for one in lab.swarm.messages.inbox("developer")]

    marks = [{key: value for key, value in one.metadata.items() if key != "mac"} for one in found]
    assert marks == [{}, {"via": "script"}, {"unproven": True}]
    told = batch(found, "developer@fx")
    assert "from=user via=script type" in told
    assert "from=user (nothing shows that the user sent it) type" in told
    assert lab.swarm.messages.inbox("reviewer")[-1].message.metadata["unproven"] is True


# --- what follows ---------------------------------------------------------------------------------------------


def test_what_is_for_people_is_refused_to_nobody_with_the_reason(lab: Lab) -> None:
    lab.swarm.create("fx", "developer")

    with pytest.raises(NotAPerson, match="it has no terminal") as caught:
        without_terminal(lambda: lab.swarm.approvals.approve("abcdef"))

    assert (caught.value.code, caught.value.exit_code) == ("NOT_A_PERSON", 4)
    assert "swarm approvals grant NAME" in caught.value.hint


#: What cannot be taken back, or is gone for good sooner for it.
LOSES: dict[str, Callable[[Swarm], object]] = {
    "cleanup": lambda swarm: swarm.cleanup(["fx"], force=True, discard=True),
    "remove": lambda swarm: swarm.worktrees.remove("developer", "fx", force=True, discard=True),
    "drop": lambda swarm: swarm.salvage.drop(everything=True),
    "drop --now": lambda swarm: swarm.salvage.drop(everything=True, now=True),
    "prune": lambda swarm: swarm.messages.prune(older_than_ms=0),
    "attachments": lambda swarm: swarm.messages.prune_attachments(older_than_ms=0),
}


@pytest.mark.parametrize("what", LOSES)
def test_what_loses_something_needs_a_person_or_a_grant(lab: Lab, what: str) -> None:
    lab.swarm.create("fx", "developer,reviewer")
    lab.swarm.create("old", "developer")
    lab.swarm.cleanup(["old"])

    def act(environ: dict[str, str]) -> object:
        return LOSES[what](Swarm.open(lab.root, environ=environ))

    with pytest.raises(NotAPerson, match="it has no terminal") as caught:
        without_terminal(lambda: act(lab.env))
    assert "swarm approvals grant NAME" in caught.value.hint
    assert (len(lab.swarm.sessions()), len(lab.swarm.salvage())) == (1, 1)

    granted = lab.env | {VARIABLE: lab.person.approvals.grant("bridge")}
    without_terminal(lambda: act(granted))


def test_what_saves_everything_needs_no_person(lab: Lab) -> None:
    lab.swarm.create("fx", "developer")

    without_terminal(lab.swarm.worktrees.prune)
    without_terminal(lambda: lab.swarm.sessions.prune(older_than_ms=0))

    assert lab.swarm.sessions() == ()


def test_a_dead_supervisors_folder_is_believed_for_the_program_it_named_alone(shells: PaneLab) -> None:
    process = shells.note("reviewer", "process.json")
    who = whoami({}, int(process["pid"]))
    assert who is not None
    assert who.address == "reviewer@fx"
    record = shells.run("reviewer") / "process.json"
    record.write_text(json.dumps({**process, "pid": os.getpid(), "pid_start": processes.start_of(os.getpid())}))

    assert whoami({"SWARM_RUN_DIR": str(shells.run("reviewer"))}) is None
