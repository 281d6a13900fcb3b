"""Past releases, of which not everything is known.

Unknown properties are assumed to be the worst case, and every assumption is recorded:
readers of the log must see what was known and what was not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date

from msgspec.structs import replace

from modicum.api.local.evaluation import Description
from modicum.core.diagnostics import shortened
from modicum.core.document import Entries, Items, Kind, Node, Scalar, from_python
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.ledger import RecordedRelease, record_release
from modicum.ledger.log.days import day_of
from modicum.ledger.log.recorded_release import RecordedMechanism
from modicum.release import ReleaseDraft, Vocabulary, read_and_price

#: The placeholder for every attribute of the data.
ALL = "all"
#: The common text of assumptions about periods.
NO_PERIODS = "no `periods` stated"
#: Maximum number of mechanisms listed in one assumption.
_NAMED = 5


def price_past(
    release: Description, vocabulary: Vocabulary
) -> tuple[RecordedRelease, tuple[str, ...]]:
    """Return a past release, as the ledger stores it, and the assumptions.

    A mechanism may set `attributes: all` where its inputs are unknown. Guards of the
    policy do not apply: past releases are counted, however they are described.

    Args:
        release: The release.
        vocabulary: The vocabulary of the policy that it is counted under.

    Returns:
        The release, and the assumptions about it, as text.

    Raises:
        InputError: With every mistake found.
    """
    node, unknown = _with_every_attribute(_node(release), vocabulary)
    recorded = record_release(read_and_price(node, vocabulary))
    return recorded, tuple(_assumptions(recorded, unknown, vocabulary))


def refuse_future(release: RecordedRelease, now: str, mark: Mark | None = None) -> None:
    """Refuse a release that was published, or read rows, later than it is recorded.

    One day of tolerance covers time zones.

    Args:
        release: A release that happened before.
        now: The time at which it is recorded.
        mark: The position of its id in a file, for the message.

    Raises:
        InputError: If it was published on a later day, or a mechanism read only later
            days.
    """
    for one in release.mechanisms:
        first = min((low for low, _ in one.part.periods or ()), default=0)
        if first > day_of(now) + 1:
            name = one.description.get("name", "?")
            raise InputError(
                Problem(
                    Code.OUT_OF_RANGE,
                    f"mechanism `{name}` reads no day before"
                    f" {date.fromordinal(first)}, and it was recorded on {now[:10]}",
                    mark,
                    notes=("a past release has already read its rows",),
                    help="correct `periods`, or submit what is not yet published",
                )
            )
    stated = release.metadata.get("released_on", "")
    try:
        day = date.fromisoformat(stated).toordinal()
    except ValueError:  # Absent, or in an older format, which is ignored.
        return
    if day > day_of(now) + 1:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"`released_on` is {stated}, and today is {now[:10]}",
                mark,
                notes=("a past release is already published",),
                help="correct the date, or submit what is not yet published",
            )
        )


def id_of(release: Description) -> str:
    """Return the id that a release gives itself; empty if it gives none.

    Args:
        release: The release.
    """
    node = _node(release)
    entries = node.entries if isinstance(node, Entries) else ()
    named = (value for key, value in entries if key.text == "release")
    return next((one.text for one in named if isinstance(one, Scalar)), "")


def _node(release: Description) -> Node:
    if isinstance(release, ReleaseDraft):
        return release.to_node()
    if isinstance(release, Scalar | Items | Entries):
        return release
    return from_python(release)


# --- unknown attributes -------------------------------------------------------


def _with_every_attribute(
    node: Node, vocabulary: Vocabulary
) -> tuple[Node, frozenset[int]]:
    """Return a release with `attributes: all` expanded.

    Returns:
        The release, and the positions of the mechanisms that used it, from 0.
    """
    found: set[int] = set()

    def mechanisms(value: Node) -> Node:
        if not isinstance(value, Items):
            return value
        items = list(value.items)
        for place, item in enumerate(items):
            fields = _changed(item, "attributes", lambda one: _written(one, vocabulary))
            if fields is not item:
                found.add(place)
                items[place] = fields
        return replace(value, items=tuple(items)) if found else value

    return _changed(node, "mechanisms", mechanisms), frozenset(found)


def _written(value: Node, vocabulary: Vocabulary) -> Node:
    if not isinstance(value, Scalar) or value.text != ALL:
        return value
    names = (
        Scalar(Kind.TEXT, name, quoted=False, mark=value.mark)
        for name in sorted(vocabulary.attributes)
    )
    return Items(tuple(names), value.mark)


def _changed(node: Node, key: str, change: Callable[[Node], Node]) -> Node:
    """Return a mapping with the value of a key changed; itself if nothing changes."""
    if not isinstance(node, Entries):
        return node
    entries = tuple(
        (name, change(value) if name.text == key else value)
        for name, value in node.entries
    )
    same = all(
        one is other for (_, one), (_, other) in zip(entries, node.entries, strict=True)
    )
    return node if same else replace(node, entries=entries)


# --- assumptions --------------------------------------------------------------


def _assumptions(
    release: RecordedRelease, unknown: frozenset[int], vocabulary: Vocabulary
) -> Iterator[str]:
    """Yield the assumptions about a release, as text."""
    read = _which(release, [p in unknown for p in range(len(release.mechanisms))])
    if read:
        count = len(vocabulary.attributes)
        yield f"{read}: attributes unknown; all {count} assumed"
    for name, label in vocabulary.labels.items():
        stated = [name in _given_labels(one) for one in release.mechanisms]
        unsaid = _which(release, [not one for one in stated])
        if unsaid:
            yield (
                f"{unsaid}: label `{name}` is not stated; assumed is the strictest"
                f" value `{label.default}`"
            )
    yield from _assumed_parts(release, vocabulary)
    if vocabulary.population.time_detail and "released_on" not in release.metadata:
        yield "`released_on` is not stated; assumed is the day of recording"


def _assumed_parts(release: RecordedRelease, vocabulary: Vocabulary) -> Iterator[str]:
    """Yield the assumptions about the population and the periods read."""
    population, units = vocabulary.population, vocabulary.unit_facts.values()
    parts = [one.part for one in release.mechanisms]
    questions = (
        (
            bool(population.partitions),
            "where",
            [one.where for one in parts],
            "everybody",
        ),
        (
            any(unit.period is not None for unit in units),
            "periods",
            [one.periods for one in parts],
            "all of time",
        ),
        (bool(population.grouped), "groups", [one.groups for one in parts], "all"),
    )
    for is_needed, key, stated, assumed in questions:
        which = _which(release, [one is None for one in stated]) if is_needed else ""
        if which:
            yield f"{which}: no `{key}` stated: {assumed}"


def _given_labels(one: RecordedMechanism) -> dict[str, object]:
    stated = one.description.get("labels")
    return dict(stated) if isinstance(stated, dict) else {}


def _which(release: RecordedRelease, holds: list[bool]) -> str:
    """Return the mechanisms that an assumption covers, as text; "" for none."""
    if not any(holds):
        return ""
    if all(holds):
        return "every mechanism" if len(holds) > 1 else "the mechanism"
    names = [
        str(one.description.get("name", "?"))
        for one, held in zip(release.mechanisms, holds, strict=True)
        if held
    ]
    return f"mechanism {shortened(names, _NAMED)}"
