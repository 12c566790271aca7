"""Entry point of agent programs' hooks: ``python -I -S hook.py RUN_DIR [NAME=VALUE COMMAND…]``, event on stdin.

Hooks fire at every tool call, so this must cost next to nothing, and it must never break the program: whatever
goes wrong ends quietly with status 0.  Like ``launcher.py`` it only opens the door to the module beside it.
"""

import os
import sys


def main() -> int:
    """Run and return the exit status."""
    try:
        package = type(sys)("swarm")
        package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
        sys.modules["swarm"] = package
        from swarm.machine import hook_events

        return hook_events.main(sys.argv[1:])
    except BaseException:  # noqa: BLE001  # the program that runs us must not hear of it
        return 0


if __name__ == "__main__":
    sys.exit(main())
