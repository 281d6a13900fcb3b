"""Made-up people, like those of the UCI Adult table in what queries see of them.

Nobody of the real table is among them. Shares are typed by hand, rounded, from what is
commonly known of the table: single columns, and a few pairs. What depends on what:
country on race; schooling, work, and marriage on age; relationship on marriage and
sex; income on schooling and age.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from modicum.workloads.adult import shares
from modicum.workloads.adult.queries import COLUMNS, ROWS

SEED: Final = 20_261_122

Shares = Mapping[Any, int]
Column = NDArray[Any]
Where = NDArray[np.bool_]


def adult_people(rows: int = ROWS, seed: int = SEED) -> dict[str, Column]:
    """Return a table of made-up people, one to a row, the same on every run.

    Args:
        rows: How many people; >= 0.
        seed: Another one makes other people.

    Returns:
        By column, in the order of the real table, a value for each person: whole
        numbers, or texts as objects.
    """
    draw = _Draw(rows, seed)
    age = _ages(draw)
    sex, race = draw.of(shares.SEX), draw.of(shares.RACES)
    asian = race == "Asian-Pac-Islander"
    schooling = draw.where((age < 20, shares.LEARNERS), (age >= 20, shares.LEARNED))
    marriage = draw.where(
        (age < 25, shares.MARRIED_YOUNG),
        ((age >= 25) & (age < 50), shares.MARRIED_LATER),
        (age >= 50, shares.MARRIED_LATE),
    )
    work = draw.where((age < 20, shares.WORK_YOUNG), (age >= 20, shares.WORK))
    occupation = draw.of(shares.OCCUPATIONS)
    occupation[(work == "?") | (work == "Never-worked")] = "?"
    gain = draw.of(shares.GAINS).astype(np.int64)
    loss = np.where(gain > 0, 0, draw.of(shares.LOSSES).astype(np.int64))
    table: dict[str, Column] = {
        "age": age,
        "workclass": work,
        "fnlwgt": _weights(draw),
        "education": np.array(shares.SCHOOLING, dtype=object)[
            schooling.astype(np.int64) - 1
        ],
        "education_num": schooling.astype(np.int64),
        "marital_status": marriage,
        "occupation": occupation,
        "relationship": _relationships(draw, marriage, sex),
        "race": race,
        "sex": sex,
        "capital_gain": gain,
        "capital_loss": loss,
        "hours_per_week": draw.of(shares.HOURS).astype(np.int64),
        "native_country": draw.where(
            (asian, shares.ASIAN_COUNTRIES), (~asian, shares.COUNTRIES)
        ),
        "income": _incomes(draw, age, schooling),
    }
    return {name: table[name] for name in COLUMNS}


class _Draw:
    """Draws a value for each person, by shares in whole numbers.

    Nothing in it is computed by a function that machines round differently.
    """

    def __init__(self, rows: int, seed: int) -> None:
        self._rows = rows
        self._lots = np.random.Generator(np.random.PCG64(seed))

    def lots(self, below: int) -> NDArray[np.int64]:
        """Return a whole number from 0 to below a bound, for each person."""
        return np.floor(self._lots.random(self._rows) * below).astype(np.int64)

    def of(self, among: Shares) -> Column:
        """Return one of some values for each person."""
        return _picked(among, self._lots.random(self._rows))

    def where(self, *cases: tuple[Where, Shares]) -> Column:
        """Return one of the values of the case that a person is of."""
        drawn = self._lots.random(self._rows)
        found = np.empty(self._rows, dtype=object)
        for inside, among in cases:
            found[inside] = _picked(among, drawn[inside])
        return found


def _picked(among: Shares, drawn: NDArray[np.float64]) -> Column:
    values = np.empty(len(among), dtype=object)
    values[:] = list(among)
    upto = np.cumsum(list(among.values()))
    lots = np.floor(drawn * int(upto[-1])).astype(np.int64)
    return values[np.searchsorted(upto, lots, side="right")]


def _ages(draw: _Draw) -> Column:
    first = draw.of(shares.AGES).astype(np.int64)
    starts = [*shares.AGES, shares.OLDEST + 1]
    after = np.array(starts)[np.searchsorted(starts, first) + 1]
    most = 100
    return first + draw.lots(most) * (after - first) // most


def _weights(draw: _Draw) -> Column:
    """Sampling weights: few are large."""
    thousand = 1000
    product = draw.lots(thousand) * draw.lots(thousand) * draw.lots(thousand)
    return 12_285 + product * 1472 // 1_000_000 + draw.lots(thousand)


def _relationships(draw: _Draw, marriage: Column, sex: Column) -> Column:
    found = draw.of(shares.ALONE)
    married = (marriage == shares.MARRIED) | (marriage == shares.MARRIED_IN_SERVICE)
    found[married & (sex == "Male")] = "Husband"
    found[married & (sex == "Female")] = "Wife"
    return found


def _incomes(draw: _Draw, age: Column, schooling: Column) -> Column:
    number = schooling.astype(np.int64)
    base = np.array([0, *(shares.EARN[one] for one in range(1, 17))])[number]
    starts = list(shares.EARN_AT)
    factor = np.array(list(shares.EARN_AT.values()))[
        np.searchsorted(starts, age, side="right") - 1
    ]
    much = draw.lots(1_000_000) < base * factor
    return np.where(much, ">50K", "<=50K").astype(object)
