"""Session records as JSON, with one schema number.

A record written by a newer swarm may be looked at but is never overwritten: it raises instead.
Unknown fields of the same schema are an error too; they would be lost on the next write.
"""

from __future__ import annotations

import json
import os
from typing import Any

from swarm.project import names
from swarm.project.errors import InvalidName, RecordProblem
from swarm.project.model import OWN, SCHEMA, SHARED, SUBTREE, TEAM, WORKER, Agent, Boxed, Parent, Placed, Session


def encode(record: dict[str, Any]) -> bytes:
    """Return the bytes of a record, on one line. Paths that are not UTF-8 survive as escapes.

    No indentation: with it Python's encoder written in Python is used, which takes ten times as long.
    """
    return (json.dumps({"schema": SCHEMA, **record}, ensure_ascii=True) + "\n").encode("ascii")


def decode(data: bytes, source: str) -> dict[str, Any]:
    """Read a record.

    Raises:
        RecordProblem: it is not one, or its schema is newer than this program.
    """
    try:
        record = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RecordProblem(f"cannot read {source}: {error}") from error
    if not isinstance(record, dict) or type(record.get("schema")) is not int:
        raise RecordProblem(f"cannot read {source}: it is not a record of swarm")
    if record["schema"] > SCHEMA:
        raise RecordProblem(f"cannot use {source}: it has schema {record['schema']}, this swarm knows {SCHEMA}")
    del record["schema"]
    return record


def agent_to_dict(agent: Agent) -> dict[str, Any]:
    """Return the JSON shape of an agent."""
    plain = agent._asdict()
    plain["ports"] = [list(pair) for pair in agent.ports]
    plain["placed"] = [{"path": p.path, "sha256": p.sha256} for p in agent.placed]
    plain["may"] = list(agent.may)
    if agent.overrides:
        plain["overrides"] = dict(agent.overrides)
    else:
        del plain["overrides"]
    plain["env"] = dict(agent.env)
    plain["after"] = list(agent.after)
    plain["args"] = list(agent.args)
    if agent.box is None:
        del plain["box"]  # a swarm without boxes can read the record
    else:
        plain["box"] = boxed_to_dict(agent.box)
    return plain


def agent_from_dict(data: Any, source: str) -> Agent:
    """Read an agent back."""
    try:
        _refuse_unknown(data, set(Agent._fields))
        return Agent(
            name=names.check_name("agent", data["name"]),
            role=names.check_name("role", data["role"]) if data["role"] else "",
            branch=str(data["branch"]),
            worktree=_worktree(data["worktree"], data.get("tree", OWN), str(data["name"])),
            admin=str(data["admin"]),
            base=str(data["base"]),
            created_ms=int(data["created_ms"]),
            placed=tuple(Placed(_inside(p["path"]), str(p["sha256"])) for p in _list(data["placed"])),
            program=str(data.get("program", "")),
            command=tuple(str(word) for word in _list(data.get("command", []))),
            conversation=str(data.get("conversation", "")),
            operation=str(data.get("operation", "")),
            ports=tuple((str(name), int(port)) for name, port in _list(data.get("ports", []))),
            prepared=data.get("prepared", False) is True,
            print_mode=data.get("print_mode", False) is True,
            may=tuple(str(right) for right in _list(data.get("may", []))),
            task=str(data.get("task", "")),
            overrides=tuple((str(key), str(value)) for key, value in dict(data.get("overrides", {})).items()),
            env=tuple((str(key), str(value)) for key, value in dict(data.get("env", {})).items()),
            after=tuple(str(name) for name in _list(data.get("after", []))),
            args=tuple(str(word) for word in _list(data.get("args", []))),
            tree=str(data.get("tree", OWN)),
            box=boxed_of(data.get("box")),
        )
    except _WRONG as error:
        raise RecordProblem(f"cannot read {source}: agent: {_told(error)}") from error


_WRONG = (KeyError, TypeError, ValueError, OverflowError, AttributeError, InvalidName)


def boxed_to_dict(boxed: Boxed | None) -> dict[str, Any] | None:
    """Return the JSON shape of how an agent is boxed."""
    if boxed is None:
        return None
    return {name: list(value) if isinstance(value, tuple) else value for name, value in boxed._asdict().items()}


def boxed_of(data: Any) -> Boxed | None:
    """Read how an agent is boxed; what is not known must not be taken for less than it says."""
    if data is None:
        return None
    _refuse_unknown(data, set(Boxed._fields))
    return Boxed(**{name: _like(default, data.get(name, default)) for name, default in Boxed()._asdict().items()})


def _like(default: Any, value: Any) -> Any:
    """Return a value of the kind that the default has."""
    if isinstance(default, tuple):
        return value if isinstance(value, tuple) else tuple(str(one) for one in _list(value))
    return type(default)(value)


def _told(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return str(error)


def _refuse_unknown(data: dict[str, Any], known: set[str]) -> None:
    unknown = sorted(data.keys() - known)
    if unknown:
        raise ValueError(f"unknown field {unknown[0]!r}")


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list")
    return value


def _inside(value: Any) -> str:
    """Return a relative path that stays below where it starts."""
    path = str(value)
    if not path or path.startswith("/") or ".." in path.split("/") or "\0" in path:
        raise ValueError(f"the path {path!r} leads elsewhere")
    return path


def _worktree(value: Any, tree: Any, agent: str) -> str:
    """Return where an agent works; of those outside of the repository only ``…/worktrees/NAME`` can be its own."""
    if tree not in (OWN, SHARED):
        raise ValueError(f"tree is {tree!r}, not {OWN} or {SHARED}")
    path = str(value)
    if not path.startswith("/"):
        return _inside(path)
    own = path.endswith(f"/worktrees/{agent}")
    if path != os.path.normpath(path) or "\0" in path or not (own or tree == SHARED):
        raise ValueError(f"the path {path!r} leads elsewhere")
    return path


def parent_to_dict(parent: Parent) -> dict[str, str]:
    """Return the JSON shape of a session's parent."""
    return {"agent": parent.agent, "session": parent.session, "generation": parent.generation}


def parent_from_dict(data: Any) -> Parent | None:
    """Read it back; None when it was a person.

    Raises:
        KeyError, TypeError, ValueError, InvalidName: it is none.
    """
    if data is None:
        return None
    _refuse_unknown(data, set(Parent._fields))
    agent, session = names.check_name("agent", data["agent"]), names.check_name("session", data["session"])
    return Parent(agent, session, str(data["generation"]))


def kind_of(value: Any) -> str:
    """Return what kind of session a record names.

    Raises:
        ValueError: there is no such kind.
    """
    if value not in (TEAM, SUBTREE, WORKER):
        raise ValueError(f"kind is {value!r}, not {TEAM}, {SUBTREE} or {WORKER}")
    return str(value)


def ancestors_from(data: Any) -> tuple[Parent, ...]:
    """Read the ancestors of a session back.

    Raises:
        KeyError, TypeError, ValueError, InvalidName: they are none.
    """
    found = [parent_from_dict(one) for one in _list(data)]
    if None in found:
        raise TypeError("an ancestor is missing")
    return tuple(one for one in found if one is not None)


def session_to_bytes(session: Session) -> bytes:
    """Return the session record."""
    return encode(
        {
            "session": session.name,
            "operations": list(session.operations),
            "created_ms": session.created_ms,
            "base_ref": session.base_ref,
            "base": session.base,
            "task": session.task,
            "workflow": session.workflow,
            **({"beside": session.beside} if session.beside else {}),
            **({"parent": parent_to_dict(session.parent)} if session.parent else {}),
            **({"swarm_dir": session.swarm_dir} if session.swarm_dir else {}),
            **({"pod": session.pod} if session.pod else {}),
            **({"template": session.template} if session.template else {}),
            **({"kind": session.kind} if session.is_child else {}),
            **({"depth": session.depth} if session.depth else {}),
            **({"ancestors": [parent_to_dict(one) for one in session.ancestors]} if session.ancestors else {}),
            "agents": [agent_to_dict(agent) for agent in session.agents],
        }
    )


def session_from_bytes(data: bytes, source: str) -> Session:
    """Read a session record."""
    record = decode(data, source)
    try:
        _refuse_unknown(record, {"session" if name == "name" else name for name in Session._fields})
        if not _list(record["operations"]):
            raise ValueError("it names no operation")
        return Session(
            name=names.check_name("session", record["session"]),
            operations=tuple(str(item) for item in record["operations"]),
            created_ms=int(record["created_ms"]),
            base_ref=str(record["base_ref"]),
            base=str(record["base"]),
            agents=tuple(agent_from_dict(item, source) for item in _list(record["agents"])),
            task=str(record.get("task", "")),
            workflow=str(record.get("workflow", "")),
            beside=str(record.get("beside", "")),
            parent=parent_from_dict(record.get("parent")),
            swarm_dir=str(record.get("swarm_dir", "")),
            pod=str(record.get("pod", "")),
            template=str(record.get("template", "")),
            kind=kind_of(record.get("kind", TEAM)),
            depth=int(record.get("depth", 0)),
            ancestors=ancestors_from(record.get("ancestors", [])),
        )
    except _WRONG as error:
        raise RecordProblem(f"cannot read {source}: {_told(error)}") from error
