"""Dataclasses that are made quickly: most classes of a process are never used.

The standard decorator compiles six methods for each class, which takes longer than
all else that importing a module does. Here they are compiled when they are first
called. Everything else is as the standard decorator does it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        *,
        frozen: bool,
        slots: bool = False,
        eq: bool = True,
        repr: bool = True,  # noqa: A002
    ) -> Callable[[type], type]:
        """Return the decorator of a frozen class; for others take the standard one.

        Args:
            frozen: True.
            slots: Whether the class has slots.
            eq: Whether objects with equal fields are equal.
            repr: Whether an object is shown with its fields.
        """
        assert frozen

        def made(own: type) -> type:
            if any(dataclasses.is_dataclass(base) for base in own.__mro__[1:]):
                return dataclasses.dataclass(
                    frozen=frozen, slots=slots, eq=eq, repr=repr
                )(own)
            kept = {name for name, found in vars(own).items() if found is not None}
            cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(
                own
            )
            methods = {"__init__": _later(cls, "__init__", _init), **_FROZEN}
            if repr:
                methods["__repr__"] = _repr
            if eq:
                methods["__eq__"] = _later(cls, "__eq__", _eq)
                methods["__hash__"] = _later(cls, "__hash__", _hash)
            if slots:
                methods |= _STATE
            for name in methods.keys() - kept:
                setattr(cls, name, methods[name])
            cls.__dataclass_params__.frozen = True  # For classes on top of it.
            return cls

        return made


_Source = tuple[str, dict[str, Any]]


def _later(
    cls: type[Any], name: str, source: Callable[[type[Any]], _Source]
) -> Callable[..., Any]:
    """Return a method that puts the real one in its place when it is called."""

    def method(self: Any, *given: Any, **named: Any) -> Any:
        text, scope = source(cls)
        exec(text, scope)  # noqa: S102 - as the standard decorator does
        made = scope[name]
        made.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, made)
        return made(self, *given, **named)

    return method


def _init(cls: type[Any]) -> _Source:
    head, body = ["self"], ["pass"]
    scope: dict[str, Any] = {"__set": object.__setattr__}
    for one in dataclasses.fields(cls):
        name, value = one.name, one.name
        default = f"__default_{name}"
        if one.default_factory is not dataclasses.MISSING:
            scope[default] = scope  # Nobody gives that.
            scope[f"__make_{name}"] = one.default_factory
            value = f"__make_{name}()"
            if one.init:
                value += f" if {name} is {default} else {name}"
        elif one.default is not dataclasses.MISSING:
            scope[default] = one.default
            value = name if one.init else default
        if one.init:
            head.append(f"{name}={default}" if default in scope else name)
        if one.init or default in scope:
            body.append(f"__set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    return f"def __init__({', '.join(head)}):\n " + "\n ".join(body), scope


def _eq(cls: type[Any]) -> _Source:
    names = [one.name for one in dataclasses.fields(cls) if one.compare]
    return (
        "def __eq__(self, other):\n"
        " if other.__class__ is self.__class__:\n"
        f"  return {_values('self', names)} == {_values('other', names)}\n"
        " return NotImplemented",
        {},
    )


def _hash(cls: type[Any]) -> _Source:
    names = [
        one.name
        for one in dataclasses.fields(cls)
        if (one.compare if one.hash is None else one.hash)
    ]
    return f"def __hash__(self):\n return hash({_values('self', names)})", {}


def _values(whose: str, names: list[str]) -> str:
    return "(" + "".join(f"{whose}.{name}," for name in names) + ")"


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (one.name for one in dataclasses.fields(self) if one.repr)
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{type(self).__qualname__}({values})"


def _refuse_set(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, one.name) for one in dataclasses.fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for one, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


_FROZEN = {"__setattr__": _refuse_set, "__delattr__": _refuse_delete}
_STATE = {"__getstate__": _state, "__setstate__": _set_state}
