"""Wait until an agent's MCP door is open: ``python -I -S wait.py RUN_DIR``, a hook at the start of its program.

The program takes its first turn when its hooks have ended, and only then looks which tools there are.  A door that
does not open in time is no reason to keep the agent from its work.
"""

import os
import sys
import time

#: In the run folder, since this launch: the program has asked the door for its tools.
OPENED = "door.opened"
_PATIENCE, _PAUSE = 20.0, 0.02


def main(args: list[str]) -> int:
    """Wait; whatever happens, the program goes on."""
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
