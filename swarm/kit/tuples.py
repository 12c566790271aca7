"""Named tuples without ``typing``, for modules that must load quickly.

Written and checked like ``typing.NamedTuple``; what these cannot do is what nobody here needs.
"""

from __future__ import annotations

from _collections import _tuplegetter  # type: ignore[import-not-found]  # what collections.namedtuple uses, too

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple
else:

    class _Kind(type):
        """Makes a class of annotated fields a tuple with names."""

        def __new__(mcs, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> type:
            fields = tuple(space.get("__annotations__", ()))
            if fields:
                bases = (tuple, *bases)
                space["_field_defaults"] = {one: space.pop(one) for one in fields if one in space}
                for number, one in enumerate(fields):
                    space[one] = _tuplegetter(number, "")
                space["_fields"] = space["__match_args__"] = fields
                space["__new__"] = _maker(fields, tuple(space["_field_defaults"].values()))
                space |= {method.__name__: method for method in (__getnewargs__, __repr__, _asdict, _replace)}
                space["_make"] = classmethod(_make)
                space["__slots__"] = ()
            return super().__new__(mcs, name, bases, space)

    def _maker(fields: tuple[str, ...], defaults: tuple[Any, ...]) -> Any:
        """Return a ``__new__`` that at its first call puts a better one in its place.

        That one has the fields as its parameters, which is the quickest at each call, but takes a while to make.
        """

        def first(cls: Any, *args: Any, **named: Any) -> Any:
            given = ", ".join(fields)
            code = f"lambda _cls, {given}: _new(_cls, ({given},))"
            made = eval(code, {"_new": tuple.__new__, "__builtins__": {}})  # noqa: S307  # of names in our own source
            made.__defaults__ = defaults or None
            made.__name__ = "__new__"
            home = next(kind for kind in cls.__mro__ if "_fields" in vars(kind))
            home.__new__ = made
            return made(cls, *args, **named)

        return first

    def _make(cls: Any, values: Any) -> Any:
        return cls(*values)

    def _replace(self: Any, **changes: Any) -> Any:
        return type(self)(**{**dict(zip(self._fields, self, strict=True)), **changes})

    def _asdict(self: Any) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self: Any) -> str:  # noqa: N807  # becomes a method
        shown = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({shown})"

    def __getnewargs__(self: Any) -> tuple[Any, ...]:  # noqa: N807
        return tuple(self)

    class NamedTuple(metaclass=_Kind):
        """The base of all of them."""

        __slots__ = ()


__all__ = ["NamedTuple"]
