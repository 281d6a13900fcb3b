"""Formulas: the input of a search for a counterexample.

A formula restricts the values of its variables. Values are the bits of a mask, so that
the remaining values of a variable and those of a literal are intersected in one
operation.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from modicum.policy.predicates import (
    All,
    Any,
    BoundAtMost,
    Constant,
    LabelIn,
    Not,
    Predicate,
    ReadsAny,
    ReadsAtLeast,
    Scope,
    TextIn,
    TextPasses,
    predicate_text,
)

#: By variable, which of its values are still possible.
Domains: TypeAlias = Mapping[Hashable, int]


class Literal(Struct, frozen=True):
    """The variable has one of the values whose bits are set."""

    variable: Hashable
    mask: int


class Both(Struct, frozen=True):
    """Every part is true; with no parts, true."""

    parts: tuple[Formula, ...]


class Either(Struct, frozen=True):
    """Some part is true; with no parts, false."""

    parts: tuple[Formula, ...]


Formula: TypeAlias = Literal | Both | Either


TRUE = Both(())
FALSE = Either(())


def lowest(mask: int) -> int:
    """Return the number of the lowest bit that is set."""
    return (mask & -mask).bit_length() - 1


def both_of(parts: Iterable[Formula]) -> Formula:
    """Return a formula that is true where all parts are."""
    return _put_together(parts, Both, Either)


def either_of(parts: Iterable[Formula]) -> Formula:
    """Return a formula that is true where some part is."""
    return _put_together(parts, Either, Both)


def _put_together(
    parts: Iterable[Formula],
    kind: type[Both | Either],
    other: type[Both | Either],
) -> Formula:
    masks: dict[Hashable, int] = {}
    found: list[Formula] = []
    for part in parts:
        if part == other(()):
            return part
        for one in part.parts if isinstance(part, kind) else (part,):
            if not isinstance(one, Literal):
                found.append(one)
            elif one.variable not in masks:
                masks[one.variable] = one.mask
            elif kind is Both:
                masks[one.variable] &= one.mask
            else:
                masks[one.variable] |= one.mask
    if kind is Both and not all(masks.values()):
        return FALSE  # Two parts need disjoint values.
    literals = [Literal(variable, mask) for variable, mask in masks.items()]
    whole = (*literals, *found)
    return whole[0] if len(whole) == 1 else kind(whole)


_TRUE = Constant(value=True)
_FALSE = Constant(value=False)


def negation(part: Predicate) -> Predicate:
    """Return a predicate that holds where `part` does not."""
    match part:
        case Constant(value=value):
            return Constant(value=not value)
        case Not(part=inner):
            return inner
        case _:
            return Not(part)


def all_of(parts: Iterable[Predicate]) -> Predicate:
    """Return a predicate that holds where every part does.

    Nested parts are flattened, constants vanish, atoms with a common subject are
    merged, and duplicates removed; otherwise the order is kept.
    """
    return _joined(parts, either=False)


def any_of(parts: Iterable[Predicate]) -> Predicate:
    """Return a predicate that holds where some part does, as simplified as `all_of`."""
    return _joined(parts, either=True)


def simplified(predicate: Predicate) -> Predicate:
    """Return the predicate flattened, without constants and duplicates, and sorted.

    Args:
        predicate: Any predicate.

    Returns:
        A predicate that holds for the same mechanisms. Predicates that differ in the
        order of their parts become equal; other equivalent ones need not.
    """
    match predicate:
        case Not(part=part):
            return negation(simplified(part))
        case All(parts=parts):
            return _sorted(all_of(simplified(part) for part in parts))
        case Any(parts=parts):
            return _sorted(any_of(simplified(part) for part in parts))
        case atom:
            return any_of([atom])


def substituted(
    predicate: Predicate,
    label: str,
    value: str,
    scopes: frozenset[Scope] = frozenset(Scope),
) -> Predicate:
    """Return the remaining predicate once a label is known.

    Args:
        predicate: Any predicate.
        label: The label.
        value: Its value.
        scopes: Where it is given: on the mechanism, on the release, or on both.

    Returns:
        A simplified predicate that does not look at the label there.
    """

    def known(part: Predicate) -> Predicate:
        match part:
            case Not(part=inner):
                return Not(known(inner))
            case All(parts=parts):
                return All(tuple(map(known, parts)))
            case Any(parts=parts):
                return Any(tuple(map(known, parts)))
            case LabelIn(scope=scope, label=name, values=values) if (
                name == label and scope in scopes
            ):
                return Constant(value=value in values)
            case atom:
                return atom

    return simplified(known(predicate))


def _sorted(predicate: Predicate) -> Predicate:
    match predicate:
        case All(parts=parts):
            return All(tuple(sorted(parts, key=predicate_text)))
        case Any(parts=parts):
            return Any(tuple(sorted(parts, key=predicate_text)))
        case _:
            return predicate


def _joined(parts: Iterable[Predicate], *, either: bool) -> Predicate:
    kind = Any if either else All
    by_subject: dict[Hashable, list[Predicate]] = {}
    for part in _flat(parts, kind):
        by_subject.setdefault(_subject(part, either=either), []).append(part)
    found = dict.fromkeys(_one(group, either=either) for group in by_subject.values())
    decided = Constant(value=either)  # One such part settles the whole.
    found.pop(Constant(value=not either), None)
    if decided in found or any(negation(part) in found for part in found):
        return decided
    if len(found) == 1:
        return next(iter(found))
    return kind(tuple(found)) if found else Constant(value=not either)


def _flat(parts: Iterable[Predicate], kind: type[All | Any]) -> Iterable[Predicate]:
    for part in parts:
        if isinstance(part, kind):
            yield from _flat(part.parts, kind)
        else:
            yield part


def _subject(part: Predicate, *, either: bool) -> Hashable:
    """Return the key under which `_one` merges parts."""
    match part:
        case LabelIn(scope=scope, label=name) | TextIn(scope=scope, field=name):
            return type(part), scope, name
        case ReadsAny() if either:
            return ReadsAny
        case ReadsAtLeast():
            return ReadsAtLeast
        case BoundAtMost(unit=unit, limit=int()):
            return BoundAtMost, unit
        case Not(part=inner):
            return Not, _subject(inner, either=not either)
        case _:
            return part


def _one(parts: Sequence[Predicate], *, either: bool) -> Predicate:
    """Return one predicate for all those of one subject."""
    first = parts[0]
    match first:
        case LabelIn(scope=scope, label=name):
            values = [part.values for part in parts if isinstance(part, LabelIn)]
            return _unless_settled(LabelIn(scope, name, _merged(values, either=either)))
        case TextIn(scope=scope, field=name):
            values = [part.values for part in parts if isinstance(part, TextIn)]
            return _unless_settled(TextIn(scope, name, _merged(values, either=either)))
        case ReadsAny():
            reads = [part.attributes for part in parts if isinstance(part, ReadsAny)]
            return _unless_settled(ReadsAny(frozenset().union(*reads)))
        case ReadsAtLeast():
            counts = [part.count for part in parts if isinstance(part, ReadsAtLeast)]
            return _unless_settled(ReadsAtLeast((min if either else max)(counts)))
        case BoundAtMost(unit=unit, limit=int()):
            limits = [
                part.limit or 0 for part in parts if isinstance(part, BoundAtMost)
            ]
            return _unless_settled(BoundAtMost(unit, (max if either else min)(limits)))
        case Not():
            inner = [part.part for part in parts if isinstance(part, Not)]
            return negation(_one(inner, either=not either))
        case _:
            return _unless_settled(first)


def _merged(values: Sequence[frozenset[str]], *, either: bool) -> frozenset[str]:
    return values[0].union(*values) if either else values[0].intersection(*values)


def _unless_settled(atom: Predicate) -> Predicate:
    """Return the atom, or the constant that it is for want of a value."""
    match atom:
        case (
            LabelIn(values=values) | TextIn(values=values) | ReadsAny(attributes=values)
        ) if not values:
            return _FALSE
        case ReadsAtLeast(count=count) if count <= 0:
            return _TRUE
        case TextPasses(part=""):
            return _TRUE  # The empty text is in every text.
        case BoundAtMost(limit=int() as limit) if limit < 1:
            return _FALSE
        case _:
            return atom
