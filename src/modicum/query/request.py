"""The parameters of a query: bounds, noise, and its loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias

from msgspec import Struct

from modicum.core.errors import Mark
from modicum.query.model import Query
from modicum.query.statistics import Cap
from modicum.query.tables import Tables
from modicum.release.parts import EVERYTHING, Part
from modicum.release.sampling import Sampling

Noise: TypeAlias = Literal["gaussian", "laplace"]

#: The default number of bins of a quantile.
BINS = 256


class Discovery(Struct, frozen=True):
    """How keys that are not public are selected: where enough ids have rows.

    Attributes:
        share: Its share of the query's loss, above 0 and below 1.
        delta: The maximum probability of releasing a key that one change alone has, for
            the unit of the query's loss.
    """

    share: Fraction
    delta: Fraction


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """One query and all that determines its cost.

    Attributes:
        query: The query.
        tables: The declarations of the tables.
        caps: How many rows are read of each instance of which units.
        noise: The kind of noise.
        unit: The privacy unit whose loss is given.
        loss: How much all of the query may cost one instance of it: ε of `laplace`,
            ρ of `gaussian`.
        weights: How the loss is divided among the aggregates, by name; 1 for those
            that are not named.
        discovery: How keys that are not public are selected; None to refuse them.
        bins: How many bins a quantile looks at; a power of two.
        part: The part of the data that is read.
        sampling: The secret sample that is read; None for all.
        mark: Its position.
    """

    query: Query
    tables: Tables
    caps: tuple[Cap, ...]
    noise: Noise
    unit: str
    loss: Fraction
    weights: Mapping[str, Fraction] = field(default_factory=dict)
    discovery: Discovery | None = None
    bins: int = BINS
    part: Part = EVERYTHING
    sampling: Sampling | None = None
    mark: Mark | None = field(default=None, compare=False)
