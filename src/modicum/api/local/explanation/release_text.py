"""A release as plain values, as in a file, for editing and writing.

An edited release is read again like any release, so no check is skipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from modicum.core.document import Entries, Items, Kind, Node, Scalar, from_python
from modicum.core.rationals import number_text, rational
from modicum.policy.document.canonical_form import formatted
from modicum.release import ReleaseDraft

#: A release as in a file: texts, exact numbers, lists and mappings.
Written: TypeAlias = dict[str, Any]

#: The path of a number in a mechanism: its keys, from the outside in.
Path: TypeAlias = tuple[str, ...]


def written(release: ReleaseDraft | Mapping[str, object] | Node) -> Written:
    """Return a release as plain values, with exact numbers."""
    if isinstance(release, ReleaseDraft):
        node = release.to_node()
    elif isinstance(release, Scalar | Items | Entries):
        node = release
    else:
        node = from_python(release)
    found: Written = _value(node)
    return found


def _value(node: Node) -> Any:
    match node:
        case Items(items=items):
            return [_value(item) for item in items]
        case Entries(entries=entries):
            return {_value(key): _value(value) for key, value in entries}
        case Scalar(kind=Kind.NUMBER, text=text) if "/" in text:
            return Fraction(text)
        case Scalar(kind=Kind.NUMBER, text=text):
            number = Decimal(text)
            return int(number) if text.isdecimal() else number
        case Scalar(kind=Kind.BOOLEAN, text=text):
            return text.lower() == "true"
        case Scalar(kind=Kind.NULL):
            return None
        case _:
            return node.text


def release_text(release: Mapping[str, object]) -> str:
    """Return the text of a file that describes a release."""
    return formatted(from_python(release)).lstrip("\n")


def with_mechanisms(release: Written, mechanisms: Sequence[Written]) -> Written:
    """Return a release with other mechanisms."""
    return {**release, "mechanisms": list(mechanisms)}


def name_of(mechanism: Written, place: int) -> str:
    """Return the name of a mechanism."""
    return str(mechanism.get("name", f"mechanism-{place + 1}"))


def number_at(mechanism: Written, path: Path) -> Fraction:
    """Return a number of a mechanism."""
    value: Any = mechanism
    for key in path:
        value = value[key]
    return rational(value)


def with_number(mechanism: Written, path: Path, value: Fraction) -> Written:
    """Return a mechanism with another number in one place."""
    key, *rest = path
    if rest:
        inner = with_number(mechanism[key], tuple(rest), value)
        return {**mechanism, key: inner}
    exact = value.numerator if value.denominator == 1 else Decimal(number_text(value))
    return {**mechanism, key: exact}
