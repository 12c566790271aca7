"""What each path takes and gives; the OpenAPI document is made of these."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

ID = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
TaskId = Annotated[str, Field(pattern=ID, max_length=64)]
_LONGEST_TEXT = 1 << 20
_LONGEST_SECONDS = 7 * 86_400
State = Literal["queued", "working", "idle", "cancelling", "completed", "failed", "cancelled"]
_Prompt = Annotated[str, Field(min_length=1, max_length=_LONGEST_TEXT, pattern=r"\S")]


class Asked(BaseModel):
    """The base of every request: unknown keys are refused, and no value becomes another kind of value."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Project(Asked):
    """What a task is part of."""

    name: str = Field(default="", max_length=200)
    prompt: str = Field(default="", max_length=_LONGEST_TEXT, description="Stands before the prompt of the task.")


class TaskRequest(Asked):
    """A task."""

    prompt: _Prompt = Field(description="What is to be done.")
    model: str | None = Field(default=None, min_length=1, max_length=100, description="Default: the agent's.")
    timeout_seconds: float | None = Field(default=None, gt=0, le=_LONGEST_SECONDS, description="Default: the agent's.")
    timeout: float | None = Field(default=None, gt=0, le=_LONGEST_SECONDS, description="Another name of the same.")
    session_id: TaskId | None = Field(default=None, description="Of an earlier task, to go on there; null: a new one.")
    project: Project | None = None
    env: dict[str, str] | None = Field(default=None, description="Variables for the program; none that is a secret.")
    hold: bool | None = Field(default=None, description="It stays idle after each turn until continue or end.")
    workdir: str | None = Field(
        default=None,
        min_length=1,
        max_length=4096,
        description="A folder that the setting `tasks.workdirs` allows; default: the folder of the task's session.",
    )

    @model_validator(mode="after")
    def _one_time(self) -> TaskRequest:
        if self.timeout is not None and self.timeout_seconds is not None:
            raise ValueError("timeout and timeout_seconds mean the same: give one of them")
        return self

    def how(self) -> dict[str, Any]:
        """Return the options of the task; what is not asked for is None."""
        preamble = None
        if self.project is not None:
            head = f"Project: {self.project.name}\n\n" if self.project.name.strip() else ""
            preamble = f"{head}{self.project.prompt}".strip()
        return {
            "model": self.model,
            "timeout": self.timeout_seconds or self.timeout,
            "session_id": self.session_id,
            "env": self.env,
            "hold": self.hold,
            "workdir": self.workdir,
            "preamble": preamble,
        }


class ContinueRequest(Asked):
    """The next prompt of a held task."""

    prompt: _Prompt


class ShutdownRequest(Asked):
    """How the agent is to end."""

    timeout_seconds: int = Field(default=30, ge=0, le=3600, description="So long a running task may go on.")
    force: bool = Field(default=False, description="Cancel a running task at once.")
    drain: bool = Field(default=False, description="Wait for a running task; without it that is a reason to refuse.")


class ConfigChange(Asked):
    """What of the configuration may change while the agent is served; what is left out stays."""

    model: str | None = Field(default=None, min_length=1, max_length=100, description="null: the program's own.")
    timeout: float = Field(default=1800.0, ge=0.1, le=_LONGEST_SECONDS)
    hold: bool = False
    tries: int | None = Field(default=None, ge=1, le=20, description="null: as the setting `tasks.tries` says.")
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @model_validator(mode="after")
    def _something(self) -> ConfigChange:
        if not self.model_fields_set:
            raise ValueError("nothing is to be changed: give model, timeout, hold, tries or log_level")
        return self


# --- answers ------------------------------------------------------------------------------------


class Failed(BaseModel):
    """Every refusal and failure; some codes have further fields, such as `current_task`."""

    model_config = ConfigDict(extra="allow")
    error: str
    message: str
    details: dict[str, Any]


class CurrentTask(BaseModel):
    """The task that the agent has."""

    id: str
    started_at: str | None
    prompt_preview: str


class LogEntry(BaseModel):
    """One thing that happened to the agent."""

    timestamp: str
    level: str
    component: str
    message: str


class StatusConfig(BaseModel):
    """What of the configuration others need."""

    port: int
    model: str | None
    program: str
    sandbox: str = Field(description="What boxes the program; `noop` with the reason why nothing does; or `none`.")


class Status(BaseModel):
    """How the agent stands."""

    type: Literal["agent"]
    name: str
    interfaces: list[str]
    version: str
    state: Literal["starting", "idle", "working", "error", "cancelling"]
    uptime_seconds: int
    current_task: CurrentTask | None
    config: StatusConfig
    log: list[LogEntry]
    proof: str | None = Field(default=None, description="Where the header Swarm-Nonce asks for it: whose server it is.")


class Config(BaseModel):
    """The configuration of the agent as it is now."""

    name: str
    port: int
    bind: str
    tls: bool
    program: str
    role: str | None
    telemetry: bool
    model: str | None
    timeout: float
    hold: bool
    tries: int | None
    log_level: str


class Accepted(BaseModel):
    """A task that no crash loses any more."""

    task_id: str
    session_id: str
    status: State


class TokenUsed(BaseModel):
    """Tokens that a task has used."""

    input: int
    output: int


class TaskError(BaseModel):
    """Why a task failed."""

    type: str
    message: str


class TaskReply(BaseModel):
    """A task as it is now. Fields without a value yet are null; `error` is there when it failed."""

    task_id: str
    state: State
    exit_code: int | None
    started_at: str | None
    completed_at: str | None
    duration_seconds: int | None
    output: str | None
    session_id: str
    token_usage: TokenUsed | None
    error: TaskError | None = None
    detail: str | None = Field(default=None, description="With `?detail=1`: the state as swarm itself knows it.")


class Changed(BaseModel):
    """A task after a request."""

    task_id: str
    state: State
    message: str | None = None
    output: str | None = None


class ShuttingDown(BaseModel):
    """The agent ends."""

    message: str
    drain_timeout: int


class Summary(BaseModel):
    """A finished task in the history."""

    task_id: str
    state: State
    session_id: str
    exit_code: int | None
    started_at: str | None
    completed_at: str | None
    duration_seconds: int | None
    prompt_preview: str
    token_usage: TokenUsed | None


class Page(BaseModel):
    """A page of the history, newest first."""

    tasks: list[Summary]
    page: int
    limit: int
    total: int


class RunOutput(BaseModel):
    """What the program wrote in one run, raw; of long output the end."""

    run: str
    stdout: str
    stderr: str


class Debug(BaseModel):
    """What the program of a task wrote; at the top that of the last run."""

    task_id: str
    stdout: str
    stderr: str
    runs: list[RunOutput]


class TaskHappened(BaseModel):
    """One event of a task."""

    number: int
    timestamp: str
    kind: str
    state: str
    detail: str


class ReportedUse(BaseModel):
    """What the program of a task reported of itself: sums."""

    requests: int
    errors: int
    request_ms: int
    tools: int
    cost: float
    input: int
    output: int
    cache_read: int
    cache_write: int
    active_seconds: float


class Taken(BaseModel):
    """A report was taken."""

    partialSuccess: dict[str, Any]  # noqa: N815  # the name is the standard's


class Details(TaskReply):
    """A finished task with all that is known of it."""

    reported: ReportedUse | None = Field(default=None, description="With `telemetry: true` in the agent's file.")
    prompts: list[str]
    events: list[TaskHappened]
    logs: list[RunOutput]
