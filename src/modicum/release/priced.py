"""Releases with a price: what each mechanism loses for each privacy unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from modicum.accounting import Loss
from modicum.release.model import Mechanism, Release
from modicum.release.units import Relation


@dataclass(frozen=True, slots=True)
class PricedMechanism:
    """A mechanism with its labels completed and its loss for every unit.

    Attributes:
        mechanism: The description.
        labels: A value for every label of the vocabulary, defaults filled in.
        losses: A loss for every unit of the vocabulary.
        neighbors: By unit, the relation that its loss is proven under.
        sources: By unit, what its loss was proven from: `declared`, `computed`,
            `31 x user-day`, `user, any change` …
    """

    mechanism: Mechanism
    labels: Mapping[str, str]
    losses: Mapping[str, Loss]
    neighbors: Mapping[str, Relation] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PricedRelease:
    """A release whose every mechanism is priced for every unit.

    Attributes:
        release: The description.
        labels: A value for every label, for the release as a whole.
        mechanisms: The priced mechanisms, in the order of the description.
    """

    release: Release
    labels: Mapping[str, str]
    mechanisms: tuple[PricedMechanism, ...]
