"""Reading what stands in `query`: the SQL, its bounds, its noise and its loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeVar

from modicum.core.document import Node, Scalar
from modicum.core.errors import Code, InputError
from modicum.core.reading import (
    Fields,
    Problems,
    choice,
    count,
    fail,
    line,
    positive,
    probability,
    text,
)
from modicum.query.asking import BINS, Asked, Discovery, Noise
from modicum.query.identity import identity_of
from modicum.query.model import Query
from modicum.query.parsing import parse_query
from modicum.query.sql_places import SqlPlaces
from modicum.query.statistics import Cap
from modicum.query.tables import Tables
from modicum.release.heading import Heading
from modicum.release.vocabulary import Vocabulary

#: A cap keeps so many rows at most, as the format of releases allows.
ROWS_MAX: Final = 1_000_000
#: The confidence of intervals, unless a query says otherwise.
CONFIDENCE = Fraction(19, 20)

#: What stands in `query`, besides what its tables are.
QUERY_KEYS: Final = frozenset(
    (
        "sql",
        "bounds",
        "noise",
        "loss",
        "weights",
        "discover",
        "bins",
        "confidence",
        "salt",
    )
)

T = TypeVar("T")

_MEASURES: Mapping[Noise, str] = {"gaussian": "rho", "laplace": "eps"}


@dataclass(frozen=True, slots=True)
class _Loss:
    """How much a query may cost: a measure, for one unit."""

    unit: str
    measure: str
    amount: Fraction
    node: Node


def read_asked(
    fields: Fields, heading: Heading, tables: Tables, vocabulary: Vocabulary
) -> tuple[Asked, Fraction, str]:
    """Return what is asked, how sure its intervals are, and its digest.

    Args:
        fields: What stands in `query`, without `tables`.
        heading: What the release says besides its mechanisms.
        tables: What is declared about its tables.
        vocabulary: The words of the policy.

    Raises:
        InputError: With the mistakes found.
    """
    found = Problems()

    def needed(name: str, reader: Callable[[Node], T]) -> T | None:
        found_here: list[T] = []
        with found.guard():
            found_here.append(reader(fields.take(name)))
        return found_here[0] if found_here else None

    def optional(name: str, reader: Callable[[Node], T], otherwise: T) -> T:
        value = otherwise
        with found.guard():
            node = fields.take_optional(name)
            if node is not None:
                value = reader(node)
        return value

    written = needed("sql", lambda node: _query(node, tables))
    uncapped: tuple[Cap, ...] = ()
    caps = optional("bounds", lambda node: _caps(node, vocabulary), uncapped)
    noise = needed("noise", _noise)
    loss = needed("loss", lambda node: _loss(node, vocabulary))
    unweighted: dict[str, Fraction] = {}
    weights = optional("weights", _weights, unweighted)
    discovery = optional("discover", _discovery, None)
    bins = optional("bins", _bins, BINS)
    confidence = optional("confidence", _confidence, CONFIDENCE)
    salt = optional("salt", lambda node: line(node, "`salt`"), "")
    with found.guard():
        fields.finish()
    found.raise_any()
    assert written is not None  # Else its mistake was raised; so for the others.
    assert noise is not None
    assert loss is not None
    sql, query = written
    _must_be_measured(noise, loss)
    _must_know_weights(weights, query, fields.node)
    asked = Asked(
        query,
        tables,
        caps,
        noise,
        loss.unit,
        loss.amount,
        weights,
        discovery,
        bins,
        heading.part,
        heading.sampling,
        fields.node.mark,
    )
    return asked, confidence, identity_of(asked, sql, confidence, salt)


def _must_be_measured(noise: Noise, loss: _Loss) -> None:
    if loss.measure != _MEASURES[noise]:
        raise fail(
            Code.DOES_NOT_FIT,
            f"the loss of {noise} noise is given in `{_MEASURES[noise]}`,"
            f" not in `{loss.measure}`",
            loss.node,
            help=f"write  loss: {{{loss.unit}: {{{_MEASURES[noise]}: …}}}}",
        )


def _query(node: Node, tables: Tables) -> tuple[str, Query]:
    written = text(node, "`sql`")
    assert isinstance(node, Scalar)  # It is a text.
    places = SqlPlaces(node)
    try:
        return written, places.query(parse_query(written, tables, source="sql"))
    except InputError as error:
        raise places.error(error) from None


def _caps(node: Node, vocabulary: Vocabulary) -> tuple[Cap, ...]:
    fields = Fields(node, "`bounds`")
    found = Problems()
    caps: list[Cap] = []
    for key, value in fields.rest():
        with found.guard():
            unit = choice(key, "privacy unit", vocabulary.units, Code.UNKNOWN_UNIT)
            rows = count(value, f"the bound of `{unit}`", at_least=1, at_most=ROWS_MAX)
            caps.append(Cap(unit, rows))
    found.raise_any()
    return tuple(caps)


def _noise(node: Node) -> Noise:
    given = text(node, "`noise`")
    for one in _MEASURES:
        if given == one:
            return one
    raise fail(
        Code.OUT_OF_RANGE,
        f"unknown noise `{given[:40]}`",
        node,
        help="it is one of " + ", ".join(_MEASURES),
    )


def _loss(node: Node, vocabulary: Vocabulary) -> _Loss:
    pairs = Fields(node, "`loss`").rest()
    if len(pairs) != 1:
        raise fail(
            Code.DOES_NOT_FIT,
            "the loss is given for one privacy unit; that of others follows",
            node,
            help="write  loss: {UNIT: {rho: …}}",
        )
    key, value = pairs[0]
    unit = choice(key, "privacy unit", vocabulary.units, Code.UNKNOWN_UNIT)
    inner = Fields(value, f"the loss of `{unit}`").rest()
    if len(inner) != 1 or inner[0][0].text not in _MEASURES.values():
        raise fail(
            Code.DOES_NOT_FIT,
            "a loss is {rho: …} for gaussian noise, {eps: …} for laplace",
            value,
        )
    measure, amount = inner[0]
    return _Loss(unit, measure.text, positive(amount, "the loss"), measure)


def _confidence(node: Node) -> Fraction:
    return probability(node, "`confidence`")


def _weights(node: Node) -> dict[str, Fraction]:
    return {
        key.text: positive(value, f"the weight of `{key.text}`")
        for key, value in Fields(node, "`weights`").rest()
    }


def _must_know_weights(
    weights: Mapping[str, Fraction], query: Query, node: Node
) -> None:
    names = {one.name for one in query.aggregates}
    for name in weights:
        if name not in names:
            raise fail(
                Code.UNKNOWN_NAME,
                f"the query computes no `{name[:40]}`",
                node,
                help="weights are given by names of aggregates: "
                + ", ".join(sorted(names)),
            )


def _discovery(node: Node) -> Discovery | None:
    fields = Fields(node, "`discover`")
    share, delta = Fraction(1, 5), None
    given = fields.take_optional("share")
    if given is not None:
        share = probability(given, "the share of discovery")
    delta = probability(fields.take("delta"), "the delta of discovery")
    fields.finish()
    return Discovery(share, delta)


def _bins(node: Node) -> int:
    bins = count(node, "`bins`", at_least=2, at_most=2**16)
    if bins & (bins - 1):
        raise fail(Code.OUT_OF_RANGE, "the number of bins is a power of two", node)
    return bins
