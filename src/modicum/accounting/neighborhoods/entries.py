"""Entries: releases, the records that they read, and the relation of their losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import TypeAlias

from modicum.accounting.amplification import shared_sample
from modicum.accounting.curves import Curve
from modicum.accounting.neighborhoods.regions import EVERYTHING, Region
from modicum.core.errors import Code, InputError, Problem


class Relation(Enum):
    """Which change of one instance a loss was proven for."""

    #: The whole instance is there or is not.
    ADD_REMOVE = "add-remove"
    #: The instance is replaced by another one.
    SUBSTITUTE = "substitute"
    #: Any change of the rows of one instance, in number and in value.
    ANY = "any"
    #: A record moves; the loss is for each unit of distance (d-privacy).
    METRIC = "metric"


class Part(Enum):
    """Units that are not a stretch of an axis."""

    #: One record.
    ROW = "row"
    #: One attribute of one record.
    ATTRIBUTE = "attribute"
    #: All records of one user.
    USER = "user"


@dataclass(frozen=True, slots=True)
class UserPer:
    """All records of one user within one block of an axis, such as a day.

    Attributes:
        axis: The axis, with numbers.
        length: The length of a block; blocks begin at multiples of it.
    """

    axis: str
    length: Fraction


#: The subject of a proven change.
Unit: TypeAlias = Part | UserPer


@dataclass(frozen=True, slots=True)
class Native:
    """The neighboring relation that a loss was proven for.

    Attributes:
        relation: Which change of an instance.
        unit: The unit.
        size_public: Whether the proof assumes the number of records in the region to be
            public, so that nothing is proven for a record that enters or leaves.
    """

    relation: Relation = Relation.ADD_REMOVE
    unit: Unit = Part.ROW
    size_public: bool = False


@dataclass(frozen=True, slots=True)
class RowBound:
    """An enforced bound on the records that one user contributes.

    Attributes:
        rows: The maximum number, >= 1.
        per: In each block of an axis; in all if None.
    """

    rows: int
    per: UserPer | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One release, or many of the same shape.

    Attributes:
        id: Its name.
        curve: The cost of one native change.
        region: The records that it reads. The region must not depend on the data.
        reads: The attributes whose values it uses, beyond choosing the region; all
            of them if None.
        native: The relation that `curve` was proven for.
        stay: The cost of a record that stays in the region and changes its values, if
            something less than the general rule is proven (0 for a count).
        rows: An enforced bound on a user's records, for losses proven per record.
    """

    id: str
    curve: Curve
    region: Region = EVERYTHING
    reads: frozenset[str] | None = None
    native: Native = field(default_factory=Native)
    stay: Curve | None = None
    rows: RowBound | None = None


@dataclass(frozen=True, slots=True)
class Draw:
    """A Poisson sample of the records, drawn once and kept secret.

    Attributes:
        name: Which draw it is; entries that name the same draw share the sample.
        rate: The probability of each record, at most 1.
    """

    name: str
    rate: Fraction


def on_sample(entries: Sequence[Entry], draw: Draw) -> Entry:
    """Return the releases on one sample as a single entry.

    Args:
        entries: The releases on the sample, each proven for adding or removing a record
            of it; at least one.
        draw: The sample.

    Returns:
        An entry about the population, that reads whatever any of them reads, wherever
        any of them reads it.

    Raises:
        InputError: If an entry is proven for something else, for which sampling
            records amplifies nothing.

    Neighboring relation:
        Adding or removing a record of the population.

    Source:
        See `modicum.accounting.amplification.shared_sample`.

    Examples:
        >>> from modicum.accounting.mechanisms import laplace
        >>> curve = laplace(sensitivity_l1=Fraction(1), scale=Fraction(1))
        >>> both = [Entry("a", curve), Entry("b", curve)]
        >>> entry = on_sample(both, Draw("monday", Fraction(1, 100)))
        >>> entry.id, entry.curve.loss().coordinates[0]
        ('a + b on monday', 61932529417)
    """
    for entry in entries:
        if entry.native != Native() or entry.stay is not None:
            raise InputError(
                Problem(
                    Code.NOT_SUPPORTED,
                    f"`{entry.id}` is on the sample `{draw.name}`, but is not proven"
                    " for adding or removing one record",
                    notes=("sampling records amplifies only such a loss",),
                    help="remove the sample: the full loss is then charged",
                )
            )
    reads = [entry.reads for entry in entries]
    known = [names for names in reads if names is not None]
    if any(entry.region != entries[0].region for entry in entries):
        # Together they reveal which of the regions contains a record.
        known.append(
            frozenset(name for entry in entries for box in entry.region for name in box)
        )
        reads.append(known[-1])
    bounds = {entry.rows.per.axis for entry in entries if entry.rows and entry.rows.per}
    if bounds:
        known.append(frozenset(bounds))
        reads.append(known[-1])
    return Entry(
        id=" + ".join(entry.id for entry in entries) + f" on {draw.name}",
        curve=shared_sample(
            [(entry.curve, 1) for entry in entries], sampling_rate=draw.rate
        ),
        region=tuple(box for entry in entries for box in entry.region),
        reads=frozenset().union(*known) if len(known) == len(reads) else None,
    )
