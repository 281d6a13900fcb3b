"""The inputs of a Tumult session: its budget, and tables with their protection.

Tumult's sessions protect rows that are added or removed. What one instance of a unit
can add or remove is stated for each table; all tables change at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

from modicum.accounting.budgets import ApproxBudget, PureBudget, ZcdpBudget
from modicum.api.ports.reservation import Reserved
from modicum.core.diagnostics import fail
from modicum.core.errors import Code
from modicum.policy.past_units import Known

_FORMS: Final = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".arrow": "arrow",
    ".feather": "arrow",
}
_KINDS: Final = ("text", "integer", "number", "date", "timestamp")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,79}")
# Spark interprets these as patterns.
_PATTERN: Final = re.compile(r"[*?\[\]{}\\,]")


@dataclass(frozen=True, slots=True)
class Source:
    """A table for a session.

    Attributes:
        file: The location of its rows, as an absolute path.
        form: Its form: `parquet`, `csv` or `arrow`.
        change: What one instance of the unit can add or remove, as one of Tumult's
            protected changes; None for a public table.
        columns: The types of its columns, in order, for a CSV file.
    """

    file: str
    form: str
    change: Mapping[str, int | str] | None
    columns: Mapping[str, str] | None = None

    def to_plain(self) -> dict[str, object]:
        """Return it for a worker."""
        return {
            "file": self.file,
            "form": self.form,
            "change": None if self.change is None else dict(self.change),
            "columns": None if self.columns is None else dict(self.columns),
        }


def source_of(
    file: str | Path,
    change: Mapping[str, int | str] | None,
    columns: Mapping[str, str] | None,
) -> Source:
    """Return a table for a session. Reads nothing of it."""
    path = Path(file).absolute()
    shown = str(file)[:200]
    if not path.exists():
        raise fail(
            Code.FILE_UNREADABLE,
            f"cannot read {shown}: there is no such file",
            help="correct the path",
        )
    form = "parquet" if path.is_dir() else _FORMS.get(path.suffix.lower())
    if form is None or _PATTERN.search(str(path)):
        raise fail(
            Code.NOT_SUPPORTED,
            f"{shown} is not a file that Tumult can read",
            notes=("its name may not contain any of * ? [ ] { } \\ ,",) if form else (),
            help="use a file .parquet, .csv or .arrow, or a folder of Parquet files",
        )
    if (form == "csv") != (columns is not None):
        raise fail(
            Code.MISSING_KEY if columns is None else Code.KEYS_CONFLICT,
            f"the columns of {shown} "
            + ("have no types" if columns is None else "already have types"),
            help="give  columns={NAME: TYPE, …}  for CSV files, and only for them",
        )
    _refuse_columns(columns or {})
    return Source(str(path), form, change, columns)


def _refuse_columns(columns: Mapping[str, str]) -> None:
    for name, kind in columns.items():
        if "`" in name:
            raise fail(Code.BAD_NAME, f"invalid column name {name[:200]!r}")
        if kind not in _KINDS:
            raise fail(
                Code.UNKNOWN_CHOICE,
                f"a column of a CSV file cannot be `{str(kind)[:200]}`",
                help=f"use one of {', '.join(_KINDS)}",
            )


def refuse_sources(sources: Mapping[str, Source]) -> None:
    """Refuse tables that no session can be made of."""
    for name in sources:
        if _NAME.fullmatch(name) is None:
            raise fail(
                Code.BAD_NAME,
                f"invalid name of a session table: {name[:200]!r}",
                help="use letters, digits and `_`, and start with a letter",
            )
    if all(source.change is None for source in sources.values()):
        raise fail(
            Code.MISSING_KEY,
            "a session needs a table that is not public",
            help="bound the rows of one instance of the unit, with  rows_with_id "
            " or  max_rows",
        )


def id_column(unit: str, known: Known) -> str:
    """Return the column whose values are the instances of a unit."""
    if known.id is not None and known.period is None:
        return known.id
    why = (
        f"`{known.id}` identifies the owner of a row, and an instance of `{unit}` has"
        " only the rows of one period"
        if known.id is not None
        else f"the policy has no id for `{unit}`"
    )
    raise fail(
        Code.DOES_NOT_FIT,
        f"no column identifies the instances of `{unit}`",
        notes=(why,),
        help="bound the rows of one instance, with  max_rows",
    )


def count(what: str, number: int) -> int:
    """Return a number of rows or groups."""
    if type(number) is not int or number < 1:
        raise fail(
            Code.OUT_OF_RANGE,
            f"{what} must be an integer from 1 on, got {number!r:.50}",
        )
    return number


def session_budget(mechanism: Reserved) -> dict[str, Fraction]:
    """Return the budget of a session: the reserved one, for adding or removing rows.

    Where neighbors of the unit are not such, any change of an instance is made by
    removing and adding it: two steps, which cost 2 eps, or 4 rho (Bun and Steinke 2016,
    Proposition 1.9, for groups of two).
    """
    units = mechanism.units
    cost = mechanism.cost(units[0]) if len(units) == 1 else None
    if mechanism.kind != "declared" or not isinstance(
        cost, PureBudget | ZcdpBudget | ApproxBudget
    ):
        raise fail(
            Code.DOES_NOT_FIT,
            f"no session fits `{mechanism.name}`: it is"
            f" `{mechanism.kind}`, with a loss stated for {', '.join(units)}",
            help="reserve  mechanism: declared  with  cost: {UNIT: {eps: …}},"
            "  {rho: …}  or  {eps: …, delta: …}, for one unit",
        )
    relation = mechanism.relation(units[0])
    alike = relation == "add-remove"
    match cost:
        case PureBudget(eps=eps):
            return {"eps": eps if alike else eps / 2}
        case ZcdpBudget(rho=rho):
            return {"rho": rho if alike else rho / 4}
        case ApproxBudget(eps=eps, delta=delta):
            if alike:
                return {"eps": eps, "delta": delta}
            raise fail(
                Code.DOES_NOT_FIT,
                f"Tumult protects added and removed rows; neighbors for `{units[0]}`"
                " are"
                f" `{relation}`",
                help="reserve eps alone, or rho",
            )
