"""Entries on one secret sample: composed first, amplified once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from modicum.accounting.amplification import shared_sample
from modicum.accounting.neighborhoods.entries import Entry, Native
from modicum.core.errors import Code, InputError, Problem


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
        entries: What was released about the sample, each proven for adding or
            removing a record of it; at least one.
        draw: The sample.

    Returns:
        An entry about the population, that reads whatever one of them reads,
        wherever one of them reads it.

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
                    notes=("a sample of records amplifies only such a loss",),
                    help="leave out the sample: the loss is then charged in full",
                )
            )
    reads = [entry.reads for entry in entries]
    known = [names for names in reads if names is not None]
    if any(entry.region != entries[0].region for entry in entries):
        # Which of the regions holds a record is something that together they tell.
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
