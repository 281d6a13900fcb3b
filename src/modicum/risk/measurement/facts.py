"""The given facts about a query, and those that must be taken from rows instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, InputError
from modicum.engines.sql_engine import SqlEngine
from modicum.risk.arguments import Number, above_zero, argument, count, mistake
from modicum.risk.influence.statement import PeopleGroup
from modicum.risk.measurement.ranges import whole_range
from modicum.risk.noise import NORMS, GaussianNoise, LaplaceNoise, Noise, NoiseGiven
from modicum.risk.profile import Influence
from modicum.risk.question import Question, read_condition
from modicum.risk.sensitivity import (
    PublicBounds,
    bounds_by_value,
    public_sensitivity,
    published_sensitivity,
    read_bounds,
)

BoundsGiven: TypeAlias = (
    Mapping[str, tuple[Number, Number]] | tuple[Number, Number] | None
)


def people_groups(
    given: Mapping[str, str] | Sequence[str], columns: Mapping[str, Sequence[str]]
) -> list[PeopleGroup]:
    """Return groups of people."""
    named = given if isinstance(given, Mapping) else {one: one for one in given}
    return [
        PeopleGroup(name, *read_condition(text, columns))
        for name, text in named.items()
    ]


def public_bounds(
    given: BoundsGiven, rows_max: int | None, question: Question
) -> PublicBounds:
    """Return the declared bounds of a query's tables."""
    if rows_max is not None:
        count("the number of rows", rows_max, least=1, by="rows_max")
    if given is None:
        return PublicBounds({}, rows_max)
    named = given if isinstance(given, Mapping) else {"": given}
    read = {name: read_bounds(*each) for name, each in named.items()}
    return PublicBounds(bounds_by_value(read, question), rows_max)


def sensitivity_of(
    engine: SqlEngine, question: Question, public: PublicBounds, given: NoiseGiven
) -> tuple[Fraction, str]:
    """Return how far one person can move the answer, in the norm of the noise."""
    if given.sensitivity is not None:
        return above_zero("the sensitivity", given.sensitivity, by="sensitivity"), ""
    try:
        return public_sensitivity(question, public, NORMS[given.mechanism]), ""
    except InputError as unbounded:
        try:
            found = whole_range(engine, question)
            value = published_sensitivity(question, *found)
        except InputError:
            raise unbounded from None
    return value, "the sensitivity is taken from the range of the rows"


def unbounded_sums(question: Question, public: PublicBounds) -> tuple[str, ...]:
    """Return the sums of unbounded values, as text."""
    return tuple(
        f"the values of {one.called[:60]} have no bound: one of them could make the"
        " query fail"
        for one in question.measures
        if one.aggregate == "sum" and public.of(one) is None
    )


def noise_of(
    sensitivity: Fraction, influence: Influence, question: Question, given: NoiseGiven
) -> tuple[Noise, tuple[str, ...]]:
    """Return the noise."""
    private = []
    dimensions = given.dimensions
    if dimensions is None:
        dimensions = len(question.measures)
        if question.keys or question.obstacle:
            dimensions = max(1, influence.dimensions)
            private.append("the number of values in the answer is taken from the rows")
    if given.mechanism == "laplace":
        return LaplaceNoise(sensitivity, dimensions), tuple(private)
    if given.delta is None:
        people = max(2, int(influence.people.sum()))
        delta = Fraction(1, people**2)
        private.append("delta is taken from the number of people")
    else:
        delta = above_zero("delta", given.delta, by="delta")
    noise = GaussianNoise(sensitivity, delta, dimensions, given.calibration)
    return noise, tuple(private)


def attributes_read(question: Question, given: Sequence[str] | None) -> list[str]:
    """Return the attributes that a query reads, by the policy's names."""
    if given is None:
        return list(question.reads)
    known = {one.lower() for one in question.columns}
    covered: set[str] = set()
    names: list[str] = []
    for one in given:
        name, equals, column = one.partition("=")
        column = (column if equals else name).strip()
        if column.lower() not in known:
            raise mistake(
                f"the data has no column `{column[:60]}`",
                f"give columns of the data as {argument('attributes')}; where the"
                " policy uses another name, write NAME=COLUMN",
                Code.UNKNOWN_ATTRIBUTE,
                near=nearest(column, question.columns),
            )
        covered.add(column.lower())
        names.append(name.strip())
    left = [one for one in question.reads if one.lower() not in covered]
    if left:
        raise mistake(
            f"the query reads `{left[0][:60]}`, which {argument('attributes')} leaves"
            " out",
            "list every column that it reads: others escape their rules",
            Code.KEYS_CONFLICT,
        )
    return names
