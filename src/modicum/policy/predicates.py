"""Predicates: which mechanisms a rule is about. Values, without any I/O or floats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import TypeAlias, assert_never

from msgspec import Struct, field


class Scope(Enum):
    """The owner of a label or text in a predicate."""

    MECHANISM = "m"
    RELEASE = "release"


class TextTest(Enum):
    """A test of a part of an open text; the values are CEL's names."""

    STARTS_WITH = "startsWith"
    ENDS_WITH = "endsWith"
    CONTAINS = "contains"

    def passes(self, whole: str, part: str) -> bool:
        """Return whether `whole` starts with, ends with or contains `part`."""
        match self:
            case TextTest.STARTS_WITH:
                return whole.startswith(part)
            case TextTest.ENDS_WITH:
                return whole.endswith(part)
            case TextTest.CONTAINS:
                return part in whole


class Facts(Struct, frozen=True):
    """The facts that a predicate may use about a mechanism within its release.

    Attributes:
        attributes: Attributes the mechanism reads, or may read.
        labels: A value for every label, by scope and label name.
        texts: Open text by scope and name; a name that is absent reads as "".
        bounds: By unit, the enforced number of contributions, at least 1; a unit
            that is absent has no bound, which is more than every number.
        some_of: If attributes were split since, it reads one or more of each of these;
            empty if it reads all of `attributes`.
    """

    attributes: frozenset[str]
    labels: Mapping[tuple[Scope, str], str]
    texts: Mapping[tuple[Scope, str], str]
    bounds: Mapping[str, int] = field(default_factory=dict)
    some_of: tuple[frozenset[str], ...] = ()


class Constant(Struct, frozen=True):
    """Always true, or always false."""

    value: bool


class LabelIn(Struct, frozen=True):
    """The label has one of the values."""

    scope: Scope
    label: str
    values: frozenset[str]


class TextIn(Struct, frozen=True):
    """The open text is one of the values."""

    scope: Scope
    field: str
    values: frozenset[str]


class TextPasses(Struct, frozen=True):
    """The open text starts with, ends with or contains a part."""

    scope: Scope
    field: str
    test: TextTest
    part: str


class ReadsAny(Struct, frozen=True):
    """The mechanism reads at least one of the attributes."""

    attributes: frozenset[str]


class ReadsAtLeast(Struct, frozen=True):
    """The mechanism reads this many attributes or more."""

    count: int


class BoundAtMost(Struct, frozen=True):
    """The mechanism enforces a contribution bound for the unit, and a low one.

    Attributes:
        unit: The unit.
        limit: The largest bound that will do, at least 1; None if any will.
    """

    unit: str
    limit: int | None


class Not(Struct, frozen=True):
    """The part does not hold."""

    part: Predicate


class All(Struct, frozen=True):
    """Every part holds; without parts, true."""

    parts: tuple[Predicate, ...]


class Any(Struct, frozen=True):
    """At least one part holds; without parts, false."""

    parts: tuple[Predicate, ...]


#: Predicates without parts.
Atom: TypeAlias = (
    Constant | LabelIn | TextIn | TextPasses | ReadsAny | ReadsAtLeast | BoundAtMost
)
Predicate: TypeAlias = Atom | Not | All | Any


def holds(predicate: Predicate, facts: Facts, *, surely: bool = False) -> bool:
    """Return whether the predicate is true of a mechanism.

    Args:
        predicate: The predicate.
        facts: The mechanism. If it is unclear what it reads, the predicate holds
            wherever it may: never too rarely.
        surely: Whether it must hold whatever it reads: never too often.
    """
    match predicate:
        case Not(part=part):
            return not holds(part, facts, surely=not surely)
        case All(parts=parts):
            return all(holds(part, facts, surely=surely) for part in parts)
        case Any(parts=parts):
            if surely and facts.some_of:  # What reads one of two surely reads either.
                parts = (*parts, _joined(parts))
            return any(holds(part, facts, surely=surely) for part in parts)
        case ReadsAny(attributes=attributes) if surely and facts.some_of:
            return any(one <= attributes for one in facts.some_of)
        case ReadsAtLeast(count=count) if surely and facts.some_of:
            return _least_read(facts.some_of) >= count
        case atom:
            return _atom_holds(atom, facts)


def _joined(parts: Iterable[Predicate]) -> ReadsAny:
    reads = (one.attributes for one in parts if isinstance(one, ReadsAny))
    return ReadsAny(frozenset().union(*reads))


def _least_read(some_of: Iterable[frozenset[str]]) -> int:
    """Return how many attributes are read at least: one for each disjoint choice."""
    found: set[str] = set()
    count = 0
    for one in sorted(some_of, key=len):
        if found.isdisjoint(one):
            found |= one
            count += 1
    return count


def _atom_holds(atom: Atom, facts: Facts) -> bool:
    match atom:
        case Constant(value=value):
            return value
        case LabelIn(scope=scope, label=label, values=values):
            return facts.labels[scope, label] in values
        case TextIn(scope=scope, field=name, values=values):
            return facts.texts.get((scope, name), "") in values
        case TextPasses(scope=scope, field=name, test=test, part=part):
            return test.passes(facts.texts.get((scope, name), ""), part)
        case ReadsAny(attributes=attributes):
            return not attributes.isdisjoint(facts.attributes)
        case ReadsAtLeast(count=count):
            return len(facts.attributes) >= count
        case BoundAtMost(unit=unit, limit=limit):
            bound = facts.bounds.get(unit)
            return bound is not None and (limit is None or bound <= limit)
        case _:
            assert_never(atom)


def predicate_text(predicate: Predicate) -> str:
    """Return the predicate in CEL, as `modicum.policy.cel.compiler` would read it."""
    match predicate:
        case Not(part=part):
            return f"!({predicate_text(part)})"
        case All(parts=parts):
            return " && ".join(_bracketed(part) for part in parts) or "true"
        case Any(parts=parts):
            return " || ".join(_bracketed(part) for part in parts) or "false"
        case atom:
            return _atom_text(atom)


def _atom_text(atom: Atom) -> str:
    match atom:
        case Constant(value=value):
            return "true" if value else "false"
        case LabelIn(scope=scope, label=name, values=values):
            return f"{scope.value}.{name} {_one_of(values)}"
        case TextIn(scope=scope, field=name, values=values):
            return f"{scope.value}.{name} {_one_of(values)}"
        case TextPasses(scope=scope, field=name, test=test, part=part):
            return f"{scope.value}.{name}.{test.value}({quoted(part)})"
        case ReadsAny(attributes=attributes):
            reads = [f"{quoted(one)} in m.attributes" for one in sorted(attributes)]
            return " || ".join(reads) or "false"
        case ReadsAtLeast(count=count):
            return f"size(m.attributes) >= {count}"
        case BoundAtMost(unit=unit, limit=None):
            return f"{quoted(unit)} in m.contribution_bound"
        case BoundAtMost(unit=unit, limit=limit):
            return f"m.contribution_bound[{quoted(unit)}] <= {limit}"
        case _:
            assert_never(atom)


def _one_of(values: frozenset[str]) -> str:
    listed = [quoted(value) for value in sorted(values)]
    return f"== {listed[0]}" if len(listed) == 1 else f"in [{', '.join(listed)}]"


def quoted(text: str) -> str:
    """Return a text as a CEL literal, with escapes only where it needs them."""
    mark = "'" if '"' in text and "'" not in text else '"'
    written = "".join(_escaped(character, mark) for character in text)
    return f"{mark}{written}{mark}"


def _escaped(character: str, mark: str) -> str:
    if character in {"\\", mark}:
        return "\\" + character
    if character.isprintable():
        return character
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character)
    code = ord(character)
    return short or (f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}")


def _bracketed(predicate: Predicate) -> str:
    several = (
        len(predicate.attributes) > 1
        if isinstance(predicate, ReadsAny)
        else (isinstance(predicate, All | Any))
    )
    return f"({predicate_text(predicate)})" if several else predicate_text(predicate)


def atoms(predicate: Predicate) -> Iterator[Atom]:
    """Yield the parts of a predicate that have no parts themselves."""
    match predicate:
        case Not(part=part):
            yield from atoms(part)
        case All(parts=parts) | Any(parts=parts):
            for part in parts:
                yield from atoms(part)
        case _:
            yield predicate


def labels_of(predicate: Predicate) -> list[str]:
    """Return the labels that a predicate looks at, sorted."""
    return sorted({one.label for one in atoms(predicate) if isinstance(one, LabelIn)})


def looks_only_at_labels(predicate: Predicate) -> bool:
    """Return whether closed labels alone decide the predicate."""
    return all(isinstance(atom, LabelIn | Constant) for atom in atoms(predicate))
