"""Runs of a query on an engine: exact numbers in, noisy answers out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product

from msgspec.structs import replace

from modicum.api.ports.engine import Engine, Runner, Sampler, SecretSource
from modicum.core.errors import Code, InvariantError, Problem, check
from modicum.core.redaction import scrubbed
from modicum.query.aggregates import added_up, nodes_of
from modicum.query.compiler import CompiledQuery, Line
from modicum.query.contribution_bounds import UNBOUNDED
from modicum.query.groups import groups_of
from modicum.query.key_selection import Selection
from modicum.query.query_file import QueryFile
from modicum.query.results import Answers, answers_of
from modicum.query.sensitivity import root
from modicum.query.statistics import Exact, ExactPlan, KeyValue, Statistic

Group = tuple[KeyValue, ...]


def must_fit(compiled: CompiledQuery, engine: Engine, sampler: Sampler) -> None:
    """Make all possible checks of a run before a row is read."""
    engine.check(compiled.plan)
    must_be_drawn(compiled, sampler)


def answered(
    query: QueryFile, engine: Runner, sampler: Sampler, lots: SecretSource
) -> Answers:
    """Return the answers to a query whose loss is spent."""
    compiled = query.compiled

    def work() -> Answers:
        noisy = noisy_of(compiled, engine, sampler, lots)
        return answers_of(compiled, noisy, query.confidence)

    return scrubbed(work, unanswered())


def unanswered() -> InvariantError:
    """Return the error for a run that failed, and may have seen rows."""
    return InvariantError(
        Problem(
            Code.INTERNAL,
            "the query failed; the error is hidden: it may quote rows",
            help="its loss is spent; please report this",
        )
    )


def must_be_drawn(compiled: CompiledQuery, sampler: Sampler) -> None:
    """Refuse noise that a sampler does not draw as it is priced."""
    noise, unit = compiled.request.noise, compiled.request.unit
    for line in compiled.lines:
        norms = line.norms[unit]
        moved = (
            Fraction(max(norms.l1, 1))
            if noise == "laplace"
            else Fraction(*root(max(norms.l2_squared, 1)))
        )
        sampler.check(noise, line.scale, moved)
    selection = compiled.selection
    if selection is not None:
        sampler.check("laplace", selection.scale, Fraction(selection.l1[unit]))


def noisy_of(
    compiled: CompiledQuery, engine: Runner, sampler: Sampler, lots: SecretSource
) -> dict[str, dict[Group, int]]:
    """Return an engine's results for a query, with noise; nothing is reserved."""
    return _Run(compiled, engine, sampler, lots).noisy()


class _Run:
    """One run of a query: exact numbers in, noisy ones out."""

    def __init__(
        self,
        compiled: CompiledQuery,
        engine: Runner,
        sampler: Sampler,
        lots: SecretSource,
    ) -> None:
        self._lowered = compiled
        self._engine = engine
        self._sampler = sampler
        self._lots = lots

    def noisy(self) -> dict[str, dict[Group, int]]:
        """Return the noisy statistics by name; of a histogram, by node of its tree."""
        exact = self._exact()
        groups = self._groups(exact)
        return {
            line.name: self._with_noise(line, exact, groups)
            for line in self._lowered.lines
        }

    def _exact(self) -> Mapping[str, Exact]:
        found: dict[str, Exact] = {}
        for plan in self._plans():
            answered = self._engine.run(plan, self._lots.draw())
            for one in plan.all_statistics:
                # Without rows, an answer is empty; without an answer, nothing is 0.
                check(one.name in answered, "engines answer every statistic")
                found[one.name] = answered[one.name]
        return found

    def _plans(self) -> Iterator[ExactPlan]:
        """Yield one plan per mechanism: each has its own sample."""
        plan = self._lowered.plan
        if plan.sample is None:
            yield plan
            return
        check(plan.selection is None, "keys of a sample are not released")
        for one in plan.statistics:
            yield replace(plan, statistics=(one,))

    def _groups(self, exact: Mapping[str, Exact]) -> Sequence[Group]:
        request, selection = self._lowered.request, self._lowered.selection
        if self._lowered.groups < UNBOUNDED or selection is None:
            return list(groups_of(request.query.keys, request.tables, request.part))
        return self._released_groups(selection, exact[selection.statistic.name])

    def _released_groups(self, selection: Selection, ids: Exact) -> list[Group]:
        """Return the groups with enough ids after noise, in a fixed order."""
        groups = sorted(ids, key=_in_order)  # The engine's order could reveal data.
        noisy = self._sampler.add(
            "laplace", selection.scale, [ids[group] for group in groups]
        )
        return [
            group
            for group, number in zip(groups, noisy, strict=True)
            if number >= selection.threshold
        ]

    def _with_noise(
        self, line: Line, exact: Mapping[str, Exact], groups: Sequence[Group]
    ) -> dict[Group, int]:
        found, cells = exact[line.statistic.name], groups
        if self._lowered.request.query.sets:
            cells = list(product(*self._lowered.values_of(line.keys)))
            if line.statistic.keys is None:
                width = len(self._lowered.request.query.keys)
                found = added_up(found, line.keys, width)
        if line.statistic.kind == "histogram":
            found = nodes_of(line.statistic, found)
            cells = [cell for group in cells for cell in _nodes(line.statistic, group)]
        values = [found.get(cell, 0) for cell in cells]
        noisy = self._sampler.add(self._lowered.request.noise, line.scale, values)
        return dict(zip(cells, noisy, strict=True))


def _nodes(statistic: Statistic, group: Group) -> Sequence[Group]:
    """Return the nodes of a group's tree."""
    return [
        (*group, level, node)
        for level in range(1, statistic.levels + 1)
        for node in range(2**level)
    ]


def _in_order(group: Group) -> tuple[tuple[str, str], ...]:
    return tuple((type(one).__name__, str(one)) for one in group)
