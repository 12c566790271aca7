"""Wait until an agent's MCP door is open: ``python -I -S wait.py RUN_DIR``, a hook at the start of its program.

The program takes its first turn when its hooks have ended, and only then looks which tools there are.  A door that
does not open in time is no reason to keep the agent from its work.  In a box the supervisor waits in its place.
"""

import os
import sys
import time

#: In the run folder, since this launch: the program has asked the door for its tools.
OPENED = "door.opened"
_PATIENCE, _PAUSE = 20.0, 0.02
#: As `broker.VARIABLE`, which most do not load.
_OF_BOX = "SWARM_SOCKET"


def main(args: list[str]) -> int:
    """Wait; whatever happens, the program goes on."""
    if _OF_BOX in os.environ:
        return _ask()
    path = f"{args[0]}/{OPENED}"
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        try:
            os.stat(path)
        except OSError:
            time.sleep(_PAUSE)
        else:
            break
    return 0


def _ask() -> int:
    """Let the supervisor wait: the run folder is not in a box."""
    try:
        package = type(sys)("swarm")
        package.__path__ = [os.path.abspath(f"{__file__}/../../..")]
        sys.modules["swarm"] = package
        from swarm.machine import broker

        broker.ask({"kind": "door"})
    except BaseException:  # noqa: BLE001, S110  # whatever it is, the program goes on
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
