"""Predicates: which mechanisms a rule is about. Values, without any I/O or floats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import TypeAlias, assert_never

from modicum.release import Vocabulary

#: Implication is decided by enumeration up to this many label combinations.
COMBINATIONS_MAX = 10_000


class Scope(Enum):
    """Whose label or text a predicate looks at."""

    MECHANISM = "m"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a predicate may know about a mechanism within its release.

    Attributes:
        attributes: Attributes the mechanism reads.
        labels: A value for every label, by scope and label name.
        texts: Open text by scope and name; a name that is absent reads as "".
    """

    attributes: frozenset[str]
    labels: Mapping[tuple[Scope, str], str]
    texts: Mapping[tuple[Scope, str], str]


@dataclass(frozen=True, slots=True)
class Constant:
    """Always true, or always false."""

    value: bool


@dataclass(frozen=True, slots=True)
class LabelIn:
    """The label has one of the values."""

    scope: Scope
    label: str
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class TextIn:
    """The open text is one of the values."""

    scope: Scope
    field: str
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class ReadsAny:
    """The mechanism reads at least one of the attributes."""

    attributes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Predicate


@dataclass(frozen=True, slots=True)
class All:
    """Every part holds; with no parts, true."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """At least one part holds; with no parts, false."""

    parts: tuple[Predicate, ...]


Predicate: TypeAlias = Constant | LabelIn | TextIn | ReadsAny | Not | All | Any


def holds(predicate: Predicate, facts: Facts) -> bool:
    """Return whether the predicate is true of a mechanism."""
    match predicate:
        case Constant(value=value):
            return value
        case LabelIn(scope=scope, label=label, values=values):
            return facts.labels[scope, label] in values
        case TextIn(scope=scope, field=field, values=values):
            return facts.texts.get((scope, field), "") in values
        case ReadsAny(attributes=attributes):
            return not attributes.isdisjoint(facts.attributes)
        case Not(part=part):
            return not holds(part, facts)
        case All(parts=parts):
            return all(holds(part, facts) for part in parts)
        case Any(parts=parts):
            return any(holds(part, facts) for part in parts)
        case _:
            assert_never(predicate)


def words(predicate: Predicate) -> str:
    """Return the predicate in CEL, as `modicum.policy.cel` would read it."""
    match predicate:
        case Constant(value=value):
            return "true" if value else "false"
        case LabelIn(scope=scope, label=name, values=values):
            return f"{scope.value}.{name} {_one_of(values)}"
        case TextIn(scope=scope, field=name, values=values):
            return f"{scope.value}.{name} {_one_of(values)}"
        case ReadsAny(attributes=attributes):
            listed = sorted(attributes)
            return " || ".join(f'"{one}" in m.attributes' for one in listed) or "false"
        case Not(part=part):
            return f"!({words(part)})"
        case All(parts=parts):
            return " && ".join(_bracketed(part) for part in parts) or "true"
        case Any(parts=parts):
            return " || ".join(_bracketed(part) for part in parts) or "false"
        case _:
            assert_never(predicate)


def _one_of(values: frozenset[str]) -> str:
    # A text holds one kind of quotes at most: the subset has no escapes.
    quoted = [f"'{v}'" if '"' in v else f'"{v}"' for v in sorted(values)]
    return f"== {quoted[0]}" if len(quoted) == 1 else f"in [{', '.join(quoted)}]"


def _bracketed(predicate: Predicate) -> str:
    plain = isinstance(predicate, Constant | LabelIn | TextIn | Not) or (
        isinstance(predicate, ReadsAny) and len(predicate.attributes) == 1
    )
    return words(predicate) if plain else f"({words(predicate)})"


def atoms(predicate: Predicate) -> Iterator[Predicate]:
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


def counterexample(
    narrow: Predicate, wide: Predicate, vocabulary: Vocabulary
) -> dict[str, str] | None:
    """Return labels for which `narrow` holds and `wide` does not, or None.

    Args:
        narrow: A predicate over labels.
        wide: A predicate over labels that `narrow` is claimed to imply.
        vocabulary: The labels and their values.

    Returns:
        Values of the labels that either predicate looks at, or None if the claim
        holds for every combination.

    Raises:
        ValueError: If there are more than `COMBINATIONS_MAX` combinations.
    """
    looked_at = sorted(
        {
            (atom.scope, atom.label)
            for predicate in (narrow, wide)
            for atom in atoms(predicate)
            if isinstance(atom, LabelIn)
        },
        key=lambda key: (key[0].value, key[1]),
    )
    domains = [vocabulary.labels[label].values for _, label in looked_at]
    size = 1
    for domain in domains:
        size *= len(domain)
    if size > COMBINATIONS_MAX:
        message = f"{size} label combinations are too many to enumerate"
        raise ValueError(message)
    for values in product(*domains):
        labels = dict(zip(looked_at, values, strict=True))
        facts = Facts(frozenset(), labels, {})
        if holds(narrow, facts) and not holds(wide, facts):
            return {
                f"{scope.value}.{label}": value
                for (scope, label), value in labels.items()
            }
    return None


def escapes_by_default(
    predicate: Predicate, label: str, vocabulary: Vocabulary
) -> bool:
    """Return whether giving a label can bring a mechanism under a predicate.

    That is: for some values of the other labels, the predicate holds for some
    value of this label, and not for its default.

    Args:
        predicate: A predicate over labels.
        label: The label.
        vocabulary: The labels, their values and defaults.
    """
    looked_at = {
        (atom.scope, atom.label)
        for atom in atoms(predicate)
        if isinstance(atom, LabelIn)
    }
    own = [key for key in looked_at if key[1] == label]
    others = sorted(looked_at - set(own), key=lambda key: (key[0].value, key[1]))
    declared = vocabulary.labels[label]
    if not own:
        return False
    for values in product(*(vocabulary.labels[name].values for _, name in others)):
        fixed = dict(zip(others, values, strict=True))
        by_value = {
            value: holds(
                predicate,
                Facts(frozenset(), {**fixed, **dict.fromkeys(own, value)}, {}),
            )
            for value in declared.values
        }
        if any(by_value.values()) and not by_value[declared.default]:
            return True
    return False
