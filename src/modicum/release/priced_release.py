"""Priced releases: the loss of each mechanism for each privacy unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from modicum.accounting import Loss
from modicum.release.memo import LazyValue
from modicum.release.model import Mechanism, Release
from modicum.release.parts import Part
from modicum.release.units import Relation


class StoredMechanism(NamedTuple):
    """The stored form of a mechanism, independent of its part of the data.

    Attributes:
        attributes: The attributes that it reads, sorted.
        losses: Its loss by privacy unit; a view that cannot be changed.
        neighbors: By unit, the relation that its loss is proven under, where that is
            not `add-remove`.
        first: The canonical bytes of the stored fields `attributes` and `derived`.
        later: Those of `labels`, of `losses` and, if there are any, of `neighbors`. As
            these are between other fields, they have no braces.
        derived: The units whose loss does not come from their own parameters and cost
            alone.
        alike: The canonical bytes of all stored fields but the part.
    """

    attributes: tuple[str, ...]
    losses: Mapping[str, Loss]
    neighbors: Mapping[str, Relation]
    first: bytes
    later: bytes
    derived: tuple[str, ...]
    alike: bytes


@dataclass(frozen=True)  # Without slots, so that `over` can copy all fields at once.
class PricedMechanism:
    """A mechanism with its labels completed and its loss for every unit.

    Attributes:
        mechanism: The description.
        labels: A value for every label of the vocabulary, defaults filled in.
        losses: A loss for every unit of the vocabulary.
        neighbors: By unit, the relation that its loss is proven under.
        sources: By unit, the source of its loss: `declared`, `computed`, `31 x
            user-day`, `user, any change` …
        elsewhere: Caches what does not depend on the part of the data.
    """

    mechanism: Mechanism
    labels: Mapping[str, str]
    losses: Mapping[str, Loss]
    neighbors: Mapping[str, Relation] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    elsewhere: LazyValue[StoredMechanism] = field(
        init=False, repr=False, compare=False, default_factory=LazyValue
    )

    def over(self, part: Part) -> PricedMechanism:
        """Return the mechanism over another part of the data, at the same price."""
        moved = object.__new__(PricedMechanism)
        vars(moved).update(vars(self), mechanism=self.mechanism.over(part))
        return moved


class PricedRelease(msgspec.Struct, frozen=True):
    """A release whose every mechanism is priced for every unit.

    Attributes:
        release: The description.
        labels: A value for every label, for the release as a whole.
        mechanisms: The priced mechanisms, in the order of the description.
    """

    release: Release
    labels: Mapping[str, str]
    mechanisms: tuple[PricedMechanism, ...]
