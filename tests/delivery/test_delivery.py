"""Messages reach agents: told at an idle prompt and nowhere else, in real panes."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from swarm.agents.errors import AgentNotRunning
from swarm.bus.errors import InboxNotFound
from swarm.bus.filebus import FileBus
from swarm.bus.message import Message
from swarm.delivery.errors import PaneBusy
from swarm.delivery.typist import Typist
from swarm.kit.errors import UsageProblem
from swarm.machine.run_folder import runfiles
from swarm.terminal.tmux import Tmux
from swarm.testing.panes import QUICK, PaneLab
from swarm.testing.terminal import wait_for
from tests.support.tree import SWARM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.bus.protocol import Trace
    from swarm.terminal.values import Screen

pytestmark = pytest.mark.integration

#: The demo agent as a program of which swarm knows only what it says of itself.
TALKER = (sys.executable, "-P", "-m", "swarm.demo_agent")
AGENT = "developer"
ADDRESS = f"{AGENT}@fx"
SOON = 60.0
#: What a second look finds: an agent that was told, and perhaps has taken its message already.
TOLD = ("it was told", "nothing waits")


class Post:
    """One agent in a pane, and its inbox."""

    def __init__(self, lab: PaneLab) -> None:
        self.lab = lab
        self.bus = FileBus(lab.root / ".swarm" / "messages")

    def start(self, *, task: str = QUICK, roles: str = AGENT, **how: Any) -> None:
        """Start it and wait until it is idle."""
        how = how or {"command": TALKER}
        self.lab.start(roles, task=task, **how)
        for address in (ADDRESS, "user"):
            self.bus.declare(address)
        self.lab.all_until("idle")
        if how.get("program") == "shell":  # what is typed before its prompt is there would look different
            wait_for(lambda: self.screen().before.endswith(("$ ", "# ")), "the first prompt")

    def send(self, body: str = "hello", *, sender: str = "user", to: str = ADDRESS, subject: str = "") -> str:
        """Send it a message; return the id."""
        return self.bus.send(Message(to=to, sender=sender, body=body, subject=subject)).id

    def trace(self, message: str) -> Trace:
        """Return what became of a message."""
        return self.bus.find(message)[0]

    def nudged(self, message: str) -> str:
        """Wait until an agent was told of a message; return the evidence."""
        wait_for(lambda: any(e.name == "nudged" for e in self.trace(message).events), f"a nudge: {self.why()}", SOON)
        return next(e.evidence for e in self.trace(message).events if e.name == "nudged")

    def held(self, looks: int = 1) -> None:
        """Wait until somebody looked and did not type."""
        wait_for(lambda: (self.memory().get("looks") or 0) >= looks, f"a look at the pane: {self.memory()}", SOON)

    def memory(self) -> dict[str, Any]:
        """Return what is remembered of the agent's messages."""
        return runfiles.read(str(self.lab.run(AGENT)), runfiles.NUDGE) or {}

    def why(self) -> str:
        """Say how it stands, for a failure's message."""
        return f"{self.memory()} {self.lab.one(AGENT).status} {self.shown()}"

    def shown(self) -> str:
        """Return what its pane shows."""
        return "\n".join(self.lab.swarm.peek(AGENT, "fx", lines=100))

    def lines(self) -> list[str]:
        """Return the rows that hold a nudge; each is short enough not to be wrapped."""
        return [row for row in self.shown().splitlines() if "[swarm]" in row and "new message" in row]

    def notices(self, kind: str = "delivery", to: str = "user") -> list[Message]:
        """Return what the user was told."""
        try:
            return [one.message for one in self.bus.history(to) if one.message.type == kind]
        except InboxNotFound:
            return []

    def busy(self) -> None:
        """Give it work that lasts until ``done`` says so."""
        self.lab.type(AGENT, "sleep 3000")
        self.lab.until(AGENT, "working")

    def done(self) -> None:
        """Have its work end by Ctrl-C."""
        self.lab.tmux("send-keys", "-t", self.pane, "C-c")

    @property
    def pane(self) -> str:
        """Its pane."""
        return self.lab.one(AGENT).pane

    def screen(self) -> Screen:
        """Return what its pane shows, as the engine sees it."""
        seen = Typist(Tmux(self.lab.tmux.socket, "swarm", self.lab.env)).look(self.pane)
        assert seen is not None
        return seen


@pytest.fixture
def post(panes: PaneLab) -> Iterator[Post]:
    made = Post(panes)
    yield made
    made.bus.close()


# --- an idle agent ------------------------------------------------------------------------------------


def test_an_idle_agent_is_told_at_once_and_once(post: Post) -> None:
    post.start()

    message = post.send()

    assert post.nudged(message) == f"pasted into {post.pane} at its prompt"
    assert post.trace(message).stored.state in ("nudged", "seen")  # the agent's own word may have come already
    wait_for(post.lines, "the line in the pane")
    assert post.lines() == ["demo> [swarm] 1 new message from user: run `swarm inbox take`"]
    assert post.lab.swarm.delivery.nudge(AGENT, "fx") in TOLD
    assert len(post.lines()) == 1


def test_several_messages_make_one_line(post: Post) -> None:
    post.start()
    post.busy()

    found = [post.send(sender=sender) for sender in ("user", "reviewer@fx", "user")]

    post.done()
    for message in found:
        post.nudged(message)
    assert [row.partition(":")[0] for row in post.lines()] == ["demo> [swarm] 3 new messages from user, reviewer@fx"]


def test_a_file_in_the_drop_folder_is_news_as_well(post: Post) -> None:
    post.start()

    (post.lab.root / ".swarm/messages/inbox/developer-fx/drop/note.txt").write_text("from a script")

    post.lab.see(AGENT, "[swarm] 1 new message: run `swarm inbox take`")


def test_a_program_that_reads_its_inbox_by_itself_is_left_alone(post: Post) -> None:
    post.start(program="demo", task=QUICK)

    post.lab.type(AGENT, "sleep 1")
    message = post.send()

    wait_for(lambda: post.trace(message).stored.state == "acked", "the message read", SOON)
    assert post.memory() == {}
    assert post.lines() == []


# --- not now ---------------------------------------------------------------------------------------------


def test_an_agent_at_work_is_told_when_it_is_idle(post: Post) -> None:
    post.start()
    post.busy()

    message = post.send()
    assert post.lab.swarm.delivery.nudge(AGENT, "fx") == "it is working, not idle: busy for 3000 s"
    assert post.lines() == []

    post.done()
    assert post.nudged(message).endswith("at its prompt")
    post.lab.until(AGENT, "idle")


def test_nothing_is_typed_into_a_dialog(post: Post) -> None:
    post.start()
    post.lab.type(AGENT, "permission Bash")
    post.lab.until(AGENT, "waiting")

    message = post.send()
    assert post.lab.swarm.delivery.nudge(AGENT, "fx") == "it is waiting, not idle: permission: Bash"
    wait_for(lambda: post.screen().before.rstrip() == "y/n>", "the question, and nothing behind it")

    post.lab.type(AGENT, "y")
    post.nudged(message)
    assert "may use Bash" in post.shown()
    assert post.shown().count("y/n>") == 1


def test_nothing_is_typed_while_somebody_scrolls(post: Post) -> None:
    post.start()
    post.lab.tmux("copy-mode", "-t", post.pane)

    message = post.send()
    post.held(2)
    assert post.trace(message).stored.state == "queued"

    post.lab.tmux("send-keys", "-t", post.pane, "-X", "cancel")
    post.nudged(message)


def test_nothing_is_typed_into_a_line_that_was_begun(post: Post) -> None:
    post.start()
    post.lab.tmux("send-keys", "-t", post.pane, "-l", "--", "say half")
    wait_for(lambda: post.screen().before == "demo> say half", "the half line")

    message = post.send()
    post.held(2)
    assert post.screen().before == "demo> say half"

    post.lab.tmux("send-keys", "-t", post.pane, "-l", "--", " and whole")
    post.lab.tmux("send-keys", "-t", post.pane, "Enter")
    post.nudged(message)
    assert "\nhalf and whole\n" in post.shown()


def test_nothing_is_typed_into_panes_that_share_their_keys(post: Post) -> None:
    post.start()
    post.lab.tmux("set-option", "-p", "-t", post.pane, "synchronize-panes", "on")

    post.send()

    assert "shares them with others" in post.lab.swarm.delivery.nudge(AGENT, "fx")
    assert post.lines() == []


def test_of_a_program_that_tells_nothing_nothing_is_assumed(post: Post) -> None:
    post.lab.start(AGENT, command=("cat",))
    post.bus.declare(ADDRESS)
    post.lab.until(AGENT, "unknown")

    post.send()

    post.held()
    assert post.lab.swarm.delivery.nudge(AGENT, "fx").startswith("it is unknown, not idle")
    assert post.lines() == []


def test_a_setting_allows_it_all_the_same(post: Post) -> None:
    post.lab.env["SWARM_AGENTS_NUDGE"] = "unknown"
    script = "import sys\nprint('ask> ', end='', flush=True)\nfor line in sys.stdin: print('got', line)\n"
    post.lab.start(AGENT, command=(sys.executable, "-u", "-c", script))
    post.bus.declare(ADDRESS)
    post.lab.see(AGENT, "ask>")

    post.nudged(post.send())

    post.lab.see(AGENT, "got [swarm] 1 new message from user")


def test_a_setting_forbids_it(post: Post) -> None:
    post.lab.env["SWARM_AGENTS_NUDGE"] = "never"
    post.start()

    post.send()

    assert "agents.nudge" in post.lab.swarm.delivery.nudge(AGENT, "fx")
    assert post.lines() == []


def test_a_message_in_hand_is_no_news(post: Post) -> None:
    post.start()
    post.lab.tmux("copy-mode", "-t", post.pane)
    post.send()
    claim = post.bus.receive(ADDRESS)
    assert claim is not None
    post.lab.tmux("send-keys", "-t", post.pane, "-X", "cancel")

    post.send("another")

    assert post.lab.swarm.delivery.nudge(AGENT, "fx") == "it has messages in hand"
    assert post.lines() == []


def test_what_an_idle_agent_took_and_forgot_to_acknowledge_holds_up_no_news(post: Post) -> None:
    """A model may end its turn so; a lead would not hear of its other children until the lease is over."""
    post.start(program="shell", task="")
    first = post.send()
    post.nudged(first)
    post.lab.type(AGENT, f"{SWARM} inbox take")
    wait_for(lambda: post.trace(first).stored.state in ("claimed", "seen"), "the taking", SOON)
    post.lab.until(AGENT, "idle")

    second = post.send("another")

    post.nudged(second)
    post.lab.see(AGENT, "1 new message from user, behind 1 that you took and did not acknowledge")
    for command in ("ack", "take --ack"):
        post.lab.type(AGENT, f"{SWARM} inbox {command}")
    wait_for(lambda: [post.trace(one).stored.state for one in (first, second)] == ["acked"] * 2, "both read", SOON)


# --- shells ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
def test_at_a_shell_prompt_it_does_nothing_but_show(post: Post, shell: str) -> None:
    if not os.path.exists(shell):
        pytest.skip(f"{shell} is not installed")
    post.lab.env["SHELL"] = shell
    post.start(program="shell", task="")
    post.lab.type(AGENT, "PS1='$ '")

    post.nudged(post.send())

    wait_for(lambda: post.screen().before == "$ ", "the next prompt")
    post.lab.type(AGENT, "echo status $?")
    post.lab.see(AGENT, "status 0")
    assert [row.lstrip("$ ") for row in post.lines()] == [
        ": '[swarm] 1 new message from user; to read: swarm inbox take'"
    ]
    assert "not found" not in post.shown()


def test_a_shell_that_runs_something_is_told_afterwards(post: Post) -> None:
    post.start(program="shell", task="")
    post.lab.type(AGENT, "read answer")
    post.lab.until(AGENT, "idle", "working")
    post.lab.type(AGENT, "x")
    go = post.lab.root.parent / "go"
    os.mkfifo(go)
    post.lab.type(AGENT, f"cat '{go}'; echo slept")
    post.lab.until(AGENT, "working")

    message = post.send()
    assert post.lab.swarm.delivery.nudge(AGENT, "fx") == "it is working, not idle: running a command"

    go.write_text("go\n")
    post.nudged(message)
    assert post.shown().index("\nslept") < post.shown().index("[swarm]")


@pytest.mark.parametrize("question", ["Overwrite existing files? [Y/n] ", "# ", "[y/N] $ "])
def test_a_question_of_a_shell_is_not_answered(post: Post, question: str) -> None:
    post.lab.env["SHELL"] = "/bin/bash"
    post.start(program="shell", task="")
    post.lab.type(AGENT, f"read -p '{question}' answer; echo \"got <$answer>\"")
    wait_for(lambda: post.screen().takes_lines, "the question")

    post.send()

    assert post.lab.swarm.delivery.nudge(AGENT, "fx") == "it is working, not idle: running a command"
    post.lab.type(AGENT, "mine")
    post.lab.see(AGENT, "got <mine>")


def test_a_shell_that_wants_the_rest_of_a_text_is_left_alone(post: Post) -> None:
    post.start(program="shell", task="")
    post.lab.type(AGENT, "echo 'begun")
    wait_for(lambda: post.screen().before.strip() == ">", "the second prompt")

    post.send()

    assert post.lab.swarm.delivery.nudge(AGENT, "fx") == "its prompt holds text, or swarm does not recognize the prompt"
    assert post.lines() == []


def test_hostile_words_never_get_into_the_pane(post: Post) -> None:
    post.start(program="shell", task="")
    trap = post.lab.root / "trap"
    evil = f"\x1b[201~'; touch '{trap}' #\u202e\n"

    message = post.send(evil, subject=evil, sender="x.y:z")
    (post.lab.root / ".swarm/messages/inbox/developer-fx/drop/a'; touch trap #").write_text(evil)

    post.nudged(message)
    wait_for(lambda: post.screen().before == "$ ", "the next prompt")
    assert not trap.exists()
    assert "touch" not in post.shown()
    assert not any((post.lab.tree(AGENT, "fx") / name).exists() for name in ("trap", "a"))


# --- nobody reads it ---------------------------------------------------------------------------------------


def test_an_agent_that_does_not_read_is_told_four_times_then_the_sender_once(post: Post) -> None:
    post.lab.env["SWARM_AGENTS_NUDGE_PAUSE"] = "0.1"
    post.start(program="shell", task="")

    message = post.send()

    wait_for(post.notices, f"a notice: {post.memory()}", 60)
    (notice,) = post.notices()
    assert notice.sender == "swarm"
    assert notice.in_reply_to == message
    assert "typed, not submitted or not heeded: it was announced 4 times in the pane, and not taken" in notice.body
    assert len([e for e in post.trace(message).events if e.name == "nudged"]) == 4
    wait_for(lambda: post.memory()["again_ms"] == 0, "the end of trying")
    assert post.lab.swarm.delivery.nudge(AGENT, "fx") == "it was told"
    assert len(post.notices()) == 1
    assert len(post.lines()) == 4


def test_the_sender_hears_why_nothing_could_be_typed(post: Post) -> None:
    post.lab.env["SWARM_AGENTS_NUDGE_PAUSE"] = "0.1"
    post.start()
    post.lab.type(AGENT, "ask Deploy now?")
    post.lab.until(AGENT, "waiting")

    post.send()

    wait_for(post.notices, f"a notice: {post.memory()}", 60)
    assert "was not typed: it is waiting, not idle: Deploy now?" in post.notices()[0].body
    assert post.screen().before.rstrip() == "y/n>"
    post.lab.type(AGENT, "y")
    wait_for(post.lines, "the line, late but not lost", 60)
    assert len(post.notices()) == 1


def test_what_was_typed_is_remembered_over_a_resume(post: Post) -> None:
    post.start()
    message = post.send()
    post.nudged(message)

    post.lab.swarm.restart(AGENT, "fx")
    post.lab.until(AGENT, "idle")

    assert post.lab.swarm.delivery.nudge(AGENT, "fx") in TOLD
    assert len([e for e in post.trace(message).events if e.name == "nudged"]) == 1


# --- typing anything -----------------------------------------------------------------------------------------

READER = """
import os, sys, termios, tty
tty.setraw(0)
sys.stdout.write('\\x1b[?2004hready> '); sys.stdout.flush()
data = b''
while not data.endswith(b'\\x1b[201~\\r'):
    data += os.read(0, 65536)
open(os.environ['HOME'] + '/typed', 'wb').write(data)
sys.stdout.write('done\\r\\n'); sys.stdout.flush()
while os.read(0, 1): pass
"""
AWKWARD = "-l Enter 'q\"uote' ; #{pane_id} #(touch x) $HOME `id` \\; \u6f22\nC-c\n\ttab;\nlast line;"


@pytest.mark.parametrize("text", [AWKWARD, "Enter", "-t", ";", "x" * 200_000], ids=["all", "key", "flag", "end", "big"])
def test_text_arrives_literally_and_whole(post: Post, text: str) -> None:
    post.lab.start(AGENT, command=(sys.executable, "-c", READER))
    post.lab.see(AGENT, "ready>")

    post.lab.person.panes.type(AGENT, f"{text}\n\n")

    post.lab.see(AGENT, "done")
    typed = (post.lab.root.parent / "home" / "typed").read_bytes()
    assert typed == b"\x1b[200~" + text.encode() + b"\x1b[201~\r"


def test_what_would_end_the_paste_is_taken_out(post: Post) -> None:
    post.lab.start(AGENT, command=(sys.executable, "-c", READER))
    post.lab.see(AGENT, "ready>")

    post.lab.person.panes.type(AGENT, "a\x1b[201~\rb\x03")

    post.lab.see(AGENT, "done")
    assert (post.lab.root.parent / "home" / "typed").read_bytes() == b"\x1b[200~a[201~b\x1b[201~\r"


def test_a_line_can_be_typed_without_enter_and_from_standard_input(post: Post) -> None:
    post.start()

    done = post.lab.typed("type", AGENT, "-", "--no-enter", stdin="say 'it'")
    wait_for(lambda: post.screen().before == "demo> say 'it'", "the text")
    assert done.stdout == f"typed into {post.pane}; Enter was not pressed\n"
    assert json.loads(post.lab.typed("type", f"{AGENT}@fx", " again", "--json").stdout)["data"] == {
        "agent": AGENT,
        "pane": post.pane,
        "entered": True,
    }

    post.lab.see(AGENT, "\n'it' again\n")


def test_where_keys_go_elsewhere_nothing_is_typed(post: Post) -> None:
    post.start()
    post.lab.tmux("copy-mode", "-t", post.pane)
    with pytest.raises(PaneBusy, match=r"cannot type into developer of fx: a user scrolls in its pane \(copy mode\)"):
        post.lab.person.panes.type(AGENT, "x")
    post.lab.tmux("send-keys", "-t", post.pane, "-X", "cancel")
    with pytest.raises(UsageProblem):
        post.lab.person.panes.type(AGENT, "\x1b", enter=False)

    post.lab.type(AGENT, "exit")
    wait_for(lambda: post.screen().dead, "the end of the pane")
    with pytest.raises(AgentNotRunning, match="its program has ended"):
        post.lab.person.panes.type(AGENT, "x")
    assert post.lab.typed("type", AGENT, "x").returncode == 6
