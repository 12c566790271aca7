"""Which changes of an OpenAPI document break the programs that were written for the one before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]
_METHODS = ("get", "post", "put", "patch", "delete")


def breaks(old: Json, new: Json) -> list[str]:
    """Return what of the new document breaks programs of the old one; empty: nothing does."""
    return list(_breaks(old, new))


def _breaks(old: Json, new: Json) -> Iterator[str]:
    for path, methods in old["paths"].items():
        for method in _METHODS:
            if method not in methods:
                continue
            there = new["paths"].get(path, {}).get(method)
            if there is None:
                yield f"{method} {path} is gone"
            else:
                yield from (f"{method} {path}: {one}" for one in _operation(old, new, methods[method], there))


def _operation(old: Json, new: Json, before: Json, after: Json) -> Iterator[str]:
    known = {(one["in"], one["name"]): one for one in before.get("parameters", ())}
    given = {(one["in"], one["name"]): one for one in after.get("parameters", ())}
    for key, parameter in given.items():
        if parameter.get("required") and not known.get(key, {}).get("required"):
            yield f"parameter {key[1]} is required now"
    for key, parameter in known.items():
        if key not in given:
            yield f"parameter {key[1]} is gone"
        else:
            yield from _taken(old, new, parameter["schema"], given[key]["schema"], f"parameter {key[1]}")
    yield from _taken(old, new, _body(before), _body(after), "request")
    for status, answer in before["responses"].items():
        there = after["responses"].get(status)
        if there is None:
            yield f"answer {status} is gone"
        else:
            yield from _given(old, new, _schema(answer), _schema(there), f"answer {status}")


def _body(operation: Json) -> Json:
    return _schema(operation.get("requestBody", {}))


def _schema(place: Json) -> Json:
    found: Json = place.get("content", {}).get("application/json", {}).get("schema", {})
    return found


def _whole(document: Json, schema: Json) -> Json:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _kinds(document: Json, schema: Json) -> dict[str, Json]:
    """Return the schemas that a value may have, by the type of each."""
    schema = _whole(document, schema)
    several = schema.get("anyOf") or schema.get("oneOf")
    if not several:
        return {str(schema.get("type", "any")): schema}
    return {kind: one for part in several for kind, one in _kinds(document, part).items()}


def _narrower(before: Json, after: Json, where: str) -> Iterator[str]:
    if "enum" in after and set(before.get("enum", ["anything"])) - set(after["enum"]):
        yield f"{where} takes fewer words"
    for limit, sign in (("maxLength", 1), ("maximum", 1), ("minLength", -1), ("minimum", -1)):
        if limit in after and (limit not in before or sign * after[limit] < sign * before[limit]):
            yield f"{where}: {limit} is narrower"
    if after.get("pattern", before.get("pattern")) != before.get("pattern"):
        yield f"{where}: another pattern"


def _taken(old: Json, new: Json, before: Json, after: Json, where: str) -> Iterator[str]:
    """What was taken before has to be taken still."""
    kinds, now = _kinds(old, before), _kinds(new, after)
    for kind, schema in kinds.items():
        if kind not in now:
            if before or after:
                yield f"{where} takes no {kind} any more"
            continue
        there = now[kind]
        yield from _narrower(schema, there, where)
        for name in set(there.get("required", ())) - set(schema.get("required", ())):
            yield f"{where}.{name} is required now"
        for name, one in schema.get("properties", {}).items():
            if name not in there.get("properties", {}):
                yield f"{where}.{name} is gone"
            else:
                yield from _taken(old, new, one, there["properties"][name], f"{where}.{name}")


def _given(old: Json, new: Json, before: Json, after: Json, where: str) -> Iterator[str]:
    """What programs read in answers has to be there still, and of no other kind."""
    kinds, now = _kinds(old, before), _kinds(new, after)
    for kind in now.keys() - kinds.keys():
        yield f"{where} may be {kind} now"
    for kind, schema in kinds.items():
        there = now.get(kind)
        if there is None:
            continue
        if "enum" in schema and set(there.get("enum", ["anything"])) - set(schema["enum"]):
            yield f"{where} has more words"
        for name in set(schema.get("required", ())) - set(there.get("required", ())):
            yield f"{where}.{name} may be missing now"
        for name, one in schema.get("properties", {}).items():
            if name in there.get("properties", {}):
                yield from _given(old, new, one, there["properties"][name], f"{where}.{name}")
        if "items" in schema:
            yield from _given(old, new, schema["items"], there.get("items", {}), f"{where}[]")
