"""The demo agent's messages: it tells, asks and answers, and acts on the words of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.demo.me import Order
from swarm.demo.repo import Trouble

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm.demo.me import Me
    from swarm.demo.post import Letter, Post
    from swarm.demo.screen import Screen
    from swarm.demo.work import Work

#: News of swarm itself: shown, and neither noted nor answered.
_NEWS = ("delivery", "dead-letter", "agent-ended", "heartbeat")
_USER = "user"
_LONGEST = 1000


class Talk:
    """One agent's conversation.

    Args:
        obey: does what the user orders; returns an exit status if that ends the agent.
    """

    def __init__(
        self, me: Me, work: Work, post: Post, screen: Screen, obey: Callable[[Order], int | None], known: frozenset[str]
    ) -> None:
        self._me = me
        self._work = work
        self._post = post
        self._screen = screen
        self._obey = obey
        self._orders = known

    def tell(self, to: str, text: str, key: str) -> None:
        """Tell another agent something; without words, report the work done."""
        self._send(to, text or self._work.summary(), key=key)

    def ask(self, to: str, question: str, key: str) -> None:
        """Ask another agent; the answer comes as a message."""
        self._send(to, question, key=key, question=True)

    def knows(self, name: str) -> bool:
        """Whether this is another agent of the session."""
        return name != self._me.actor and name in self._me.team()

    def _send(self, to: str, text: str, *, key: str = "", question: bool = False, answers: str = "") -> None:
        try:
            self._post.send(to, text, question=question, answers=answers, key=key)
        except Trouble as trouble:
            self._screen.say(f"not sent to {to}: {trouble}", "bad", label="  ")
            return
        self._screen.say(text, label=f"  to {to.partition('@')[0]}{', a question' if question else ''}: ")

    def read(self) -> int | None:
        """Read new messages and act on them; an exit status ends the agent."""
        code: int | None = None
        try:
            letters = self._post.take()
            for letter in letters:
                ended = self._act_on(letter)
                code = ended if code is None else code
            self._post.done(letters)
        except Trouble as trouble:
            self._screen.say(f"the inbox: {trouble}", "bad", label="  ")
        return code

    def _act_on(self, letter: Letter) -> int | None:
        what = "answers" if letter.answers else "asks" if letter.wants_answer else "says"
        self._screen.say(letter.text[:_LONGEST], "title", label=f"{letter.who} {what}: ")
        if letter.kind in _NEWS:
            return None
        order = Order.read(letter.body)
        if letter.sender == _USER and order.word in self._orders:
            return self._obey(order)
        if letter.wants_answer:
            self._send(letter.sender, self._work.answer(letter.text), key=f"answer {letter.id}", answers=letter.id)
        else:
            self._note(letter, what)
        return None

    def _note(self, letter: Letter, what: str) -> None:
        try:
            done = self._work.note(f"{letter.who} {what}: {letter.text[:_LONGEST]}", letter.who, letter.id)
        except Trouble as trouble:
            self._screen.say(f"not noted: {trouble}", "bad", label="  ")
            return
        if done:
            self._screen.say(done, "good", label="  committed ")
