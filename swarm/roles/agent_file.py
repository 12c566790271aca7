"""The form of a file that configures a served agent; it stands here as all forms do from which schemas are made."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.kit.errors import SwarmError
from swarm.kit.forms import (
    Field,
    Form,
    choice,
    listing,
    mapping,
    number,
    program,
    refuse,
    seconds,
    switch,
    text,
)
from swarm.project.config.checks import box_path
from swarm.project.config.hosts import NONE, PRESETS
from swarm.project.names import PROGRAMS, check_name

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST = 7 * 86_400.0
#: The program without a word; a section of its name says the same as the keys beside it.
_FIRST = PROGRAMS[0]
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,99}")


class TlsFile(NamedTuple):
    """The certificate of a served agent.

    Attributes:
        cert, key: files in PEM; empty: swarm makes them.
        names: further names at which the agent is asked.
    """

    cert: str = ""
    key: str = ""
    names: tuple[str, ...] = ()


class AgentBox(NamedTuple):
    """What a file says of the box of a served agent.

    Attributes:
        enabled: its program runs in one.
        network: the preset of hosts; empty: as the settings say.
        read_only_paths, read_write_paths: what it shows beside the agent's own; None: as the settings say.
    """

    enabled: bool = True
    network: str = ""
    read_only_paths: tuple[str, ...] | None = None
    read_write_paths: tuple[str, ...] | None = None

    @property
    def settings(self) -> dict[str, object]:
        """The settings that it changes."""
        found = {f"sandbox.{name}": value for name, value in self._asdict().items() if name != "enabled"}
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in found.items()
            if value or value == ()
        }

    @property
    def widens(self) -> str:
        """The key by which a box shows more, or is none; empty: by none."""
        if not self.enabled:
            return "enabled"
        if self.network not in ("", NONE):
            return "network"
        return next((key for key in ("read_only_paths", "read_write_paths") if getattr(self, key)), "")


class AgentFile(NamedTuple):
    """What a file says of a served agent.

    Attributes:
        name: empty: as the file's folder is called.
        program: which agent program does the tasks.
        command: any command instead, as one line.
        model: for tasks that name none.
        timeout: seconds that a turn may take, for tasks that say nothing.
        role: whose instructions, rules and limits its program has.
        hold: tasks stay idle after each turn until they are continued or ended.
        tries: how often a turn is started at most; None: as the setting ``tasks.tries`` says.
        bind: the address at which it listens.
        telemetry: the program of a task reports its use to the server.
        tls: its certificate; None: it speaks without TLS, on this machine alone.
        sandbox: its box.
        session_dir: the folder of its sessions; empty: below the swarm directory.
    """

    port: int
    name: str = ""
    log_level: str = "info"
    program: str = _FIRST
    command: str = ""
    model: str = ""
    timeout: float = 1800.0
    role: str = ""
    hold: bool = False
    tries: int | None = None
    bind: str = "127.0.0.1"
    telemetry: bool = False
    tls: TlsFile | None = None
    sandbox: AgentBox = AgentBox()
    session_dir: str = ""


def check_model(model: str) -> str:
    """Return the name of a model.

    Raises:
        ValueError
    """
    if not model.isascii() or _MODEL.fullmatch(model) is None:
        raise ValueError(f"unknown model {ascii(model)[:60]}")
    return model


def check_host(name: str) -> str:
    """Return the name or the address of a machine.

    Raises:
        ValueError
    """
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{ascii(name)[:60]} is no name of a machine and no address")
    return name


def _tls(**found: Any) -> TlsFile:
    auto = found.pop("auto_generate", False)
    if auto == ("cert" in found or "key" in found) or ("cert" in found) != ("key" in found):
        refuse("needs cert and key, or auto_generate: true")
    return TlsFile(**found)


def _only(word: str, what: str) -> Form[str]:
    """Return the form of a word that has one value as yet."""

    def check(given: str) -> str:
        if given != word:
            raise ValueError(f"unknown {what}; the only one is {word}")
        return given

    return text(check, f"`{word}`", pattern=f"^{word}$")


def _folder(text: str) -> str:
    if not text.startswith(("/", "~/")) or not text.isprintable():
        raise ValueError("must be an absolute path, or one below ~/")
    return text


def _named(kind: str) -> Callable[[str], str]:
    def check(name: str) -> str:
        try:
            return check_name(kind, name)
        except SwarmError as problem:
            raise ValueError(problem.message) from None

    return check


def _box(**found: Any) -> AgentBox:
    network = found.pop("allow_network", None)
    if network is not None and "network" in found:
        refuse("stands in network already", "keep one of the two", key="allow_network")
    if network is False:
        found["network"] = NONE
    return AgentBox(**found)


_PATHS = listing(text(box_path, "path"), "list of paths")
_BOX = mapping(
    {
        "enabled": Field(switch(), "Run the program in a box. Default: true."),
        "network": Field(choice(*PRESETS), "What it can reach. Default: the setting `sandbox.network`."),
        "allow_network": Field(switch(), "The older form of `network`: false is `none`."),
        "read_only_paths": Field(_PATHS, "What it can read besides. Default: the setting of this name."),
        "read_write_paths": Field(_PATHS, "What it can read and change besides. Default: the setting of this name."),
    },
    _box,
    "sandbox",
)


def _agent(**found: Any) -> AgentFile:
    section = found.pop(_FIRST, {})
    for key in ("type", "roles"):
        found.pop(key, None)
    if "port" not in found:
        refuse("port is required", "for example: port: 9000")
    if section and (found.get("program", _FIRST) != _FIRST or "command" in found):
        refuse(f"is for the program {_FIRST} alone", "write model and timeout beside it", key=_FIRST)
    if found.get("telemetry") and "tls" in found:
        refuse("programs do not know the certificate", "leave out telemetry or tls", key="telemetry")
    if "command" in found and "program" in found:
        refuse("there is a program already", "give one of them", key="command")
    for key in section.keys() & found.keys():
        refuse(f"stands in {_FIRST}.{key} already", "keep one of the two", key=key)
    return AgentFile(**found, **section)


_MODEL_FORM = text(check_model, "model", longest=100, least=1)
_TIME = seconds(0.1, _LONGEST)
_TLS: Form[TlsFile] = mapping(
    {
        "cert": Field(text(str, "path", least=1), "Certificate in PEM; a relative path counts from this file."),
        "key": Field(text(str, "path", least=1), "Its key, readable for you alone."),
        "auto_generate": Field(switch(), "swarm makes both, for the names of this machine."),
        "names": Field(
            listing(text(check_host, "name"), "list of names", most=20), "Further names at which the agent is asked."
        ),
    },
    _tls,
    "certificate",
)
_SECTION: Form[dict[str, Any]] = mapping(
    {
        "model": Field(_MODEL_FORM, "Model for tasks that name none."),
        "timeout": Field(_TIME, "How long a turn may take, for tasks that say nothing."),
    },
    dict,
)

AGENT = mapping(
    {
        "type": Field(_only("agent", "type"), "What this file configures: agent."),
        "roles": Field(listing(_only("agent", "role"), "list of `agent`"), "The older form of `type`."),
        "name": Field(text(_named("agent"), "name"), "Default: as the file's folder is called."),
        "port": Field(number(1, 65_535), "Port; required. `SWARM_PORT` and `--port` come before it."),
        "bind": Field(
            text(check_host, "address"),
            "Address at which it listens. Default: 127.0.0.1; any other machine's reach needs `tls`.",
        ),
        "telemetry": Field(
            switch(),
            "The program of a task reports requests, tokens, cost and time to the server. Default: false.",
        ),
        "tls": Field(_TLS, "Certificate: with it the agent speaks HTTPS."),
        "log_level": Field(choice("debug", "info", "warning", "error"), "What `agent.log` says. Default: info."),
        "program": Field(choice(*PROGRAMS), f"The agent program that does the tasks. Default: {_FIRST}."),
        "command": Field(program(), "Any command instead of a program; it reads the prompt from its standard input."),
        "model": Field(_MODEL_FORM, "Model for tasks that name none. Default: the program's own."),
        "timeout": Field(_TIME, "How long a turn may take, for tasks that say nothing. Default: 30m."),
        _FIRST: Field(_SECTION, f"`model` and `timeout` of {_FIRST}, as older files have them."),
        "role": Field(
            text(_named("role"), "role"),
            "Role whose instructions, rules and limits its program has.",
        ),
        "hold": Field(switch(), "Tasks stay idle after each turn until they are continued or ended. Default: false."),
        "tries": Field(number(1, 20), "How often a turn is started at most. Default: the setting `tasks.tries`."),
        "sandbox": Field(_BOX, "The box of its program; a file in a repository can only make it narrower."),
        "session_dir": Field(
            text(_folder, "folder", least=1),
            "Folder for those of sessions, absolute or below `~/`. Default: `workspaces` in the swarm directory.",
        ),
    },
    _agent,
    "agent",
)
