"""From a marked tree to a release: every key known, every word in the vocabulary."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import TypeVar

from modicum.accounting import Budget
from modicum.accounting.budget_reading import cost_delta, read_measured
from modicum.core.document import Node
from modicum.core.errors import Code, Mark
from modicum.core.reading import (
    Fields,
    Problems,
    boolean,
    choice,
    count,
    fail,
    items,
    line,
    name,
    nearest,
    positive,
    probability,
    release_id,
    text,
)
from modicum.release.model import Mechanism, Release
from modicum.release.vocabulary import METADATA, Vocabulary

#: More mechanisms in one release are refused.
MECHANISMS_MAX = 1000
#: More values of a randomized response are refused.
VALUES_MAX = 10**6
#: Larger enforced contribution bounds are refused.
CONTRIBUTIONS_MAX = 10**6

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KindFormat:
    """What a kind of mechanism is described by.

    Attributes:
        norm: The norm of its sensitivity, or None if it has no sensitivity.
        parameters: Its parameters, each with the reader of its value.
        measure: The measure in which a cost may be declared beside parameters.
    """

    norm: str | None
    parameters: Mapping[str, Callable[[Node, str], Fraction]]
    measure: str | None


def _values(node: Node, what: str) -> Fraction:
    return Fraction(count(node, what, at_least=2, at_most=VALUES_MAX))


KINDS = MappingProxyType(
    {
        "laplace": KindFormat("l1", {"scale": positive}, "eps"),
        "discrete-laplace": KindFormat("l1", {"scale": positive}, "eps"),
        "gaussian": KindFormat("l2", {"sigma": positive}, "rho"),
        "discrete-gaussian": KindFormat("l2", {"sigma": positive}, "rho"),
        "randomized-response": KindFormat(
            None, {"truth": probability, "values": _values}, "eps"
        ),
        "declared": KindFormat(None, {}, None),
    }
)

#: Kinds that the format knows and this version does not price.
PLANNED_KINDS = frozenset(
    {
        "exponential",
        "report-noisy-max",
        "sparse-vector",
        "dp-sgd",
        "pate-gnmax",
    }
)

_RELEASE_PLANNED = MappingProxyType({"where": "partitioning attributes come later"})
_MECHANISM_PLANNED = MappingProxyType(
    {
        "where": "without partitioning attributes a release is charged to everybody",
        "periods": "time units come later",
        "sampling": "amplification by sampling comes later",
        "noise": "give `mechanism` and its parameters instead",
    }
)


def parse_release(node: Node, vocabulary: Vocabulary) -> Release:
    """Return the release that a marked tree describes.

    Args:
        node: The tree of one release.
        vocabulary: The words it may use.

    Raises:
        InputError: With every mistake found, each with its place.
    """
    found = Problems()
    fields = Fields(node, "the release")
    identifier = "?"
    with found.guard():
        identifier = release_id(fields.take("release"), "the release id")
    labels = _labels(fields, vocabulary, found)
    metadata: dict[str, str] = {}
    open_keys = [key for key in METADATA if key not in vocabulary.labels]
    for key in (*open_keys, "released_on", "evidence", "labeled_by"):
        with found.guard():
            value = fields.take_optional(key)
            if value is not None:
                reader = _date if key == "released_on" else line
                metadata[key] = reader(value, f"`{key}`")
    mechanisms: list[Mechanism] = []
    with found.guard():
        described = items(fields.take("mechanisms"), "`mechanisms`")
        if not 1 <= len(described) <= MECHANISMS_MAX:
            raise fail(
                Code.OUT_OF_RANGE,
                f"a release has 1 to {MECHANISMS_MAX} mechanisms, not {len(described)}",
                node,
            )
        for number, item in enumerate(described, 1):
            with found.guard():
                mechanisms.append(_mechanism(item, number, labels, vocabulary))
        _refuse_duplicates(mechanisms, described, found)
    with found.guard():
        fields.finish(unsupported=_RELEASE_PLANNED)
    found.raise_any()
    return Release(identifier, labels, metadata, tuple(mechanisms), node.mark)


_DATE = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", re.ASCII)


def _date(node: Node, what: str) -> str:
    value = text(node, what)
    if not _DATE.fullmatch(value):
        raise fail(Code.OUT_OF_RANGE, f"{what} must be a date such as 2026-03-01", node)
    return value


def _refuse_duplicates(
    mechanisms: list[Mechanism], described: tuple[Node, ...], found: Problems
) -> None:
    if len(mechanisms) != len(described):
        return  # Some did not parse; that is reported already.
    seen: set[str] = set()
    for mechanism, node in zip(mechanisms, described, strict=True):
        with found.guard():
            if mechanism.name in seen:
                raise fail(
                    Code.DUPLICATE_NAME,
                    f"two mechanisms are named `{mechanism.name}`",
                    node,
                    help="give each a name of its own",
                )
        seen.add(mechanism.name)


def _labels(fields: Fields, vocabulary: Vocabulary, found: Problems) -> dict[str, str]:
    labels: dict[str, str] = {}
    for label, declared in vocabulary.labels.items():
        with found.guard():
            value = fields.take_optional(label)
            if value is not None:
                labels[label] = choice(
                    value,
                    f"value of label `{label}`",
                    declared.values,
                    Code.UNKNOWN_LABEL_VALUE,
                )
    return labels


def _mechanism(
    node: Node, number: int, inherited: Mapping[str, str], vocabulary: Vocabulary
) -> Mechanism:
    found = Problems()
    fields = Fields(node, f"mechanism {number}")
    given_name = fields.take_optional("name")
    own_name = f"mechanism-{number}"
    with found.guard():
        if given_name is not None:
            own_name = name(given_name, "the mechanism's name")
    kind = _kind(fields.take("mechanism"))
    form = KINDS[kind]
    attributes: tuple[str, ...] = ()
    with found.guard():
        attributes = _attributes(fields.take("attributes"), vocabulary)
    labels = {**inherited, **_labels(fields, vocabulary, found)}
    parameters: dict[str, Fraction] = {}
    truth_mark: Mark | None = None
    for key, reader in form.parameters.items():
        with found.guard():
            value = fields.take_optional(key)
            if value is not None:
                parameters[key] = reader(value, f"`{key}`")
            if value is not None and key == "truth":
                truth_mark = value.mark
    sensitivity: dict[str, Fraction] = {}
    with found.guard():
        if form.norm is not None:
            sensitivity = _sensitivity(fields, form.norm, vocabulary)
    bounds: dict[str, int] = {}
    with found.guard():
        bounds = _by_unit(fields, "contribution_bound", vocabulary, _bound)
    public_frame = False
    if kind == "randomized-response":
        with found.guard():
            public_frame = _public_frame(fields)
    cost_node = fields.take_optional("cost")
    cost: dict[str, Budget] = {}
    with found.guard():
        if cost_node is not None:
            cost = _units_of(cost_node, "cost", vocabulary, _cost)
    with found.guard():
        fields.finish(unsupported=_MECHANISM_PLANNED)
    found.raise_any()
    return Mechanism(
        name=own_name,
        kind=kind,
        attributes=attributes,
        labels=labels,
        parameters=parameters,
        sensitivity=sensitivity,
        contribution_bound=bounds,
        public_frame=public_frame,
        cost=cost,
        mark=node.mark,
        cost_mark=cost_node.mark if cost_node is not None else node.mark,
        truth_mark=truth_mark,
    )


def _kind(node: Node) -> str:
    word = text(node, "`mechanism`")
    if word in PLANNED_KINDS:
        raise fail(
            Code.NOT_SUPPORTED,
            f"mechanism `{word}` is not priced by this version",
            node,
            help="`modicum account mechanism` shows its loss: give `mechanism:"
            " declared` with that as its `cost`",
        )
    return choice(node, "mechanism", KINDS, Code.UNKNOWN_MECHANISM)


def _attributes(node: Node, vocabulary: Vocabulary) -> tuple[str, ...]:
    found = Problems()
    read: list[str] = []
    for item in items(node, "`attributes`"):
        with found.guard():
            attribute = text(item, "an attribute")
            if attribute not in vocabulary.attributes:
                raise fail(
                    Code.UNKNOWN_ATTRIBUTE,
                    f'unknown attribute "{attribute[:60]}" in release',
                    item,
                    label=nearest(attribute, vocabulary.attributes),
                    notes=(
                        "an untagged attribute would escape every per-attribute"
                        " and per-category rule",
                    ),
                )
            if attribute in read:
                raise fail(
                    Code.DUPLICATE_NAME, f"attribute `{attribute}` stands twice", item
                )
            read.append(attribute)
    found.raise_any()
    return tuple(read)


def _by_unit(
    fields: Fields, key: str, vocabulary: Vocabulary, reader: Callable[[Node], T]
) -> dict[str, T]:
    node = fields.take_optional(key)
    return {} if node is None else _units_of(node, key, vocabulary, reader)


def _units_of(
    node: Node, key: str, vocabulary: Vocabulary, reader: Callable[[Node], T]
) -> dict[str, T]:
    found = Problems()
    values: dict[str, T] = {}
    for unit_node, value in Fields(node, f"`{key}`").rest():
        with found.guard():
            unit = choice(
                unit_node, "privacy unit", vocabulary.units, Code.UNKNOWN_UNIT
            )
            values[unit] = reader(value)
    found.raise_any()
    return values


def _sensitivity(
    fields: Fields, norm: str, vocabulary: Vocabulary
) -> dict[str, Fraction]:
    def in_norm(node: Node) -> Fraction:
        inner = Fields(node, "a sensitivity")
        value = positive(inner.take(norm), f"the {norm} sensitivity")
        inner.finish()
        return value

    return _by_unit(fields, "sensitivity", vocabulary, in_norm)


def _bound(node: Node) -> int:
    return count(node, "a contribution bound", at_least=1, at_most=CONTRIBUTIONS_MAX)


def _public_frame(fields: Fields) -> bool:
    node = fields.take_optional("public_frame")
    return node is not None and boolean(node, "`public_frame`")


def _cost(node: Node) -> Budget:
    return read_measured(node, "a cost", cost_delta)
