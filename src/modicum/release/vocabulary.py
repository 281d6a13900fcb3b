"""The closed set of words a release may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec import Struct

from modicum.release.header import Header
from modicum.release.memo import Memo
from modicum.release.parts import Part
from modicum.release.periods import Overlaps
from modicum.release.population import Population
from modicum.release.priced_release import PricedMechanism
from modicum.release.sampling import Sampling
from modicum.release.units import Relation, Unit, clocks_of, larger, owners

#: The cache key of a plain description: the number of its mechanism, the inherited
#: labels, the inherited part of the data if it overrides some of it, the inherited
#: sampling, and its own bytes.
Described: TypeAlias = tuple[
    int, tuple[tuple[str, str], ...], Part | None, Sampling | None, bytes
]
#: Maximum number of step counts, and of priced mechanisms, cached.
_STEPS_MAX = 256
_PRICED_MAX = 1024
_HEADINGS_MAX = 4096

#: Open text that a release may carry besides its labels.
METADATA = ("purpose", "requester", "dataset", "audience")
#: Open text besides, of releases that happened before; rules know nothing of it.
PAST_METADATA = ("released_on", "evidence", "labeled_by")
#: The digest of the private query that a release is; rules know nothing of it.
QUERY = "query"
#: The utility for planners; it is not stored.
UTILITY = "utility"
#: The method by which the epsilon of a release was chosen, if it depends on people in
#: the data: `CLAIM by METHOD`. Rules do not use it.
CHOICE = "epsilon_choice"
#: The only claim under which a release may be charged; others lose more than any price.
CHOICE_CLAIM = "dp"
#: The methods of choice with that claim.
CHOICE_METHODS = frozenset(
    {
        "data-independent",
        "find-and-release-epsilon-from-rdr",
        "priorities",
        "private-selection",
    }
)
#: Names that a label may not have: they are keys of a release or a mechanism.
RESERVED = frozenset(
    {
        *("release", "id", "m", "name", "mechanism", "mechanisms", "attributes"),
        *("sensitivity", "contribution_bound", "public_frame", "cost", "unit"),
        *("scale", "sigma", "truth", "values", "noise", "sampling"),
        *("where", "periods", "released_on", "evidence", "labeled_by"),
    }
)


class Label(Struct, frozen=True):
    """A closed label: its values and its default.

    Attributes:
        values: The values that it may have.
        default: The one where none is given.
        was: Former values, each with the present one that it is.
        former_name: Its name before; None if it had no other.
    """

    values: tuple[str, ...]
    default: str
    was: tuple[tuple[str, str], ...] = ()
    former_name: str | None = None


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The declarations of a policy that a release may refer to.

    Attributes:
        attributes: Names of the attributes of the data.
        labels: Closed labels by name.
        units: Names of the privacy units; every mechanism states a loss for each.
        neighbors: The default neighboring relation.
        unit_facts: The declarations of units: order, periods, sizes, relations. A unit
            without facts is independent of all others.
        population: How the population is divided in public.
        renamed: By former attribute, the present ones that it may be.
        covers: For every unit with facts, the units that cover it, and itself.
        owners: Of these, the ones that cover an instance of it with the same instance
            in every table.
        clocks: The time columns of units. The periods of a release use one clock: with
            several, it is ambiguous.
        independent: Whether no unit covers another and all are `add-remove`, so that
            the loss of a unit is the recorded one.
        steps: Remembers how many changes of one unit make one of another, by how
            periods lie on each other on the days that are read.
        priced: Caches mechanisms that were read and priced under these words.
        headings: Caches headings of releases, by their bytes.
    """

    attributes: frozenset[str]
    labels: Mapping[str, Label]
    units: tuple[str, ...]
    neighbors: Relation
    unit_facts: Mapping[str, Unit] = field(default_factory=dict)
    population: Population = field(default_factory=Population)
    renamed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    covers: Mapping[str, frozenset[str]] = field(init=False, repr=False, compare=False)
    owners: Mapping[str, frozenset[str]] = field(init=False, repr=False, compare=False)
    clocks: frozenset[str] = field(init=False, repr=False, compare=False)
    independent: bool = field(init=False, repr=False, compare=False)
    steps: Memo[Overlaps | None, Mapping[tuple[str, str], int]] = field(
        init=False,
        repr=False,
        compare=False,
        default_factory=lambda: Memo(_STEPS_MAX),
    )
    priced: Memo[Described, PricedMechanism] = field(
        init=False,
        repr=False,
        compare=False,
        default_factory=lambda: Memo(_PRICED_MAX),
    )
    headings: Memo[bytes, Header] = field(
        init=False,
        repr=False,
        compare=False,
        default_factory=lambda: Memo(_HEADINGS_MAX),
    )

    def __post_init__(self) -> None:
        covers = larger(self.unit_facts)
        alone = all(len(found) == 1 for found in covers.values())
        plain = all(self.relation(unit) == "add-remove" for unit in self.units)
        object.__setattr__(self, "covers", covers)
        object.__setattr__(self, "owners", owners(self.unit_facts))
        object.__setattr__(self, "clocks", clocks_of(self.unit_facts))
        object.__setattr__(self, "independent", alone and plain)

    def relation(self, unit: str) -> Relation:
        """Return the neighboring relation that losses for a unit must hold under."""
        facts = self.unit_facts.get(unit)
        return self.neighbors if facts is None else facts.neighbors

    def bounding(self, unit: str) -> frozenset[str]:
        """Return the other units of which one change includes any change of this one.

        These cover it, and their relation is `any-change`: any change to the rows of
        one instance of the unit is one to those of one instance of theirs.
        """
        covers = self.covers.get(unit, frozenset()) - {unit}
        whole = self.relation(unit) == "add-remove"
        return frozenset(
            wide
            for wide in covers
            if self.relation(wide) == "any-change"
            and (whole or wide in self.owners[unit])
        )
