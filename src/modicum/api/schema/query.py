"""Private queries: what is sent, and their plans."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from modicum.api.schema.release import Decision
from modicum.api.schema.shape import Input, Shape

#: Maximum number of characters of a query file or a tables file.
FILE_MAX = 2**16

_File = Annotated[str, Meta(min_length=1, max_length=FILE_MAX)]


class QueryInput(Input, frozen=True, kw_only=True):
    """A private query, and the declaration of its tables.

    Attributes:
        query: A query file; its `tables` is ignored.
        tables: A tables file.
    """

    query: _File
    tables: _File


class PlannedMechanism(Shape, frozen=True, kw_only=True):
    """A published statistic of a query.

    Attributes:
        name: Its name in the release.
        serves: The aggregates that need it.
        scale: The scale of its noise, in steps of the column: σ of `gaussian`, b of
            `laplace`.
        losses: By privacy unit that is bounded, what it costs without a sample: ρ of
            `gaussian`, ε of `laplace`.
    """

    name: str
    serves: tuple[str, ...]
    scale: str
    losses: dict[str, str]


class KeyLoss(Shape, frozen=True, kw_only=True):
    """What the selection of keys costs.

    Attributes:
        eps: Its ε.
        delta: Its δ.
    """

    eps: str
    delta: str


class KeySelection(Shape, frozen=True, kw_only=True):
    """The mechanism that publishes keys with noise.

    Attributes:
        name: Its name in the release.
        scale: The scale of its discrete Laplace noise.
        threshold: A key is published if its noisy number of ids is at least this.
        losses: By privacy unit that is bounded, what it costs.
    """

    name: str
    scale: str
    threshold: int
    losses: dict[str, KeyLoss]


class ExpectedError(Shape, frozen=True, kw_only=True):
    """How far an answer will stray.

    Attributes:
        aggregate: Its name.
        half_width: Half the width of its interval, or of its basis.
        per: The basis: the `answer`; an amount that is to be divided by the number of
            `rows`; the same, for the `variance` of a standard deviation; or a number of
            `ranks` of a quantile.
    """

    aggregate: str
    half_width: str
    per: Literal["answer", "rows", "variance", "ranks"]


class QueryPlan(Shape, frozen=True, kw_only=True):
    """What a query would cost, and how accurate its answers would be.

    Attributes:
        release: The release's id.
        file: The release, as the text of a file.
        allowed: Whether it would be allowed now.
        noise: The kind of noise.
        mechanisms: One for each published statistic.
        keys: The mechanism that publishes keys with noise; None if all are public.
        expected: How far each answer will stray.
        derivation: How the losses come about, line by line.
        notes: What the losses leave out; remarks on the query are among the notices of
            the decision.
        decision: The decision of the ledger.
    """

    release: str
    file: str
    allowed: bool
    noise: Literal["gaussian", "laplace"]
    mechanisms: tuple[PlannedMechanism, ...]
    keys: KeySelection | None
    expected: tuple[ExpectedError, ...]
    derivation: tuple[str, ...]
    notes: tuple[str, ...]
    decision: Decision
