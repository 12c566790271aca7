"""What the acting paths of the project take, and what they answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from swarm.http_door.models import Asked, TaskRequest
from swarm.http_door.project.models import NAME, Known, Queued

_Text = Annotated[str, Field(min_length=1, max_length=1 << 20, pattern=r"\S")]
_Line = Annotated[str, Field(max_length=1000)]
_Id = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
_Ids = Annotated[list[_Id], Field(min_length=1, max_length=1000)]
_Name = Annotated[str, Field(pattern=NAME, max_length=40)]
_Priority = Literal["interrupt", "high", "normal", "low"]
_Lease = Annotated[float, Field(gt=0, le=7 * 86_400)]


class ProjectTaskRequest(TaskRequest):
    """A task of the project."""

    agent: _Name | None = Field(default=None, description="A served agent, as its file configures it.")
    program: _Name | None = Field(default=None, description="An agent program; not together with `agent`.")
    role: _Name | None = Field(default=None, description="Whose instructions, rules and limits count.")
    worktree: bool = Field(default=False, description="It works on a branch in a worktree of its own; see `role`.")
    tries: int | None = Field(default=None, ge=1, le=20, description="How often a turn is started at most.")

    def how(self) -> dict[str, Any]:
        """Return the options of the task; what is not asked for is None."""
        mine = {"program": self.program, "role": self.role, "worktree": self.worktree or None, "tries": self.tries}
        return super().how() | mine


class MessageRequest(Asked):
    """A message to one agent."""

    body: _Text
    subject: _Line = ""
    priority: _Priority = "normal"
    reply_to: _Id | None = Field(default=None, description="The id of the message that this one answers.")


class SendRequest(MessageRequest):
    """A message."""

    to: Annotated[list[Annotated[str, Field(min_length=1, max_length=100)]], Field(min_length=1, max_length=100)] = (
        Field(description="Agents as `name` or `name@session`; `all`, `role:NAME`, `user`.")
    )


class SentKnown(BaseModel):
    """A message to one recipient."""

    id: str
    to: str
    note: str = Field(description="Why the recipient does not read it now; else empty.")


class SentReply(BaseModel):
    """What was sent; it is in every recipient's inbox."""

    sent: list[SentKnown]


class Stopped(BaseModel):
    """An agent after a stop."""

    stopped: list[str]
    survivors: list[str]


class Skipped(BaseModel):
    """What was left alone, and why."""

    name: str
    reason: str
    code: str


class Resumed(BaseModel):
    """An agent after a resume."""

    started: list[str]
    running: list[str]
    done: list[str]
    skipped: list[Skipped]


class AnswerRequest(Asked):
    """An answer to a request of an agent."""

    reason: _Line = Field(default="", description="The agent gets it.")
    always: bool = Field(default=False, description="For the rest of the agent's life.")
    rule: _Line = Field(default="", description="For all of this, such as `Bash(git *)`.")


class AllowRequest(AnswerRequest):
    """Leave for what an agent asks, or answers to its questions."""

    answers: list[Annotated[str, Field(max_length=10_000)]] = Field(
        default=[], max_length=20, description="For each of its questions your answer."
    )


class AddRequest(Asked):
    """A task for a queue."""

    text: _Text
    priority: _Priority = "normal"
    after: list[_Id] = Field(default=[], max_length=100, description="Tasks of the queue that must be done first.")
    id: _Id | None = Field(default=None, description="Of your choice; added twice under one id it is one task.")
    ttl_seconds: float = Field(default=0, ge=0, le=365 * 86_400, description="It is given up unless taken in time.")


class Added(BaseModel):
    """A task that is in a queue."""

    queue: str
    id: str
    duplicate: bool


class TakeRequest(Asked):
    """Which tasks are taken."""

    limit: int = Field(default=1, ge=1, le=100)
    lease_seconds: _Lease = Field(default=600, description="After this time others may take them.")
    wait_seconds: float = Field(default=0, ge=0, le=60, description="So long it is waited for one.")


class TakenTask(Queued):
    """A task that was taken."""

    attempts: int


class TakenTasks(BaseModel):
    """What was taken; without any, `claim` is null."""

    queue: str
    claim: str | None
    tasks: list[TakenTask]


class DoneRequest(Asked):
    """Tasks that are done."""

    ids: _Ids
    result: Annotated[str, Field(max_length=64 << 10)] = ""


class BackRequest(Asked):
    """Tasks that others may take."""

    ids: _Ids
    delay_seconds: float = Field(default=0, ge=0, le=365 * 86_400)
    reason: _Line = ""


class FailRequest(Asked):
    """Tasks that are given up."""

    ids: _Ids
    reason: Annotated[str, Field(min_length=1, max_length=1000)]


class ExtendRequest(Asked):
    """Tasks that need more time."""

    ids: _Ids
    lease_seconds: _Lease = 600


class Settled(BaseModel):
    """Tasks of a queue after a request."""

    queue: str
    ids: list[str]
    already: list[str] = Field(description="Those that were done before.")


class CodeReply(BaseModel):
    """A code with which a browser signs in, once."""

    code: str
    seconds: int


class BrowserRequest(Asked):
    """A browser that signs in."""

    code: Annotated[str, Field(min_length=1, max_length=100)]
    name: Annotated[str, Field(min_length=1, max_length=100)] = "browser"


class BrowserKnown(Known):
    """A browser that is signed in."""

    id: str
    name: str
    signed_in_at: str | None


class BrowserReply(BrowserKnown):
    """The token of a browser; it is told this once."""

    token: str


class Browsers(BaseModel):
    """All browsers that are signed in."""

    browsers: list[BrowserKnown]


class Ending(BaseModel):
    """The server ends; tasks go on."""

    message: str
