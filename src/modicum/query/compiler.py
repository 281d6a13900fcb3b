"""From a query to mechanisms: each with its noise, and a sensitivity for every unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import Final

from msgspec import Struct, structs

from modicum.core.errors import Code
from modicum.core.reader import Problems
from modicum.query.aggregates import NAME_MAX, free_name, statistics_of
from modicum.query.attributes import attributes_read
from modicum.query.contribution_bounds import UNBOUNDED, Moves, caps_of, in_order
from modicum.query.expressions.analysis import only_column
from modicum.query.groups import (
    Grouping,
    grain_of,
    number_of_values,
    shape_of,
    values_of,
)
from modicum.query.intervals import gaussian_scale, laplace_scale
from modicum.query.joins import all_moves, within_days
from modicum.query.key_selection import Selection, selection_of
from modicum.query.marginals import Marginals, may_be_measured, set_of, shares_of
from modicum.query.problems import refused
from modicum.query.request import Noise, QueryRequest
from modicum.query.requirements import (
    must_be_bounded,
    must_have_bounds,
    must_have_keys,
)
from modicum.query.sensitivity import (
    Norms,
    Shape,
    of_counts,
    of_ids,
    of_sums,
    of_tree,
    root,
)
from modicum.query.statistics import (
    ADDITIVE,
    ExactPlan,
    KeyValue,
    Sample,
    Statistic,
)
from modicum.release.parser import CONTRIBUTIONS_MAX, MECHANISMS_MAX
from modicum.release.vocabulary import Vocabulary

#: Maximum number of noisy numbers in one statistic.
NUMBERS_MAX: Final = 10_000_000


def must_be_few(request: QueryRequest, lines: Sequence[Line], groups: int) -> None:
    """Refuse a query with noise for too many numbers, in trees above all.

    Args:
        request: The query.
        lines: Its mechanisms.
        groups: The number of groups by all keys; `UNBOUNDED` if these are discovered.

    Raises:
        InputError: If there are too many.
    """
    if len(lines) > MECHANISMS_MAX:
        raise refused(
            Code.DOES_NOT_FIT,
            f"the query has {len(lines)} mechanisms; a release has at most"
            f" {MECHANISMS_MAX}",
            request.mark,
            help="use fewer sets of keys, or fewer aggregates",
        )
    for line in lines:
        numbers = line.statistic.numbers * (1 if groups == UNBOUNDED else groups)
        if numbers > NUMBERS_MAX:
            raise refused(
                Code.DOES_NOT_FIT,
                f"`{line.serves[0]}` takes {numbers} noisy numbers; at most"
                f" {NUMBERS_MAX} are allowed",
                request.mark,
                help="use fewer `bins`, longer periods or fewer values",
            )


class Line(Struct, frozen=True):
    """One mechanism: a noisy statistic of every group of one set of keys.

    Attributes:
        name: Its name.
        statistic: The statistic; an engine may compute it by more keys.
        keys: The positions of the keys that its groups are formed by.
        serves: The aggregates that need it.
        norms: By unit that is bounded, how far it moves, in steps.
        scale: Of its noise, in steps: σ of `gaussian`, b of `laplace`.
        share: Its share of the query's loss, for the unit that this is given for.
    """

    name: str
    statistic: Statistic
    keys: tuple[int, ...]
    serves: tuple[str, ...]
    norms: Mapping[str, Norms]
    scale: Fraction
    share: Fraction


class CompiledQuery(Struct, frozen=True):
    """A query as mechanisms, and as a plan for an engine.

    Attributes:
        request: The query.
        moves: By unit, how many of the rows that are kept move with one change.
        shapes: By unit that is bounded, how these may lie in the groups.
        groups: The number of groups by all keys; `UNBOUNDED` if these are discovered.
        attributes: The attributes of the data that it reads.
        lines: The mechanisms, in order.
        marginals: By the name of a statistic, how its sums by several sets of keys
            follow from those that are measured; empty if there is one set.
        selection: The mechanism that selects keys that are not public, if there are
            any.
        plan: The plan for an engine.
    """

    request: QueryRequest
    moves: Mapping[str, Moves]
    shapes: Mapping[str, Shape]
    groups: int
    attributes: tuple[str, ...]
    lines: tuple[Line, ...]
    marginals: Mapping[str, Marginals]
    selection: Selection | None
    plan: ExactPlan

    @property
    def answer_groups(self) -> int:
        """The number of groups of its answers; `UNBOUNDED` if keys are discovered."""
        if self.groups == UNBOUNDED:
            return UNBOUNDED
        return sum(
            prod(len(values) for values in self.values_of(keys))
            for keys in self.request.query.key_sets
        )

    def values_of(self, keys: Sequence[int]) -> list[tuple[KeyValue, ...]]:
        """Return the values of some keys, by their positions; they are public."""
        request = self.request
        return [
            values_of(request.query.keys[one], request.tables, request.part) or ()
            for one in keys
        ]

    def mechanisms(self) -> list[dict[str, object]]:
        """Return the mechanisms as in the description of a release."""
        bounds = {
            unit: one.coming
            for unit, one in self.moves.items()
            if one.coming <= CONTRIBUTIONS_MAX  # A larger one cannot be written.
        }
        described = [
            {
                "name": line.name,
                "attributes": list(self.attributes),
                "contribution_bound": bounds,
                **_in_noise(self.request.noise, line),
            }
            for line in self.lines
        ]
        if self.selection is not None:
            described.insert(0, self.selection.described(self.attributes, bounds))
        return described


def compile_query(request: QueryRequest, vocabulary: Vocabulary) -> CompiledQuery:
    """Return a query as mechanisms.

    Raises:
        InputError: If nothing bounds the unit whose loss is given, or if keys are
            neither public nor to be discovered.
    """
    units = vocabulary.unit_facts
    caps = in_order(caps_of(request, units), units)
    read = attributes_read(request, vocabulary)
    keys = tuple(
        replace(key, grain=grain_of(key, request.tables)) for key in request.query.keys
    )
    within = within_days(request, read, keys, vocabulary)
    found = all_moves(request, read, keys, vocabulary)
    wrong = Problems()
    with wrong.guard():
        must_be_bounded(
            request,
            found,
            lambda one: all_moves(one, read, keys, vocabulary),
            vocabulary,
        )
    with wrong.guard():
        must_have_bounds(request)
    values = tuple(number_of_values(key, request.tables, request.part) for key in keys)
    grouping = Grouping(keys, values, caps, units, within)
    groups = grouping.groups
    with wrong.guard():
        must_have_keys(request, groups)
    wrong.raise_any()
    shapes = {
        unit: shape_of(one, unit, grouping)
        for unit, one in found.items()
        if one.bounded
    }
    selection, left = None, request.loss
    if groups == UNBOUNDED and request.discovery is not None:
        selection = selection_of(request, found, shapes, units)
        left = request.loss * (1 - request.discovery.share)
    lines = tuple(_lines(request, found, grouping, left))
    must_be_few(request, lines, groups)
    if selection is not None:
        selection = selection.called(
            free_name(selection.name, [line.name for line in lines])
        )
    plan = ExactPlan(
        request.query,
        request.tables,
        request.part,
        _sample(request),
        caps,
        tuple(dict.fromkeys(line.statistic for line in lines)),
        units,
        None if selection is None else selection.statistic,
    )
    marginals = _marginals(request, lines, found, grouping)
    return CompiledQuery(
        request, found, shapes, groups, read, lines, marginals, selection, plan
    )


# --- noise ----------------------------------------------------------------------------


def _lines(
    request: QueryRequest,
    found: Mapping[str, Moves],
    grouping: Grouping,
    loss: Fraction,
) -> Iterator[Line]:
    """Yield the mechanisms of a query."""
    needed = statistics_of(request.query.aggregates, request.tables, request.bins)
    weights = {
        one: sum(request.weights.get(name, Fraction(1)) for name in serves)
        for one, serves in needed.items()
    }
    every = sum(weights.values())
    taken = [one.name for one in needed]
    for one, serves in needed.items():
        norms_by = {
            keys: {
                unit: norms_of(one, moved, shape_of(moved, unit, grouping.by(keys)))
                for unit, moved in found.items()
                if moved.bounded
            }
            for keys in _may_be_measured(one, request)
        }
        of_all = loss * weights[one] / every
        for keys, part in _divided(one, norms_by, request, grouping).items():
            norms = norms_by[keys]
            scale = scale_of(request.noise, norms[request.unit], of_all * part)
            name, statistic = one.name, one
            if request.query.sets:
                name = free_name(_called(one, keys, request), taken)
                taken.append(name)
            if request.query.sets and one.kind not in ADDITIVE:
                statistic = structs.replace(one, name=name, keys=keys)
            yield Line(name, statistic, keys, serves, norms, scale, of_all * part)


def _called(one: Statistic, keys: Sequence[int], request: QueryRequest) -> str:
    """Return the name of a statistic by some of the keys."""
    every = request.query.keys
    names = [every[key].name for key in keys]
    name = ".".join((one.name, "by", *names) if names else (one.name, "all"))
    # A name that is too long would be cut, and look like another one.
    return name if len(name) <= NAME_MAX else f"{one.name[:60]}.set.{set_of(keys)}"


def _may_be_measured(one: Statistic, request: QueryRequest) -> list[tuple[int, ...]]:
    """Return the sets of keys by which a statistic may be measured."""
    asked = request.query.key_sets
    if len(asked) == 1 or one.kind not in ADDITIVE:
        return [*asked]
    places = range(len(request.query.keys))
    return [
        tuple(place for place in places if keys >> place & 1)
        for keys in may_be_measured([set_of(keys) for keys in asked])
    ]


def _divided(
    one: Statistic,
    norms: Mapping[tuple[int, ...], Mapping[str, Norms]],
    request: QueryRequest,
    grouping: Grouping,
) -> dict[tuple[int, ...], Fraction]:
    """Return by which sets of keys a statistic is measured, and each one's share."""
    asked = request.query.key_sets
    if len(asked) == 1 or one.kind not in ADDITIVE:
        return dict.fromkeys(asked, Fraction(1, len(asked)))
    by_set = {set_of(keys): (keys, of[request.unit]) for keys, of in norms.items()}
    moved = {
        keys: float(max(of.l1 if request.noise == "laplace" else of.l2_squared, 1))
        for keys, (_, of) in by_set.items()
    }
    shares = shares_of(
        grouping.values, [set_of(keys) for keys in asked], moved, request.noise
    )
    return {by_set[keys][0]: share for keys, share in shares.items()}


def _marginals(
    request: QueryRequest,
    lines: Sequence[Line],
    moved: Mapping[str, Moves],
    grouping: Grouping,
) -> dict[str, Marginals]:
    """Return by the name of a statistic how its sums by several sets follow."""
    by_statistic: dict[Statistic, dict[int, Line]] = {}
    for line in lines:
        if request.query.sets and line.statistic.kind in ADDITIVE:
            by_statistic.setdefault(line.statistic, {})[set_of(line.keys)] = line
    found = {}
    asked, unit = request.query.key_sets, request.unit
    for one, by_set in by_statistic.items():
        spent = sum((line.share for line in by_set.values()), Fraction(0))
        alone = {}
        for keys in asked:
            shape = shape_of(moved[unit], unit, grouping.by(keys))
            norms = norms_of(one, moved[unit], shape)
            alone[set_of(keys)] = scale_of(request.noise, norms, spent / len(asked))
        scales = {keys: line.scale for keys, line in by_set.items()}
        found[one.name] = Marginals(
            tuple(grouping.values), request.noise, scales, alone
        )
    return found


def norms_of(one: Statistic, moved: Moves, shape: Shape) -> Norms:
    """Return how far a statistic of all groups moves with one change of a unit."""
    if one.kind == "rows":
        return of_counts(moved, shape)
    if one.kind == "distinct":
        column = None if one.value is None else only_column(one.value)
        ids = UNBOUNDED if column is None else moved.ids.get(column.column, UNBOUNDED)
        return of_ids(moved, shape, ids)
    if one.kind == "total":
        return of_sums(moved, shape, one.low - one.center, one.high - one.center)
    if one.kind == "squares":
        farthest = max(abs(one.low - one.center), abs(one.high - one.center))
        return of_sums(moved, shape, 0, farthest**2)
    return of_tree(moved, shape, one.levels)


def scale_of(noise: Noise, norms: Norms, share: Fraction) -> Fraction:
    """Return the scale of noise that costs a share of a loss, and hardly less.

    Args:
        noise: The kind of noise.
        norms: How far the answer moves with one change of the unit of the loss.
        share: ε of `laplace`, ρ of `gaussian`.
    """
    if noise == "laplace":
        return laplace_scale(max(norms.l1, 1), share)
    return gaussian_scale(max(norms.l2_squared, 1), share)


def _in_noise(noise: Noise, line: Line) -> dict[str, object]:
    if noise == "laplace":
        return {
            "mechanism": "discrete-laplace",
            "sensitivity": {
                unit: {"l1": max(norms.l1, 1)} for unit, norms in line.norms.items()
            },
            "scale": line.scale,
        }
    return {
        "mechanism": "discrete-gaussian",
        "sensitivity": {
            unit: {"l2": Fraction(*root(max(norms.l2_squared, 1)))}
            for unit, norms in line.norms.items()
        },
        "sigma": line.scale,
    }


def _sample(request: QueryRequest) -> Sample | None:
    if request.sampling is None:
        return None
    # Rounded down: fewer are drawn than is charged for.
    return Sample(request.sampling.unit, int(request.sampling.rate * 2**60))
