"""Entry point of an agent's MCP door: ``python -I -S door.py ROOT AGENT [SOCKET]``, JSON-RPC on stdin and stdout.

In a box the socket of the supervisor is named: programs do not give every variable to a server.

Like ``launcher.py`` it only opens the way to the module beside it, and passes by ``swarm/__init__.py``.
"""

import os
import sys


def main() -> int:
    """Run and return the exit status; no traceback reaches the program that runs us."""
    try:
        package = type(sys)("swarm")
        package.__path__ = [os.path.abspath(f"{__file__}/../../..")]
        sys.modules["swarm"] = package
        root, agent, *socket = sys.argv[1:]
        if socket:
            from swarm.machine.mcp import boxed

            return boxed.main(socket[0], agent)
        from swarm.machine.mcp import forward

        return forward.main([root, agent])
    except BrokenPipeError:
        return 0  # the program is gone
    except BaseException as error:  # noqa: BLE001  # the last stop before the agent's program
        os.write(2, f"error: the MCP door ended: {type(error).__name__}: {error}\n".encode("ascii", "backslashreplace"))
        return 70


if __name__ == "__main__":
    sys.exit(main())
