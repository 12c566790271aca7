"""Listings ask the agents' sockets: who answers, who is stale, and what is swept (SESS-14, POD-11, DIR-18, C-05)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm.machine import processes
from swarm.machine.run_folder import runfiles
from swarm.machine.sockets import heard as known
from swarm.machine.sockets import status_client
from swarm.project.swarm_dir import socket_dir
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from swarm import AgentStatus, Swarm
    from swarm.testing.panes import PaneLab

pytestmark = pytest.mark.integration


def folder(panes: PaneLab) -> Path:
    return panes.root / ".swarm" / "sockets"


def names(panes: PaneLab) -> list[str]:
    return sorted(one.partition("-fx-")[0] for one in os.listdir(folder(panes)))


def asked(panes: PaneLab, agent: str = "developer") -> AgentStatus:
    """Return an agent once its supervisor has answered, whatever else the machine does."""
    found: list[AgentStatus] = []

    def answers() -> bool:
        found[:] = [panes.one(agent)]
        return bool(found[0].socket) and not found[0].stale

    wait_for(answers, f"the answer of {agent}")
    return found[0]


def evidence(one: AgentStatus) -> list[str]:
    return [item.text for item in one.status.evidence if item.source == "socket"]


def request(path: str) -> dict[str, Any]:
    """Ask as any program can."""
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(30)
        one.connect(path)
        one.sendall(b'{"schema": 1, "type": "status"}\n')
        answer = json.loads(one.makefile().readline())
    assert answer["type"] == "status", answer
    return answer["agent"]  # type: ignore[no-any-return]  # it is what we look at


def supervisor(panes: PaneLab, agent: str) -> int:
    return int(panes.note(agent, runfiles.PROCESS)["supervisor_pid"])


def kill(panes: PaneLab, agent: str) -> None:
    """Kill a supervisor as nothing can foresee."""
    pid = supervisor(panes, agent)
    start = processes.start_of(pid)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not start or not processes.is_alive(pid, start), "the end of the supervisor")


# --- answers --------------------------------------------------------------------------------------


def test_the_socket_says_what_a_listing_says(panes: PaneLab) -> None:
    panes.start()
    panes.all_until("idle")
    panes.swarm.send("developer", "more to do")
    for agent in ("researcher", "developer"):
        one = asked(panes, agent)
        assert Path(one.socket).resolve().parent == folder(panes).resolve()
        wait_for(lambda: request(one.socket)["state"] == str(panes.one(agent).status.state), "the same state")  # noqa: B023
        said = request(one.socket)
        assert (said["name"], said["role"], said["session"]) == (agent, agent, "fx")
        assert "pod" not in said
        assert (said["program"], said["pid"]) == ("demo", one.pid)
        assert evidence(one)[0].startswith("its supervisor answers: ")


def test_messages_that_wait_are_counted_as_in_a_listing(panes: PaneLab) -> None:
    panes.start("developer", command="sleep 1000")
    path = asked(panes).socket
    assert request(path)["unread"] == 0
    for n in range(3):
        panes.swarm.send("developer", f"number {n}")
    assert request(path)["unread"] == panes.one("developer").unread == 3
    (panes.root / ".swarm/messages/inbox/developer-fx/drop/note").write_text("hello")
    assert request(path)["unread"] == panes.one("developer").unread == 4


def test_a_screen_that_was_read_is_told_with_its_age(panes: PaneLab) -> None:
    """A supervisor sees no screen: it goes by what the process saw that shows the states."""
    panes.start("developer", command="sleep 1000")
    path = asked(panes).socket
    said = request(path)
    assert (said["state"], said["detail"]) == ("unknown", "it runs; its program does not report its state")
    now = time.time_ns() // 1_000_000
    note = {"state": "idle", "detail": "done so far", "why": "its prompt is free (rule x/free)", "at_ms": now}
    runfiles.write(str(panes.run("developer")), runfiles.SCREEN, dict(note))
    said = request(path)
    assert (said["state"], said["detail"]) == ("idle", "done so far")
    assert [(one["text"], one["at_ms"]) for one in said["evidence"] if one["decides"]] == [(note["why"], now)]
    runfiles.write(str(panes.run("developer")), runfiles.SCREEN, {**note, "at_ms": now - 3_600_000})
    assert request(path)["state"] == "unknown"


# --- stale ----------------------------------------------------------------------------------------


def test_a_killed_supervisor_leaves_a_stale_socket_that_stop_resume_and_cleanup_sweep(panes: PaneLab) -> None:
    panes.start("researcher,developer,reviewer")
    for agent in ("researcher", "developer", "reviewer"):
        asked(panes, agent)
        kill(panes, agent)
        one = panes.one(agent)
        assert (one.stale, evidence(one)) == ("nobody listens on its socket", ["stale: nobody listens on its socket"])
    done = panes.cli("list")
    assert "3 stale" in done.stdout
    assert "stale: researcher@fx, developer@fx, reviewer@fx: nobody listens on its socket" in done.stderr
    told = json.loads(panes.cli("status", "--json").stdout)["data"]["sessions"][0]["agents"]
    assert [one["stale"] for one in told] == ["nobody listens on its socket"] * 3
    assert names(panes) == ["developer", "researcher", "reviewer"]

    panes.swarm.stop(["fx"], agent="researcher")
    assert (names(panes), panes.one("researcher").stale) == (["developer", "reviewer"], "")
    panes.swarm.resume(["fx"], agent="developer")
    assert asked(panes, "developer").stale == ""
    panes.swarm.cleanup(["fx"], force=True)
    assert names(panes) == []


@pytest.mark.parametrize("answer", [b"garbage\n", b"", None])
def test_a_socket_that_answers_garbage_or_nothing_is_one_stale_row(panes: PaneLab, answer: bytes | None) -> None:
    panes.start("developer", command="sleep 1000")
    path = Path(asked(panes).socket)
    path.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen(5)
        asking = status_client.Asking({"it": str(path)}, within=5.0 if answer is not None else 0.2)
        if answer is not None:
            connection, _ = other.accept()
            connection.recv(100)
            connection.sendall(answer)
            connection.close()
        assert asking.answers()["it"].stale
        began = time.monotonic()
        found = panes.swarm.status(look=False)
        assert time.monotonic() - began < 10
        (one,) = found[0].agents
        assert one.stale == "its supervisor does not answer"  # it accepts, and says nothing
        assert "developer@fx runs, but its supervisor does not answer" in [check.text for check in panes.swarm.doctor()]
        assert one.status.state == "unknown"  # of its program no less is known


def test_an_agent_that_ended_has_no_socket_and_is_not_stale(panes: PaneLab) -> None:
    panes.start("developer", command="true")
    panes.until("developer", "done")
    wait_for(lambda: names(panes) == [], "the end of the socket")
    one = panes.one("developer")
    assert (one.socket, one.stale, evidence(one)) == ("", "", [])


def test_a_folder_that_cannot_hold_sockets_stops_no_agent(panes: PaneLab) -> None:
    (panes.root / ".swarm").mkdir(mode=0o700)
    folder(panes).write_text("in the way")
    panes.start("developer")
    panes.until("developer", "idle")
    wait_for(lambda: bool(evidence(panes.one("developer"))), "the note about the socket")
    one = panes.one("developer")
    assert (one.socket, one.stale) == ("", "")
    assert evidence(one)[0].startswith("cannot make ")
    assert folder(panes).read_text() == "in the way"


# --- where ----------------------------------------------------------------------------------------


def test_sockets_are_private_also_in_a_folder_that_was_not(panes: PaneLab) -> None:
    (panes.root / ".swarm").mkdir(mode=0o700)
    folder(panes).mkdir(mode=0o755)
    panes.start("developer")
    path = Path(asked(panes).socket)
    assert (folder(panes).stat().st_mode & 0o777, path.lstat().st_mode & 0o777) == (0o700, 0o600)


def test_a_long_directory_takes_a_short_path(panes: PaneLab, tmp_path: Path) -> None:
    """C-05: the kernel takes no more than 104 bytes; the short way there is private, and ours."""
    runtime = Path("/tmp") / f"swarm-test-{os.getpid()}"
    runtime.mkdir(mode=0o700)
    try:
        deep = tmp_path.joinpath(*["deep" * 10] * 3)
        panes.env |= {"XDG_RUNTIME_DIR": str(runtime), "SWARM_DIR": str(deep)}
        panes.cli("init", str(deep))
        panes.start("developer")
        one = asked(panes)
        assert len(one.socket) < 100 < len(str(deep))
        assert Path(one.socket).resolve().parent == (deep / "sockets").resolve()
        assert Path(one.socket).parent.parent == runtime
        assert request(one.socket)["name"] == "developer"
        panes.swarm.cleanup(["fx"], force=True)
        assert os.listdir(deep / "sockets") == []
    finally:
        shutil.rmtree(runtime)


def test_two_swarm_directories_share_no_socket_and_list_none_of_each_other(panes: PaneLab, tmp_path: Path) -> None:
    """DIR-18."""
    one, other = tmp_path / "one", tmp_path / "other"
    for place, session in ((one, "fx"), (other, "gx")):
        panes.cli("init", str(place))
        panes.env["SWARM_DIR"] = str(place)
        panes.start("developer", session)
        wait_for(lambda: len(os.listdir(place / "sockets")) == 1, "its socket")  # noqa: B023
    data = json.loads(panes.cli("list", "--json").stdout)["data"]
    assert [session["session"] for session in data["sessions"]] == ["gx"]
    assert data["elsewhere"] == ["fx"]
    panes.swarm.cleanup(["gx"], force=True)
    assert (len(os.listdir(one / "sockets")), os.listdir(other / "sockets")) == (1, [])


def test_repositories_that_share_a_swarm_directory_have_sockets_of_their_own(tmp_path: Path) -> None:
    made = {socket_dir.agent_socket(tmp_path, root, "fx", "developer") for root in (Path("/a"), Path("/b"))}
    made |= {socket_dir.agent_socket(tmp_path, Path("/a"), "f", "xdeveloper")}
    longest = socket_dir.agent_socket(tmp_path, Path("/a"), "s" * 40, "a" * 40)
    assert len(made) == 3
    assert len(longest.name + runfiles.NEW_SOCKET) <= 48


def test_links_to_folders_that_are_gone_are_swept_when_a_new_one_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_dir, "_SHARED_TEMPORARY", tmp_path)
    runtime = {"XDG_RUNTIME_DIR": ""}
    gone, kept = (tmp_path / (word * 60) / "sockets" for word in ("g", "k"))
    for place in (gone, kept):
        place.parent.mkdir()
    links = tmp_path / f"swarm-{os.geteuid()}"
    assert socket_dir.short(gone, runtime).parent == links
    (links / "mine").symlink_to("nowhere")
    shutil.rmtree(gone)

    made = socket_dir.short(kept, runtime)

    assert sorted(os.listdir(links)) == sorted([made.name, "mine"])


def test_no_more_than_the_limit_is_waited_for_any_number_of_silent_sockets(panes: PaneLab) -> None:
    """All sockets together cost a listing at most 200 ms."""
    panes.start("developer:4", command="sleep 1000")
    swarm: Swarm = panes.swarm
    held = []
    for n in range(1, 5):
        path = asked(panes, f"developer-{n}").socket
        os.unlink(path)
        one = socket.socket(socket.AF_UNIX)
        one.bind(path)
        one.listen(5)
        held.append(one)
    without = min(_took(swarm, ask=False) for _ in range(3))
    with_them = min(_took(swarm, ask=True) for _ in range(3))
    assert [one.stale for one in swarm.status(look=False)[0].agents] == ["its supervisor does not answer"] * 4
    for one in held:
        one.close()
    assert with_them < without + status_client.WITHIN + 0.1  # of which the last is for a busy machine


def _took(swarm: Swarm, *, ask: bool) -> float:
    began = time.monotonic()
    swarm.status(look=False, ask=ask)
    return time.monotonic() - began


def test_the_answer_of_an_agent_in_a_pod_names_the_pod(panes: PaneLab) -> None:
    """POD-01: the variable of the agent, and the field of its status."""
    panes.cli("run", "--name", "solo", "--pod", "blue", "--detach", "--", "sleep", "1000")
    wait_for(lambda: bool(panes.one("solo").socket), "its socket")
    said = request(panes.one("solo").socket)
    assert (said["name"], said["pod"], said["role"]) == ("solo", "blue", "")


def test_run_returns_when_the_agents_socket_answers(panes: PaneLab) -> None:
    """SESS-03: start the agent, wait until its socket answers, then attach or say how."""
    handle = panes.swarm.run(name="solo", command="sleep 1000")
    noted = known.noted(str(panes.run("solo", "solo")), str(folder(panes)))
    assert request(noted.path)["name"] == handle.name


def test_run_does_not_wait_for_a_command_that_is_over_or_has_no_socket(panes: PaneLab) -> None:
    panes.swarm.run(name="short", command="true")
    shutil.rmtree(folder(panes))
    folder(panes).write_text("in the way")
    began = time.monotonic()
    panes.swarm.run(name="solo", command="sleep 1000")
    assert time.monotonic() - began < 30
    assert evidence(panes.one("solo"))[0].startswith("cannot make ")
