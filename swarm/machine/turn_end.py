"""At the end of an agent's turn: is there anything of the tree that it should hear of before it goes idle?

``python -I -S turn_end.py RUN_DIR COMMAND…``, a hook of its program, the event on stdin.  Most agents have no children
and no parent that waits; for them this ends here, at once.  For the others it becomes the command, which looks closely.
"""

import json
import os
import sys

_LARGEST = 16 << 20
_CHILD, _COMPLETION, _RECORD = "drawn-", "completion.json", "session.json"
_SPAWNED = ("subtree", "worker")
#: The variable of a program in a box (``broker.py``): there its children are not looked at.
_IN_BOX = "SWARM_SOCKET"


def main(args: list[str]) -> int:
    """Run, and return the exit status; whatever goes wrong, the program goes on."""
    run_dir, *command = args
    try:
        event = json.loads(sys.stdin.buffer.read(_LARGEST) or b"{}")
        if not event.get("stop_hook_active") and not os.environ.get(_IN_BOX) and _has_a_place(run_dir):
            return os.execv(command[0], command)  # noqa: S606  # argv, no shell
    except (OSError, ValueError, AttributeError):
        pass
    return 0


def _has_a_place(run_dir: str) -> bool:
    """Whether an agent has had children, or has a parent that it has told nothing of its task."""
    names = os.listdir(run_dir)
    if any(name.startswith(_CHILD) for name in names):
        return True
    if _COMPLETION in names:
        return False
    with open(os.path.join(run_dir, "..", "..", _RECORD), "rb") as file:
        return json.load(file).get("kind") in _SPAWNED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
