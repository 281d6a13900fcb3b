"""Strict reading of inputs, with the position of each mistake.

The types of an input define what is accepted; msgspec provides them. A tree is read
rather than plain data, so that numbers keep their digits and mistakes their positions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any, Final, TypeVar, cast

from msgspec import inspect as kinds

from modicum.api.schema.shape import Input
from modicum.core.diagnostics import fail, placed
from modicum.core.document import Entries, Kind, Node, Scalar, describe
from modicum.core.errors import Code
from modicum.core.fields import Fields
from modicum.core.rationals import parse_number
from modicum.core.reader import boolean, choice, count, items, number, text

T = TypeVar("T")

_RATIO: Final = re.compile(r"-?[0-9]{1,40}/[1-9][0-9]{0,39}")


def read_input(node: Node, kind: type[T], what: str = "the request") -> T:
    """Return a request as an input, or as one of several distinguished by a tag.

    Raises:
        InputError: If a key is unknown or missing, or a value has the wrong type.
    """
    found: T = _value(node, _type_of(cast(Any, kind)), what)
    return found


@cache
def _type_of(kind: Any) -> kinds.Type:
    return kinds.type_info(kind)


def _value(node: Node, kind: kinds.Type, what: str) -> Any:
    return _READERS[type(kind)](node, kind, what)


def _annotated(node: Node, kind: kinds.Metadata, what: str) -> Any:
    read: Callable[[Node, str], Any] | None = (kind.extra or {}).get("read")
    return _value(node, kind.type, what) if read is None else read(node, what)


def _struct(node: Node, kind: kinds.StructType, what: str) -> Input:
    fields = Fields(node, what)
    assert isinstance(node, Entries)
    own = cast("type[Input]", kind.cls)
    with placed(node):
        own.refuse_keys({key.text for key, _ in node.entries})
    if kind.tag_field is not None:
        fields.take(kind.tag_field)
    given = {}
    for one in kind.fields:
        take = fields.take if one.required else fields.take_optional
        value = take(one.encode_name)
        if value is not None:
            found = _value(value, one.type, f"`{one.encode_name}`")
            if found == "" and not one.required and _is_never_empty(one.type):
                # Its consumer would take it for one that was left out.
                message = f"`{one.encode_name}` is empty"
                raise fail(
                    Code.BAD_NAME, message, value, help="give a value, or leave it out"
                )
            given[one.name] = found
    fields.finish()
    with placed(node):
        return own(**given)


def _is_never_empty(kind: kinds.Type) -> bool:
    types = kind.types if isinstance(kind, kinds.UnionType) else (kind,)
    return any(isinstance(one, kinds.StrType) and one.min_length for one in types)


def _one_of(node: Node, kind: kinds.UnionType, what: str) -> Any:
    types: tuple[Any, ...] = kind.types
    by_tag = {str(one.tag): one for one in types}
    (field,) = {one.tag_field for one in by_tag.values()}
    tag = choice(Fields(node, what).take(field), field, by_tag, Code.UNKNOWN_CHOICE)
    return _struct(node, by_tag[tag], what)


def _text(node: Node, kind: kinds.StrType, what: str) -> str:
    # An empty text is left to its consumer, which reports what is missing.
    found = text(node, what, characters_max=kind.max_length or 2000)
    if kind.pattern is not None and not re.fullmatch(kind.pattern, found):
        message = f"{what} does not match {kind.pattern.strip('^$')}"
        raise fail(Code.BAD_NAME, message, node)
    return found


def _count(node: Node, kind: kinds.IntType, what: str) -> int:
    least, most = cast("tuple[int, int]", (kind.ge, kind.le))
    return count(node, what, at_least=least, at_most=most)


def _list(node: Node, kind: kinds.VarTupleType, what: str) -> tuple[Any, ...]:
    found, least, most = items(node, what), kind.min_length, kind.max_length
    if least and most and not least <= len(found) <= most:
        message = f"{what} must have {least} to {most} items, not {len(found)}"
        raise fail(Code.OUT_OF_RANGE, message, node)
    if most is not None and len(found) > most:
        message = f"{what} has {len(found)} items, at most {most}"
        raise fail(Code.TOO_LARGE, message, node)
    return tuple(_value(one, kind.item_type, f"each of {what}") for one in found)


def _ends(node: Node, kind: kinds.TupleType, what: str) -> tuple[Any, ...]:
    found = items(node, what)
    if len(found) != len(kind.item_types):
        message = f"{what} has {len(found)} items, and not {len(kind.item_types)}"
        raise fail(Code.WRONG_TYPE, message, node)
    return tuple(
        _value(one, each, f"an end of {what}")
        for one, each in zip(found, kind.item_types, strict=True)
    )


def _mapping(node: Node, kind: kinds.DictType, what: str) -> dict[Any, Any]:
    return {
        _value(key, kind.key_type, f"a key of {what}"): _value(
            value, kind.value_type, f"`{key.text[:60]}`"
        )
        for key, value in Fields(node, what).rest()
    }


def _word(node: Node, kind: kinds.LiteralType, what: str) -> str:
    return choice(node, what, map(str, kind.values), Code.UNKNOWN_CHOICE)


def amount(node: Node, what: str) -> Fraction:
    """Return a number; a text stays exact, and may be a ratio."""
    if not isinstance(node, Scalar) or node.kind is not Kind.TEXT:
        return number(node, what)
    if _RATIO.fullmatch(node.text):
        return Fraction(node.text)
    found = parse_number(node.text)
    if found is None:
        message = f"{what} must be a number, got {describe(node)}"
        raise fail(Code.NOT_A_NUMBER, message, node)
    return found


_READERS: Final[Mapping[type, Callable[[Node, Any, str], Any]]] = {
    kinds.Metadata: _annotated,
    kinds.StructType: _struct,
    kinds.UnionType: _one_of,
    kinds.StrType: _text,
    kinds.IntType: _count,
    kinds.BoolType: lambda node, _, what: boolean(node, what),
    kinds.LiteralType: _word,
    kinds.VarTupleType: _list,
    kinds.TupleType: _ends,
    kinds.DictType: _mapping,
    kinds.CustomType: lambda node, _, what: amount(node, what),
    kinds.AnyType: lambda node, _, __: node,
}
