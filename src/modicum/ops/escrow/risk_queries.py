"""Queries of the escrow with risk indicators; others are refused.

The indicators cover one noise, for one vector of numbers, and people whose rows do not
affect those of others. Any other query has no indicator here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from msgspec import structs

from modicum.accounting.decimals import significant
from modicum.api.local.explanation.release_text import written
from modicum.core.errors import Code, InputError, Problem
from modicum.query.compiler import Line
from modicum.query.expressions.analysis import facts_of, only_column
from modicum.query.model import ColumnRef, Key
from modicum.query.query_file import QueryFile
from modicum.query.sensitivity import root
from modicum.query.statistics import ExactPlan
from modicum.query.tables import Tables
from modicum.release.parts import EVERYTHING
from modicum.release.units import Unit
from modicum.risk.arguments import Number, above_zero, argument, mistake
from modicum.risk.noise import GaussianNoise, LaplaceNoise, Noise
from modicum.risk.question import Question, read_question

#: Number of displayed digits of losses, rounded down.
_DIGITS: Final = 12
_ONE: Final = "use one COUNT or SUM in each query file"


@dataclass(frozen=True, slots=True)
class RiskyQuery:
    """A query with indicators: one noise, and people of one unit.

    Attributes:
        query: The query.
        table: The table that it reads.
        unit: The unit of the loss; an instance of it is a person.
        line: Its only mechanism.
        step: The size of one step of its numbers, in units of the answer.
    """

    query: QueryFile
    table: str
    unit: Unit
    line: Line
    step: Fraction

    @property
    def measure(self) -> str:
        """The measure of its loss: `eps` or `rho`."""
        return "eps" if self.query.request.noise == "laplace" else "rho"

    @property
    def question(self) -> Question:
        """The query, read by those who look at rows without noise."""
        declared = self.query.request.tables.by_name[self.table].columns
        return read_question(self.sql, {self.table: tuple(declared)}, self.unit.id)

    @property
    def sql(self) -> str:
        """The query as it was written."""
        return str(written(self.query.file)["query"]["sql"])

    def noise(self, delta: Number | None) -> Noise:
        """Return its noise for any epsilon, from public facts alone."""
        norms, groups = self.line.norms[self.unit.name], self.query.compiled.groups
        if self.measure == "eps":
            if delta is not None:
                raise mistake("Laplace noise has no delta", "leave it out")
            return LaplaceNoise(max(norms.l1, 1) * self.step, groups)
        if delta is None:
            raise mistake(
                "Gaussian noise has an epsilon only with a delta",
                f"give {argument('delta')} such as 1e-6",
                Code.MISSING_KEY,
            )
        width = Fraction(*root(max(norms.l2_squared, 1))) * self.step
        return GaussianNoise(width, above_zero("delta", delta, by="delta"), groups)

    def loss_at(self, noise: Noise, epsilon: Fraction) -> Fraction:
        """Return the loss for an epsilon in the query file, or slightly less.

        Args:
            noise: Its noise.
            epsilon: The epsilon.

        Returns:
            ε of `laplace`; of `gaussian` the ρ of the noise that reaches ε and δ.
        """
        loss = epsilon
        if self.measure == "rho":
            loss = (noise.sensitivity / noise.width(epsilon)) ** 2 / 2
        return significant(loss, _DIGITS, up=False)

    # --- exact computations, for owners -----------------------------------------------

    @property
    def of_each_person(self) -> ExactPlan:
        """The plan of its numbers without noise, for each person separately."""
        plan = self._by_person
        keys = (*plan.query.keys, *self.query.compiled.plan.query.keys)
        return structs.replace(plan, query=structs.replace(plan.query, keys=keys))

    @property
    def of_everybody(self) -> ExactPlan:
        """The plan of all people, whether or not the query reads their rows."""
        plan = self._by_person
        query = structs.replace(plan.query, where=None)
        rows = structs.replace(self.line.statistic, kind="rows", value=None)
        return structs.replace(
            plan, query=query, part=EVERYTHING, caps=(), statistics=(rows,)
        )

    @property
    def _by_person(self) -> ExactPlan:
        plan, tables = self.query.compiled.plan, self.query.request.tables
        column = ColumnRef(self.table, self.unit.id)
        key = Key(self.unit.id, column)
        query = structs.replace(plan.query, keys=(key,))
        return structs.replace(plan, query=query, tables=_all_people(tables, column))


def risky(query: QueryFile) -> RiskyQuery:
    """Return a query whose indicators are known."""
    name = query.request.unit
    for reason, remedy in _obstacles(query):
        raise InputError(
            Problem(
                Code.NOT_SUPPORTED,
                f"no epsilon is chosen by risk for the query `{query.heading.id}`:"
                f" {reason}",
                query.request.mark,
                help=remedy,
            )
        )
    (line,) = query.compiled.lines
    (table,) = query.request.query.tables
    step, value = Fraction(1), line.statistic.value
    if line.statistic.kind == "total":
        assert value is not None  # A sum is one of numbers.
        step = facts_of(value, query.request.tables).step
    return RiskyQuery(query, table, query.compiled.plan.units[name], line, step)


def _obstacles(query: QueryFile) -> Iterator[tuple[str, str]]:
    request, compiled = query.request, query.compiled
    if len(request.query.sources) > 1 or request.query.inner:
        yield (
            "it reads several tables or a subquery",
            "use a query of one table",
        )
    if request.query.sets:
        yield "it groups by several sets of keys", "group by one set of keys"
    elif not request.query.is_plain:
        yield (
            "it computes with its answer",
            "leave arithmetic on aggregates, HAVING, ORDER BY and LIMIT out",
        )
    if request.sampling is not None:
        yield "it reads a secret sample", "leave `sampling` out"
    if compiled.selection is not None:
        yield (
            "part of its loss reveals keys, and their number is not public",
            "declare the `values` of its keys, and leave `discover` out",
        )
    if len(compiled.lines) != 1:
        yield "it has several mechanisms, each with its own noise", _ONE
    yield from _of_unit(query)
    statistic = compiled.lines[0].statistic
    column = None if statistic.value is None else only_column(statistic.value)
    id_ = compiled.plan.units[request.unit].id
    if statistic.kind == "distinct" and (column is None or column.column != id_):
        yield "which values count for one person depends on others", _ONE
    if statistic.kind not in {"rows", "total", "distinct"}:
        yield "it is read from a tree of counts", _ONE


def _of_unit(query: QueryFile) -> Iterator[tuple[str, str]]:
    request, compiled = query.request, query.compiled
    unit, table = compiled.plan.units[request.unit], request.query.tables[0]
    column = request.tables.by_name[table].columns.get(unit.id)
    if unit.period is not None:
        yield (
            f"its loss is per `{unit.name}`, and the indicators compare people",
            "give the loss of a unit without a time",
        )
    if column is None or column.type == "number":
        yield (
            f"the table `{table}` has no column `{unit.id}` that identifies the person"
            " of a row",
            "declare the column, of type text or integer",
        )
    if compiled.moves[unit.name].going:
        # Only where rows of one person neither displace nor replace those of others is
        # a person's influence what her own rows add.
        yield (
            "rows of one person can take the place of other rows",
            "bound only units of the same id with the relation add-remove",
        )


def _all_people(tables: Tables, reference: ColumnRef) -> Tables:
    """Return tables without a list of values that restricts people."""
    table = tables.by_name[reference.table]
    column = replace(table.columns[reference.column], values=None)
    columns = {**table.columns, reference.column: column}
    named = {**tables.by_name, table.name: replace(table, columns=columns)}
    return structs.replace(tables, by_name=named)
