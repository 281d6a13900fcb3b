"""Common parts of shapes and inputs: bases, exact numbers, and JSON encoding."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Final, NamedTuple, TypeAlias, TypeVar

import msgspec
import msgspec.structs

from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import number_text
from modicum.core.reader import release_id

S = TypeVar("S")

#: The JSON form of an amount without a bound.
INFINITE: Final = "inf"

#: SHA-256 as 64 hexadecimal digits.
Digest: TypeAlias = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
#: An object whose keys another format defines, such as the release format.
Plain: TypeAlias = dict[str, Any]


class Amount(float):
    """A loss or a limit for display; infinite if no bound is proven.

    JSON has no infinite number, so it is encoded as the text `inf`. A plain float would
    become null; every field that may be infinite has this type.
    """

    __slots__ = ()


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """An answer. Readers ignore keys that they do not know."""


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of request bodies. Readers reject unknown keys.

    A field may name the reader of its value in a marked tree, as `Meta(extra={"read":
    reader})`; otherwise it is read by its type.
    """

    #: Of these keys, exactly one is there.
    one_of: ClassVar[tuple[str, ...]] = ()
    #: By key, the keys that must be there if it is.
    needs: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def __post_init__(self) -> None:
        given = {one: getattr(self, one) for one in self.__struct_fields__}
        self.refuse_keys({one for one in given if given[one] is not msgspec.UNSET})

    @classmethod
    def refuse_keys(cls, keys: Container[str]) -> None:
        """Refuse keys that conflict, or miss others."""
        if cls.one_of and sum(one in keys for one in cls.one_of) != 1:
            named = " and ".join(f"`{one}`" for one in cls.one_of)
            raise conflict(f"one of {named} is given", "give one of them")
        for key, others in cls.needs.items():
            for one in others:
                if key in keys and one not in keys:
                    message = f"`{key}` is given together with `{one}`"
                    raise conflict(message, "give both, or leave it out")


def conflict(message: str, remedy: str) -> InputError:
    """Return the error for keys that are not there together."""
    return InputError(Problem(Code.KEYS_CONFLICT, message, help=remedy))


#: A reason, for the record.
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
#: The name of a person, a data set or a contract.
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
#: The id of a new contract, release or round.
NewId = Annotated[
    str, msgspec.Meta(min_length=1, max_length=200, extra={"read": release_id})
]


class Column(NamedTuple):
    """The display of a field in lists: `x: Annotated[Amount, Column("X", 3)]`.

    Attributes:
        heading: The column heading.
        place: The order of the column.
        wraps: Whether long texts in it are wrapped.
        spare: Whether the column is dropped where space is short.
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
    """Encode a shape, or plain data with shapes, as JSON text."""
    return _encoder.encode(value)


def plain(value: object) -> Any:
    """Return a shape, or plain data with shapes, as `json.loads` would."""
    found = msgspec.to_builtins(value, enc_hook=_encoded)
    return json.loads(json.dumps(found, allow_nan=False))


def convert(node: object, kind: type[S]) -> S:
    """Return plain data as a shape."""
    return msgspec.convert(node, kind, dec_hook=_decoded)


def meanings(kind: type) -> dict[str, str]:
    """Return the meanings of fields, from the docstrings of a shape and its bases."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        text = inspect.cleandoc(one.__doc__ or "").partition("Attributes:\n")[2]
        for part in re.split(r"\n    (?=\w+: )", f"\n{text}")[1:]:
            name, _, meaning = part.partition(": ")
            found[name] = " ".join(meaning.split())
    return found


def reference(kind: Any) -> dict[str, Any]:
    """Return a JSON Schema that refers to a shape, or to one of several."""
    (found,), _ = msgspec.json.schema_components(
        [kind], schema_hook=_schema, ref_template=REFERENCE
    )
    return found


def shapes() -> dict[str, type[Shape | Input]]:
    """Return all shapes and inputs that were imported, by name."""
    known: list[type[Shape | Input]] = [*_below(Shape), *_below(Input)]
    return {one.__name__: one for one in known}


def json_schemas(kinds: Iterable[type[Shape | Input]]) -> dict[str, Any]:
    """Return the JSON Schemas of shapes, and of all that they refer to, by name."""
    _, found = msgspec.json.schema_components(
        kinds, schema_hook=_schema, ref_template=REFERENCE
    )
    known = shapes()
    for name, schema in found.items():
        text = inspect.cleandoc(schema.get("description", ""))
        schema["description"] = text.partition("\n\nAttributes:")[0]
        if name not in known:
            continue
        texts = meanings(known[name])
        for field in msgspec.structs.fields(known[name]):
            if field.name in texts:
                # JSON has null where the docstring, which is Python's, has None.
                meaning = texts[field.name].replace("None", "null")
                schema["properties"][field.encode_name]["description"] = meaning
        own = known[name]
        if issubclass(own, Input) and own.one_of:
            schema["oneOf"] = [{"required": [one]} for one in own.one_of]
        if issubclass(own, Input) and own.needs:
            schema["dependentRequired"] = {k: [*v] for k, v in own.needs.items()}
    more = {*re.findall(r'"#/components/schemas/(\w+)"', json.dumps(found))} - {*found}
    return found | json_schemas(known[one] for one in sorted(more)) if more else found


T = TypeVar("T")


def _below(kind: type[T]) -> Iterator[type[T]]:
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)


#: The place of a shape in OpenAPI.
REFERENCE: Final = "#/components/schemas/{name}"


def _encoded(value: object) -> object:
    if isinstance(value, Fraction):
        return number_text(value)
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
    if kind is Fraction:
        return {"type": ["number", "string"]}
    raise NotImplementedError(f"no JSON form of {kind.__name__}")


_encoder = msgspec.json.Encoder(enc_hook=_encoded)
