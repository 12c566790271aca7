"""The pod: a team as a file, with variables; what it says, and the agents that come of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from swarm.kit import commandline
from swarm.kit.errors import SwarmError
from swarm.kit.forms import (
    Field,
    Form,
    Misfit,
    Trouble,
    choice,
    gather,
    listing,
    mapping,
    number,
    refuse,
    shown,
    switch,
    text,
)
from swarm.kit.scalars import plain_scalar
from swarm.project import names
from swarm.roles import overrides

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

T = TypeVar("T")
Value = str | int | bool
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_LONG = 1 << 20


class PodVariable(NamedTuple):
    """A variable of a template; without a default a launch must give it a value."""

    name: str
    type: str = "text"
    default: Value | None = None
    choices: tuple[str, ...] = ()
    min: int = -(10**9)
    max: int = 10**9
    description: str = ""

    def read(self, raw: object) -> Value:
        """Return a value; ValueError says what is wrong with it."""
        if self.type == "int":
            return number(self.min, self.max).read(plain_scalar(raw) if isinstance(raw, str) else raw)
        if self.type == "bool":
            form = switch()
            return form.read(form.split(raw) if isinstance(raw, str) else raw)
        found = text(longest=_LONG, lines=True).read(raw)
        return choice(*self.choices).read(found) if self.choices else found

    @property
    def sample(self) -> Value:
        """A value for a check without one."""
        if self.default is not None:
            return self.default
        kinds: dict[str, Value] = {"int": max(self.min, 1), "bool": True}
        return kinds.get(self.type, self.choices[0] if self.choices else self.name)


class PodAgent(NamedTuple):
    """An agent of a pod.

    Attributes:
        overrides: keys of its role with other values, as text.
        env: variables of its environment.
        after: the agents that must have finished their tasks before it gets its own.
    """

    name: str
    role: str
    task: str = ""
    overrides: tuple[tuple[str, str], ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    after: tuple[str, ...] = ()


class PodTemplate(NamedTuple):
    """A pod template as its file says, before its variables have values.

    Attributes:
        pod_name: what a launch calls the pod, if nobody says so.
        raw: the whole content of the file.
    """

    name: str
    pod_name: str
    description: str
    variables: tuple[PodVariable, ...]
    raw: Mapping[str, Any]
    source: Path


class Pod(NamedTuple):
    """A pod with all its agents."""

    name: str
    template: str
    members: tuple[PodAgent, ...]


def check_pod(name: str) -> str:
    """Check the name of a pod; ValueError says what it may be."""
    if _NAME.fullmatch(name) is None:
        raise ValueError("must be small letters, digits and -, 40 at most, and begin with a letter or digit")
    return name


# --- the file -------------------------------------------------------------------------------------


def _checked(kind: str, value: str) -> str:
    try:
        return names.check_name(kind, value)
    except SwarmError as problem:
        raise ValueError(problem.message) from None


def _variable(**found: Any) -> dict[str, Any]:
    if found.get("choices") and found.get("type", "text") != "text":
        refuse("stand beside a type without choices", key="choices")
    return found


_VARIABLE = mapping(
    {
        "type": Field(choice("text", "int", "bool"), "Its type; `text` without."),
        "default": Field(text(longest=_LONG, lines=True), "Its value, if a launch gives none."),
        "choices": Field(listing(text()), "The only texts that it may be."),
        "min": Field(number(-(10**9), 10**9), "The least number that it may be."),
        "max": Field(number(-(10**9), 10**9), "The greatest number that it may be."),
        "description": Field(text(longest=500, lines=True), "What it is for."),
    },
    _variable,
)


def _variables(raw: Any) -> tuple[PodVariable, ...]:
    if not isinstance(raw, Mapping):
        refuse("must be a mapping of names")
    return tuple(gather(((name,), name, partial(_one_variable, name, raw[name])) for name in raw))


def _one_variable(name: str, raw: Any) -> PodVariable:
    if re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name) is None or name in _OWN_NAMES:
        refuse("must be small letters, digits and _, and none of " + ", ".join(_OWN_NAMES), at_key=True)
    if not isinstance(raw, Mapping):  # its default alone
        kind = "bool" if isinstance(raw, bool) else "int" if isinstance(raw, int) else "text"
        return PodVariable(name, kind, None if raw is None else PodVariable(name, kind).read(raw))
    default = raw.get("default")
    found = _VARIABLE.read({key: value for key, value in raw.items() if key != "default" or isinstance(value, str)})
    one = PodVariable(name, **{**found, "default": None})
    if default is None:
        return one
    try:
        return one._replace(default=one.read(default))
    except Misfit as error:
        raise Misfit(*(trouble.inside(("default",), "default") for trouble in error.troubles)) from None


_OWN_NAMES = ("index", "count", "name", "pod", "env")


def _environment(raw: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(raw, Mapping):
        refuse("must be a mapping of variables and values")
    value = text(longest=32_000, lines=True)

    def one(name: str) -> tuple[str, str]:
        try:
            commandline.variable(name)
        except ValueError as error:
            refuse(str(error), at_key=True)
        return name, value.read(raw[name])

    return tuple(gather(((name,), name, partial(one, name)) for name in raw))


def _overrides(raw: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(raw, Mapping):
        refuse("must be a mapping of dotted keys")

    def one(key: str) -> tuple[str, str]:
        try:
            return overrides.check(key, raw[key]), overrides.text_of(raw[key])
        except Misfit as error:
            known = key in overrides.keys()  # noqa: SIM118  # a function
            raise Misfit(*(trouble._replace(at_key=not known) for trouble in error.troubles)) from None

    return tuple(gather(((key,), key, partial(one, key)) for key in raw))


_PLACE = {"type": "string", "pattern": r"\$\{"}
_SCALAR = {"type": ["string", "number", "boolean"]}
_ENVIRONMENT = Form(
    "mapping of variables and values", _environment, {"type": ["object", "null"], "additionalProperties": _SCALAR}
)
_AGENT_FIELDS = {
    "name": Field(text(partial(_checked, "agent"), "name", least=1), "The agent's name."),
    "role": Field(text(partial(_checked, "role"), "name", least=1), "Its role; a role of `pods/roles` comes first."),
    "count": Field(number(0, names.MAX_AGENTS), "How many; they are called NAME-1, NAME-2 and so on. 0 leaves it out."),
    "task": Field(text(longest=_LONG, lines=True), "What it is told."),
    "overrides": Field(
        Form(
            "mapping of dotted keys",
            _overrides,
            {
                "type": ["object", "null"],
                "properties": dict.fromkeys(overrides.keys(), _SCALAR),
                "additionalProperties": False,
            },
        ),
        "Keys of its role with other values, as `--override` takes them.",
    ),
    "env": Field(_ENVIRONMENT, "Variables of its environment."),
    "after": Field(
        listing(text(partial(_checked, "agent"), "name", least=1), "list of agents"),
        "It gets its task when these agents have finished theirs.",
    ),
}


def _member(**found: Any) -> dict[str, Any]:
    missing = [Trouble("is missing", one) for one in ("name", "role") if one not in found]
    if missing:
        raise Misfit(*missing)
    return found


_AGENT = mapping(_AGENT_FIELDS, _member, "agent")
#: Before the variables have values only the keys can be checked; editors accept a place for a variable everywhere.
_AGENT_SHAPE = mapping(
    {
        key: field._replace(
            form=field.form._replace(read=lambda raw: raw, schema={"anyOf": [field.form.schema, _PLACE]})
        )
        for key, field in _AGENT_FIELDS.items()
    },
    _member,
    "agent",
)


def _template(**found: Any) -> dict[str, Any]:
    if not found.get("agents"):
        refuse("must name at least one agent", key="agents")
    return found


def _agents(raw: Any) -> list[Any]:
    if not isinstance(raw, (list, tuple)):
        refuse("must be a list")
    return gather(((place,), "", partial(_AGENT_SHAPE.read, one)) for place, one in enumerate(raw))


POD = mapping(
    {
        "pod_name": Field(text(check_pod, "name", pattern=f"^{_NAME.pattern}$"), "What a launch calls the pod."),
        "description": Field(text(longest=500, lines=True), "The purpose, in one line."),
        "vars": Field(
            Form(
                "mapping of names, each with a default or with its description",
                _variables,
                {"type": ["object", "null"], "additionalProperties": {"anyOf": [_SCALAR, _VARIABLE.schema]}},
            ),
            "Variables: `${NAME}` stands for the value in all texts of the agents.",
        ),
        "env": Field(_ENVIRONMENT._replace(read=lambda raw: raw), "Variables of every agent's environment."),
        "agents": Field(
            Form(
                "list of agents",
                _agents,
                {"type": "array", "items": _AGENT_SHAPE.schema, "minItems": 1},
                fields=_AGENT_FIELDS,
            ),
            "The team.",
        ),
    },
    _template,
    "pod",
)


def read(name: str, raw: Mapping[str, Any], source: Path) -> PodTemplate:
    """Return what a file says; keys that begin with ``x-`` are the user's own.

    Raises:
        Misfit
    """
    found = POD.read({key: value for key, value in raw.items() if not key.startswith("x-")})
    pod_name = found.get("pod_name") or (name.casefold() if _NAME.fullmatch(name.casefold()) else "")
    variables = found.get("vars", ())
    return PodTemplate(name, pod_name, " ".join(found.get("description", "").split()), variables, raw, source)


# --- the agents -----------------------------------------------------------------------------------


def expand(template: PodTemplate, values: Mapping[str, Value], pod: str, environ: Mapping[str, str]) -> Pod:
    """Return the agents of a pod.

    Args:
        values: of all variables.
        environ: what ``${env.NAME}`` stands for.

    Raises:
        Misfit: with the places in the file.
    """
    known: dict[str, Value] = {**values, "pod": pod}
    raw = template.raw
    common = _within("env", lambda: _environment(_filled(raw.get("env") or {}, known, environ)))
    tasks = [
        (("agents", place), "agents", partial(_members, one, known, environ, common))
        for place, one in enumerate(raw["agents"])
    ]
    found = gather(tasks)
    places = [(place, member) for place, several in enumerate(found) for member in several]
    groups = {str(raw["agents"][place]["name"]): [one.name for one in several] for place, several in enumerate(found)}
    members = [(place, one._replace(after=_meant(one.after, groups))) for place, one in places]
    troubles = [*_doubles(members), *_orders(members)]
    if not members:
        troubles.append(Trouble("every agent is left out: each has a count of 0", "agents", path=("agents",)))
    if len(members) > names.MAX_AGENTS:
        what = f"{len(members)} agents, at most {names.MAX_AGENTS} are possible"
        troubles.append(Trouble(what, "agents", path=("agents",)))
    if troubles:
        raise Misfit(*troubles)
    return Pod(pod, template.name, tuple(one for _, one in members))


def _members(
    raw: Mapping[str, Any],
    known: Mapping[str, Value],
    environ: Mapping[str, str],
    common: tuple[tuple[str, str], ...],
) -> list[PodAgent]:
    count = _within("count", lambda: _count(_filled(raw.get("count"), known, environ)))
    found: list[PodAgent] = []
    for index in range(1, (1 if count is None else count) + 1):
        own: dict[str, Value] = {**known, "index": index, "count": 1 if count is None else count}
        name = str(_within("name", partial(_filled, raw["name"], own, environ)))
        numbered = count is not None and count > 1 and "${index}" not in str(raw["name"])
        own["name"] = f"{name}-{index}" if numbered else name
        rest = {key: one for key, one in raw.items() if key not in ("name", "count")}
        said = _AGENT.read({"name": own["name"], **_filled(rest, own, environ)})
        env = dict((*common, *said.pop("env", ())))
        found.append(PodAgent(**{**said, "env": tuple(env.items())}))
    return found


def _count(raw: object) -> int | None:
    return None if raw is None else _AGENT_FIELDS["count"].form.read(raw)


def _within(key: str, task: Callable[[], T]) -> T:
    return gather([((key,), key, task)])[0]


def _meant(after: Sequence[str], groups: Mapping[str, list[str]]) -> tuple[str, ...]:
    """Return the agents that are meant; the name of several means all of them."""
    return tuple(dict.fromkeys(one for name in after for one in groups.get(name, [name])))


def _filled(raw: Any, known: Mapping[str, Value], environ: Mapping[str, str]) -> Any:
    """Put values in for ``${NAME}``; a text that is nothing else gets the value's type."""
    if isinstance(raw, Mapping):
        pairs = gather(((key,), str(key), partial(_filled, one, known, environ)) for key, one in raw.items())
        return dict(zip(raw, pairs, strict=True))
    if isinstance(raw, list):
        return gather(((place,), "", partial(_filled, one, known, environ)) for place, one in enumerate(raw))
    if not isinstance(raw, str) or "$" not in raw:
        return raw
    whole = re.fullmatch(r"\$\{([^{}]*)\}", raw)
    if whole is not None:
        return _value_of(whole[1], known, environ)

    def value(hit: re.Match[str]) -> str:
        return "$" if hit[1] is None else overrides.text_of(_value_of(hit[1], known, environ))

    return re.sub(r"\$\$|\$\{([^{}]*)\}", value, raw)


def _value_of(name: str, known: Mapping[str, Value], environ: Mapping[str, str]) -> Value:
    if name in known:
        return known[name]
    kind, dot, variable = name.partition(".")
    if not dot or kind != "env":
        there = ", ".join([*known, "env.NAME"])
        refuse(f"there is no variable {shown(name)}", f"the variables are {there}; write $$ for $")
    if variable not in environ:
        refuse(f"the environment has no variable {shown(variable)}", f"set it: {variable}=… swarm pod launch …")
    return environ[variable]


def _doubles(members: Sequence[tuple[int, PodAgent]]) -> Iterator[Trouble]:
    seen: set[str] = set()
    for place, one in members:
        if one.name.casefold() in seen:
            yield Trouble(f"the name {one.name} is there twice", "agents.name", path=("agents", place, "name"))
        seen.add(one.name.casefold())


def _orders(members: Sequence[tuple[int, PodAgent]]) -> Iterator[Trouble]:
    """Yield the names in ``after`` that nobody has, and circles."""
    waits = {one.name: one.after for _, one in members}
    for place, one in members:
        where = {"key": "agents.after", "path": ("agents", place, "after")}
        for name in one.after:
            if name not in waits:
                yield Trouble(f"there is no agent {name}", hint=f"the agents are {', '.join(waits)}", **where)  # type: ignore[arg-type]  # two kinds of values
        if one.name in _reached(one.name, waits):
            yield Trouble(f"{one.name} would wait for itself", hint="remove one of the names", **where)  # type: ignore[arg-type]  # two kinds of values


def _reached(name: str, waits: Mapping[str, tuple[str, ...]]) -> set[str]:
    found: set[str] = set()
    todo = list(waits[name])
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo += waits.get(one, ())
    return found
