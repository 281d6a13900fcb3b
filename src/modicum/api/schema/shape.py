"""What all shapes share: their base, amounts, digests, and their JSON form."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec
import msgspec.structs

S = TypeVar("S")

#: How JSON spells an amount without a bound.
INFINITE: Final = "inf"

#: SHA-256 as 64 hexadecimal digits.
Digest: TypeAlias = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
#: An object whose keys another format defines, such as the release format.
Plain: TypeAlias = dict[str, Any]


class Amount(float):
    """A loss or a limit for people to read; infinite if no bound is proven.

    JSON has no infinite number: there it is the text `inf`. A plain float would
    become null, so a field that may be infinite has this type.
    """

    __slots__ = ()


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """An input or an answer. Readers ignore keys that they do not know."""


class Column(NamedTuple):
    """How lists for people show a field: `x: Annotated[Amount, Column("X", 3)]`.

    Attributes:
        heading: What stands above it.
        place: Columns stand in the order of their places.
        wraps: Whether long texts in it are wrapped.
        spare: Whether it is left out where there is too little room.
    """

    heading: str
    place: int
    wraps: bool = False
    spare: bool = False


def columns(kind: type[Shape]) -> dict[str, Column]:
    """Return the columns of a shape by the names of their fields, in order."""
    found = {
        field.name: one
        for field in msgspec.structs.fields(kind)
        for one in getattr(field.type, "__metadata__", ())
        if isinstance(one, Column)
    }
    return dict(sorted(found.items(), key=lambda one: one[1].place))


def encode(value: object) -> bytes:
    """Return a shape, or plain data that holds shapes, as JSON text."""
    return _encoder.encode(value)


def plain(value: object) -> Any:
    """Return a shape, or plain data that holds shapes, as `json.loads` would."""
    found = msgspec.to_builtins(value, enc_hook=_encoded)
    return json.loads(json.dumps(found, allow_nan=False))


def convert(node: object, kind: type[S]) -> S:
    """Return plain data as a shape."""
    return msgspec.convert(node, kind, dec_hook=_decoded)


def meanings(kind: type[Shape]) -> dict[str, str]:
    """Return what each field of a shape means, from its docstring and its bases'."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        text = inspect.cleandoc(one.__doc__ or "").partition("Attributes:\n")[2]
        for part in re.split(r"\n    (?=\w+: )", f"\n{text}")[1:]:
            name, _, meaning = part.partition(": ")
            found[name] = " ".join(meaning.split())
    return found


def json_schemas(kinds: Iterable[type[Shape]]) -> dict[str, Any]:
    """Return the JSON Schemas of shapes, and of all that they refer to, by name."""
    _, found = msgspec.json.schema_components(
        kinds, schema_hook=_schema, ref_template=REFERENCE
    )
    known = {one.__name__: one for one in _shapes(Shape)}
    for name, schema in found.items():
        text = inspect.cleandoc(schema.get("description", ""))
        schema["description"] = text.partition("\n\nAttributes:")[0]
        if name not in known:
            continue
        meant = meanings(known[name])
        for field in msgspec.structs.fields(known[name]):
            if field.name in meant:
                # JSON has null where the docstring, which is Python's, has None.
                meaning = meant[field.name].replace("None", "null")
                schema["properties"][field.encode_name]["description"] = meaning
    return found


def _shapes(kind: type[Shape]) -> Iterator[type[Shape]]:
    for one in kind.__subclasses__():
        yield one
        yield from _shapes(one)


#: Where OpenAPI keeps a shape.
REFERENCE: Final = "#/components/schemas/{name}"


def _encoded(value: object) -> object:
    if isinstance(value, Amount):
        if math.isnan(value) or value == -math.inf:
            raise ValueError(f"no amount is {float(value)}")
        return INFINITE if math.isinf(value) else float(value)
    raise NotImplementedError(f"no JSON form of {type(value).__name__}")


def _decoded(kind: type, value: object) -> object:
    if kind is Amount:
        if value == INFINITE:
            return Amount(math.inf)
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                return Amount(value)
            except OverflowError:
                raise ValueError("Number out of range") from None
        raise ValueError("Expected a number or `inf`")
    raise NotImplementedError(f"no JSON form of {kind.__name__}")


def _schema(kind: type) -> dict[str, Any]:
    if kind is Amount:
        return {"anyOf": [{"type": "number"}, {"const": INFINITE}]}
    raise NotImplementedError(f"no JSON form of {kind.__name__}")


_encoder = msgspec.json.Encoder(enc_hook=_encoded)
