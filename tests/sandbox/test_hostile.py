"""Hostile programs that `swarm start --sandbox` has started: against the machine, and against each other."""

# ruff: noqa: E501  # a probe stands in one piece

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sandbox.conftest import SESSION
from tests.sandbox.launched import Launched
from tests.sandbox.probes import GROUPS
from tests.sandbox.stage import Outcome, Probe

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.usefixtures("boxes")]

USERS = ("root", "user") if os.geteuid() == 0 else ("user",)


@pytest.fixture(params=USERS)
def stage(request: pytest.FixtureRequest, boxes: None) -> Iterator[Launched]:
    found = Launched(as_user=request.param == "user")
    try:
        yield found
    finally:
        found.close()


@pytest.fixture(params=USERS)
def bare(request: pytest.FixtureRequest) -> Iterator[Launched]:
    found = Launched(as_user=request.param == "user", boxed=False)
    try:
        yield found
    finally:
        found.close()


def test_nothing_of_what_is_probed_gets_out_of_a_real_launch(stage: Launched) -> None:
    found = {name: stage.probe(probe) for group in GROUPS.values() for name, probe in group.items()}

    assert {name: one for name, one in found.items() if one.escapes} == {}
    assert not os.path.lexists(stage.names["CANARY"])
    assert [stage.host_git(*words).returncode for words in (("status",), ("fsck",))] == [0, 0]
    assert "developer" in stage.swarm("status", SESSION)


_MINE = "@ROOT@/.swarm/sessions/feature-x"
#: What one agent does to the other: reading, changing, ending, speaking in its name.
THEM = {
    "its worktree": Probe("cat '@OTHER@/secret.txt'"),
    "its home": Probe(f"cat '{_MINE}/box/reviewer/home/secret'"),
    "its messages": Probe("cat '@ROOT@/.swarm/messages/note'; grep -rs @TOKEN@ '@ROOT@/.swarm/messages'"),
    "its run folder": Probe(f"ls '{_MINE}/run/reviewer/' | grep -q . && echo ESCAPED"),
    "its git folder": Probe("ls '@ROOT@/.git/worktrees/reviewer-feature-x/HEAD' && echo ESCAPED"),
    "its process": Probe("test -d /proc/@THEIRS@ && echo ESCAPED"),
    "its environment": Probe("tr '\\0' '\\n' </proc/@THEIRS@/environ | grep -q . && echo ESCAPED"),
    "its memory": Probe("head -c0 /proc/@THEIRS@/mem && echo ESCAPED"),
    "its files by its process": Probe("ls /proc/@THEIRS@/root/ && echo ESCAPED"),
    "change its worktree": Probe("echo planted > '@OTHER@/planted'"),
    "change its home": Probe(f"echo planted > '{_MINE}/box/reviewer/home/.bashrc'"),
    "its branch": Probe("echo planted >> '@ROOT@/.git/refs/heads/swarm/reviewer-feature-x'"),
    "end it": Probe("kill -9 @THEIRS@ && echo ESCAPED"),
    "end all": Probe(
        "for p in $(seq 2 400) @THEIRS@; do [ $p = $$ ] || [ $p = $PPID ] || kill -0 $p; done 2>/dev/null; kill -0 @THEIRS@ && echo ESCAPED"
    ),
}
#: Without a box the last ones refuse by who asks; there is no socket to try them at.
_ASK = (
    "PY\nimport json,os,socket,struct,sys\ndef ask(path, **request):\n"
    "  data = json.dumps(request).encode() + b'\\n'\n"
    "  s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(path)\n"
    "  s.sendall(struct.pack('>I', len(data)) + data); print(s.recv(100000))\n"
)
_OWN = "/run/swarm/io/swarm.sock"
_COMMANDS = (
    "stop feature-x", "cleanup feature-x --force --discard", "type reviewer planted", "approve 1", "merge feature-x",
    "inbox show reviewer", "inbox take reviewer", "send reviewer x --file @USER@/.netrc", "peek reviewer",
    "status --watch", "sandbox exec reviewer -- cat @OTHER@/secret.txt", "start y --roles developer --no-sandbox",
    "spawn subtree y x --agent-cmd /bin/sh", "spawn subtree y x --override heartbeat.condition=true", "run -- true",
    "config show", "hook guard", "restore", "transcript reviewer", "diff reviewer", "adopt reviewer --to developer",
)  # fmt: skip
_BY_SOCKET = {
    "the socket of the other": Probe(_ASK + f"ask('{_MINE}/box/reviewer/io/swarm.sock', kind='command', argv='status', stdin='')\nprint('ESCAPED')"),
    "the door of the other": Probe(_ASK + f"import os\nos.environ.clear()\nask('{_OWN}', kind='mcp', agent='reviewer')"),
    "a name of the other": Probe("SWARM_ACTOR=reviewer SWARM_RUN_DIR='" + _MINE + "/run/reviewer' swarm send user 'as the reviewer'"),
    "a strange transcript": Probe(
        _ASK + f"e = json.dumps(dict(hook_event_name='Stop', transcript_path='@USER@/.netrc'))\nask('{_OWN}', kind='event', event=e, wait='')"
    ),
    "an event that names a command": Probe(_ASK + f"ask('{_OWN}', kind='event', event='{{}}', wait='PATH=/tmp touch')"),
    **{f"swarm {one}": Probe(f"swarm {one}; true") for one in _COMMANDS},
}  # fmt: skip


def program_of(stage: Launched, agent: str) -> str:
    """Return the number on the machine of an agent's hostile program."""
    tree = str(stage.tree_of(agent))
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if os.readlink(f"/proc/{pid}/cwd") == tree and os.fsencode(stage.top / "hostile") in words[:3]:
                return pid
        except OSError:
            continue
    raise AssertionError(f"{agent} has no program")


def tried(stage: Launched, probes: dict[str, Probe]) -> dict[str, Outcome]:
    return {name: stage.probe(probe) for name, probe in probes.items()}


def begin(stage: Launched) -> None:
    stage.names["THEIRS"] = Path(program_of(stage, "reviewer"))
    stage.swarm("send", f"reviewer@{SESSION}", f"for the reviewer alone: {stage.token}")
    stage.clean = stage._fingerprint()


def test_of_two_hostile_agents_neither_reaches_the_other(stage: Launched) -> None:
    begin(stage)

    found = tried(stage, {**THEM, **_BY_SOCKET})

    assert {name: one for name, one in found.items() if one.escapes} == {}
    assert "NOT_IN_BOX" in found["swarm stop feature-x"].said
    assert "belongs to agent developer" in found["the door of the other"].said
    told = stage.swarm("inbox", "show", "user", "--json")
    assert "as the reviewer" in told
    assert f"developer@{SESSION}" in told
    assert f'"from": "reviewer@{SESSION}"' not in told
    # And the other way: the reviewer against the developer's tree and process.
    stage.names["THEIRS"] = Path(program_of(stage, "developer"))
    back = stage.probe(Probe(f"cat '{stage.lab.tree('developer')}/README' && echo ESCAPED"), "reviewer")
    assert (back.escapes, stage.probe(THEM["end it"], "reviewer").escapes) == ((), ())
    assert stage.swarm("list", "--json").count('"state": "stopped"') == 0


def test_without_boxes_each_of_them_reaches_the_other(bare: Launched) -> None:
    begin(bare)
    order = [name for name in THEM if not name.startswith("end")] + ["end all", "end it"]

    missed = {}
    for name in order:
        outcome = bare.probe(THEM[name])
        if not outcome.escapes:
            missed[name] = outcome
        bare.clean = bare._fingerprint()

    assert missed == {}
