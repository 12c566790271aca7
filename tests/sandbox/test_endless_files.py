"""Files of terabytes that hold nothing, which an agent makes in a moment: nobody reads them, and none is lost."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from swarm.git.content.walk import MOST
from swarm.kit.errors import SwarmError
from swarm.project.model import Boxed as Record
from tests.sandbox.conftest import SESSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm import Swarm
    from swarm.testing.panes import PaneLab
    from tests.sandbox.conftest import Boxed

#: So many that a test which reads one does not end.
_ENDLESS = 4 << 40
pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def in_record(boxed: Boxed) -> Swarm:
    """Let the record say that the agent has a box."""
    session = boxed.lab.swarm.sessions.get(SESSION)
    record = session.agents[0]._replace(box=Record())
    boxed.world.sessions.write(session._replace(agents=(record, *session.agents[1:])))
    return boxed.lab.swarm


def make_endless(boxed: Boxed, *names: str) -> None:
    """Have the agent make them, where the file system can hold such files."""
    for name in names:
        (boxed.tree / name).touch()
        try:
            os.truncate(boxed.tree / name, _ENDLESS)
        except OSError as error:
            pytest.skip(f"no such file fits here: {error}")


LOOKS: dict[str, Callable[[Swarm], object]] = {
    "diff": lambda swarm: swarm.diff("developer", SESSION),
    "patch": lambda swarm: swarm.diff("developer", SESSION, patch=True),
}


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_at_contents_says_which_file_is_too_large(boxed: Boxed, look: str) -> None:
    swarm = in_record(boxed)
    make_endless(boxed, "README", "huge")

    with pytest.raises(SwarmError) as caught:
        LOOKS[look](swarm)

    assert caught.value.code == "TOO_MUCH_TO_READ"
    assert "it has 4096 GiB, and swarm reads 4 GiB" in caught.value.message
    assert str(boxed.tree) in caught.value.message


def test_a_status_tells_of_the_change_and_a_cleanup_refuses(boxed: Boxed) -> None:
    swarm = in_record(boxed)
    make_endless(boxed, "README")

    assert "README" in str(swarm.worktrees.show("developer", SESSION))
    with pytest.raises(SwarmError) as caught:
        swarm.cleanup([SESSION])

    assert caught.value.code == "WORK_AT_RISK"


def test_a_cleanup_moves_such_files_and_a_restore_brings_them_back(boxed: Boxed) -> None:
    """Also many files that are only together too much."""
    swarm = in_record(boxed)
    make_endless(boxed, "README", "huge")
    for number in range(4):
        (boxed.tree / f"part-{number}").touch()
        os.truncate(boxed.tree / f"part-{number}", MOST // 2)
    (boxed.tree / "small").write_text("small\n")

    swarm.cleanup([SESSION], force=True)

    assert not boxed.tree.exists()
    swarm.restore(SESSION)
    sizes = {name: (boxed.tree / name).stat().st_size for name in ("README", "huge", "part-0", "part-3", "small")}
    assert sizes == {"README": _ENDLESS, "huge": _ENDLESS, "part-0": MOST // 2, "part-3": MOST // 2, "small": 6}
    assert sum((boxed.tree / name).stat().st_blocks for name in sizes) < 1 << 12  # nothing was written for nothing


def test_no_file_in_a_box_gets_larger_than_the_disk_that_its_agent_may_use(panes: PaneLab, boxes: None) -> None:
    from swarm.testing.terminal import wait_for

    panes.env["SWARM_SANDBOX_DISK"] = "1GiB"
    script = "(truncate -s 2G big && echo made || echo refused) > tried 2>/dev/null; mv tried told; sleep 1000"
    panes.swarm.start("s", ["developer"], command=f"sh -c '{script}'", sandbox=True)
    told = panes.tree("developer", "s") / "told"

    wait_for(told.exists, "the agent in its box")

    assert told.read_text() == "refused\n"
