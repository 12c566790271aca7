"""The driver of tmux against a real server: many panes, odd texts, other people's sessions, odd settings."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm.kit.errors import SwarmError
from swarm.terminal.tmux import Tmux
from swarm.terminal.values import PanePlan
from swarm.terminal.words import literal
from swarm.testing.terminal import Pane, wait_for

if TYPE_CHECKING:
    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]
WAITER = (sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)")


def driver(lab: PaneLab, **env: str) -> Tmux:
    return Tmux(lab.tmux.socket, "swarm", {**lab.env, **env})


def plans(folder: Path, number: int, argv: tuple[str, ...] = WAITER) -> list[PanePlan]:
    return [PanePlan(f"agent-{n}", folder, argv) for n in range(1, number + 1)]


def _wait_for_folder(lab: PaneLab, folder: Path) -> None:
    """Wait until every pane's program is there, and is in this folder."""
    wait_for(lambda: set(lab.tmux.rows("#{pane_current_path}")) == {str(folder)}, f"all in {folder}")


def test_no_server_is_no_pane(panes: PaneLab) -> None:
    tmux = driver(panes)

    assert tmux.panes() == ()
    assert not tmux.running()
    tmux.kill(["%1"])
    tmux.label({"%1": "idle"}, "nothing")
    tmux.check()
    assert panes.tmux.pid() == 0, "looking starts no server"


def test_without_tmux_nothing_runs(panes: PaneLab, tmp_path: Path) -> None:
    tmux = driver(panes, PATH=str(tmp_path))

    assert tmux.panes() == ()
    assert not tmux.running()
    with pytest.raises(SwarmError) as raised:
        tmux.check()
    assert raised.value.code == "TMUX_MISSING"


@pytest.mark.parametrize(
    ("says", "fine"),
    [
        ("tmux 3.1c", False),
        ("tmux 2.9", False),
        ("tmux 3.2", True),
        ("tmux 3.5a", True),
        ("tmux next-3.4", True),
        ("tmux master", True),
    ],
)
def test_the_version_is_looked_at(panes: PaneLab, says: str, fine: bool) -> None:
    real = panes.tmux("display-message", "-p", "x", check=False)
    assert real == ""
    panes.program("tmux", f'#!/bin/sh\n[ "$1" = -V ] && echo "{says}" && exit\nexit 1\n')

    if fine:
        driver(panes).check()
    else:
        with pytest.raises(SwarmError) as raised:
            driver(panes).check()
        assert (raised.value.code, raised.value.exit_code) == ("TMUX_TOO_OLD", 5)


@pytest.mark.parametrize(("number", "windows"), [(1, [1]), (4, [4]), (17, [16, 1]), (64, [16, 16, 16, 16])])
def test_many_panes_over_several_windows(panes: PaneLab, number: int, windows: list[int]) -> None:
    tmux = driver(panes)

    made = tmux.open("repo", "op", "fx", plans(panes.root, number), 16)

    assert len(made) == number
    found = tmux.panes()
    assert {pane.agent: pane.id for pane in found} == made
    assert {(p.repository, p.operation, p.session, p.tmux_session) for p in found} == {("repo", "op", "fx", "swarm")}
    by_window: dict[str, int] = {}
    for pane in found:
        by_window[pane.window] = by_window.get(pane.window, 0) + 1
    assert sorted(by_window.values(), reverse=True) == windows
    assert min(pane.width for pane in found) >= 55
    assert min(pane.height for pane in found) >= 14
    _wait_for_folder(panes, panes.root)
    names = panes.tmux.rows("#{window_name}", what="list-windows")
    assert names == ["fx", *(f"fx-{n}" for n in range(2, len(windows) + 1))]


def test_sixty_four_in_one_window(panes: PaneLab) -> None:
    tmux = driver(panes)

    tmux.open("repo", "op", "fx", plans(panes.root, 64), 64)

    assert len({pane.window for pane in tmux.panes()}) == 1
    assert min(pane.height for pane in tmux.panes()) >= 5


def test_what_panes_of_any_number_show(panes: PaneLab, tmp_path: Path) -> None:
    """tmux fills the time into what it prints: `%5` and the like are no ids to it."""
    tmux = driver(panes)
    says = (
        sys.executable,
        "-I",
        "-S",
        "-c",
        "print('\\033]2;a title\\007words', flush=True); import time; time.sleep(600)",
    )
    opened = tmux.open("here", "op", "fx", plans(tmp_path, 12, says), 16)
    wait_for(lambda: all("words" in tmux.shows([one])[one][1] for one in opened.values()), "all to have said it")

    shown = tmux.shows(opened.values())

    assert list(shown) == list(opened.values())
    assert {title for title, _ in shown.values()} == {"a title"}
    assert all(lines[0] == "words" for _, lines in shown.values())


def test_a_second_set_opens_windows_beside_the_first(panes: PaneLab) -> None:
    tmux = driver(panes)
    first = tmux.open("repo", "op1", "one", plans(panes.root, 2), 16)
    server = panes.tmux.pid()

    second = tmux.open("repo", "op2", "two", plans(panes.root, 64), 16)

    assert panes.tmux.pid() == server
    assert not set(first.values()) & set(second.values())
    assert {p.id: p.operation for p in tmux.panes()} == {
        **dict.fromkeys(first.values(), "op1"),
        **dict.fromkeys(second.values(), "op2"),
    }
    assert panes.tmux.rows("#{session_name}", what="list-sessions") == ["swarm"]


@pytest.mark.parametrize(
    "config",
    [
        "set -g base-index 1\nsetw -g pane-base-index 1\nset -g renumber-windows on\n",
        "set -g base-index 7\nsetw -g pane-base-index 3\n",
        "set -g remain-on-exit off\n",
        "set -g default-command 'false'\n",
        "set -g default-shell /bin/false\n",
        "set -g destroy-unattached on\n",
        "set -g exit-empty off\n",
        "set -g exit-empty on\nset -g detach-on-destroy off\n",
        "setw -g automatic-rename on\nset -g allow-rename on\nset -g set-titles on\n",
        "setw -g aggressive-resize on\nset -g window-size smallest\nset -g default-size 80x24\n",
        "set -g status off\nsetw -g pane-border-status off\n",
        "set-hook -g after-new-window 'select-window -t :0'\n",
        "set-hook -g after-split-window 'select-pane -t .0'\n",
        "set-hook -g after-new-session 'split-window -d -h'\n",
        "set-hook -g after-new-session 'new-window'\n",
        "set-hook -g session-created 'new-window'\nset-hook -g window-linked 'select-window -t :0'\n",
        "set-hook -g after-rename-window 'select-layout even-vertical'\n",
        "set-hook -g window-layout-changed 'select-pane -t .0'\n",
        "set-hook -g pane-died 'kill-pane'\nset-hook -g pane-exited 'kill-window'\n",
        "set -g lock-after-time 1\nset -g lock-command false\nset -s escape-time 0\n",
        "set -g window-size latest\nset -g status 5\n",
        "setw -g main-pane-width 200\nsetw -g synchronize-panes on\n",
        "set -g prefix C-a\nset -g mouse on\nset -g mode-keys vi\nset -g history-limit 50\n",
        "this is no command\n",
    ],
)
def test_the_users_settings_do_not_matter(panes: PaneLab, config: str) -> None:
    Path(panes.env["HOME"], ".tmux.conf").write_text(config)
    ends = (sys.executable, "-I", "-S", "-c", "import time; print('last words', flush=True); time.sleep(0.3)")
    tmux = driver(panes)

    tmux.open("repo", "op1", "one", plans(panes.root, 3, ends), 2)
    made = tmux.open("repo", "op2", "two", plans(panes.root, 5, ends), 2)

    wait_for(lambda: [p.dead for p in tmux.panes()] == [True] * 8, f"eight dead panes that stay: {tmux.panes()}")
    assert {p.agent for p in tmux.panes() if p.operation == "op2"} == set(made)
    assert "last words" in tmux.capture(made["agent-5"], 40)
    sizes = {(p.session, p.agent, p.window) for p in tmux.panes()}
    assert len({window for _, _, window in sizes}) == 5


def test_a_server_that_ends_when_nobody_looks_is_refused(panes: PaneLab) -> None:
    """All agents would end with the command that started them, or as soon as their user goes home."""
    Path(panes.env["HOME"], ".tmux.conf").write_text("set -s exit-unattached on\n")
    tmux = driver(panes)

    with pytest.raises(SwarmError) as raised:
        tmux.open("repo", "op", "fx", plans(panes.root, 3), 16)

    _check_unattached(raised.value)
    wait_for(lambda: not tmux.running(), "the end of the server")


def test_a_running_server_that_will_end_is_refused_beforehand(panes: PaneLab) -> None:
    panes.tmux("new-session", "-d", "-s", "mine", *WAITER)
    argv = [shutil.which("tmux") or "", "-S", panes.tmux.socket, "attach"]
    client = Pane(argv, env={**panes.env, "TERM": "xterm"})
    try:
        wait_for(lambda: panes.tmux("list-clients"), "a client")
        panes.tmux("set-option", "-s", "exit-unattached", "on")
        with pytest.raises(SwarmError) as raised:
            driver(panes).check()
        _check_unattached(raised.value)
        panes.tmux("set-option", "-s", "exit-unattached", "off")
        driver(panes).check()
    finally:
        client.close()


def test_a_tmux_that_crashes_by_its_configuration_is_explained(panes: PaneLab) -> None:
    """tmux 3.3 does so with this option; a version that does not must simply open the panes."""
    Path(panes.env["HOME"], ".tmux.conf").write_text("set -g window-size manual\n")
    tmux = driver(panes)
    problem: SwarmError | None = None
    try:
        tmux.open("repo", "op", "fx", plans(panes.root, 2), 16)
    except SwarmError as error:
        problem = error

    if problem is None:
        assert len(tmux.panes()) == 2
        return
    assert problem.code == "TMUX_FAILED"
    assert "server exited" in problem.message
    assert "window-size manual" in problem.hint


def _check_unattached(problem: SwarmError) -> None:
    assert problem.code == "TMUX_FAILED"
    assert "exit-unattached" in problem.message
    assert "set-option -s exit-unattached off" in problem.hint


def test_panes_are_opened_though_a_server_is_just_ending(panes: PaneLab) -> None:
    """`tmux kill-server` comes back before the server has ended."""
    for turn in range(8):
        panes.tmux("new-session", "-d", "-s", "old", *WAITER)
        panes.tmux("kill-server")

        made = driver(panes).open("repo", f"op{turn}", "fx", plans(panes.root, 2), 16)

        assert {pane.id for pane in driver(panes).panes()} == set(made.values())
        panes.tmux.kill()


#: A tmux that does what it is told, and then runs what stands in $AFTER; once.
SPOILED = """#!/bin/sh
{real} "$@"
code=$?
case "$*" in *new-session*|*new-window*) [ -e {once} ] || {{ : >{once}; {after}; }} ;; esac
exit $code
"""


def spoil(lab: PaneLab, after: str) -> None:
    """Have something happen to the server right after panes were opened for the first time."""
    real = shutil.which("tmux", path=lab.env["PATH"])
    lab.program("tmux", SPOILED.format(real=real, once=lab.tmux.folder / "once", after=after))


def servers(lab: PaneLab) -> list[int]:
    """Return the tmux servers of this lab, those that lost their socket, too."""
    return [pid for pid in lab.processes() if is_server(pid)]


def is_server(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text() == "tmux: server\n"
    except (FileNotFoundError, ProcessLookupError):
        return False  # it has ended meanwhile


def test_a_server_that_loses_its_socket_while_it_starts_gets_it_back(panes: PaneLab) -> None:
    socket = panes.tmux.socket
    spoil(panes, f"rm {socket}")

    made = driver(panes).open("repo", "op", "fx", plans(panes.root, 3), 16)

    assert {pane.id for pane in driver(panes).panes()} == set(made.values())
    assert servers(panes) == [panes.tmux.pid()]


@pytest.mark.parametrize("end", ["kill-server", "socket taken"])
def test_panes_are_opened_on_the_server_that_can_be_reached(panes: PaneLab, end: str) -> None:
    """Another program ends the server just after it started; or puts another one in its place."""
    socket, real = panes.tmux.socket, shutil.which("tmux")
    other = f"rm {socket}; {real} -S {socket} -f /dev/null new-session -d -s mine sleep 600"
    lives = "test -n \"$(tr -d '\\0' </proc/$pid/cmdline)\""
    ended = f"pid=$({real} -S {socket} display-message -p '#{{pid}}'); {real} -S {socket} kill-server"
    ended = f"{{ {ended}; while {lives}; do sleep 0.02; done; }} 2>{os.devnull}"
    spoil(panes, ended if end == "kill-server" else other)

    made = driver(panes).open("repo", "op", "fx", plans(panes.root, 3), 16)

    assert {pane.id for pane in driver(panes).panes()} == set(made.values())
    wait_for(lambda: servers(panes) == [panes.tmux.pid()], "the end of the server that lost its socket")
    sessions = {"kill-server": ["swarm"], "socket taken": ["mine", "swarm"]}[end]
    assert panes.tmux.rows("#{session_name}", what="list-sessions") == sessions


def test_a_server_with_other_panes_that_lost_its_socket_is_not_ended(panes: PaneLab) -> None:
    first = driver(panes).open("repo", "op1", "one", plans(panes.root, 1), 16)
    before, socket, real = panes.tmux.pid(), panes.tmux.socket, shutil.which("tmux")
    spoil(panes, f"rm {socket}; {real} -S {socket} -f /dev/null new-session -d -s mine sleep 600")

    with pytest.raises(SwarmError) as raised:
        driver(panes).open("repo", "op2", "two", plans(panes.root, 1), 16)

    assert (raised.value.code, raised.value.exit_code) == ("TMUX_FAILED", 5)
    assert str(before) in str(raised.value)
    assert f"kill -USR1 {before}" in raised.value.hint
    panes.tmux.kill()
    os.kill(before, signal.SIGUSR1)
    wait_for(lambda: panes.tmux.pid() == before, "the server on its socket again")
    assert first["agent-1"] in {pane.id for pane in driver(panes).panes()}


def test_a_foreign_session_of_our_name_is_left_alone(panes: PaneLab) -> None:
    panes.tmux("new-session", "-d", "-s", "swarm", "-n", "mine", *WAITER)
    before = panes.tmux.rows("#{pane_id} #{pane_pid} #{window_name}")
    tmux = driver(panes)

    for act in (tmux.check, lambda: tmux.open("repo", "op", "fx", plans(panes.root, 2), 16)):
        with pytest.raises(SwarmError) as raised:
            act()
        assert (raised.value.code, raised.value.exit_code) == ("TMUX_SESSION_TAKEN", 5)
        assert "tmux.session" in raised.value.hint

    assert panes.tmux.rows("#{pane_id} #{pane_pid} #{window_name}") == before
    other = Tmux(panes.tmux.socket, "agents", panes.env)
    other.open("repo", "op", "fx", plans(panes.root, 2), 16)
    assert {pane.tmux_session for pane in other.panes()} == {"agents"}


def test_a_session_whose_name_begins_like_ours(panes: PaneLab) -> None:
    for name in ("swarm-other", "swarm2", "swarmx"):
        panes.tmux("new-session", "-d", "-s", name, *WAITER)
    tmux = driver(panes)

    first = tmux.open("repo", "op1", "fx", plans(panes.root, 2), 16)
    tmux.open("repo", "op2", "gx", plans(panes.root, 2), 16)

    assert {pane.tmux_session for pane in tmux.panes()} == {"swarm"}
    tmux.kill(pane.id for pane in tmux.panes())
    assert sorted(panes.tmux.rows("#{session_name}")) == ["swarm-other", "swarm2", "swarmx"]
    assert first


def test_the_users_own_windows_in_our_session(panes: PaneLab) -> None:
    tmux = driver(panes)
    tmux.open("repo", "op1", "one", plans(panes.root, 2), 16)
    mine = panes.tmux("new-window", "-t", "=swarm:", "-P", "-F", "#{pane_id}", *WAITER)
    split = panes.tmux("split-window", "-t", "=swarm:one", "-P", "-F", "#{pane_id}", *WAITER)

    tmux.open("repo", "op2", "two", plans(panes.root, 3), 16)
    ours = {p.id for p in tmux.panes()}
    tmux.kill(ours)

    assert not {mine, split} & ours
    assert sorted(panes.tmux.rows("#{pane_id}")) == sorted((mine, split))


@pytest.mark.parametrize(
    "odd", ["#(touch {})", "#{{E:#(touch {})}}", "##(touch {})", "a;b", 'it\'s "quoted" $HOME `id`']
)
def test_a_folder_is_taken_as_it_is(panes: PaneLab, tmp_path: Path, odd: str) -> None:
    folder = tmp_path / odd.format("spot").replace("/", "_")
    folder.mkdir()
    tmux = driver(panes)

    tmux.open("repo", "op", "fx", plans(folder, 64), 16)  # through a file
    tmux.open("repo", "op2", "gx", plans(folder, 2), 16)  # as arguments

    _wait_for_folder(panes, folder)
    assert not list(tmp_path.rglob("spot"))


def test_words_arrive_as_they_are(panes: PaneLab, tmp_path: Path) -> None:
    odd = [
        "a b",
        "#(touch x)",
        "$HOME",
        "`id`",
        '"',
        "'",
        "\\",
        "a\\;",
        "ends;",
        ";",
        "-x",
        "#{pid}",
        "~",
        "{",
        "}",
        "ü",
        "%1",
        "a\tb",
    ]
    code = "import sys; open(sys.argv[1], 'w').write('\\0'.join(sys.argv[2:]))"
    for number, count in ((0, 2), (1, 40)):
        made = [
            PanePlan(
                f"agent-{n}",
                tmp_path,
                (sys.executable, "-I", "-c", code, str(tmp_path / f"said-{number}-{n}"), *odd, "end"),
            )
            for n in range(count)
        ]
        driver(panes).open("repo", f"op{number}", "fx", made, 16)

        for n in range(count):
            file = tmp_path / f"said-{number}-{n}"
            wait_for(partial(_ends_with, file, "end"), f"{file} {panes.tmux.rows('#{pane_dead_status}')}")
            assert file.read_text().split("\0")[:-1] == odd


def _ends_with(file: Path, words: str) -> bool:
    return file.exists() and file.read_text().endswith(words)


def test_literal_survives_what_tmux_expands() -> None:
    assert literal("#(x) #{y} ##") == "##(x) ##{y} ####"


def test_titles_and_states_are_drawn_not_run(panes: PaneLab, tmp_path: Path) -> None:
    spot = tmp_path / "spot"
    tmux = driver(panes)
    title = f"\\033]2;#(touch {spot})\\033\\\\\\033k#(touch {spot})\\033\\\\"
    code = f"import sys, time; sys.stdout.write('{title}'); sys.stdout.flush(); time.sleep(600)"
    made = tmux.open("repo", "op", "fx", plans(panes.root, 2, (sys.executable, "-I", "-S", "-c", code)), 16)
    wait_for(
        lambda: "touch" in panes.tmux("display-message", "-p", "-t", made["agent-1"], "#{pane_title}"), "the title"
    )

    tmux.label({made["agent-1"]: f"waiting: #(touch {spot});"}, f"#(touch {spot})")
    border = panes.tmux("display-message", "-p", "-t", made["agent-1"], "#{E:pane-border-format}")

    assert "agent-1 · waiting: " in border
    assert not spot.exists()
    assert panes.tmux.rows("#{window_name}", what="list-windows") == ["fx"]


def test_labels_of_two_repositories_do_not_mix(panes: PaneLab) -> None:
    tmux = driver(panes)
    one = tmux.open("repo1", "op1", "one", plans(panes.root, 1), 16)["agent-1"]
    two = tmux.open("repo2", "op2", "two", plans(panes.root, 1), 16)["agent-1"]

    tmux.label({one: "idle", "%999": "gone"}, "first")
    tmux.label({two: "working"}, "second")

    shown = {
        pane: panes.tmux("display-message", "-p", "-t", pane, "#{@swarm_state} #{E:status-right}").split()
        for pane in (one, two)
    }
    assert shown == {one: ["idle", "first"], two: ["working", "second"]}


def test_a_pane_in_copy_mode_is_opened_split_and_looked_at_all_the_same(panes: PaneLab) -> None:
    tmux = driver(panes)
    code = "print('some words'); import time; time.sleep(600)"
    made = tmux.open("repo", "op", "fx", plans(panes.root, 2, (sys.executable, "-I", "-S", "-u", "-c", code)), 16)
    wait_for(lambda: "some words" in tmux.capture(made["agent-1"], 40), "its words")
    panes.tmux("copy-mode", "-t", made["agent-1"])

    tmux.open("repo", "op2", "gx", plans(panes.root, 2), 16)
    tmux.label({made["agent-1"]: "idle"}, "x")
    tmux.select(made["agent-1"])

    assert "some words" in tmux.capture(made["agent-1"], 40)
    assert {p.agent for p in tmux.panes() if p.in_mode} == {"agent-1"}


def test_no_room_is_said_and_what_was_opened_is_marked(panes: PaneLab) -> None:
    """Somebody's tiny window: the rest of them does not fit."""
    tmux = driver(panes)
    tmux.open("repo", "op1", "one", plans(panes.root, 1), 16)
    panes.tmux("set-option", "-t", "=swarm:", "default-size", "20x6")

    with pytest.raises(SwarmError) as raised:
        tmux.open("repo", "op2", "two", plans(panes.root, 16), 16)

    assert raised.value.code == "TMUX_FAILED"
    assert "no space for new pane" in str(raised.value)
    marked = [p for p in tmux.panes() if p.operation == "op2"]
    assert len(marked) == len(panes.tmux.rows("#{pane_id}")) - 1


def test_a_dead_pane_is_used_again(panes: PaneLab) -> None:
    tmux = driver(panes)
    made = tmux.open("repo", "op", "fx", plans(panes.root, 2, (sys.executable, "-c", "print('first words')")), 16)
    wait_for(lambda: all(pane.dead for pane in tmux.panes()), "both dead")

    tmux.respawn(made["agent-1"], PanePlan("agent-1", panes.root, WAITER))

    assert {pane.agent: (pane.id, pane.dead) for pane in tmux.panes()} == {
        "agent-1": (made["agent-1"], False),
        "agent-2": (made["agent-2"], True),
    }
    with pytest.raises(SwarmError) as raised:
        tmux.respawn("%999", PanePlan("agent-1", panes.root, WAITER))
    assert raised.value.code == "TMUX_FAILED"


def test_the_server_knows_no_secret(panes: PaneLab) -> None:
    secret = {"API_KEY": "hunter2", "AWS_SECRET_ACCESS_KEY": "hunter2", "TMUX": "/elsewhere,1,0", "SWARM_X": "1"}

    driver(panes, **secret).open("repo", "op", "fx", plans(panes.root, 2), 16)

    known = panes.tmux("show-environment", "-g") + panes.tmux("show-environment", "-t", "swarm")
    assert "hunter2" not in known
    assert not {line.split("=")[0] for line in known.splitlines()} & {"API_KEY", "TMUX", "SWARM_X", "GIT_CONFIG_GLOBAL"}
    assert all(b"hunter2" not in Path(f"/proc/{pid}/environ").read_bytes() for pid in panes.processes())


@pytest.mark.parametrize(
    ("socket", "tmux", "inside"),
    [
        ("/a/b", "", False),
        ("/a/b", "/a/b,1,0", True),
        ("/a/b", "/a/c,1,0", False),
        ("name", "{base}/tmux-{uid}/name,1,0", True),
        ("", "{base}/tmux-{uid}/default,1,0", True),
        ("", "{base}/tmux-{uid}/work,12,3", False),
    ],
)
def test_inside_means_inside_this_server(tmp_path: Path, socket: str, tmux: str, inside: bool) -> None:
    inner = tmux.format(base=tmp_path, uid=os.geteuid())
    environ = {"PATH": os.environ["PATH"], "TMUX_TMPDIR": str(tmp_path), "TMUX": inner}

    assert Tmux(socket, "swarm", environ).is_inside() is inside


def test_a_tmux_tmpdir_that_is_not_there_is_left_as_tmux_leaves_it(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "TMUX_TMPDIR": str(tmp_path / "gone")}

    assert Tmux("", "swarm", environ).socket_path() == f"/tmp/tmux-{os.geteuid()}/default"


def test_an_inherited_tmux_is_not_the_server_meant(panes: PaneLab) -> None:
    """Typed in a pane of some other server: agents go to the user's default one, as ever."""
    inner = {**panes.env, "TMUX": f"{panes.tmux.socket},1,0", "TMUX_TMPDIR": str(panes.tmux.folder)}
    panes.tmux("new-session", "-d", "-s", "work", *WAITER)
    tmux = Tmux("", "swarm", inner)

    tmux.open("repo", "op", "fx", plans(panes.root, 2), 16)

    try:
        assert tmux.socket_path().startswith(str(panes.tmux.folder))
        assert len(tmux.panes()) == 2
        assert panes.tmux.rows("#{session_name}") == ["work"]
        assert "-L" in tmux.attach_argv()
    finally:
        tmux.kill(pane.id for pane in tmux.panes())


@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8"])
def test_the_callers_locale_does_not_matter(panes: PaneLab, monkeypatch: pytest.MonkeyPatch, locale: str) -> None:
    """tmux prints ``_`` for tabs and for what is not ASCII to a client that does not say it knows UTF-8."""
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.setenv(name, locale)
    code = "print('grün'); import time; time.sleep(600)"
    argv = (sys.executable, "-I", "-X", "utf8", "-u", "-c", code)
    tmux = driver(panes, LC_ALL=locale, LC_CTYPE=locale, LANG=locale)

    made = tmux.open("repo", "op", "fx", plans(panes.root, 2, argv), 16)
    again = tmux.open("repo", "op2", "gx", plans(panes.root, 30, argv), 16)

    assert {pane.id for pane in tmux.panes()} == {*made.values(), *again.values()}
    wait_for(lambda: "grün" in tmux.capture(made["agent-1"], 40), f"its words: {tmux.capture(made['agent-1'], 40)}")
