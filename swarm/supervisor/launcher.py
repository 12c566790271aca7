"""Start one agent program in this pane: ``python -I -S launcher.py <launch file>``.

The launch file is JSON, mode 0600, and is gone before the program starts; texts are bytes read as
UTF-8 with ``surrogateescape``:

    schema        1
    operation     the operation whose commit opens the gate
    agent         how messages call it
    session       its session
    root          the main checkout
    record        the session's record; committed when its ``operations`` list the operation
    journal       the operation's journal entry; gone without a commit: rolled back
    owner         {"pid", "start"} of the swarm command that opened the pane
    run_dir       where process.json and exit.json go
    gate_timeout  longest wait for the commit, in seconds
    cwd, argv     where and what to run
    env           the complete environment of the program
    from_pane     optional: names of variables that are the pane's own instead, such as TERM
    stamp         value of its SWARM_AGENT_ID
    grace         optional: seconds between asking a program to end and killing it; 5
    label         optional: the command that shows the states of all agents and tells of those that ended
    label_env     its environment, and that of the commands below
    box           optional: {"commits", "take_in", "forward"}: the program runs in a box, below two processes of
                  bubblewrap; the files that change when it commits, the command that takes the commits in, and the
                  folder of its socket with the command that serves a request
    network       optional: {"argv", …}: the command that serves the network of the program's box, and what it reads
    stdin, stdout, stderr  optional: files instead of the terminal; without a terminal all three
    timeout       optional: seconds that the program may run
    interrupt     optional: seconds that a program has, which is to be ended, to say its last words after SIGINT
    after         optional: the command that is run when the end is written down
    talk          optional: {"speech", "id", "text", "messages", "known", "ask", "within"}, see ``gate.Spoken``: the
                  program is told texts on its standard input while its turn lasts, and its requests are answered
    prints        optional: whether it does its task and ends; what is typed into its pane is not for it
    deaf          optional: whether, then, messages cannot reach it
    mail          optional: {"inbox", "address", "nudge", "send", "idle", "pause", "shell"}, see ``gate.Mail``
    program       optional: which agent program it is, with role and pod for those who ask how the agent stands
    socket        optional: where they ask, see ``status_socket.py``
    heartbeat     optional: {"idle_timeout", "message", "condition"}, see ``gate.Heartbeat``

This file is compiled at every start, so it only opens the door to the modules beside it, which are
not; and it passes by ``swarm/__init__.py``, which costs more than all of them.
"""

import os
import sys


def main() -> int:
    """Run and return the exit status; no traceback ever reaches the pane."""
    try:
        package = type(sys)("swarm")
        package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
        sys.modules["swarm"] = package
        from swarm.supervisor import supervisor

        return supervisor.main(sys.argv[1:])
    except KeyboardInterrupt:
        return _excuse("interrupted before it began", 130)
    except BaseException as error:  # noqa: BLE001  # the last stop before the user's screen
        return _excuse(f"this is a bug of the launcher: {type(error).__name__}: {error}", 70)


def _excuse(text: str, code: int) -> int:
    try:  # noqa: SIM105  # contextlib would be loaded for this alone
        os.write(2, f"[swarm] {text}\n".encode("ascii", "backslashreplace"))
    except OSError:
        pass  # the terminal is gone; the status says it
    return code


if __name__ == "__main__":
    sys.exit(main())
