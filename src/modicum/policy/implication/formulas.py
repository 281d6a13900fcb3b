"""Formulas: what a search for a counterexample works on.

A formula says which values its variables may have. Values are the bits of a mask, so
that what is left of a variable, and what a literal asks for, meet in one operation.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeAlias

from modicum.core.record import dataclass

#: By variable, which of its values are still possible.
Domains: TypeAlias = Mapping[Hashable, int]


@dataclass(frozen=True, slots=True)
class Literal:
    """The variable has one of the values whose bits are set."""

    variable: Hashable
    mask: int


@dataclass(frozen=True, slots=True)
class Both:
    """Every part is true; with no parts, true."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Either:
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
        return FALSE  # Two parts ask for values that have nothing in common.
    literals = [Literal(variable, mask) for variable, mask in masks.items()]
    whole = (*literals, *found)
    return whole[0] if len(whole) == 1 else kind(whole)
