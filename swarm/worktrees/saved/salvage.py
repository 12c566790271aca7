"""Salvage entries: write, list and find saved work."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Any

from swarm.kit.errors import Ambiguous, UsageProblem
from swarm.project import codec, names, targets
from swarm.project import layout as places
from swarm.project.model import Agent
from swarm.worktrees.errors import SalvageFailed, SalvageNotFound
from swarm.worktrees.lock_reason import is_running_reason
from swarm.worktrees.reports import SalvageEntry
from swarm.worktrees.saved import dropped
from swarm.worktrees.saved.keeping import keep
from swarm.worktrees.setup import setup_notes
from swarm.worktrees.values import Capture, TreeState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from swarm.project.world import World
    from swarm.worktrees.examine import Target

LEFTOVER = names.LEFTOVER


def is_nothing(target: Target, tip: str) -> bool:
    """Whether nothing is left to save: no folder, no branch, no record in git; or nothing of it is the agent's own."""
    return target.kind == "shared" or (target.kind == "gone" and not tip)


def save(world: World, operation: str, saving: Sequence[tuple[Target, str, str]]) -> dict[str, str]:
    """Save targets under refs and return them; they are looked at again after they are written.

    Args:
        operation: its id is the entries' id too.
        saving: target, where the agent's branch is (empty when it is gone), and the commit it began at (empty when
            that is gone).

    Raises:
        SalvageFailed, GitFailed, NoSpace: nothing may be removed.
    """
    asked = [_asked(world, target, operation, tip) for target, tip, _ in saving]

    def write() -> dict[str, str]:
        return {
            places.salvage_ref(target.session.name, target.agent.name, operation, part): oid
            for (target, _, _), saved in zip(saving, world.trees.capture_all(asked), strict=True)
            for part, oid in saved.refs.items()
        }

    return dict(keep(world, write, f"swarm: salvage {operation}", [base for _, _, base in saving])) if saving else {}


def _asked(world: World, target: Target, operation: str, tip: str) -> tuple[Path, Path, Capture]:
    agent = target.agent
    facts = _facts(world, target, operation, tip)
    if target.state is not None and target.state.special:
        facts["unsaved"] = list(target.state.special)
    wish = Capture(
        state=target.state or TreeState(head=tip, branch=agent.branch),
        branch=agent.branch,
        branch_tip=tip,
        keep=target.keep,
        aside=target.aside,
        message=f"swarm salvage of {target.session.name}/{agent.name}",
        manifest=facts,
        damaged=target.kind == "folder",
    )
    nowhere = world.layout.state / "nowhere"
    admin = target.admin.path if target.admin is not None else nowhere
    return target.tree if target.kind == "worktree" else nowhere, admin, wish


def _facts(world: World, target: Target, operation: str, tip: str) -> dict[str, Any]:
    session, agent, admin = target.session, target.agent, target.admin
    head = _head(world, target) or tip
    head_branch = _head_branch(target, head, tip)
    return {
        "schema": 1,
        "kind": target.kind,
        "session": session.name,
        "agent": agent.name,
        "id": operation,
        "operation": operation,
        "generation": session.generation,
        "session_created_ms": session.created_ms,
        "task": session.task,
        "workflow": session.workflow,
        "pod": session.pod,
        "template": session.template,
        "kind_of_session": session.kind,
        "depth": session.depth,
        "ancestors": [codec.parent_to_dict(one) for one in session.ancestors],
        "beside": session.beside,
        "parent": codec.parent_to_dict(session.parent) if session.parent else None,
        "swarm_dir": session.swarm_dir,
        "base_ref": session.base_ref,
        "base": session.base,
        "record": codec.agent_to_dict(agent),
        "position": session.agents.index(agent),
        "head": head,
        "head_branch": head_branch,
        "unborn": bool(head_branch) and not world.git.tips(places.HEADS + head_branch),
        "branch_tip": tip,
        "lock": admin.locked if admin and not is_running_reason(admin.locked) else None,
        "branch_config": [list(pair) for pair in world.git.branch_config(agent.branch)] if agent.branch else [],
        "dropped": list(target.dropped),
        "setup": setup_notes.to_save(world, session.name, agent.name, target.again) if agent.prepared else None,
        "saved_ms": time.time_ns() // 1_000_000,
    }


def _head(world: World, target: Target) -> str:
    """Return the commit to restore at; that of a branch deleted by hand is in the log of HEAD."""
    if target.state is None:
        return ""
    return target.state.head or (world.trees.recall(target.admin.path).head if target.admin else "")


def _head_branch(target: Target, head: str, tip: str) -> str:
    """Return the branch to restore on; where git's notes do not say, the agent's own if that is at the same commit."""
    if target.state is None:
        return target.agent.branch
    if target.admin is not None and not target.admin.says_head:
        return target.agent.branch if head == tip else ""
    return target.state.branch


def entries(world: World, session: str | None = None, *, gone: bool = False) -> tuple[SalvageEntry, ...]:
    """Return the saved entries, newest first.

    Args:
        gone: instead what was dropped, and can still be restored.
    """
    marks = dropped.since(world)
    return tuple(entry for entry in _all_entries(world, session) if (entry.name in marks) == gone)


def _all_entries(world: World, session: str | None = None) -> tuple[SalvageEntry, ...]:
    wanted = names.check_session(session).casefold() if session else ""
    manifests = {ref: oid for ref, oid in world.git.refs(places.SALVAGE_REFS).items() if ref.endswith("/manifest")}
    if wanted:  # names are compared without case, refs are not
        manifests = {ref: oid for ref, oid in manifests.items() if ref.split("/")[3].casefold() == wanted}
    facts = world.trees.read_manifests(manifests)
    found = [_entry(record) for record in facts.values()]
    return tuple(sorted(found, key=lambda entry: entry.id, reverse=True))


def _entry(facts: dict[str, Any]) -> SalvageEntry:
    source = "a salvage manifest"
    try:
        return SalvageEntry(
            session=str(facts["session"]),
            agent=str(facts["agent"]),
            id=str(facts["id"]),
            operation=str(facts["operation"]),
            generation=str(facts["generation"]),
            created_ms=int(facts["saved_ms"]),
            record=codec.agent_from_dict(facts["record"], source),
            head=str(facts["head"]),
            branch_tip=str(facts["branch_tip"]),
            manifest=facts,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise SalvageFailed(f"cannot read {source}: {error!r}") from error


def find(world: World, target: str) -> tuple[SalvageEntry, ...]:
    """Return the entries of ``SESSION``, ``AGENT``, ``SESSION/AGENT``, ``AGENT@SESSION`` or ``SESSION/AGENT@ID``.

    A session means each of its agents, as last saved, of the last generation of that name. What was dropped counts
    where nothing else does.

    Raises:
        SalvageNotFound
    """
    for gone in (False, True):
        found = meant(world, target, gone=gone)
        # An entry without a commit has nothing to bring back; earlier versions wrote them. One can still be dropped.
        found = [entry for entry in found if entry.head or entry.branch_tip] or found
        if found:
            return _latest(found)
    raise SalvageNotFound(f"nothing is saved under {target}")


def meant(world: World, target: str, *, gone: bool) -> list[SalvageEntry]:
    """Return every entry that a target names, newest first."""
    path, at, salvage_id = target.partition("@") if "/" in target else (target, "", "")
    if at and not salvage_id:
        raise UsageProblem(f"cannot read {target!r}", hint="write SESSION, SESSION/AGENT or SESSION/AGENT@ID")
    name, session = targets.split_agent(path)
    names.check_session(name if session is None else session)
    if session is None:
        return list(entries(world, name, gone=gone)) or _of_agent(world, name, gone=gone)
    names.check_name("agent", name)
    found = [entry for entry in entries(world, session, gone=gone) if entry.agent.casefold() == name.casefold()]
    found = [entry for entry in found if entry.id.startswith(salvage_id)]
    if at and len({entry.id for entry in found}) > 1:
        ways = ", ".join(entry.name for entry in found)
        raise Ambiguous(f"{target} could be {ways}", hint="write more of the id")
    return found


def _of_agent(world: World, name: str, *, gone: bool) -> list[SalvageEntry]:
    """Return the entries of the only agent that has this name."""
    found = [entry for entry in entries(world, gone=gone) if entry.agent.casefold() == name.casefold()]
    ways = list(dict.fromkeys(f"{entry.session}/{entry.agent}" for entry in found))
    if len({one.casefold() for one in ways}) > 1:
        raise Ambiguous(f"{name} could be {', '.join(ways)}", hint=f"write one of them, such as {ways[0]}")
    return found


def _latest(found: list[SalvageEntry]) -> tuple[SalvageEntry, ...]:
    newest = found[0].generation
    latest: dict[str, SalvageEntry] = {}
    for entry in found:
        if entry.generation == newest:
            latest.setdefault(entry.agent, entry)
    return tuple(sorted(latest.values(), key=lambda entry: int(entry.manifest.get("position", 0))))


def refs_of(world: World, entry: SalvageEntry) -> dict[str, str]:
    """Return part → object id of an entry."""
    prefix = places.salvage_ref(entry.session, entry.agent, entry.id, "")
    return {ref.removeprefix(prefix): oid for ref, oid in world.git.refs(prefix).items()}


def save_branch(world: World, branch: str, tip: str, operation: str) -> str:
    """Save a branch that has no worktree, then delete it; return the entry's name. May be repeated."""
    agent = _leftover_agent(branch)
    head = places.HEADS + branch
    if world.git.refs(head).get(head) != tip:  # an earlier try has deleted it, or it is in use again
        if head not in world.git.refs(head):
            world.git.drop_branch_config(branch)
        return f"{LEFTOVER}/{agent}@{operation}"
    # A disk error can leave some refs of an entry without the others; only a whole one counts as saved.
    forget_refs(world, LEFTOVER, agent, operation)
    now = time.time_ns() // 1_000_000
    record = Agent(agent, agent, branch, worktree=".", admin="", base=tip, created_ms=now)
    facts = {
        "schema": 1,
        "kind": "branch",
        "session": LEFTOVER,
        "agent": agent,
        "id": operation,
        "operation": operation,
        "generation": operation,
        "session_created_ms": now,
        "base_ref": "",
        "base": tip,
        "record": codec.agent_to_dict(record),
        "head": tip,
        "head_branch": branch,
        "branch_tip": tip,
        "lock": None,
        "branch_config": [list(pair) for pair in world.git.branch_config(branch)],
        "dropped": [],
        "saved_ms": now,
    }
    nowhere = world.layout.state / "nowhere"
    wish = Capture(TreeState(head=tip, branch=branch), branch, tip, (), (), f"swarm salvage of branch {branch}", facts)

    def write() -> dict[str, str]:
        saved = world.trees.capture(nowhere, nowhere, wish)
        return {places.salvage_ref(LEFTOVER, agent, operation, part): oid for part, oid in saved.refs.items()}

    keep(world, write, wish.message, [tip])
    world.git.change_refs(delete={places.HEADS + branch: tip}, reason=wish.message)
    world.git.drop_branch_config(branch)
    return f"{LEFTOVER}/{agent}@{operation}"


def _leftover_agent(branch: str) -> str:
    """Return the "agent" under which a branch without a worktree is saved: agent and session, as one name."""
    tail = branch.rpartition("/")[2]
    if len(tail) <= names.MAX_LENGTH:
        return tail
    return f"{tail[: names.MAX_LENGTH - 9]}-{hashlib.sha256(branch.encode()).hexdigest()[:8]}"


def forget_refs(world: World, session: str, agent: str, salvage_id: str) -> None:
    """Delete the refs of an entry, if there are any."""
    prefix = places.salvage_ref(session, agent, salvage_id, "")
    refs = world.git.refs(prefix)
    # The manifest goes last in name order but first here: without it the entry is not listed any more.
    ordered = dict(sorted(refs.items(), key=lambda item: not item[0].endswith("/manifest")))
    if ordered:
        world.git.change_refs(delete=ordered, reason="swarm: salvage dropped")
    world.git.prune_empty_ref_folders(world.settings.worktrees.branch_prefix)


def save_late(world: World, item: dict[str, Any], operation: str, admin: Path) -> None:
    """Put refs on objects that a worktree got after it was saved: copied git notes keep none. May be repeated."""
    message = f"swarm salvage of {item['session']}/{item['agent']}, changed meanwhile"
    state = world.trees.recall(admin)
    wish = Capture(state, item["branch"], item["tip"], (), (), message, damaged=True)

    def write() -> dict[str, str]:
        parts = world.trees.capture(world.layout.state / "nowhere", admin, wish).refs
        refs = {
            places.salvage_ref(item["session"], item["agent"], operation, f"late-{part}"): oid
            for part, oid in parts.items()
            if part != "manifest"  # the entry has one, and git's notes are kept as files
        }
        there = world.git.refs(*refs)
        return {ref: oid for ref, oid in refs.items() if ref not in there}

    keep(world, write, message, [])
