"""Reading a question to the engine: axes, releases and a target, from one document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from modicum.accounting.neighborhoods.entries import Entry
from modicum.accounting.neighborhoods.question_format import read_entry
from modicum.accounting.neighborhoods.region_format import read_axes
from modicum.accounting.neighborhoods.regions import Axis
from modicum.accounting.neighborhoods.samples import Draw, on_sample
from modicum.accounting.neighborhoods.target_format import read_target
from modicum.accounting.neighborhoods.targets import Target
from modicum.core.document import Node
from modicum.core.errors import Code
from modicum.core.reader import (
    Fields,
    Problems,
    fail,
    items,
    line,
    nearest,
    placed,
    probability,
    take_format,
)

FORMAT = "composition/v1"


@dataclass(frozen=True, slots=True)
class Question:
    """What an engine is asked.

    Attributes:
        entries: The releases.
        axes: The partitioning attributes.
        target: The neighboring relation.
        delta: The delta to convert to, if one is given.
    """

    entries: tuple[Entry, ...]
    axes: tuple[Axis, ...]
    target: Target
    delta: Fraction | None


def read_question(node: Node) -> Question:
    """Return the question that a document asks.

    Args:
        node: The document, with its places.

    Raises:
        InputError: With every mistake, each with its place.

    Examples:
        >>> from modicum.core.document import from_python
        >>> entry = {"id": "a", "cost": {"rho": 0.5}}
        >>> document = {"format": FORMAT, "entries": [entry], "target": "substitute"}
        >>> read_question(from_python(document)).target
        Substitute()
        >>> read_question(from_python({**document, "entries": [entry, entry]}))
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: two entries are called `a`
    """
    fields = Fields(node, "the document")
    take_format(fields, FORMAT)
    found = Problems()
    axes: dict[str, Axis] = {}
    axes_node = fields.take_optional("axes")
    if axes_node is not None:
        with found.guard():
            axes = read_axes(axes_node)
    attributes = _attributes(fields)
    entry_nodes = items(fields.take("entries"), "`entries`")
    read: list[tuple[Entry, Draw | None]] = []
    for entry_node in entry_nodes:
        with found.guard():
            read.append(read_entry(entry_node, axes))
    target_node = fields.take("target")
    delta_node = fields.take_optional("delta")
    delta = None if delta_node is None else probability(delta_node, "delta")
    with found.guard():
        fields.finish()
    names = _known_names(read, axes, attributes)
    if attributes is not None:
        with found.guard():
            _check_reads(read, names, node)
    with found.guard():
        target = read_target(target_node, axes, names)
    with found.guard():
        _no_id_twice(read, node)
    found.raise_any()
    with placed(node):
        entries = tuple(_on_samples(read, node))
    return Question(entries, tuple(axes.values()), target, delta)


def _attributes(fields: Fields) -> frozenset[str] | None:
    node = fields.take_optional("attributes")
    if node is None:
        return None
    return frozenset(line(one, "an attribute") for one in items(node, "`attributes`"))


def _known_names(
    read: list[tuple[Entry, Draw | None]],
    axes: Mapping[str, Axis],
    attributes: frozenset[str] | None,
) -> frozenset[str]:
    """Return the attributes that may be named: the listed ones, or those in use."""
    used = [entry.reads or frozenset() for entry, _ in read]
    listed = frozenset().union(*used) if attributes is None else attributes
    return frozenset(axes) | listed


def _check_reads(
    read: list[tuple[Entry, Draw | None]], names: frozenset[str], node: Node
) -> None:
    for entry, _ in read:
        for name in sorted((entry.reads or frozenset()) - names):
            raise fail(
                Code.UNKNOWN_ATTRIBUTE,
                f"`{entry.id}` reads `{name}`, which `attributes` does not list",
                node,
                label=nearest(name, names),
            )


def _no_id_twice(read: list[tuple[Entry, Draw | None]], node: Node) -> None:
    seen: set[str] = set()
    for entry, _ in read:
        if entry.id in seen:
            raise fail(
                Code.DUPLICATE_NAME, f"two entries are called `{entry.id}`", node
            )
        seen.add(entry.id)


def _on_samples(read: list[tuple[Entry, Draw | None]], node: Node) -> list[Entry]:
    """Replace the entries of each draw by one, in the place of the first."""
    draws: dict[str, tuple[Draw, list[Entry]]] = {}
    found: list[Entry | str] = []
    for entry, draw in read:
        if draw is None:
            found.append(entry)
        elif draw.name not in draws:
            draws[draw.name] = draw, [entry]
            found.append(draw.name)
        elif draws[draw.name][0] != draw:
            raise fail(
                Code.KEYS_CONFLICT,
                f"the sample `{draw.name}` has two rates",
                node,
                help="another rate is another sample: give it another name",
            )
        else:
            draws[draw.name][1].append(entry)
    return [
        on_sample(draws[one][1], draws[one][0]) if isinstance(one, str) else one
        for one in found
    ]
