"""Reading `query` of a query file: the SQL, bounds, noise and loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from modicum.accounting.budgets import ApproxBudget
from modicum.accounting.calibration import Family, calibrate
from modicum.accounting.mechanisms import declared_zcdp
from modicum.core.document import Entries, Node, Scalar, describe, flow_text
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.core.rationals import number_text
from modicum.core.reader import (
    Fields,
    Problems,
    choice,
    count,
    fail,
    line,
    nearest,
    number,
    placed,
    positive,
    probability,
    text,
)
from modicum.query.digest import identity_of
from modicum.query.model import Query, with_derived
from modicum.query.parser import TEXT_MAX, line_comments, parse_query
from modicum.query.request import BINS, Discovery, Noise, QueryRequest
from modicum.query.sql_places import SqlPlaces
from modicum.query.statistics import Cap
from modicum.query.tables import Tables
from modicum.release.header import Header
from modicum.release.vocabulary import Vocabulary

#: Maximum number of rows that a cap keeps, as the format of releases allows.
ROWS_MAX: Final = 1_000_000
#: The default confidence of intervals.
CONFIDENCE = Fraction(19, 20)

#: The keys of `query`, besides the declarations of its tables.
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

#: The measure of a loss, by noise.
MEASURES: Final[Mapping[Noise, str]] = {"gaussian": "rho", "laplace": "eps"}


class _Loss(Struct, frozen=True):
    """The maximum loss of a query: a measure, for one unit."""

    unit: str
    measure: str
    amount: Fraction
    node: Node
    delta: Fraction | None = None


def read_request(
    fields: Fields, heading: Header, tables: Tables, vocabulary: Vocabulary
) -> tuple[QueryRequest, Fraction, str]:
    """Return the request, the confidence of its intervals, and its identity.

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
    unweighted: dict[str, tuple[Scalar, Fraction]] = {}
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
    tables = with_derived(tables, query)
    with found.guard():
        if noise == "gaussian" and loss.delta is not None:
            loss = _in_rho(loss, whole=discovery is None and heading.sampling is None)
        _must_be_measured(noise, loss)
    with found.guard():
        _must_know_weights(weights, query)
    found.raise_any()
    request = QueryRequest(
        query,
        tables,
        caps,
        noise,
        loss.unit,
        loss.amount,
        {name: weight for name, (_, weight) in weights.items()},
        discovery,
        bins,
        heading.part,
        heading.sampling,
        fields.node.mark,
    )
    return request, confidence, identity_of(request, sql, confidence, salt)


def _in_rho(loss: _Loss, *, whole: bool) -> _Loss:
    """Return a loss in eps and delta as one in rho: the largest that provably meets it.

    Discrete Gaussian noise is known to be rho-zCDP, and not to be Gaussian-DP; so rho
    is found by the implications of zCDP alone.
    """
    assert loss.delta is not None
    if not whole:
        raise fail(
            Code.DOES_NOT_FIT,
            "a loss in eps and delta is not supported with `discover` or `sampling`",
            loss.node,
            help=f"write  loss: {{{loss.unit}: {{rho: …}}}}",
        )
    target = ApproxBudget(loss.amount, loss.delta)
    family = Family("rho", lambda rho: declared_zcdp(rho=rho), rising=True)
    with placed(loss.node):
        return replace(
            loss, measure="rho", amount=calibrate(family, target), delta=None
        )


def _must_be_measured(noise: Noise, loss: _Loss) -> None:
    wanted = MEASURES[noise]
    if loss.measure != wanted:
        given = number_text(loss.amount)
        raise fail(
            Code.DOES_NOT_FIT,
            f"the loss of {noise} noise must be in `{wanted}`, not in"
            f" `{loss.measure}` alone",
            loss.node,
            help=f"write  loss: {{{loss.unit}: {{{wanted}: …}}}}"
            + (
                f" , or a `delta` as well, or  noise: laplace ;  modicum account"
                f" mechanism gaussian --for eps={given},delta=…  shows the rho"
                if noise == "gaussian"
                else ""
            ),
        )
    if loss.delta is not None:
        raise fail(
            Code.DOES_NOT_FIT,
            f"the loss of {noise} noise has no `delta`",
            loss.node,
            help=f"write  loss: {{{loss.unit}: {{{wanted}: …}}}} , or  noise: gaussian",
        )


def _query(node: Node, tables: Tables) -> tuple[str, Query]:
    written = text(node, "`sql`", characters_max=TEXT_MAX)
    assert isinstance(node, Scalar)  # It is a text.
    places = SqlPlaces(node)
    try:
        comments = tuple(line_comments(written, source="sql"))
        swallowed = [at for one in comments if (at := places.joined(*one))]
        query = None if swallowed else parse_query(written, tables, source="sql")
    except InputError as error:
        raise places.error(error) from None
    if query is None:
        raise _swallowing(swallowed[0])
    return written, places.query(query)


def _swallowing(mark: Mark) -> InputError:
    """Return the error for a comment that is longer in the text than in the file."""
    return InputError(
        Problem(
            Code.NOT_SQL,
            "the text is not SQL: a comment includes the lines below it",
            mark,
            notes=("YAML joins the lines of this text to one",),
            help="write  sql: |  , which keeps lines, or comments in  /* … */",
        )
    )


def _caps(node: Node, vocabulary: Vocabulary) -> tuple[Cap, ...]:
    remedy = f"write  bounds: {{{_some_unit(vocabulary)}: …}}"
    fields = Fields(node, "`bounds`", help=remedy)
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
    if isinstance(node, Entries):
        raise fail(
            Code.WRONG_TYPE,
            f"`noise` must be text, got {describe(node)}",
            node,
            help="write  noise: gaussian  and  loss: {UNIT: {eps: …, delta: …}}",
        )
    given = text(node, "`noise`")
    for one in MEASURES:
        if given == one:
            return one
    raise fail(
        Code.OUT_OF_RANGE,
        f"unknown noise `{given[:40]}`",
        node,
        label=nearest(given, MEASURES),
        help="it is one of " + ", ".join(MEASURES),
    )


def _loss(node: Node, vocabulary: Vocabulary) -> _Loss:
    some = _some_unit(vocabulary)
    pairs = Fields(node, "`loss`", help=f"write  loss: {{{some}: {_AMOUNT}}}").rest()
    if len(pairs) != 1:
        raise fail(
            Code.DOES_NOT_FIT,
            "give the loss for one privacy unit; the others follow",
            node,
            help=f"write  loss: {{{some}: {_AMOUNT}}}",
        )
    key, value = pairs[0]
    if key.text in MEASURES.values() and key.text not in vocabulary.units:
        raise fail(
            Code.DOES_NOT_FIT,
            "the loss needs its privacy unit",
            key,
            help=f"write  loss: {{{some}: {flow_text(node)}}}",
        )
    unit = choice(key, "privacy unit", vocabulary.units, Code.UNKNOWN_UNIT)
    what = f"the loss of `{unit}`"
    fields = Fields(value, what, help=f"write  loss: {{{unit}: {_AMOUNT}}}")
    delta = fields.take_optional("delta") if "eps" in fields else None
    inner = fields.rest()
    if len(inner) != 1 or inner[0][0].text not in MEASURES.values():
        raise fail(
            Code.DOES_NOT_FIT,
            "a loss is {rho: …} or {eps: …, delta: …} for gaussian noise, {eps: …} for"
            " laplace",
            inner[0][0] if len(inner) == 1 else value,
            label=nearest(inner[0][0].text, ("rho", "eps")) if inner else "",
        )
    measure, amount = inner[0]
    return _Loss(
        unit,
        measure.text,
        positive(amount, "the loss"),
        measure,
        None if delta is None else probability(delta, "`delta`"),
    )


_AMOUNT: Final = "{eps: …}"


def _some_unit(vocabulary: Vocabulary) -> str:
    """Return a unit for an example."""
    return min(vocabulary.units, default="UNIT")


def _confidence(node: Node) -> Fraction:
    given = number(node, "`confidence`")
    if 1 < given < 100:
        raise fail(
            Code.OUT_OF_RANGE,
            "`confidence` must be strictly between 0 and 1",
            node,
            help=f"write  {number_text(given / 100)}",
        )
    return probability(node, "`confidence`")


def _weights(node: Node) -> dict[str, tuple[Scalar, Fraction]]:
    """Return each weight with its key, by name of an aggregate."""
    return {
        key.text: (key, positive(value, f"the weight of `{key.text}`"))
        for key, value in Fields(node, "`weights`", help="write {NAME: …}").rest()
    }


def _must_know_weights(
    weights: Mapping[str, tuple[Scalar, Fraction]], query: Query
) -> None:
    names = sorted(one.name for one in query.aggregates)
    for name, (key, _) in weights.items():
        if name not in names:
            raise fail(
                Code.UNKNOWN_NAME,
                f"the query has no aggregate `{name[:40]}`",
                key,
                label=nearest(name, names),
                help="weights are given by names of aggregates: " + ", ".join(names),
            )


def _discovery(node: Node) -> Discovery | None:
    fields = Fields(node, "`discover`", help="write  discover: {delta: 1e-8}")
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
        raise fail(Code.OUT_OF_RANGE, "the number of bins must be a power of two", node)
    return bins
