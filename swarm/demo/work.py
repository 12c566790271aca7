"""The demo agent's work, by role: a few true facts or lines of code, each committed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from swarm.demo.repo import Trouble

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm.demo.me import Me
    from swarm.demo.repo import Repo

_MOST_FILES = 2000
_LARGEST_FILE = 1 << 20
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Step:
    """One step of work: its name, and a function that does it and returns the text for the notes."""

    title: str
    do: Callable[[], str]


class Work:
    """The work of one agent. Its notes are one file; a developer writes a small program as well."""

    def __init__(self, me: Me, repo: Repo) -> None:
        self._me = me
        self._repo = repo
        self.notes = self._free_name(f"notes/{me.actor}.md", f"{me.actor}-notes.md")
        self._also: list[str] = []

    def plan(self) -> list[Step]:
        """Return the steps of the role, as many as the task asks for."""
        kinds = {
            "researcher": (
                Step("list the project's files", self._list_files),
                Step("count the lines", self._count_lines),
                Step("read the history", self._read_history),
            ),
            "developer": (
                Step("write down the plan", self._write_plan),
                Step("write the code", self._write_code),
                Step("run it", self._run_code),
            ),
            "reviewer": (
                Step("see who else is at work", self._list_branches),
                Step("read their changes", self._read_changes),
                Step("look for overlaps", self._find_overlaps),
            ),
            "architect": (
                Step("map what is there", self._map_folders),
                Step("name the parts", self._name_parts),
                Step("cut the work", self._cut_work),
            ),
        }
        steps = list(kinds.get(self._me.role, (Step("make a plan", self._write_plan), *kinds["researcher"][:2])))
        wanted = len(steps) if self._me.task.steps is None else self._me.task.steps
        more = (self.another(f"look again ({n})") for n in range(1, wanted + 1))
        return [*steps, *more][:wanted]

    def another(self, text: str) -> Step:
        """Return one more step, about *text*."""

        def do() -> str:
            if self._me.role == "reviewer":
                return f"## {text}\n\n" + self._read_changes().partition("\n\n")[2]
            return f"## {text}\n\nLooked at {len(self._repo.files())} files on `{self._repo.branch}`. Noted.\n"

        return Step(text, do)

    def do(self, step: Step, key: str = "") -> str:
        """Do a step and commit it; return the commit, empty if it was done before.

        Args:
            key: names it over a resume.

        Raises:
            Trouble: it could not be done.
        """
        if self._repo.has(key):
            return ""
        self._also = []
        text = step.do()
        heading = "" if self._repo.place(self.notes).exists() else self._heading()
        self._repo.append(self.notes, f"{heading}{text.rstrip()}\n\n")
        subject = f"{self._me.actor}: {step.title}"
        return f"{self._repo.commit([*self._also, self.notes], subject, key)} {subject}"

    def note(self, text: str, who: str, key: str) -> str:
        """Note another agent's words and commit them; return the commit, empty if they were noted before.

        Raises:
            Trouble: it could not be done.
        """
        if self._repo.has(key):
            return ""
        heading = "" if self._repo.place(self.notes).exists() else self._heading()
        self._repo.append(self.notes, f"{heading}- {' '.join(text.split())}\n\n")
        subject = f"{self._me.actor}: note what {who} said"
        return f"{self._repo.commit([self.notes], subject, key)} {subject}"

    def summary(self) -> str:
        """Return a summary of the work so far."""
        mine = self._repo.try_ask("log", "--format=%h %s", "-n", "50", f"--grep=^{re.escape(self._me.actor)}: ")
        done = mine.splitlines()
        if not done:
            return f"Nothing is committed yet; my notes will be in {self.notes}."
        number = f"{len(done)} commit{'s' if len(done) > 1 else ''}"
        return f"{number} on {self._repo.branch}, the last is {done[0]}; my notes are in {self.notes}."

    def answer(self, question: str) -> str:
        """Answer truthfully: a reviewer gives its verdict, every role its work so far and the places of a name."""
        if self._me.role == "reviewer":
            verdict = " ".join(self._find_overlaps().partition("\n\n")[2].replace("- `", "`").split())
            return f"{verdict.removesuffix('.')}. {self.summary()}"
        asked = [word for word in re.findall(r"[A-Za-z_][\w./-]{3,}", question) if "." in word or "_" in word]
        found = [name for name in self._repo.files() if any(word.strip(".") in name for word in asked)][:_SHOWN]
        return (f"There is {', '.join(found)}. " if found else "") + self.summary()

    def edit(self, path: str, line: str, key: str = "") -> str:
        """Add a line to any file of the worktree and commit it; return the commit, empty if nothing changed."""
        if self._repo.has(key):
            return ""
        if self._repo.is_ignored(path):
            raise Trouble(f"git ignores {path}")
        self._repo.append(path, line + "\n")
        subject = f"{self._me.actor}: edit {path}"
        return f"{self._repo.commit([path], subject, key)} {subject}"

    # --- researcher -----------------------------------------------------------------------------

    def _list_files(self) -> str:
        files = self._repo.files()
        kinds = Counter(PurePosixPath(name).suffix or "(none)" for name in files)
        rows = [f"- `{kind}`: {count}" for kind, count in kinds.most_common(_SHOWN)]
        return "\n".join((f"## Files\n\n{len(files)} tracked files, by kind:\n", *rows))

    def _count_lines(self) -> str:
        sizes = {name: self._lines_of(name) for name in self._repo.files()[:_MOST_FILES]}
        largest = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))[:5]
        rows = [f"- `{name}`: {lines}" for name, lines in largest]
        return "\n".join((f"## Lines\n\n{sum(sizes.values())} lines of text; the largest files:\n", *rows))

    def _read_history(self) -> str:
        count = self._repo.try_ask("rev-list", "--count", "HEAD").strip()
        last = self._repo.try_ask("log", "--format=- %h %s", "-n", "5").rstrip()
        return f"## History\n\n{count} commits; the last ones:\n\n{last}"

    # --- developer ------------------------------------------------------------------------------

    def _write_plan(self) -> str:
        words = ("understand the task", "write the smallest thing that does it", "run it", "report")
        return "\n".join(("## Plan\n", *(f"{n}. {word}" for n, word in enumerate(words, 1))))

    def _code_file(self) -> str:
        return self._free_name(f"demo/{self._me.actor}.py", f"{self._me.actor}-demo.py")

    def _write_code(self) -> str:
        path = self._code_file()
        name = re.sub(r"\W+", "_", self._me.task.topic.lower(), flags=re.ASCII).strip("_") or "task"
        name = name if name[0].isalpha() else f"task_{name}"
        topic = self._me.task.topic.replace("\\", " ").replace('"', "'")
        code = f'def {name}() -> str:\n    """{topic}"""\n    return "{topic}: done"\n'
        if not self._repo.place(path).exists():
            self._repo.append(path, f"{code}\n\nif __name__ == '__main__':\n    print({name}())\n")
        else:
            self._repo.append(path, f"\n\n# again: {topic}\n")
        self._also = [path]
        return f"## Code\n\n`{path}` has `{name}()`."

    def _run_code(self) -> str:
        path = self._repo.place(self._code_file())
        if not path.exists():
            return "## Run\n\nThere is nothing to run."
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", str(path)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=10,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise Trouble(f"cannot run {path.name}: {error}") from error
        said = done.stdout.decode("utf-8", "replace").strip()
        return f"## Run\n\nExit status {done.returncode}; it said: {said}"

    # --- reviewer -------------------------------------------------------------------------------

    def _others(self) -> list[str]:
        """Return the other agents' branches, as the session's record names them."""
        mine = self._repo.branch
        try:
            named = [str(agent["branch"]) for agent in self._me.record()["agents"]]
        except (KeyError, TypeError):
            # Run by hand: the ending is all there is to go by.
            every = self._repo.try_ask("for-each-ref", "--format=%(refname:short)", "refs/heads/swarm/").split()
            named = [name for name in every if self._me.session and name.endswith(f"-{self._me.session}")]
        return [name for name in named if name != mine]

    def _changes(self, branch: str) -> str:
        return f"HEAD...refs/heads/{branch}"

    def _list_branches(self) -> str:
        rows = []
        for branch in self._others():
            log = self._repo.try_ask("log", "--format=%h %s", f"HEAD..refs/heads/{branch}").splitlines()
            rows.append(f"- `{branch}`: {len(log)} commits" + (f", last {log[0]}" if log else ""))
        return "\n".join(("## Branches\n", *(rows or ["Nobody else is at work in this session."])))

    def _read_changes(self) -> str:
        parts = []
        for branch in self._others():
            stat = self._repo.try_ask("diff", "--stat=70", self._changes(branch)).rstrip()
            parts.append(f"`{branch}`:\n\n```\n{stat or 'nothing yet'}\n```\n")
        return "\n".join(("## Changes\n", *(parts or ["There is nothing to read yet."])))

    def _find_overlaps(self) -> str:
        touched = Counter(
            name
            for branch in self._others()
            for name in self._repo.try_ask("diff", "--name-only", "-z", self._changes(branch)).split("\0")
            if name
        )
        twice = sorted(name for name, count in touched.items() if count > 1)
        if not twice:
            return f"## Verdict\n\n{len(touched)} files changed, none by two agents. Nothing blocks."
        return "\n".join(("## Verdict\n\nChanged by more than one agent:\n", *(f"- `{name}`" for name in twice)))

    # --- architect ------------------------------------------------------------------------------

    def _folders(self) -> Counter[str]:
        return Counter(name.split("/")[0] + "/" if "/" in name else "(top)" for name in self._repo.files())

    def _map_folders(self) -> str:
        rows = [f"- `{name}`: {count} files" for name, count in self._folders().most_common(_SHOWN)]
        return "\n".join(("## What is there\n", *rows))

    def _name_parts(self) -> str:
        words = [word for word in re.findall(r"\w+", self._me.task.topic.lower()) if len(word) > 3]
        parts = list(dict.fromkeys(words))[:4] or ["core"]
        return "\n".join(("## Parts\n", *(f"- **{part}**: one module, one test file" for part in parts)))

    def _cut_work(self) -> str:
        homes = [name for name, _ in self._folders().most_common(3)]
        pieces = (f"{n}. the part in `{home}`, with its tests" for n, home in enumerate(homes, 1))
        return "\n".join(("## Pieces, in order\n", *pieces))

    # --- files ----------------------------------------------------------------------------------

    def _heading(self) -> str:
        return f"# {self._me.actor}: {self._me.task.topic}\n\n"

    def _free_name(self, *names: str) -> str:
        """Return the first name that git would take and that can be a file of this worktree."""
        for name in names:
            try:
                self._repo.place(name)
            except (Trouble, OSError):
                continue
            if not self._repo.is_ignored(name):
                return name
        raise Trouble(f"there is no place for {names[0]}: git ignores it")

    def _lines_of(self, name: str) -> int:
        path = self._repo.root / name
        try:
            if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGEST_FILE:
                return 0
            data = path.read_bytes()
        except OSError:
            return 0
        return 0 if b"\0" in data else data.count(b"\n")
