"""What an agent in a box asks of swarm is done outside, as that agent (point 6 of the design)."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import typer

from swarm.api import forwarding
from swarm.cli import app
from swarm.machine.identity import Identity
from swarm.sandbox.errors import NotInBox
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.testing.panes import PaneLab

ME = Identity("/r/.swarm/sessions/s/run/developer", {})


def _command(name: str) -> Any:
    found: Any = app.build()
    for word in name.split():
        found = found.get_command(typer.Context(found), word)
    return found


@pytest.mark.unit
@pytest.mark.parametrize("name", forwarding.COMMANDS)
def test_each_option_takes_a_value_or_none_as_the_list_says(name: str) -> None:
    options = [one for one in _command(name).params if hasattr(one, "is_flag")]
    flags = {word: one.is_flag for one in options for word in one.opts}

    for option in forwarding.COMMANDS[name][0]:
        assert flags[option] == (option in forwarding.FLAGS), option


@pytest.mark.unit
@pytest.mark.parametrize(
    "words",
    [
        *(
            "stop s",
            "approve 1",
            "type developer x",
            "cleanup s --force",
            "merge s",
            "start x --roles a",
            "salvage list",
        ),
        *("send user --file /etc/passwd", "send user --file=/etc/passwd x", "send user x --attach /etc/passwd", "mcp"),
        *(
            "send --subject -- --file /etc/passwd user",
            "send --expects-reply --attach /etc/passwd user x",
            "send -C / u x",
        ),
        *("inbox take reviewer", "inbox show reviewer", "inbox ack --of reviewer", "outbox reviewer", "status --watch"),
        *("reply 1 --file x", "config show", "log", "", "--json stop s"),
    ],
    ids=str,
)
def test_what_names_files_or_is_about_others_is_refused(words: str) -> None:
    with pytest.raises(NotInBox):
        forwarding.command_of(words.split(" "), ME)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("words", "done"),
    [
        ("send reviewer hello", "send reviewer hello"),
        ("send --subject --file user text", "send --subject --file user text"),  # a strange subject
        ("send user -- --file", "send user -- --file"),  # a strange text
        ("inbox", "inbox"),
        ("inbox take --wait 5 --ack --json", "inbox take --wait 5 --ack --json"),
        ("status --json", "status --json s"),
        ("status other", "status s"),
        ("why reviewer", "why developer@s"),
    ],
)
def test_what_is_asked_for_oneself_is_done(words: str, done: str) -> None:
    assert forwarding.command_of(words.split(), ME) == done.split()


def start(panes: PaneLab, script: str) -> Path:
    """Start a developer in a box that runs a script, and a reviewer beside it; return the developer's worktree."""
    panes.write({".gitignore": "said*\n"})
    panes.commit("ignore what it says")
    team = ["developer", "reviewer"]
    panes.swarm.start("s", team, command=["sh", "-c", f"{script}\ntouch said.done; exec sleep 1000"], sandbox=True)
    tree = panes.tree("developer", "s")
    wait_for((tree / "said.done").exists, "the developer")
    return tree


@pytest.mark.integration
def test_an_agent_in_a_box_sends_and_reads_messages_as_itself(panes: PaneLab, boxes: None) -> None:
    tree = start(
        panes,
        """
        if [ $SWARM_ACTOR != developer ]; then exec sleep 1000; fi
        export SWARM_ACTOR=reviewer SWARM_RUN_DIR=/nowhere
        swarm send reviewer "are you there" --json > said.sent; echo $? > said.code
        swarm send nobody hello 2> said.error; echo $? >> said.code
        swarm stop s 2> said.refused; echo $? >> said.code
        printf 'two\\nlines' | swarm send user - ; echo $? >> said.code
        """,
    )

    sent = json.loads((tree / "said.sent").read_text())["data"]["sent"][0]
    assert sent["durable"] is True
    (message,) = (one.message for one in panes.swarm.messages.inbox("reviewer@s"))
    assert (message.id, message.sender) == (sent["id"], "developer@s")
    assert (tree / "said.code").read_text().split() == ["0", "6", "4", "0"]
    assert "NOT_IN_BOX" in (tree / "said.refused").read_text()
    told = [one.message for one in panes.swarm.messages.inbox("user")]
    assert [one.body for one in told if one.sender == "developer@s"] == ["two\nlines"]


@pytest.mark.integration
def test_who_is_not_below_the_supervisor_is_not_served(panes: PaneLab, boxes: None) -> None:
    start(panes, "true")
    io = panes.root / ".swarm/sessions/s/box/developer/io"

    done = subprocess.run(
        [sys.executable, "-P", "-m", "swarm", "send", "reviewer", "as the developer"],
        cwd=io,
        env={**panes.env, "SWARM_SOCKET": "swarm.sock"},
        capture_output=True,
        check=False,
    )

    assert done.returncode == 4
    assert b"it is not of this agent" in done.stderr
    assert panes.swarm.messages.inbox("reviewer@s") == ()


@pytest.mark.integration
def test_the_demo_agent_in_a_box_says_its_state_is_told_and_answers(panes: PaneLab, boxes: None) -> None:
    panes.start("developer", "fx", sandbox=True)
    panes.all_until("idle")

    panes.swarm.send("developer@fx", "where is the plan", expects_reply=True)

    panes.see("developer", "where is the plan", "fx")
    wait_for(lambda: panes.swarm.messages.outbox("developer@fx"), "the answer")
