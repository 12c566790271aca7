"""The OpenAPI document is that of the code, and no change of it breaks programs that were written for it."""

from __future__ import annotations

import copy
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from swarm.http_door import app as agent
from swarm.http_door.failures import STATUS
from swarm.http_door.project import app as project
from tests.support.openapi import breaks
from tests.support.pages import PROJECT

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.component
#: Each document, and what makes it.
DOCUMENTS = {"docs/openapi.json": agent.document, "docs/openapi-project.json": project.document}


def now(make: Callable[[], dict[str, Any]] = agent.document) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(make()))
    return found


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_document_is_committed_and_breaks_nobody(name: str) -> None:
    """With ``SWARM_UPDATE_DOCS=1`` it is written anew, unless that breaks programs: then the version has to rise."""
    whole, file = now(DOCUMENTS[name]), PROJECT / name
    before = json.loads(file.read_text()) if file.exists() else whole
    major = [one["info"]["version"].partition(".")[0] for one in (before, whole)]
    assert major[0] != major[1] or breaks(before, whole) == []
    if os.environ.get("SWARM_UPDATE_DOCS"):
        file.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
    assert json.loads(file.read_text()) == whole


def change(path: str, to: Any = None) -> Callable[[dict[str, Any]], None]:
    """Return what sets, or removes, a place in a document."""
    *way, last = path.split(" ")

    def act(whole: dict[str, Any]) -> None:
        place: Any = whole
        for one in way:
            place = place[int(one)] if one.isdigit() and isinstance(place, list) else place[one]
        if to is None:
            del place[last]
        else:
            place[last] = to

    return act


SCHEMAS = "components schemas"


@pytest.mark.parametrize(
    "act",
    [
        change("paths /task"),
        change("paths /task/{task_id} get"),
        change("paths /history get parameters 0 required", to=True),
        change(f"{SCHEMAS} TaskRequest properties hold"),
        change(f"{SCHEMAS} TaskRequest required", to=["prompt", "model"]),
        change(f"{SCHEMAS} TaskRequest properties prompt maxLength", to=10),
        change(f"{SCHEMAS} TaskRequest properties model", to={"type": "integer"}),
        change(f"{SCHEMAS} TaskReply required", to=["task_id"]),
        change(f"{SCHEMAS} TaskReply properties output", to={"type": "array"}),
        change(f"{SCHEMAS} Accepted properties status enum", to=["queued", "more"]),
        change("paths /task post responses 201"),
        change("paths /task post responses 409"),
    ],
)
def test_a_change_that_breaks_programs_is_found(act: Callable[[dict[str, Any]], None]) -> None:
    whole = now()
    changed = copy.deepcopy(whole)
    act(changed)
    assert breaks(whole, changed) != []


@pytest.mark.parametrize(
    "act",
    [
        change("paths /new", to={"get": {"responses": {}}}),
        change(f"{SCHEMAS} TaskRequest properties new", to={"type": "string"}),
        change(f"{SCHEMAS} TaskReply properties new", to={"type": "string"}),
        change(f"{SCHEMAS} TaskRequest properties prompt maxLength", to=1 << 24),
        change("paths /task post description", to="other words"),
        change("paths /task post responses 418", to={"description": "new"}),
    ],
)
def test_a_change_that_only_adds_is_none(act: Callable[[dict[str, Any]], None]) -> None:
    whole = now()
    changed = copy.deepcopy(whole)
    act(changed)
    assert breaks(whole, changed) == []


def test_the_page_lists_every_code_with_its_status() -> None:
    page = (PROJECT / "docs/service.md").read_text()
    for code, status in STATUS.items():
        assert f"| `{code}` | {status} |" in page, code
