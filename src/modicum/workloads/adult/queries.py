"""The RDR paper's queries of the UCI Adult table, and its results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

Mechanism: TypeAlias = Literal["laplace", "gaussian"]

#: The name of the table in the queries.
TABLE: Final = "adult"
#: Its columns, in their order.
COLUMNS: Final = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
)
#: Number of people in it.
ROWS: Final = 32_561


@dataclass(frozen=True, slots=True)
class AdultQuery:
    """A query, and the inputs of its noise.

    Attributes:
        name: Its name in the paper.
        sql: Its text, in the SQL of DuckDB.
        bounds: Public bounds of the value that it sums or averages; None for a count.
        coordinates: How many numbers the paper's answer has.
        public_coordinates: How many it has if all groups that there can be are in it:
            the number of groups that have rows is a fact about rows.
        averages: Whether it is an average.
    """

    name: str
    sql: str
    bounds: tuple[int, int] | None = None
    coordinates: int = 1
    public_coordinates: int = 1
    averages: bool = False

    @property
    def sensitivity(self) -> Fraction:
        """The maximum change of the answer by one person, from public facts alone.

        She may be added or removed. The answer of no rows is 0, so the only person
        moves an average by her whole value. In units of the answer, L1 and L2.
        """
        if self.bounds is None:
            return Fraction(1)
        return Fraction(max(map(abs, self.bounds)))

    def published_sensitivity(self, rows: int) -> Fraction:
        """Return the sensitivity used by the paper's program.

        It bounds nothing for an average: the range is divided by the number of all
        rows, not of those that are averaged.

        Args:
            rows: How many rows the table has; >= 1.
        """
        if self.bounds is None:
            return Fraction(1)
        low, high = self.bounds
        return Fraction(high - low, rows if self.averages else 1)


_ALL: Final = (
    AdultQuery(
        "Q1",
        "SELECT COUNT(*) FROM adult"
        " WHERE income = '>50K' AND education_num = 13 AND age = 25",
    ),
    AdultQuery(
        "Q2",
        "SELECT marital_status, COUNT(*) FROM adult"
        " WHERE race = 'Asian-Pac-Islander' AND age BETWEEN 30 AND 40"
        " GROUP BY marital_status",
        coordinates=6,
        public_coordinates=7,
    ),
    AdultQuery(
        "Q3",
        "SELECT COUNT(*) FROM adult"
        " WHERE native_country <> 'United-States' AND sex = 'Female'",
    ),
    AdultQuery(
        "Q4",
        "SELECT AVG(hours_per_week) FROM adult"
        " WHERE workclass IN ('Federal-gov', 'Local-gov', 'State-gov')",
        bounds=(1, 99),
        averages=True,
    ),
    AdultQuery("Q5", "SELECT SUM(capital_gain) FROM adult", bounds=(0, 99_999)),
)
#: By name, the queries of the paper's section 6.2 (arXiv:2310.13104).
QUERIES: Final[Mapping[str, AdultQuery]] = MappingProxyType(
    {one.name: one for one in _ALL}
)

#: The required minimum of the least RDR over the greatest.
THRESHOLDS: Final = ("0.95", "0.75", "0.5", "0.25", "0.05")
_FOUND: Final[Mapping[Mechanism, Mapping[str, str]]] = {
    "laplace": {
        "Q1": "0.05 0.3 1 3 10",
        "Q2": "0.3 2 6 10 10",
        "Q3": "0.05 0.3 1 3 10",
        "Q4": "0.01 0.07 0.2 0.6 4",
        "Q5": "0.05 0.3 1 3 10",
    },
    "gaussian": {
        "Q1": "2 5 10 10 10",
        "Q2": "5 10 10 10 10",
        "Q3": "2 5 10 10 10",
        "Q4": "0.4 1 2 5 10",
        "Q5": "2 5 10 10 10",
    },
}
#: By mechanism, query and threshold, the epsilon of Find-epsilon-from-RDR in the
#: paper's figure 7, with delta 1/rows**2, the sensitivity of its program and the
#: classical formula for Gaussian noise.
PUBLISHED: Final[Mapping[tuple[Mechanism, str, str], Fraction]] = MappingProxyType(
    {
        (mechanism, name, threshold): Fraction(epsilon)
        for mechanism, found in _FOUND.items()
        for name, epsilons in found.items()
        for threshold, epsilon in zip(THRESHOLDS, epsilons.split(), strict=True)
    }
)
