"""Synthetic people, similar to those of the UCI Adult table for typical queries.

Entered by hand, rounded, from what is commonly known about the UCI Adult table. A table
of shares gives the number of people by value; its sum need not be a round number.

No real person of the table is among them. Shares are entered by hand, rounded, from
what is commonly known about the table: single columns, and a few pairs. The
dependencies: country on race; schooling, work, and marriage on age; relationship on
marriage and sex; income on schooling and age.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from modicum.workloads.adult.queries import COLUMNS, ROWS

# By the first age of a band: all ages up to the next band are as common.
AGES: Final = {
    17: 51,
    20: 120,
    25: 125,
    30: 131,
    35: 131,
    40: 117,
    45: 100,
    50: 76,
    55: 57,
    60: 37,
    65: 27,
    70: 19,
    80: 9,
}
OLDEST: Final = 90
SEX: Final = {"Male": 669, "Female": 331}
RACES: Final = {
    "White": 854,
    "Black": 96,
    "Asian-Pac-Islander": 32,
    "Amer-Indian-Eskimo": 10,
    "Other": 8,
}
COUNTRIES: Final = {
    "United-States": 1250,
    "Mexico": 30,
    "?": 17,
    "Germany": 7,
    "Canada": 6,
    "Puerto-Rico": 6,
    "El-Salvador": 5,
    "Cuba": 5,
    "England": 4,
    "Jamaica": 4,
    "Italy": 4,
    "Dominican-Republic": 3,
    "Poland": 3,
    "Columbia": 3,
    "Guatemala": 3,
    "Portugal": 2,
    "Haiti": 2,
    "Iran": 2,
    "Nicaragua": 2,
    "Peru": 2,
    "France": 1,
    "Greece": 1,
    "Ecuador": 1,
    "Ireland": 1,
    "Trinadad&Tobago": 1,
    "Hungary": 1,
    "Honduras": 1,
    "Scotland": 1,
    "Yugoslavia": 1,
    "Outlying-US(Guam-USVI-etc)": 1,
    "Holand-Netherlands": 1,
}
ASIAN_COUNTRIES: Final = {
    "United-States": 28,
    "Philippines": 18,
    "?": 9,
    "India": 9,
    "China": 7,
    "South": 7,
    "Vietnam": 6,
    "Japan": 4,
    "Taiwan": 5,
    "Cambodia": 2,
    "Laos": 2,
    "Thailand": 2,
    "Hong": 2,
}
#: Schooling by its number, from 1.
SCHOOLING: Final = (
    "Preschool",
    "1st-4th",
    "5th-6th",
    "7th-8th",
    "9th",
    "10th",
    "11th",
    "12th",
    "HS-grad",
    "Some-college",
    "Assoc-voc",
    "Assoc-acdm",
    "Bachelors",
    "Masters",
    "Prof-school",
    "Doctorate",
)
LEARNERS: Final = {5: 3, 6: 9, 7: 17, 8: 6, 9: 30, 10: 33, 12: 2}
LEARNED: Final = dict(
    zip(
        range(1, 17),
        (2, 5, 10, 20, 16, 26, 28, 12, 324, 219, 44, 34, 176, 58, 19, 14),
        strict=True,
    )
)
MARRIED: Final = "Married-civ-spouse"
ABSENT: Final = "Married-spouse-absent"
MARRIED_IN_SERVICE: Final = "Married-AF-spouse"
MARRIED_YOUNG: Final = {
    "Never-married": 760,
    MARRIED: 190,
    "Divorced": 24,
    "Separated": 14,
    ABSENT: 9,
    MARRIED_IN_SERVICE: 3,
}
MARRIED_LATER: Final = {
    MARRIED: 520,
    "Never-married": 260,
    "Divorced": 145,
    "Separated": 38,
    "Widowed": 22,
    ABSENT: 15,
}
MARRIED_LATE: Final = {
    MARRIED: 640,
    "Divorced": 176,
    "Widowed": 80,
    "Never-married": 60,
    "Separated": 30,
    ABSENT: 14,
}
ALONE: Final = {
    "Not-in-family": 466,
    "Own-child": 284,
    "Unmarried": 195,
    "Other-relative": 55,
}
WORK: Final = {
    "Private": 697,
    "Self-emp-not-inc": 78,
    "Local-gov": 64,
    "?": 56,
    "State-gov": 40,
    "Self-emp-inc": 34,
    "Federal-gov": 30,
    "Without-pay": 1,
}
WORK_YOUNG: Final = {
    "Private": 760,
    "?": 130,
    "Local-gov": 30,
    "State-gov": 50,
    "Self-emp-not-inc": 20,
    "Federal-gov": 6,
    "Self-emp-inc": 3,
    "Never-worked": 1,
}
OCCUPATIONS: Final = {
    "Prof-specialty": 135,
    "Craft-repair": 133,
    "Exec-managerial": 132,
    "Adm-clerical": 123,
    "Sales": 119,
    "Other-service": 107,
    "Machine-op-inspct": 65,
    "Transport-moving": 52,
    "Handlers-cleaners": 45,
    "Farming-fishing": 32,
    "Tech-support": 30,
    "Protective-serv": 21,
    "Priv-house-serv": 5,
    "Armed-Forces": 1,
}
HOURS: Final = {
    40: 467,
    50: 87,
    45: 56,
    60: 45,
    35: 40,
    20: 38,
    30: 35,
    55: 21,
    25: 21,
    48: 16,
    38: 15,
    15: 12,
    70: 9,
    10: 9,
    32: 8,
    24: 8,
    65: 7,
    36: 7,
    16: 6,
    12: 5,
    8: 4,
    80: 4,
    99: 3,
    5: 2,
    3: 1,
    1: 1,
}
GAINS: Final = {
    0: 9167,
    15024: 107,
    7688: 87,
    7298: 76,
    99999: 49,
    3103: 60,
    5178: 60,
    5013: 50,
    4386: 50,
    8614: 40,
    3325: 40,
    2174: 40,
    594: 40,
    10520: 30,
    4064: 30,
    20051: 20,
    14084: 20,
    27828: 14,
    1055: 10,
    2829: 10,
}
LOSSES: Final = {
    0: 950,
    1902: 14,
    1977: 12,
    1887: 11,
    1848: 4,
    1485: 4,
    2415: 3,
    1602: 1,
    2258: 1,
}
# Of 10,000 people of average age by schooling, the number who earn over 50K.
EARN: Final = {
    **dict.fromkeys(range(1, 9), 500),
    9: 1600,
    10: 1900,
    11: 2600,
    12: 2500,
    13: 4100,
    14: 5600,
    15: 7300,
    16: 7400,
}
# By the first age of a band, how much more or less, in hundredths.
EARN_AT: Final = {17: 0, 22: 35, 30: 110, 40: 135, 60: 100}


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
    sex, race = draw.of(SEX), draw.of(RACES)
    asian = race == "Asian-Pac-Islander"
    schooling = draw.where((age < 20, LEARNERS), (age >= 20, LEARNED))
    marriage = draw.where(
        (age < 25, MARRIED_YOUNG),
        ((age >= 25) & (age < 50), MARRIED_LATER),
        (age >= 50, MARRIED_LATE),
    )
    work = draw.where((age < 20, WORK_YOUNG), (age >= 20, WORK))
    occupation = draw.of(OCCUPATIONS)
    occupation[(work == "?") | (work == "Never-worked")] = "?"
    gain = draw.of(GAINS).astype(np.int64)
    loss = np.where(gain > 0, 0, draw.of(LOSSES).astype(np.int64))
    table: dict[str, Column] = {
        "age": age,
        "workclass": work,
        "fnlwgt": _weights(draw),
        "education": np.array(SCHOOLING, dtype=object)[schooling.astype(np.int64) - 1],
        "education_num": schooling.astype(np.int64),
        "marital_status": marriage,
        "occupation": occupation,
        "relationship": _relationships(draw, marriage, sex),
        "race": race,
        "sex": sex,
        "capital_gain": gain,
        "capital_loss": loss,
        "hours_per_week": draw.of(HOURS).astype(np.int64),
        "native_country": draw.where((asian, ASIAN_COUNTRIES), (~asian, COUNTRIES)),
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
    first = draw.of(AGES).astype(np.int64)
    starts = [*AGES, OLDEST + 1]
    after = np.array(starts)[np.searchsorted(starts, first) + 1]
    most = 100
    return first + draw.lots(most) * (after - first) // most


def _weights(draw: _Draw) -> Column:
    """Sampling weights: few are large."""
    thousand = 1000
    product = draw.lots(thousand) * draw.lots(thousand) * draw.lots(thousand)
    return 12_285 + product * 1472 // 1_000_000 + draw.lots(thousand)


def _relationships(draw: _Draw, marriage: Column, sex: Column) -> Column:
    found = draw.of(ALONE)
    married = (marriage == MARRIED) | (marriage == MARRIED_IN_SERVICE)
    found[married & (sex == "Male")] = "Husband"
    found[married & (sex == "Female")] = "Wife"
    return found


def _incomes(draw: _Draw, age: Column, schooling: Column) -> Column:
    number = schooling.astype(np.int64)
    base = np.array([0, *(EARN[one] for one in range(1, 17))])[number]
    starts = list(EARN_AT)
    factor = np.array(list(EARN_AT.values()))[
        np.searchsorted(starts, age, side="right") - 1
    ]
    much = draw.lots(1_000_000) < base * factor
    return np.where(much, ">50K", "<=50K").astype(object)
