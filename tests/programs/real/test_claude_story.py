"""The whole way of a task with a real Claude Code, unattended but for one answer from another terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from swarm.testing.api import call, hold, say
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from tests.support.agents import ClaudeLab

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]
LONG = 150.0
GIT = "git -c user.name=Claude -c user.email=claude@localhost"


@pytest.mark.story
def test_start_work_message_permission_merge_cleanup(claude: ClaudeLab) -> None:
    before = claude.fingerprint()
    claude.role("developer", "You develop.", permissions={"allow": ["Bash(git *)", "Bash(swarm reply *)", "Write"]})
    claude.commit("roles")
    claude.api.script(
        "write the poem",
        call("Bash", command=f"echo roses > poem.txt && git add poem.txt && {GIT} commit -q -m poem"),
        hold("the message was sent", call("Bash", command="git log -1 --format=%s")),
    )

    # start, as a user types it, with the task
    done = claude.cli("start", "x", "--roles", "developer", "--agent", "claude", "--task", "write the poem")
    assert done.returncode == 0, done.stderr
    tree = claude.tree("developer", "x")
    first = approve_when_asked(claude, "echo roses")

    # its work is a commit on its branch
    wait_for((tree / "poem.txt").exists, "the poem", LONG)
    wait_for(
        lambda: claude.git("log", "-1", "--format=%s", "swarm/developer-x") == "poem", "the commit on its branch", LONG
    )

    # a message reaches it in the middle of its work, and is answered
    sent = claude.json("send", "developer@x", "What is it about?", "--expects-reply")["data"]["id"]
    claude.api.script(
        "write the poem",
        hold("it was heard", call("Bash", command=f"swarm reply {sent} 'It is about roses.'")),
        call("Bash", command="touch published"),
        say("The poem is published."),
    )
    claude.api.open("the message was sent")
    wait_for(lambda: claude.swarm.messages.get(sent)[0].stored.state == "acked", "the message to be seen", LONG)
    claude.api.open("it was heard")
    wait_for(lambda: "It is about roses." in claude.cli("inbox", "user").stdout, "the answer", LONG)

    # it asks for what its role does not allow, and is answered from another terminal
    second = approve_when_asked(claude, "touch published")
    claude.shows("developer", "The poem is published.")
    assert (tree / "published").exists()
    assert first != second
    claude.until("developer", "idle")

    # merge, and nothing is left but the work
    (tree / "published").unlink()
    assert claude.cli("merge", "x").returncode == 0
    assert claude.git("show", "HEAD:poem.txt") == "roses"
    done = claude.cli("cleanup", "x", "--force")
    assert done.returncode == 0, done.stderr
    after = claude.fingerprint()
    for key in ("stash", "config", "exclude", "admin", "locks", "status"):
        assert after[key] == before[key], key
    assert claude.panes() == []
    wait_for(lambda: claude.agents_processes() == {}, "the end of what deletes")
    assert str(tree) not in claude.config().get("projects", {})


def approve_when_asked(claude: ClaudeLab, words: str) -> str:
    """Wait for the question and say yes on the command line; return its id."""

    def asked() -> list[str]:
        return [one.question.id for one in claude.swarm.approvals() if words in one.question.summary]

    wait_for(asked, f"the question for {words!r}", LONG)
    assert claude.one("developer").status.state == "waiting"
    (found,) = asked()
    done = claude.typed("approve", found, "--reason", "fine")
    assert done.returncode == 0, done.stderr
    return found
