"""Follow a task: what happens to it, what its program says and is told, and what it asks. Following changes nothing."""

from __future__ import annotations

import json
import os
import select
from typing import TYPE_CHECKING

from swarm.approvals import decide
from swarm.approvals.store import Approvals
from swarm.approvals.values import OF_TASKS
from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.machine.inbox_watch import Inbox
from swarm.machine.run_folder import runfiles
from swarm.programs import turns
from swarm.programs.reading.transcript import EntryKind, Speaker, TranscriptEntry
from swarm.programs.reading.transcripts import open_transcript
from swarm.tasks import places
from swarm.tasks.bench import program_of
from swarm.tasks.values import Place, TaskEvent

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.approvals.values import Approval
    from swarm.programs.reading.transcripts import Transcript
    from swarm.tasks.bench import Bench
    from swarm.tasks.values import AgentTask, TaskRun

    News = TaskEvent | TranscriptEntry | Approval

_LOOK_AGAIN = 0.5
_AT_ONCE = 1 << 20


class Following:
    """What is new of one task since the last look.

    Args:
        all_of_it: begin with what was there before; else with what comes now.
    """

    def __init__(self, bench: Bench, task: AgentTask, *, all_of_it: bool) -> None:
        self._bench = bench
        self._id = task.id
        self._since_ms = task.created_ms
        self._seen = 0
        self._told: dict[str, str] = {}
        self._source = ""
        self._transcript: Transcript | None = None
        self._raw: dict[str, int] = {}
        self._watch: Inbox | None = None
        self._watched: tuple[str, ...] = ()
        if not all_of_it:
            self.more(task)

    def more(self, task: AgentTask) -> list[News]:
        """Return the news, in order within each kind: what was said before what came of it."""
        self._look_at(task)
        return [*self._entries(task), *self._questions(task), *self._events(task)]

    def wait(self) -> None:
        """Wait until there may be more."""
        fds = self._watch.watch() if self._watch is not None else ()
        select.select(fds, [], [], _LOOK_AGAIN)
        if self._watch is not None:
            self._watch.drain()

    def _look_at(self, task: AgentTask) -> None:
        """Watch the folders of the run that there is now."""
        run = task.runs[-1] if task.runs else None
        layout = self._bench.world.layout
        folders = [self._bench.store.folder(task.id), layout.approvals]
        folders += [places.streams(self._bench, task, run)] if run is not None else []
        wanted = tuple(map(os.fspath, folders))
        if wanted != self._watched:
            if self._watch is not None:
                self._watch.close()
            self._watch, self._watched = Inbox("", *wanted), wanted

    def close(self) -> None:
        """Watch no more."""
        if self._watch is not None:
            self._watch.close()

    # --- what there is --------------------------------------------------------------------------

    def _events(self, task: AgentTask) -> list[TaskEvent]:
        fresh = [one for one in self._bench.store.events(task) if one.number > self._seen]
        self._seen = fresh[-1].number if fresh else self._seen
        return fresh

    def _questions(self, task: AgentTask) -> list[Approval]:
        """Return the requests of the task that came, and those that are over."""
        mine = {(OF_TASKS, task.id)}
        mine |= {(task.session_id, task.role)} if task.place is Place.WORKTREE else set()
        found = []
        for one in decide.look(Approvals(self._bench.world.layout.approvals)):
            asked = one.question
            is_new = asked.asked_ms >= self._since_ms and self._told.get(asked.id) != one.standing
            if (asked.session, asked.agent) in mine and is_new:
                self._told[asked.id] = one.standing
                found.append(one)
        return found

    def _entries(self, task: AgentTask) -> list[TranscriptEntry]:
        """Return what was said since; of a program without a record of its own what it wrote."""
        run = task.runs[-1] if task.runs else None
        if run is None:
            return []
        if not program_of(task).speaks:
            return [entry for one in task.runs for entry in self._written(task, one)]
        folder = places.run_dir(self._bench, task, run)
        source = runfiles.read(os.fspath(folder), runfiles.RECORD)
        name = json.dumps({key: value for key, value in (source or {}).items() if key != "run_dir"}, sort_keys=True)
        if source is None:
            return []
        if name != self._source:
            self._source, self._transcript = name, open_transcript(source)
        said = self._transcript.more() if self._transcript is not None else []
        return [one for one in said if not one.at_ms or one.at_ms >= self._since_ms]

    def _written(self, task: AgentTask, run: TaskRun) -> list[TranscriptEntry]:
        found: list[TranscriptEntry] = []
        for name in (turns.OUT, turns.ERR):
            path = places.streams(self._bench, task, run) / name
            text = self._grown(path)
            failed = name == turns.ERR
            found += [
                TranscriptEntry(0, Speaker.PROGRAM if failed else Speaker.AGENT, EntryKind.TEXT, line, failed=failed)
                for line in text.splitlines()
            ]
        return found

    def _grown(self, path: Path) -> str:
        """Return the whole lines that came to a file, or all where nothing more will come."""
        at = self._raw.get(str(path), 0)
        try:
            with files.open_regular(path) as file:
                file.seek(at)
                data = file.read(_AT_ONCE)
        except (OSError, SwarmError):
            return ""
        whole = data[: data.rfind(b"\n") + 1] or (data if len(data) == _AT_ONCE else b"")
        self._raw[str(path)] = at + len(whole)
        return whole.decode("utf-8", "replace")
