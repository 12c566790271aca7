"""What each tool is given: checked before anything is done, and described to the model."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

#: A text of a message; the bus has its own limit, far above.
_MOST = 1_000_000
_Words = Annotated[str, Field(min_length=1, max_length=_MOST)]
_Name = Annotated[str, Field(min_length=1, max_length=200)]

#: So long a wait lasts where nothing is said, and at most.
WAIT, LONGEST_WAIT = 45.0, 1800.0


class Arguments(BaseModel):
    """The base: nothing that a tool does not know is taken, and nothing is made into another kind."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SendMessage(Arguments):
    """Arguments of ``send_message``."""

    to: _Name = Field(description="agent, agent@session, role:NAME, all, parent or user")
    body: _Words = Field(description="the message")
    subject: str = Field("", max_length=500, description="one line")
    reply_to: str = Field("", max_length=200, description="id of the message that this one answers")
    expects_reply: bool = Field(False, description="you wait for an answer")  # noqa: FBT003


class TakeInbox(Arguments):
    """Arguments of ``inbox_take``."""

    limit: int = Field(20, ge=1, le=100, description="how many messages at most")
    wait_seconds: float = Field(
        0.0, ge=0, le=LONGEST_WAIT, strict=False, description="how long to wait for the first; progress is reported"
    )


class AckInbox(Arguments):
    """Arguments of ``inbox_ack``."""

    ids: list[_Name] = Field([], max_length=1000, description="ids of taken messages; none: all that you have taken")


class Report(Arguments):
    """Arguments of ``report``."""

    message: _Words = Field(description="how far you are, what you found, what is in the way")


class ListAgents(Arguments):
    """Arguments of ``list_agents``."""


class NotifyParent(Arguments):
    """Arguments of ``notify_parent``."""

    status: Literal["success", "failure"] = Field(description="whether the task is done")
    message: _Words = Field(description="what you did, or why it cannot be done")


class WaitForEvent(Arguments):
    """Arguments of ``wait_for_event``."""

    after: str | None = Field(
        None, max_length=200, description="the cursor of the last call: acknowledges the events up to it"
    )
    timeout_seconds: float = Field(
        WAIT, ge=0, le=LONGEST_WAIT, strict=False, description="how long to wait; progress is reported"
    )
    kinds: list[_Name] = Field([], max_length=20, description="only events of these kinds; none: all kinds")


class SpawnSubtree(Arguments):
    """Arguments of ``spawn_subtree``."""

    task: _Words = Field(description="the whole task, with all that the new lead must know")
    branch_name: _Name = Field(description="a short name for the new branch; no dots")


class SpawnWorker(Arguments):
    """Arguments of ``spawn_worker``."""

    name: _Name = Field(description="a short name for the worker")
    prompt: _Words = Field(description="its whole task; it works in your folder")
