"""What each path of the project takes and gives; its OpenAPI document is made of these."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from swarm.http_door.models import LogEntry, RunOutput, Summary, TaskHappened, TaskReply

NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$"
ADDRESS = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}(@[A-Za-z0-9][A-Za-z0-9_-]{0,39})?$"
#: A file's name holds no more digits of a position.
MOST_EVENTS = 999_999_999_999_999


class Known(BaseModel):
    """The base of answers that are as `swarm … --json` prints them: more fields may come."""

    model_config = ConfigDict(extra="allow")


class Counts(BaseModel):
    """What goes on in the project."""

    agents: dict[str, int] = Field(description="How many agents are in each state.")
    tasks: dict[str, int] = Field(description="How many unfinished tasks are in each state.")
    sessions: int
    approvals: int = Field(description="So many requests and questions wait for an answer.")
    problems: list[str] = Field(description="What could not be looked at.")
    event: int = Field(description="The number of the newest event.")
    watchers: int


class ProjectConfig(BaseModel):
    """What of the configuration others need; the project has no model."""

    port: int
    model: None


class ProjectStatus(BaseModel):
    """How the server stands. What goes on in the project is for those who have a token; else it is null."""

    type: Literal["helper"]
    name: Literal["project"]
    interfaces: list[str]
    version: str
    state: Literal["starting", "idle", "working"]
    uptime_seconds: int
    current_task: None
    config: ProjectConfig
    project: Counts | None
    proof: str | None = Field(default=None, description="Where the header Swarm-Nonce asks for it: whose server it is.")
    log: list[LogEntry]


class AgentKnown(Known):
    """An agent."""

    name: str
    role: str
    session: str
    branch: str
    program: str
    state: str
    detail: str
    since: str | None
    unread: int | None


class Agents(BaseModel):
    """All agents."""

    agents: list[AgentKnown]


class Evidence(BaseModel):
    """One piece of evidence for the state of an agent."""

    source: str
    text: str
    at: str | None
    decides: bool


class AgentWhy(AgentKnown):
    """An agent with all the evidence of its state."""

    evidence: list[Evidence]


class SessionKnown(Known):
    """A session with its agents."""

    session: str
    base: str
    base_ref: str
    created_at: str | None
    state: str
    agents: list[AgentKnown]


class Sessions(BaseModel):
    """All sessions."""

    sessions: list[SessionKnown]


class ApprovalKnown(Known):
    """A request or a question of an agent, with its answer."""

    id: str
    session: str
    agent: str
    state: str
    tool: str
    summary: str
    asked_at: str | None
    answered_at: str | None
    by: str
    reason: str


class Approvals(BaseModel):
    """Requests and questions."""

    approvals: list[ApprovalKnown]


class MessageText(Known):
    """What a message says."""

    subject: str
    body: str


class MessageKnown(Known):
    """A message, where it is, and how far it came; `from` says who sent it."""

    id: str
    time: int = Field(description="Milliseconds since 1970.")
    to: str
    content: MessageText
    state: str
    number: int


class Messages(BaseModel):
    """Messages of one inbox."""

    inbox: str
    messages: list[MessageKnown]


class Used(Known):
    """What was used."""

    input: int
    output: int
    tokens: int
    cost: float | None


class Usage(Known):
    """Tokens, cost and time."""

    agents: list[dict[str, Any]]
    models: list[dict[str, Any]]
    total: Used


class ProjectTask(TaskReply):
    """A task of the project."""

    agent: str = Field(description="The served agent that does it; empty: none is named.")
    program: str
    place: Literal["session", "worktree"]
    by: str
    prompt_preview: str
    accepted_at: str | None


class Tasks(BaseModel):
    """Tasks, oldest first."""

    tasks: list[ProjectTask]


class TaskEvents(BaseModel):
    """What happened to a task."""

    task_id: str
    events: list[TaskHappened]


class TaskOutputs(BaseModel):
    """What the program of a task wrote, raw, in each run."""

    task_id: str
    runs: list[RunOutput]


class TaskHistory(BaseModel):
    """A page of the finished tasks, newest first."""

    tasks: list[Summary]
    page: int
    limit: int
    total: int


class EventKnown(BaseModel):
    """One event. Of the kind `gap` it stands for what is not in the log, and `after` says why."""

    number: int
    kind: str
    subject: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    at: str | None


class Events(BaseModel):
    """Events in a row."""

    events: list[EventKnown]
    last: int = Field(description="Read on after this number.")
    more: bool = Field(description="There are more already.")


class QueueDepth(BaseModel):
    """A queue, and how much is in it."""

    queue: str
    waiting: int
    taken: int
    given_up: int


class Queues(BaseModel):
    """All queues."""

    queues: list[QueueDepth]


class Queued(Known):
    """A task of a queue."""

    id: str
    text: str
    priority: str
    after: list[str]
    added_at: str | None


class QueuedTasks(BaseModel):
    """The tasks of a queue."""

    queue: str
    tasks: list[Queued]


After = Annotated[int, Field(ge=0, le=MOST_EVENTS)]
