"""The program in real terminals: start and watch, Ctrl-C, a closed terminal, attach inside and outside tmux."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm.testing.panes import QUICK, PaneLab, TmuxServer, states
from swarm.testing.terminal import wait_for
from tests.support.slow import Slow

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]


def users(lab: PaneLab) -> dict[str, Any]:
    """Return what of the repository is the user's; the filter is the test's."""
    return {key: value for key, value in lab.fingerprint().items() if key not in {"exclude", "config"}}


@pytest.fixture
def outer(panes: PaneLab) -> Iterator[TmuxServer]:
    """Give another tmux server: the terminal that the user sits at."""
    made = TmuxServer({**panes.env, "TERM": "xterm-256color"})
    try:
        yield made
    finally:
        made.kill()
        made.remove()


def line(lab: PaneLab, *args: str) -> str:
    """Return a command line as one would type it."""
    words = [sys.executable, "-P", "-m", "swarm", *args]
    return f"cd {shlex.quote(str(lab.root))} && {shlex.join(words)}"


def shown(server: TmuxServer, target: str = "") -> str:
    """Return what is on a screen."""
    return server("capture-pane", "-p", *(("-t", target) if target else ()), check=False)


# --- the users day -------------------------------------------------------------------------------


def test_start_shows_progress_and_what_comes_next(panes: PaneLab) -> None:
    terminal = panes.terminal("start", "feature-x", "--roles", "researcher,developer", "--agent", "demo", columns=80)
    try:
        assert terminal.ended() == 0, terminal.text
    finally:
        terminal.close()

    assert "started session feature-x with 2 agents from main" in terminal.text
    assert "\r" in terminal.text
    assert f"tmux -S {panes.tmux.socket} attach -t swarm" in terminal.text
    assert "swarm status feature-x" in terminal.text


def test_start_and_attach_in_one(panes: PaneLab) -> None:
    terminal = panes.terminal(
        "start", "fx", "--roles", "developer", "--agent", "demo", "--attach", columns=120, rows=40
    )
    try:
        terminal.see("demo agent: developer")
        assert panes.tmux("list-clients", "-F", "#{session_name}") == "swarm"
        panes.tmux("detach-client", "-s", "swarm")
        assert terminal.ended() == 0
    finally:
        terminal.close()
    assert "started session fx" in terminal.text
    assert states(panes.swarm)["developer"] in {"idle", "working", "starting"}


def test_watch_until_ctrl_c(panes: PaneLab) -> None:
    panes.start("developer")
    panes.until("developer", "idle")
    terminal = panes.terminal("status", "--watch")
    try:
        terminal.see("idle")
        terminal.forget()
        panes.type("developer", "permission Bash")
        terminal.see("waiting")
        terminal.type("\x03")
        assert terminal.ended() == 130
    finally:
        terminal.close()
    assert "Traceback" not in terminal.text
    assert "error:" not in terminal.text, "that is how one ends it"


def test_a_watched_table_fits_the_screen(panes: PaneLab) -> None:
    panes.start("developer:12", command=["sh", "-c", "sleep 600"])
    terminal = panes.terminal("status", "--watch", rows=10)
    try:
        terminal.see("and 7 more")
        terminal.see("Ctrl-C ends this")
    finally:
        terminal.close()


def test_follow_until_ctrl_c(panes: PaneLab) -> None:
    panes.start("developer")
    panes.until("developer", "idle")
    terminal = panes.terminal("peek", "developer", "--follow")
    try:
        terminal.see("demo>")
        panes.type("developer", "say something new")
        terminal.see("something new")
        terminal.type("\x03")
        assert terminal.ended() == 130
    finally:
        terminal.close()


# --- cut short -------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["Ctrl-C", "terminal closed", "SIGTERM"])
def test_cut_short_in_the_middle_of_a_start(panes: PaneLab, how: str) -> None:
    slow = Slow(panes)
    before = users(panes)
    terminal = panes.terminal("start", "fx", "--roles", "developer", "--agent", "demo")
    try:
        slow.wait()
        if how == "Ctrl-C":
            terminal.type("\x03")
            assert terminal.ended() == 130
            assert "Traceback" not in terminal.text
            assert "swarm undid everything" in terminal.text
        elif how == "SIGTERM":
            terminal.send(signal.SIGTERM)
            assert terminal.ended() == 143
        else:
            terminal.hang_up()
            wait_for(lambda: not terminal.is_running(), "the end of swarm")
    finally:
        terminal.close()

    assert users(panes) == before
    assert panes.swarm.sessions() == ()
    assert panes.swarm.operations.unfinished() == ()
    assert panes.panes() == []
    wait_for(lambda: panes.agents_processes() == {}, "nothing that runs")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_cut_short_while_panes_open(panes: PaneLab, how: signal.Signals) -> None:
    """tmux is slow for once: the panes are there, the set is not committed."""
    begun, go = panes.root.parent / "begun", panes.root.parent / "go"
    os.mkfifo(begun)
    real = next(p for p in ("/usr/bin/tmux", "/usr/local/bin/tmux", "/opt/homebrew/bin/tmux") if os.path.exists(p))
    panes.program(
        "tmux",
        f'#!/bin/sh\n"{real}" "$@"\ncode=$?\ncase "$*" in *new-session*) echo begun > "{begun}"\n'
        f'while [ ! -e "{go}" ]; do sleep 0.05; done ;; esac\nexit $code\n',
    )
    before = users(panes)
    terminal = panes.terminal("start", "fx", "--roles", "researcher,developer", "--agent", "demo")
    try:
        assert begun.read_text() == "begun\n"
        assert panes.panes() == ["fx developer", "fx researcher"]
        terminal.send(how)
        go.touch()
        terminal.ended()
    finally:
        terminal.close()

    panes.swarm.recover()

    assert users(panes) == before
    assert panes.panes() == []
    wait_for(lambda: panes.agents_processes() == {}, "nothing that runs")
    assert not list(panes.root.glob(".swarm/sessions/*"))


def test_two_starts_of_two_repositories_at_the_same_moment(panes: PaneLab, tmp_path: Path) -> None:
    """Both find no server; one of them makes it, and both end up in one tmux session."""
    other = PaneLab(tmp_path / "other", share=panes)
    words = ("start", "fx", "--roles", "researcher,developer", "--agent", "demo", "--task", QUICK)
    terminals = [lab.terminal(*words) for lab in (panes, other)]
    try:
        assert [terminal.ended() for terminal in terminals] == [0, 0], [terminal.text for terminal in terminals]
    finally:
        for terminal in terminals:
            terminal.close()

    assert panes.panes() == ["fx developer", "fx developer", "fx researcher", "fx researcher"]
    assert panes.tmux.rows("#{session_name}", what="list-sessions") == ["swarm"]
    for lab in (panes, other):
        lab.all_until("idle")
    panes.swarm.cleanup(["fx"], force=True)
    assert panes.panes() == ["fx developer", "fx researcher"]
    other.all_until("idle")


def test_a_closed_terminal_does_not_touch_running_agents(panes: PaneLab) -> None:
    terminal = panes.terminal("start", "fx", "--roles", "developer", "--agent", "demo", "--attach")
    try:
        terminal.see("branch swarm/developer-fx")  # the border of the pane may take the first line
        terminal.hang_up()
        wait_for(lambda: not terminal.is_running(), "the end of the client")
    finally:
        terminal.close()

    assert panes.state("developer") in {"working", "idle"}


# --- attach ----------------------------------------------------------------------------------------


def test_attach_without_a_terminal(panes: PaneLab) -> None:
    panes.start("developer")

    done = panes.cli("attach")

    assert done.returncode == 2
    assert "not a terminal" in done.stderr
    assert f"tmux -S {panes.tmux.socket} attach -t swarm" in done.stderr
    found = panes.json("attach", "developer@fx")["data"]
    assert found["pane"] == panes.one("developer").pane
    assert "attach-session" in found["command"]


def test_attach_when_there_is_nothing_to_attach_to(panes: PaneLab) -> None:
    terminal = panes.terminal("attach")
    try:
        code = terminal.ended()
    finally:
        terminal.close()

    assert code == 6, terminal.text
    assert "no panes" in terminal.text
    assert "swarm start" in terminal.text


def test_attach_to_an_agent_from_a_plain_terminal(panes: PaneLab) -> None:
    panes.start("developer:3,reviewer", "fx")
    panes.start("developer", "gx")
    panes.all_until("idle")
    terminal = panes.terminal("attach", "developer-2@fx", columns=200, rows=50)
    try:
        terminal.see("developer-2")
        active = panes.tmux("display-message", "-p", "-t", "=swarm:", "#{s/.* //:@swarm_mark} #{@swarm_agent}")
        assert active == "fx developer-2"
        panes.tmux("detach-client", "-s", "swarm")
        assert terminal.ended() == 0
    finally:
        terminal.close()


def test_attach_inside_the_same_server_switches_the_client(panes: PaneLab, outer: TmuxServer) -> None:
    """The user sits in another session of the server that the agents are on."""
    panes.tmux("new-session", "-d", "-x", "120", "-y", "40", "-s", "home", "-c", str(panes.root), "/bin/sh")
    panes.start("researcher,developer")
    panes.all_until("idle")
    attach = f"TMUX= exec tmux -S {panes.tmux.socket} attach -t =home"
    outer("new-session", "-d", "-x", "140", "-y", "45", "-s", "out", attach)
    wait_for(lambda: panes.tmux("list-clients", "-F", "#{session_name}", check=False) == "home", "the client")

    panes.tmux("send-keys", "-t", "=home:", line(panes, "attach", "developer"), "Enter")

    wait_for(
        lambda: panes.tmux("list-clients", "-F", "#{session_name}") == "swarm", f"the switched client: {shown(outer)}"
    )
    wait_for(lambda: "developer · idle" in shown(outer), "its pane")
    assert panes.tmux("display-message", "-p", "-t", "=swarm:", "#{@swarm_agent}") == "developer"
    assert panes.tmux("list-clients", "-F", "#{session_name}").count("\n") == 0, "one client, nothing nested"


def test_attach_inside_another_server_does_not_nest(panes: PaneLab, outer: TmuxServer) -> None:
    panes.start("developer")
    panes.until("developer", "idle")
    outer("new-session", "-d", "-x", "140", "-y", "45", "-s", "out", "/bin/sh")

    outer("send-keys", line(panes, "attach") + "; echo code $?", "Enter")

    wait_for(lambda: "code 2" in shown(outer), f"the refusal: {shown(outer)}")
    assert "inside another tmux" in shown(outer).replace("\n", " ")
    assert panes.tmux("list-clients") == ""


def test_started_from_inside_tmux(panes: PaneLab, outer: TmuxServer) -> None:
    """TMUX of the user's own server is set; agents do not see it, and go where they always go."""
    outer("new-session", "-d", "-x", "140", "-y", "45", "-s", "out", "/bin/sh")

    task = "demo: steps 0"
    outer("send-keys", line(panes, "start", "fx", "--roles", "developer", "--agent", "demo", "--task", task), "Enter")

    wait_for(lambda: "started session fx" in shown(outer), f"the start: {shown(outer)}")
    found = panes.until("developer", "idle")
    environ = Path(f"/proc/{found.pid}/environ").read_bytes()
    assert b"TMUX=" not in environ
    assert outer.rows("#{session_name}") == ["out"]
    assert panes.panes() == ["fx developer"]


# --- screens ---------------------------------------------------------------------------------------


def _is_shown(server: TmuxServer, target: str, words: str) -> bool:
    return words in shown(server, target)


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("color", [True, False], ids=["colour", "plain"])
def test_no_line_is_wider_than_the_screen(panes: PaneLab, outer: TmuxServer, columns: int, color: bool) -> None:
    panes.start(
        "developer:2,lead=architect",
        "a-rather-long-session-name",
        task=f"{QUICK}demo: only lead: permission Bash(rm -rf build) and more words that go on\n",
    )
    panes.until("lead", "waiting")
    panes.until("developer-1", "idle")
    tables = {("status",): "developer", ("list",): "a-rather-long-session-name", ("workflow", "list"): "developer"}
    for number, args in enumerate((*tables, ("why", "lead"), ("doctor",))):
        extra = () if color else ("--no-color",)
        outer("new-session", "-d", "-x", str(columns), "-y", "60", "-s", f"s{number}", "-c", str(panes.root), "/bin/sh")
        target = f"=s{number}:"
        command = shlex.join([sys.executable, "-P", "-m", "swarm", *args, *extra])
        outer("send-keys", "-t", target, f"clear; {command}; echo the''-end", "Enter")
        wait_for(partial(_is_shown, outer, target, "the-end"), f"the end of {args}")

        rows = outer("capture-pane", "-p", "-J", "-t", target).splitlines()
        if args in tables:
            assert not [row for row in rows if len(row.rstrip()) > columns]
            assert [row for row in rows if tables[args] in row]
        painted = "\x1b[" in outer("capture-pane", "-p", "-e", "-t", target)
        assert painted == color, args
