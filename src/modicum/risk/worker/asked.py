"""What is asked of a risk analysis, and how much it may take; both are plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

#: The ways of choosing that read nothing which has to be paid for.
UNPAID: Final = ("data-independent", "as-published")
STATISTICS: Final = ("max", "p99", "median")
MECHANISMS: Final = ("laplace", "gaussian")
INDICATORS: Final = ("published", "exact")
CALIBRATIONS: Final = ("exact", "published")

#: At most so much memory for the engine; what does not fit is put into files.
MEMORY: Final = "2GB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked about the people of a table, as `modicum risk rdr` has it.

    Numbers are decimal texts, which are read exactly.

    Attributes:
        query: SQL: one SELECT with aggregates.
        unit: The column that tells whose a row is; None if each row is a person.
        mechanism: `laplace` or `gaussian`.
        epsilons: The candidates; None for the published ones.
        delta: For Gaussian noise.
        sensitivity: How far one person can move the answer in any table.
        bounds: The least and the greatest value, by column; by `""` of all.
        rows_max: How many rows of a person are counted at most.
        dimensions: How many numbers the answer has.
        indicator: `published` or `exact`.
        calibration: For Gaussian noise: `exact` or `published`.
        groups: Groups of people to compare, as conditions on rows.
        statistic: What is compared of them: `max`, `p99` or `median`.
        tau: The least indicator is to be so large a part of the greatest.
        max_variance: The variance of the indicators is to be so small.
        choice: How an epsilon is chosen that meets these: one of `UNPAID`.
    """

    query: str
    unit: str | None = None
    mechanism: str = "laplace"
    epsilons: tuple[str, ...] | None = None
    delta: str | None = None
    sensitivity: str | None = None
    bounds: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    rows_max: int | None = None
    dimensions: int | None = None
    indicator: str = "published"
    calibration: str = "exact"
    groups: tuple[str, ...] = ()
    statistic: str = "p99"
    tau: str | None = None
    max_variance: str | None = None
    choice: str = "data-independent"

    @property
    def chooses(self) -> bool:
        """Whether an epsilon is to be chosen."""
        return self.tau is not None or self.max_variance is not None


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much one analysis may take.

    Attributes:
        rows: So many rows a table has at most.
        seconds: So long it runs at most.
    """

    rows: int = 10_000_000
    seconds: int = 600


@dataclass(frozen=True, slots=True)
class Analysis:
    """An analysis, as it is handed to the process that makes it.

    Attributes:
        tables: Where rows are, by the table's name; by `""` where a query may call
            its only table anything.
        asked: What is asked.
        rows: So many rows a table has at most.
    """

    tables: Mapping[str, str]
    asked: Asked
    rows: int
