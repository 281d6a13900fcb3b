"""From a query to mechanisms: each with its noise, and a sensitivity for every unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from modicum.core.reader import Problems
from modicum.core.record import dataclass
from modicum.query.aggregates import free_name, statistics_of
from modicum.query.attributes import attributes_read
from modicum.query.caps import caps_of
from modicum.query.contribution_bounds import UNBOUNDED, Moves, in_order
from modicum.query.demands import (
    must_be_bounded,
    must_be_few,
    must_have_bounds,
    must_have_keys,
)
from modicum.query.groups import Grouping, grain_of, number_of_values, shape_of
from modicum.query.key_selection import Selection, selection_of
from modicum.query.moved import all_moves, within_days
from modicum.query.request import Asked, Noise
from modicum.query.scales import gaussian_scale, laplace_scale
from modicum.query.sensitivity import (
    Norms,
    Shape,
    of_counts,
    of_ids,
    of_sums,
    of_tree,
    root,
)
from modicum.query.statistics import ExactPlan, Sample, Statistic
from modicum.release.parser import CONTRIBUTIONS_MAX
from modicum.release.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Line:
    """One mechanism: a statistic of every group, with noise.

    Attributes:
        statistic: What it tells.
        serves: The aggregates that need it.
        norms: By unit that is bounded, how far it moves, in steps.
        scale: Of its noise, in steps: σ of `gaussian`, b of `laplace`.
        share: What it takes of the query's loss, for the unit that this is given for.
    """

    statistic: Statistic
    serves: tuple[str, ...]
    norms: Mapping[str, Norms]
    scale: Fraction
    share: Fraction


@dataclass(frozen=True, slots=True)
class Lowered:
    """A query as mechanisms, and as work for an engine.

    Attributes:
        asked: The query.
        moves: By unit, how many of the rows that are kept move with one change.
        shapes: By unit that is bounded, how these may lie in the groups.
        groups: How many groups its answers have; `UNBOUNDED` if keys are discovered.
        attributes: The attributes of the data that it reads.
        lines: The mechanisms, in order.
        selection: The mechanism that tells keys that are not public, if there are any.
        plan: What an engine computes.
    """

    asked: Asked
    moves: Mapping[str, Moves]
    shapes: Mapping[str, Shape]
    groups: int
    attributes: tuple[str, ...]
    lines: tuple[Line, ...]
    selection: Selection | None
    plan: ExactPlan

    def mechanisms(self) -> list[dict[str, object]]:
        """Return the mechanisms as they stand in the description of a release."""
        bounds = {
            unit: one.coming
            for unit, one in self.moves.items()
            if one.coming <= CONTRIBUTIONS_MAX  # A larger one cannot be written.
        }
        described = [
            {
                "name": line.statistic.name,
                "attributes": list(self.attributes),
                "contribution_bound": bounds,
                **_in_noise(self.asked.noise, line),
            }
            for line in self.lines
        ]
        if self.selection is not None:
            described.insert(0, self.selection.described(self.attributes, bounds))
        return described


def lower(asked: Asked, vocabulary: Vocabulary) -> Lowered:
    """Return a query as mechanisms.

    Args:
        asked: The query, its bounds and its noise.
        vocabulary: The units and attributes of the policy.

    Raises:
        InputError: If nothing bounds the unit whose loss is given, or if keys are
            neither public nor to be discovered.
    """
    units = vocabulary.unit_facts
    caps = in_order(caps_of(asked, units), units)
    read = attributes_read(asked, vocabulary)
    keys = tuple(
        replace(key, grain=grain_of(key, asked.tables)) for key in asked.query.keys
    )
    within = within_days(asked, read, keys, vocabulary)
    found = all_moves(asked, read, keys, vocabulary)
    wrong = Problems()
    with wrong.guard():
        must_be_bounded(
            asked, found, lambda one: all_moves(one, read, keys, vocabulary), vocabulary
        )
    with wrong.guard():
        must_have_bounds(asked)
    values = tuple(number_of_values(key, asked.tables, asked.part) for key in keys)
    grouping = Grouping(keys, values, caps, units, within)
    groups = grouping.groups
    with wrong.guard():
        must_have_keys(asked, groups)
    wrong.raise_any()
    shapes = {
        unit: shape_of(one, unit, grouping)
        for unit, one in found.items()
        if one.bounded
    }
    selection, left = None, asked.loss
    if groups == UNBOUNDED and asked.discovery is not None:
        selection = selection_of(asked, found, shapes, units)
        left = asked.loss * (1 - asked.discovery.share)
    lines = _lines(asked, found, shapes, left)
    must_be_few(asked, {line.statistic: line.serves for line in lines}, groups)
    if selection is not None:
        selection = selection.called(
            free_name(selection.name, [line.statistic.name for line in lines])
        )
    plan = ExactPlan(
        asked.query,
        asked.tables,
        asked.part,
        _sample(asked),
        caps,
        tuple(line.statistic for line in lines),
        units,
        None if selection is None else selection.statistic,
    )
    return Lowered(asked, found, shapes, groups, read, lines, selection, plan)


# --- noise ----------------------------------------------------------------------------


def _lines(
    asked: Asked,
    found: Mapping[str, Moves],
    shapes: Mapping[str, Shape],
    loss: Fraction,
) -> tuple[Line, ...]:
    needed = statistics_of(asked.query.aggregates, asked.tables, asked.bins)
    weights = {
        one: sum(asked.weights.get(name, Fraction(1)) for name in serves)
        for one, serves in needed.items()
    }
    every = sum(weights.values())
    lines = []
    for one, serves in needed.items():
        norms = {
            unit: norms_of(one, found[unit], shape) for unit, shape in shapes.items()
        }
        share = loss * weights[one] / every
        scale = scale_of(asked.noise, norms[asked.unit], share)
        lines.append(Line(one, serves, norms, scale, share))
    return tuple(lines)


def norms_of(one: Statistic, moved: Moves, shape: Shape) -> Norms:
    """Return how far a statistic of all groups moves with one change of a unit.

    Args:
        one: The statistic.
        moved: The rows that move.
        shape: The groups.
    """
    if one.kind == "rows":
        return of_counts(moved, shape)
    if one.kind == "distinct":
        column = None if one.column is None else one.column.column
        return of_ids(moved, shape, moved.ids.get(column or "", UNBOUNDED))
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


def _sample(asked: Asked) -> Sample | None:
    if asked.sampling is None:
        return None
    # Rounded down: fewer are drawn than is charged for.
    return Sample(asked.sampling.unit, int(asked.sampling.rate * 2**60))
