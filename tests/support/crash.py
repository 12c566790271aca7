"""Crash trials: stop a command at its n-th change of the file system, run the next command, look at everything.

A scenario is set up once and photographed.  Each trial puts the photograph back at the same path (git
keeps absolute paths), runs the command under the tracer with one fault in it, then the next command,
and compares *every* file, folder, link and mode with two references: how it was before, and how it is
after a run without a fault.  Anything else is a violation: half a set, a lock file, a temporary file,
an empty folder, a byte of the user's that changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filelock  # noqa: F401  # everything the traced child uses is loaded before it is forked
import yaml  # noqa: F401

import swarm.git.repository
import swarm.kit.host
import swarm.merging.checkout
import swarm.merging.merge
import swarm.programs.processes
import swarm.programs.registry
import swarm.project.config.file
import swarm.project.lock
import swarm.project.statedir
import swarm.roles.find
import swarm.sessions.cleanup.cleanup
import swarm.sessions.create.create
import swarm.sessions.listing
import swarm.sessions.marks
import swarm.sessions.restore
import swarm.terminal.tmux
import swarm.worktrees.setup.commands
import swarm.worktrees.setup.preparing
import swarm.worktrees.trees.trees  # noqa: F401
from swarm import Swarm, SwarmError
from swarm.approvals.grants import VARIABLE
from swarm.cli.signals import watched
from swarm.git.content.walk import walk
from swarm.kit.errors import Interrupted
from swarm.project.layout import Layout
from swarm.testing.lab import Lab, environment
from swarm.worktrees import pool
from tests.support.share import FULL
from tests.support.tracer import Action, Outcome, trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

_ERROR, _INTERRUPTED, _WRONG = 3, 4, 97
_OPERATION = re.compile(r"\d{8}T\d{6}-\d{3}[0-9a-f]{8}")
_HEADS = re.compile(r"/\.git/(logs/)?refs/heads/")
_OBJECT = re.compile(r"\b[0-9a-f]{40}\b")
_LATEST_S = 3.0  # a recovery waits at most two seconds for a live git
_MOST_TOLD = 20
_AS_LONG_AS = 10  # recoveries with nothing to do: how slow the machine is just now

_NOT_NEEDED = re.compile(r"my project/\.git/worktrees/[^/]+-[^/]+/(logs|logs/HEAD|ORIG_HEAD)")

Entry = tuple[int, str]
Picture = dict[str, Entry]


# --- looking ---------------------------------------------------------------------------------------


def picture(top: Path) -> Picture:
    """Return path → (mode, content) of everything below a folder but git's objects."""
    found: Picture = {}
    folders = [(os.fspath(top), "")]
    while folders:
        here, prefix = folders.pop()
        with os.scandir(here) as entries:
            for entry in entries:
                path = prefix + entry.name
                mode = entry.stat(follow_symlinks=False).st_mode
                content = ""
                if stat.S_ISDIR(mode):
                    if path.endswith(".git/objects"):
                        continue
                    folders.append((entry.path, path + "/"))
                elif stat.S_ISLNK(mode):
                    content = os.readlink(entry.path)
                elif stat.S_ISREG(mode):
                    with open(entry.path, "rb") as file:
                        content = file.read().decode("latin-1")
                found[path] = (mode, content)
    return found


#: What the time of day decides: (pattern of paths, pattern in the content, what is put instead).
_PASSING: tuple[tuple[str, str, str], ...] = (
    (r"/logs/", r"> \d+ [+-]\d{4}", "> TIME"),
    (r"/session\.json$", r'("created_ms": )\d+', r"\1TIME"),
    (r"/refs/swarm/salvage/.*/(index|work|keep|manifest)$", r"^[0-9a-f]{40}", "OBJECT"),
    (r"/run/[^/]+/setup\.json$", r'"seconds": [0-9.e-]+', '"seconds": TIME'),
    (r"/\.swarm/lock$", r"(?s).*", ""),
    (r"/history\.jsonl$", r"(?s).*", ""),
    # What swarm writes to the user has its time in it; how those files are written is tested with the bus.
    (r"/messages/inbox/user/.*(\.log|events)$", r"(?s).*", ""),
)
#: What a run alone has in its records: times, its process, and what a file's inode and times have been hashed to.
_OF_A_RUN = ((r"\b[0-9a-f]{64}\b", "HASH"), (r"\b\d{13,19}\b", "TIME"), (r'("pid": )\d+', r"\1PID"))
_NAMES = (
    (_OPERATION, "ID"),
    (re.compile(r"(?<=/objects/)[0-9a-f]{2}(/[0-9a-f]{38})?(?=/|$)"), "OBJECT"),
    (re.compile(r"[0-9a-f]{40}|\d{10,}"), "N"),
    (re.compile(r"((?<=/tmp_obj_)|(?<=\.))[A-Za-z0-9_]{6,10}(?=/|$|\.tmp)"), "TMP"),
    (re.compile(r"(?<=/tmp/swarm-)[a-z0-9_]{8}"), "TMP"),
)
#: swarm's own folder outlives what was made in it, and its lock file is never deleted.
_HOUSE = re.compile(
    r"my project/\.swarm(/\.gitignore|/\.swarm-dir\.txt|/lock|/journal|/journal/history\.jsonl|/sessions"
    r"|/setup-failed\.log)?"
    # A copy of the record, for the day on which that is lost: written after the commit, where it can be.
    r"|my project/\.git/worktrees/[^/]+/swarm-session\.json"
    # An empty folder of git 2.46 and newer, made by whichever git comes first.
    r"|my project/\.git/worktrees/[^/]+/refs"
)


def normal(found: Picture, indexes: Mapping[str, str] | None = None) -> Picture:
    """Return a picture without what differs from run to run: ids, times, and what an index knows of inodes."""
    result: Picture = {}
    for path, (mode, content) in found.items():
        if _HOUSE.fullmatch(path) or path.startswith(("tmp/", "my project/.swarm/pool")):
            continue  # the machine empties its folder for temporary files; a start may do with or without the pool
        lasting = content if indexes is None else indexes.get(path, content)
        for where, what, instead in _PASSING:
            if re.search(where, path):
                lasting = re.sub(what, instead, lasting)
        result[_OPERATION.sub("ID", path)] = (mode, _OPERATION.sub("ID", lasting))
    return result


def differences(found: Picture, wanted: Picture) -> list[str]:
    """Say how two pictures differ, a line each."""
    lines = []
    for path in sorted(found.keys() | wanted.keys()):
        if path not in wanted:
            lines.append(f"left over: {path} {_short(found[path])}")
        elif path not in found:
            lines.append(f"missing: {path}")
        elif found[path] != wanted[path]:
            lines.append(f"changed: {path}: {_short(wanted[path])} became {_short(found[path])}")
    return lines


def _short(entry: Entry) -> str:
    mode, content = entry
    return f"{mode:o} {content[:300]!r}"


def _know_again(lab: Lab) -> None:
    """Let the notes about removed worktrees tell of the copies: those in the trash, and those in the pool."""
    for note in (lab.root / ".swarm").glob(f"*/*/{pool.NOTE}"):
        record = json.loads(note.read_bytes())
        for item in record["targets"]:
            tree = note.parent / f"{pool.name_of(item)}.tree"
            if not tree.is_dir():
                continue
            index = tree.with_suffix(".admin") / "index"
            env = {"GIT_DIR": str(lab.root / ".git"), "GIT_WORK_TREE": str(tree), "GIT_INDEX_FILE": str(index)}
            lab.git("update-index", "-q", "--refresh", env=env, check=False)
            item["fingerprint"] = walk(tree).fingerprint
            record["inode"] = tree.stat().st_ino
        note.write_text(json.dumps(record))


def torn(lab: Lab) -> list[str]:
    """Return what is in the pool that is no whole worktree."""
    folder = lab.root / ".swarm/pool"
    whole = {one.name for one in pool.parked(Layout(lab.root))}
    return sorted(name for name in (os.listdir(folder) if folder.is_dir() else ()) if name not in whole)


# --- the place ---------------------------------------------------------------------------------------


class Bench:
    """One fixed folder in which photographs are put up and trials run."""

    def __init__(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="swarm-crash-")).resolve()
        self.site = self.top / "site"
        self.images = self.top / "images"
        self.images.mkdir()
        self._made: dict[str, Setup] = {}

    def close(self) -> None:
        """Delete it all."""
        shutil.rmtree(self.top, ignore_errors=True)

    def lab(self) -> Lab:
        """Return the lab at the site, as it is now."""
        lab = Lab.__new__(Lab)
        lab.root = self.site / "my project"
        lab.env = {**environment(self.site / "home"), "TMPDIR": str(self.site / "tmp")}
        return lab

    def save(self, name: str) -> None:
        """Photograph the site."""
        shutil.rmtree(self.images / name, ignore_errors=True)
        shutil.copytree(self.site, self.images / name, symlinks=True)

    def load(self, name: str) -> Lab:
        """Put a photograph up."""
        _remove(self.site)
        shutil.copytree(self.images / name, self.site, symlinks=True)
        lab = self.lab()
        tempfile.tempdir = lab.env["TMPDIR"]  # of the traced child, which is our fork
        for tree in sorted((lab.root / ".worktrees").glob("*/.git")):
            # A copy has other inodes; an index that knows these is as it would be in real life.
            lab.git("update-index", "-q", "--refresh", cwd=tree.parent, check=False)
        _know_again(lab)
        return lab

    def setup(self, scenario: Scenario) -> Setup:
        """Return a scenario's photographs and references; made once."""
        if scenario.name not in self._made:
            self._made[scenario.name] = Setup(self, scenario)
        return self._made[scenario.name]


def _remove(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass
    except OSError:
        subprocess.run(["chmod", "-R", "u+rwX", str(folder)], check=False)
        shutil.rmtree(folder)


def build_user(folder: Path, *, packed: bool = False) -> Lab:
    """Make a repository in which the user has things of every kind under way."""
    (folder / "tmp").mkdir(parents=True)
    lab = Lab(folder)
    lab.env["TMPDIR"] = str(folder / "tmp")
    lab.git("branch", "users/topic")
    lab.git("tag", "-a", "v1", "-m", "one")
    lab.git("tag", "light")
    lab.write({"README": "stashed\n"})
    lab.git("stash", "push", "--quiet", "-m", "for later")
    elsewhere = folder / "elsewhere"
    lab.git("worktree", "add", "--quiet", "-b", "users/elsewhere", str(elsewhere))
    lab.write({"README": "theirs, dirty\n", "loose.txt": "untracked\n"}, elsewhere)
    lab.git("config", "branch.users/topic.description", "a topic")
    (lab.root / ".git/info/exclude").write_bytes(b"# mine\n*.swp\n/no line end")
    if packed:
        lab.git("pack-refs", "--all")
        lab.git("repack", "-a", "-d", "--quiet")
    else:
        lab.git("branch", "swarm/of-the-user")
    lab.write({"src/app.py": "print('staged')\n"})
    lab.git("add", "src/app.py")
    lab.write({"run.sh": "#!/bin/sh\nunstaged\n", "notes": "untracked\n", "secret/key": "ignored\n"})
    return lab


def grant(lab: Lab) -> None:
    """Let what is run in a lab act as the user does, who would type it: the traced child has no terminal."""
    token = lab.person.approvals.grant("crash")
    (lab.root.parent / "grant").write_text(token)


def granted(lab: Lab) -> dict[str, str]:
    """Return the token of the lab's grant as it goes into the environment."""
    token = lab.root.parent / "grant"
    return {VARIABLE: token.read_text()} if token.exists() else {}


# --- scenarios -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scenario:
    """A command to be interrupted.

    Attributes:
        build: sets the repository up in a folder.
        act: the command.
        goes_on: once begun it is finished by the next command, also after an error.
        drops: it is there to make commits go.
        may_log: logs in which git may leave a line about a branch that it was killed before moving.
        undo: after it has been done, brings the agents' work back; compared with what was there.
    """

    name: str
    build: Callable[[Path], Lab]
    act: Callable[[Swarm], object]
    goes_on: bool = False
    undo: Callable[[Swarm], object] | None = None
    drops: bool = False
    may_log: str = ""
    flags: Mapping[str, object] = field(default_factory=dict)


class Setup:
    """A scenario's photograph, its references, and how many points it has."""

    def __init__(self, bench: Bench, scenario: Scenario) -> None:
        self.bench, self.scenario = bench, scenario
        self.image = scenario.name
        _remove(bench.site)
        scenario.build(bench.site)
        bench.save(self.image)
        lab = bench.load(self.image)
        self.commits = all_commits(lab)
        self.raw = picture(bench.site)
        self.before = self.look(lab)
        child = Child(self.act)
        self.outcome = trace(child)
        words = child.words()
        self.count = len(self.outcome.points)
        assert self.outcome.exit_code in {0, _ERROR}, words
        self.await_deletion(lab)
        self.after = self.look(lab)
        self.seen: set[str] = set()  # states that were used after a recovery, and are well
        self.well: dict[str, str] = {}  # state that a stop left → how the next command left it
        self.stopped: Counter[str] = Counter()
        self.undone: Picture = {}
        if scenario.undo is not None:
            scenario.undo(self.swarm(lab))
            self.undone = self.look(lab)
        self.sound()

    def sound(self) -> None:
        """Make sure that the references are worth something."""
        assert not [path for path in self.after if re.search(r"(?<!/reader)\.lock$|\.tmp$|/trash|/journal/", path)]
        if self.undone:
            trees = [path for path in self.before if path.startswith("my project/.worktrees/")]
            trees += [
                path for path in self.before if re.search(r"/\.git/worktrees/[^/]+/(index|HEAD|MERGE|rebase)", path)
            ]
            assert {path: self.undone.get(path) for path in trees} == {path: self.before[path] for path in trees}

    def swarm(self, lab: Lab) -> Swarm:
        """Open the repository as the user would."""
        flags = {"cleanup.background": False, **self.scenario.flags}
        return Swarm.open(lab.root, environ=lab.env | granted(lab), flags=flags)

    def await_deletion(self, lab: Lab) -> None:
        """Wait for what the command has left to a process; its empty folder goes with the next command."""
        if self.scenario.flags.get("cleanup.background"):
            self.swarm(lab).recover()

    def act(self) -> object:
        """Run the command."""
        return self.scenario.act(self.swarm(self.bench.lab()))

    def look(self, lab: Lab) -> Picture:
        """Take a picture of the site in normal form."""
        found = picture(self.bench.site)
        looked = normal(found, index_texts(lab, found))
        for path, (mode, content) in looked.items():
            if _HEADS.search(path):  # a commit that the command makes has the time of day in its name
                looked[path] = (mode, _OBJECT.sub(self._old_or_new, content))
        return looked

    def state(self) -> str:
        """Return the same text for states of the site that differ in nothing which a command could notice.

        These are all files, also those that outlive every command, and what kinds of objects git has: not
        how many, since several gits make them at the same time.
        """
        house = [
            (path, mode, "" if path.endswith((".jsonl", "/lock")) else content)
            for path, (mode, content) in sorted(picture(self.bench.site).items())
            if _HOUSE.fullmatch(path)
        ]
        objects = {
            (os.path.basename(path) == "pack", name.startswith("tmp_"), bool(os.path.getsize(f"{path}/{name}")))
            for path, _, names in os.walk(self.bench.lab().root / ".git/objects")
            for name in names
        }
        looked = [
            (_in_general(path), mode, self._lasting(content) if _is_ours(path) else content)
            for path, (mode, content) in sorted(self.look(self.bench.lab()).items())
        ]
        return hashlib.sha256(repr((looked, house, sorted(objects))).encode()).hexdigest()

    def _lasting(self, content: str) -> str:
        """Return a record of swarm's, or a ref to be, without what no two runs have in common."""
        for what, instead in _OF_A_RUN:
            content = re.sub(what, instead, content)
        return _OBJECT.sub(self._old_or_new, content)

    def _old_or_new(self, oid: re.Match[str]) -> str:
        known = oid[0] in self.commits or not oid[0].strip("0")
        return oid[0] if known else "NEW"


def index_texts(lab: Lab, found: Picture) -> dict[str, str]:
    """Return what git reads out of the agents' indexes; the user's own are compared byte for byte."""
    texts = {}
    for path in found:
        if path.startswith("my project/.git/worktrees/") and path.endswith("/index") and "/elsewhere/" not in path:
            index = lab.root.parent / path
            gitdir = found.get(path.removesuffix("index") + "gitdir")
            if gitdir is None:
                continue
            texts[path] = lab.git(
                *("--git-dir", str(index.parent), "ls-files", "--stage", "-v"),
                check=False,
                env={"GIT_WORK_TREE": os.path.dirname(gitdir[1].strip()), "GIT_OPTIONAL_LOCKS": "0"},
            )
    return texts


def all_commits(lab: Lab) -> frozenset[str]:
    """Return every commit in the repository, also those that only a log or nothing names."""
    out = lab.git("cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)")
    return frozenset(line.split()[1] for line in out.splitlines() if line.startswith("commit "))


def kept_commits(lab: Lab) -> frozenset[str]:
    """Return every commit that a ref, a worktree's HEAD or a log still names."""
    return frozenset(lab.git("rev-list", "--all", "--reflog").split())


def _is_ours(path: str) -> bool:
    """Whether a file is a record of swarm's, or a ref to be."""
    return "/.swarm/" in path or path.endswith(".lock")


def _in_general(path: str) -> str:
    """Return a path without what differs from run to run: ids of operations, objects, times, temporary names."""
    for what, instead in _NAMES:
        path = what.sub(instead, path)
    return path


# --- one trial -------------------------------------------------------------------------------------------


class Child:
    """What the traced process does; its last words come through a pipe, its verdict as the exit code."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act
        self._read, self._write = os.pipe()

    def __call__(self) -> int:
        """Act, in the child."""
        acted = False
        try:
            with watched():
                self._act()
                acted = True
        except Interrupted as error:
            if acted:
                return 0  # the signal found nobody who was still at it
            return self._say(_INTERRUPTED, f"{error.code}: {error}")
        except SwarmError as error:
            return self._say(_ERROR, f"{error.code}: {error} {getattr(error, '__notes__', '')}")
        except BaseException:  # noqa: BLE001  # it is what we look for
            return self._say(_WRONG, traceback.format_exc())
        return 0

    def _say(self, code: int, text: str) -> int:
        os.write(self._write, text.encode(errors="backslashreplace")[:4000])
        return code

    def words(self) -> str:
        """Return what the child said at its end."""
        os.close(self._write)
        with os.fdopen(self._read, "rb") as pipe:
            return pipe.read().decode()


@dataclass
class Tally:
    """Counts of trials, to be quoted."""

    scenario: str
    action: str
    points: int = 0
    trials: int = 0
    kills: int = 0
    faults: int = 0
    signals: int = 0
    not_reached: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    slowest_recovery_ms: int = 0
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON shape."""
        facts = {name: getattr(self, name) for name in self.__dataclass_fields__}
        counts = {**facts, "ended": dict(self.ended), "violations": len(self.violations)}
        return {**counts, "found": self.violations[:_MOST_TOLD]}


_KILLS = {Action.KILL_TREE, Action.KILL_SELF, Action.KILL_ROOT}
_SIGNALS = {Action.TERM_ROOT, Action.INT_ROOT}


class Trials:
    """Runs trials of one scenario and action, and counts."""

    def __init__(self, setup: Setup, action: str, *, once: bool = False) -> None:
        """Count from zero.

        Args:
            once: what was tried with a state, and is well, is not tried again with the same state.
        """
        self.setup = setup
        self.lab = setup.bench.lab()
        self._once = once
        self._use(action)
        self.tally = Tally(setup.scenario.name, action, points=setup.count)

    def _use(self, action: str) -> None:
        name, _, sticky = action.partition("+")
        self.action = Action(name)
        self.sticky = bool(sticky)

    def run(self, points: Iterable[int], *, stop_at_first: bool = False) -> Tally:
        """Try each point."""
        start = time.monotonic()
        for at in points:
            found = self._judged(at)
            self.tally.violations += found
            if found and stop_at_first:
                break
        self.tally.seconds = time.monotonic() - start
        return self.tally

    def _judged(self, at: int) -> list[str]:
        self.setup.bench.load(self.setup.image)
        outcome, words = self.stop(self.setup.act, at)
        problems = list(self.judge(outcome, words, at))
        point = outcome.points[at - 1] if len(outcome.points) >= at else None
        where = f"{point.syscall} {point.path} in {'swarm' if point.is_root else 'git'}" if point else "?"
        head = f"{self.tally.scenario}, {self.tally.action} at {at} ({where})"
        return [f"{head}: {problem}" for problem in problems]

    def stop(self, act: Callable[[], object], at: int) -> tuple[Outcome, str]:
        """Run with the fault at a point."""
        child = Child(act)
        outcome = trace(child, at=at, action=self.action, sticky=self.sticky, timeout=30)
        self.tally.trials += 1
        if not outcome.fired:
            self.tally.not_reached += 1
        elif self.action in _KILLS:
            self.tally.kills += 1
        elif self.action in _SIGNALS:
            self.tally.signals += 1
        else:
            self.tally.faults += 1
        return outcome, child.words()

    def judge(self, outcome: Outcome, words: str, at: int) -> Iterator[str]:
        """Run the next command and say everything that is not as it must be."""
        if outcome.timed_out:
            yield "it hung"
        if outcome.exit_code not in {None, 0, _ERROR, _INTERRUPTED}:
            yield f"it ended with {outcome.exit_code}: {words}"
        state = self._rest()
        ended = self.setup.well.get(state, "") if state else ""
        if not ended:
            problems: list[str] = []
            ended = self._mended(at, problems)
            yield from problems
            if state and not problems:
                self.setup.well[state] = ended
        self.tally.ended[ended] += 1
        if ended != "lost":
            yield from self._honest(outcome, words, ended, at)

    def _mended(self, at: int, problems: list[str]) -> str:
        """Run the next command, note what is not as it must be, and return which state it has led to."""
        try:
            problems += self._recover()
        except Exception:  # noqa: BLE001  # whatever it is, it must not be
            problems.append(f"the next command failed: {traceback.format_exc(limit=-4)}")
            return "lost"
        problems += (f"in the pool: {name}" for name in torn(self.lab))
        ended, wrong = self._which_state()
        problems += wrong
        problems += self._repository(ended, fsck=FULL or at % 3 == 0)
        if ended != "neither" and (FULL or at % 7 == 0):
            problems += self._usable(ended)
        return ended

    def _rest(self) -> str:
        """Return the state that is left, if nothing goes on in it: with the same one the next command does the same."""
        if not self._once or self.action is Action.KILL_ROOT or self.setup.scenario.flags.get("cleanup.background"):
            return ""
        return f"{self.action in _KILLS | _SIGNALS} {self.setup.state()}"

    def _usable(self, ended: str) -> Iterator[str]:
        """What was done can be taken back, what was not can be done."""
        state = self.setup.state() if self._once else ""
        if state and state in self.setup.seen:
            return
        problems: list[str] = []
        if ended == "after" and self.setup.undone:
            problems += self._brings_back()
        elif ended == "before":
            problems += self._can_be_done_again()
        yield from problems
        if state and not problems:
            self.setup.seen.add(state)

    def _recover(self) -> Iterator[str]:
        start = time.monotonic()
        self.setup.swarm(self.lab).recover()
        took = time.monotonic() - start
        self.tally.slowest_recovery_ms = max(self.tally.slowest_recovery_ms, int(took * 1000))
        first = picture(self.setup.bench.site)
        start = time.monotonic()
        again = self.setup.swarm(self.lab).recover()
        idle = time.monotonic() - start
        if took > _LATEST_S + _AS_LONG_AS * idle:
            yield f"the recovery took {took:.1f} s, one with nothing to do {idle:.1f} s"
        if again.rolled_back or again.finished:
            yield f"the second recovery still had something to do: {again}"
        second = picture(self.setup.bench.site)
        for path in ("my project/.swarm/lock",):
            first.pop(path, None)
            second.pop(path, None)
        for line in differences(second, first):
            yield f"the second recovery: {line}"

    def _which_state(self) -> tuple[str, list[str]]:
        """Return before, after or neither, and for neither what is not as it was or should be."""
        found = self.setup.look(self.lab)
        as_before = [line for line in differences(found, self.setup.before) if not self._may_be(line)]
        if not as_before:
            return "before", []
        as_after = differences(self._forgiven(found), self._forgiven(self.setup.after))
        if not as_after:
            return "after", []
        name, lines = min((("before", as_before), ("after", as_after)), key=lambda item: len(item[1]))
        return "neither", [f"all or nothing (nearest: {name}): {line}" for line in lines[:12]]

    def _may_be(self, line: str) -> bool:
        pattern = self.setup.scenario.may_log
        return bool(pattern) and re.match(rf"changed: my project/\.git/logs/{pattern}:", line) is not None

    def _forgiven(self, found: Picture) -> Picture:
        """Leave out what git itself does without when it cannot be written: logs of a HEAD, and ORIG_HEAD."""
        if self.action in _KILLS | _SIGNALS:
            return found
        return {path: entry for path, entry in found.items() if not _NOT_NEEDED.fullmatch(path)}

    def _honest(self, outcome: Outcome, words: str, ended: str, at: int) -> Iterator[str]:
        same = self.setup.before == self.setup.after
        if outcome.exit_code == 0 and ended != "after" and not same:
            yield f"it reported success, and the state is {ended!r}"
        said_so = "stays" in words or self.setup.scenario.goes_on
        if outcome.exit_code == _INTERRUPTED and at >= self.setup.count - 1:
            said_so = True  # the signal came when all was done, and nobody was left to notice
        if outcome.exit_code in {_ERROR, _INTERRUPTED} and ended == "after" and not said_so:
            yield f"it reported failure, and yet it is done: {words}"

    def _repository(self, ended: str, *, fsck: bool) -> Iterator[str]:
        if fsck:
            try:
                self.lab.git("fsck", "--connectivity-only", "--no-dangling")
            except AssertionError as error:
                yield str(error)
        if ended != "before" and not self.setup.scenario.drops:
            lost = self.setup.commits - kept_commits(self.lab)
            if lost:
                yield f"commits that nothing names any more: {sorted(lost)}"

    def _brings_back(self) -> Iterator[str]:
        assert self.setup.scenario.undo is not None
        try:
            self.setup.scenario.undo(self.setup.swarm(self.lab))
        except Exception:  # noqa: BLE001  # whatever it is, it must not be
            yield f"restoring failed: {traceback.format_exc(limit=-4)}"
            return
        for line in differences(self.setup.look(self.lab), self.setup.undone)[:12]:
            yield f"restored: {line}"

    def _can_be_done_again(self) -> Iterator[str]:
        try:
            self.setup.act()
        except SwarmError as error:
            if self.setup.before != self.setup.after:
                yield f"it cannot be done again: {error.code}: {error}"
        except Exception:  # noqa: BLE001  # whatever it is, it must not be
            yield f"done again: {traceback.format_exc(limit=-4)}"
        self.setup.await_deletion(self.lab)
        wrong = [line for line in differences(self.setup.look(self.lab), self.setup.after) if not self._may_be(line)]
        for line in wrong[:12]:
            yield f"done again: {line}"


class AgainTrials(Trials):
    """The next command is the same command, and no ``recover`` before it."""

    def _recover(self) -> Iterator[str]:
        try:
            self.setup.act()
        except SwarmError as error:
            # It was complete already, or it is one that fails by itself.
            if error.exit_code not in {1, 3, 6}:
                yield f"the same command again: {error.code}: {error}"
        yield from super()._recover()

    def _honest(self, outcome: Outcome, words: str, ended: str, at: int) -> Iterator[str]:
        if ended != "after" and self.setup.before != self.setup.after:
            yield f"after the same command again the state is {ended!r}"


class FreshTrials(Trials):
    """The next command is a process of its own, by the command line: it has loaded nothing but what it needs."""

    def _recover(self) -> Iterator[str]:
        flags = {key: value for key, value in self.setup.scenario.flags.items() if isinstance(value, str)}
        settings = {f"SWARM_{key.replace('.', '_').upper()}": value for key, value in flags.items()}
        done = subprocess.run(
            [sys.executable, "-m", "swarm", "recover", "--json"],
            cwd=self.lab.root,
            env=self.lab.env | settings | granted(self.lab),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            yield f"swarm recover ended with {done.returncode}: {done.stdout}{done.stderr}"


class NestedTrials(Trials):
    """The recovery is stopped as well."""

    def run_nested(self, firsts: Iterable[int], stride: int, actions: Sequence[str]) -> Tally:
        """For each first point, stop the recovery at every *stride*-th of its points, with one action after the other.

        Stride 0: at each place of the recovery (its call and path), until each action has been tried there.
        """
        start = time.monotonic()
        cycle = itertools.cycle(actions)
        offset = itertools.count()
        for first in firsts:
            self._crash(first)
            recovery = Child(self._recovery)
            points = trace(recovery).points
            if words := recovery.words():
                self.tally.violations.append(f"{self.tally.scenario} killed at {first}: recovery: {words}")
            if stride:
                chosen = range(1 + next(offset) % stride, len(points) + 1, stride)
                for second in chosen:
                    self._both(first, second, next(cycle))
            else:
                for second, point in enumerate(points, 1):
                    place = f"{point.syscall} {_in_general(point.path)}"
                    tried = self.setup.stopped[place]
                    if tried < len(actions):
                        self._both(first, second, actions[tried])
                        self.setup.stopped[place] += 1
        self.tally.seconds = time.monotonic() - start
        return self.tally

    def _both(self, first: int, second: int, action: str) -> None:
        # Not from a photograph: a copy has other inodes, and that counts as a change of the tree.
        self._crash(first)
        self._use(action)
        outcome, words = self.stop(self._recovery, second)
        point = outcome.points[second - 1] if len(outcome.points) >= second else None
        where = f"{point.syscall} {point.path}" if point else "?"
        head = f"{self.tally.scenario} killed at {first}, recovery {action} at {second} ({where})"
        self.tally.violations += [f"{head}: {line}" for line in self.judge(outcome, words, second)]

    def _crash(self, at: int) -> None:
        self.setup.bench.load(self.setup.image)
        child = Child(self.setup.act)
        trace(child, at=at, action=Action.KILL_TREE)
        child.words()

    def _recovery(self) -> object:
        return self.setup.swarm(self.lab).recover()

    def _honest(self, outcome: Outcome, words: str, ended: str, at: int) -> Iterator[str]:
        yield from ()  # what the recovery says is not about the command


@contextlib.contextmanager
def bench() -> Iterator[Bench]:
    """Give a bench for as long as the block runs."""
    before = tempfile.tempdir
    made = Bench()
    try:
        yield made
    finally:
        tempfile.tempdir = before
        made.close()
