"""The demo agent's day: introduce itself, do the work, obey the task's orders, then those at the prompt."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from swarm.demo.me import Order, Task, seconds
from swarm.demo.post import Post
from swarm.demo.record import Record
from swarm.demo.repo import Repo, Trouble
from swarm.demo.screen import Keyboard, Screen
from swarm.demo.talk import Talk
from swarm.demo.turn import Lines, Turn, write
from swarm.demo.work import Work
from swarm.machine.inbox_watch import SCAN_EVERY
from swarm.machine.run_folder import program_facts

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm.demo.me import Me
    from swarm.demo.work import Step

_PROMPT = "demo> "
#: The first word of the line that swarm types when messages wait.
_NUDGE = "[swarm]"
#: Orders that a turn without a terminal obeys only in a worktree.
_OF_A_REPOSITORY = frozenset({"work", "edit", "status"})
_INTERRUPTED = 128 + signal.SIGINT
_SLEEPER = "import time; time.sleep(3600)"


class DemoAgent:
    """One agent in its pane. An order's method returns None to go on, or the exit status."""

    def __init__(self, me: Me) -> None:
        self._me = me
        self._turn = Turn.read(me.environ, me.task.whole)
        record = self._turn.record if self._turn else Record(me.run_dir)
        self._screen: Screen = Lines(record) if self._turn else Screen(record)
        self._keyboard = Keyboard(record)
        self._said: tuple[str, str] = ("", "")
        self._key = ""  # of the order from the task that is being obeyed
        self._failed = ("", "")
        self._children: list[subprocess.Popen[bytes]] = []
        self._orders: dict[str, tuple[str, str, Callable[[str], int | None]]] = {
            "help": ("", "show this", self._help),
            "work": ("[TEXT]", "one more step, committed", self._work_more),
            "edit": ("FILE TEXT", "add a line to a file, committed", self._edit),
            "status": ("", "who I am and how far", self._status),
            "ask": ("[AGENT] [QUESTION]", "ask another agent; or you, and wait for y or n", self._ask),
            "tell": ("AGENT [TEXT]", "tell another agent something, or what I did", self._tell),
            "inbox": ("", "read what came in", self._read_mail),
            "permission": ("[TOOL]", "ask to use a tool, and wait", self._permission),
            "say": ("TEXT", "print it", self._say),
            "append": ("FILE TEXT", "add a line to a file, not committed", self._append),
            "error": ("KIND [WORDS]", "end as after an error: retryable, rate_limited or fatal", self._error),
            "deaf": ("", "hear no signal any more", self._deaf),
            "sleep": ("SECONDS", "be busy for a while", self._sleep),
            "spawn": ("", "start a process that leaves my group", self._spawn),
            "hang": ("", "stop listening", self._hang),
            "fail": ("[CODE]", "end with an exit status, 1 if none", self._fail),
            "crash": ("", "be killed at once", self._crash),
            "exit": ("", "end well", self._exit),
        }

    def run(self) -> int:
        """Return the exit status."""
        self._is("working", "reading the task")
        if self._turn is not None:
            return self._take_turn(self._turn)
        try:
            self._repo = Repo(self._me.actor)
            self._work = Work(self._me, self._repo)
            self._post = Post(self._me, self._me.environ)
            orders = frozenset(self._orders) - {"inbox"}
            self._talk = Talk(self._me, self._work, self._post, self._screen, self._obey, orders)
        except Trouble as trouble:
            self._screen.say(f"cannot work here: {trouble}", "bad")
            return 1
        self._banner()
        code = self._do_task() if self._me.prints else self._unless_interrupted(self._do_task)
        if code is None:
            code = (self._look_into_inbox() or 0) if self._me.prints else self._listen()
        if code == 0:
            self._is("done", "ended well")
        return code

    # --- the task -------------------------------------------------------------------------------

    def _banner(self) -> None:
        rows = self._screen.size[1]
        most = 2 if rows <= 12 else 8
        self._screen.say(f"demo agent: {self._me.actor}", "title")
        if self._me.about:
            self._screen.say(self._me.about, label="role   ", most=most)
        self._screen.say(self._me.task.text or "none given", label="task   ", most=most)
        self._screen.say(self._repo.branch or "none (detached)", label="branch ", most=most)

    def _do_task(self) -> int | None:
        steps = self._work.plan()
        for number, step in enumerate(steps, 1):
            self._do_step(step, f"[{number}/{len(steps)}] ", self._me.key(f"step {number} {step.title}"))
            code = self._look_into_inbox()
            if code is not None:
                return code
        for number, order in enumerate(self._me.task.orders):
            self._key = self._me.key(f"order {number} {order.word} {order.rest}")
            code = self._obey(order)
            self._key = ""
            if code is None:
                code = self._look_into_inbox()
            if code is not None:
                return code
        return None

    def _do_step(self, step: Step, label: str, key: str = "") -> None:
        self._is("working", f"{label}{step.title}")
        self._screen.say(step.title, label=label)
        if not self._repo.has(key):
            time.sleep(self._me.task.delay)  # thinking
        self._commit(lambda: self._work.do(step, key))

    def _commit(self, do: Callable[[], str]) -> None:
        try:
            done = do()
        except Trouble as trouble:
            self._screen.say(f"did not work: {trouble}", "bad", label="  ")
            return
        if done:
            self._screen.say(done, "good", label="  committed ")
        else:
            self._screen.say("that is committed already", "quiet", label="  ")

    # --- a turn without a terminal --------------------------------------------------------------

    def _take_turn(self, turn: Turn) -> int:
        """Do what the prompt says, and then what comes behind its result, if anybody speaks."""
        code = self._obey_prompt(turn, turn.text, turn.done)
        while (text := turn.wait()) is not None:
            code = self._obey_prompt(turn, text, 0)
        return code

    def _obey_prompt(self, turn: Turn, text: str, done: int) -> int:
        """Do the orders of a prompt that were not done before, and those that come meanwhile; write the result."""
        orders = self._orders_in(text)[done:]
        code: int | None = None
        while orders and code is None:
            order = orders.pop(0)
            once = order.word == "once"
            if once:
                turn.note_done(order.rest)
            wanted = Order.read(order.rest) if once else order
            code = self._obey(wanted) if wanted.word not in _OF_A_REPOSITORY else self._in_repository(wanted)
            if code is None and not once:
                turn.note_done(order.word)
            for more in turn.more():
                orders += self._orders_in(more)
        kind, words = self._failed
        last = self._screen.last if isinstance(self._screen, Lines) else ""
        used = {"input": len(text.split()), "output": len(last.split())}
        write({"type": "result", "ok": not code, "kind": kind, "text": words or last, "usage": used})
        return code or 0

    def _orders_in(self, text: str) -> list[Order]:
        task = Task.read(text, self._me.actor, self._me.role)
        if task.text:
            self._screen.say(f"read: {task.topic}")
        return list(task.orders)

    def _in_repository(self, order: Order) -> int | None:
        """Obey an order that commits, or speaks with others."""
        try:
            self._repo = Repo(self._me.actor)
            self._work = Work(self._me, self._repo)
        except Trouble as trouble:
            self._screen.say(f"cannot do that here: {trouble}", "bad")
            return 1
        return self._obey(order)

    def _append(self, rest: str) -> int | None:
        path, _, line = rest.partition(" ")
        try:
            with open(path, "a", encoding="utf-8") as file:  # one write, also beside other agents
                file.write(f"{line}\n")
        except OSError as error:
            self._screen.say(f"did not work: {error}", "bad")
            return 1
        return None

    def _error(self, rest: str) -> int:
        kind, _, words = rest.partition(" ")
        self._failed = (kind, words or f"a {kind} error, as asked")
        self._screen.say(self._failed[1], "bad")
        return 1

    def _deaf(self, _rest: str) -> None:
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(signum, signal.SIG_IGN)
        self._screen.say("deaf")

    # --- messages -------------------------------------------------------------------------------

    def _look_into_inbox(self) -> int | None:
        """Read all new messages, between two pieces of work."""
        code: int | None = None
        while code is None and self._post.has_news():
            code = self._read_mail("")
        return code

    def _read_mail(self, _rest: str) -> int | None:
        self._is("working", "reading messages")
        return self._talk.read()

    def _tell(self, rest: str) -> None:
        to, _, text = rest.partition(" ")
        if not to:
            self._screen.say("usage: tell AGENT [TEXT]", "bad")
            return
        self._is("working", f"tell {to}")
        self._talk.tell(to, text.strip(), self._key)

    # --- the prompt -----------------------------------------------------------------------------

    def _listen(self) -> int:
        """Take orders until one of them ends us; like a real agent, Ctrl-C wants to be pressed twice."""
        pressed = False
        while True:
            try:
                code = self._look_into_inbox()
                if code is not None:
                    return code
                self._is("idle", "ready")
                line = self._read_order()
            except KeyboardInterrupt:
                self._keyboard.forget()
                self._screen.say("")
                if pressed:
                    return _INTERRUPTED
                pressed = True
                self._screen.say("press again to exit")
                continue
            pressed = False
            code = 0 if line is None else self._unless_interrupted(partial(self._obey, Order.read(line)))
            if code is not None:
                return code

    def _unless_interrupted(self, do: Callable[[], int | None]) -> int | None:
        try:
            return do()
        except KeyboardInterrupt:
            self._screen.say("")
            self._screen.say("interrupted")
            return None

    def _read(self, prompt: str) -> str | None:
        self._screen.ask(prompt)
        line = self._keyboard.line()
        if line is None:
            self._screen.say("")
        return line

    def _read_order(self) -> str | None:
        """Wait for an order, or for a message: then for nothing but an empty line."""
        inbox = self._post.inbox
        self._screen.ask(_PROMPT)
        while not self._keyboard.has_line():
            watched = inbox.watch()
            inbox.drain()
            if self._post.has_news():
                self._screen.say("")
                return ""
            self._keyboard.wait(watched, SCAN_EVERY)
        line = self._keyboard.line()
        if line is None:
            self._screen.say("")
        return line

    def _obey(self, order: Order) -> int | None:
        if not order.word:
            return None
        if order.word == _NUDGE:
            return self._read_mail("")
        if order.word not in self._orders:
            self._screen.say(f"unknown: {order.word}; try help", "bad")
            return None
        return self._orders[order.word][2](order.rest)

    def _help(self, _rest: str) -> None:
        for word, (arguments, about, _) in self._orders.items():
            self._screen.say(about, label=f"{word} {arguments}".strip() + "  ")

    def _work_more(self, text: str) -> None:
        self._do_step(self._work.another(text or "one more look"), "[+] ")

    def _edit(self, rest: str) -> None:
        path, _, line = rest.partition(" ")
        if not path:
            self._screen.say("usage: edit FILE TEXT", "bad")
            return
        self._is("working", f"edit {path}")
        text = line or f"edited by {self._me.actor}"
        self._commit(lambda: self._work.edit(path, text, self._key))

    def _status(self, _rest: str) -> None:
        self._screen.say(f"{self._me.actor} ({self._me.role}) in session {self._me.session or '-'}")
        self._screen.say(self._repo.branch or "none", label="branch ")
        self._screen.say(self._repo.try_ask("log", "--format=%h %s", "-n", "1"), label="last   ")
        self._screen.say(self._work.notes, label="notes  ")

    def _ask(self, question: str) -> int | None:
        to, _, rest = question.partition(" ")
        if rest.strip() and self._talk.knows(to):
            self._is("working", f"ask {to}")
            self._talk.ask(to, rest.strip(), self._key)
            return None
        return self._wait_for_answer(question or "Shall I go on?", ("you said yes", "you said no"))

    def _permission(self, tool: str) -> int | None:
        tool = tool or "Bash"
        if self._turn is not None and (answer := self._turn.ask(tool, {"command": "demo"})) is not None:
            why = f": {answer.get('why')}" if answer.get("why") else ""
            self._screen.say(f"may use {tool}" if answer.get("given") is not None else f"may not use {tool}{why}")
            return None
        return self._wait_for_answer(f"permission: {tool}", (f"may use {tool}", f"may not use {tool}"))

    def _wait_for_answer(self, question: str, outcomes: tuple[str, str]) -> int | None:
        if self._me.prints:
            self._screen.say(f"{question} Nobody is asked in print mode.", "bad")
            return 1
        self._is("waiting", question)
        self._screen.say(question, "title")
        while True:
            line = self._read("y/n> ")
            if line is None:
                self._screen.say("nobody answered", "bad")
                return 1
            answer = line.strip().lower()
            if answer in ("y", "yes", "n", "no"):
                break
        self._is("working", "answered")
        self._screen.say(outcomes[0] if answer.startswith("y") else outcomes[1])
        return None

    def _say(self, text: str) -> None:
        self._screen.say(text)

    def _sleep(self, rest: str) -> None:
        wanted = seconds(rest)
        if wanted is None:
            self._screen.say("usage: sleep SECONDS", "bad")
            return
        self._is("working", f"busy for {wanted:g} s")
        time.sleep(wanted)

    def _spawn(self, _rest: str) -> None:
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _SLEEPER],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._children.append(child)
        self._screen.say(f"started process {child.pid}")

    def _hang(self, _rest: str) -> int:
        self._is("working", "hanging")
        self._screen.say("hanging; only a signal helps")
        try:
            while True:
                signal.pause()
        except KeyboardInterrupt:
            return _INTERRUPTED

    def _fail(self, rest: str) -> int | None:
        if rest and not (rest.isdecimal() and int(rest) <= 255):
            self._screen.say("usage: fail [CODE], from 0 to 255", "bad")
            return None
        code = int(rest or 1)
        self._screen.say(f"failing with {code}, as asked", "bad")
        return code

    def _crash(self, _rest: str) -> None:
        self._screen.say("crashing, as asked", "bad")
        os.kill(os.getpid(), signal.SIGKILL)

    def _exit(self, _rest: str) -> int:
        return 0

    # --- how it is ------------------------------------------------------------------------------

    def _is(self, state: program_facts.Says, detail: str) -> None:
        """Say how it is; the same thing is said once."""
        if self._me.run_dir is None or self._said == (state, detail):
            return
        self._said = ("", "")  # Ctrl-C may come at any moment: not said until it is known to be
        with contextlib.suppress(OSError):  # a full disk must not end the work
            program_facts.write_state(self._me.run_dir, state, detail, _PROMPT if state == "idle" else "")
            self._said = (state, detail)
