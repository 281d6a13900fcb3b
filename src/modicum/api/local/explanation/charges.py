"""The cells of a rule: the charge of each, by release.

A cell is shown by one of its points; all points of a segment were charged alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from modicum.accounting import Loss, Total
from modicum.accounting.losses import total_of
from modicum.api.local.explanation.contributions import Spent
from modicum.core.errors import Code, InvariantError, Problem, check
from modicum.ledger import Balances, RecordedRelease, RuleLoss
from modicum.ledger.cells.axes import Box, Region, Space
from modicum.ledger.cells.family import Charge, Family, ReleaseCosts
from modicum.ledger.cells.sums import nothing
from modicum.ledger.decision.balances import ReservedRelease, facts_of
from modicum.ledger.decision.charges import charged, moved
from modicum.ledger.decision.decide import undated, verdict_over_history
from modicum.ledger.log.recorded_release import RecordedMechanism
from modicum.policy import CompiledPolicy, Rule
from modicum.policy.predicates import holds
from modicum.release import EVERYTHING, Part
from modicum.release.parts import FIRST_DAY, LAST_DAY


class Cell(Struct, frozen=True):
    """Points of a rule's space with equal charges.

    Attributes:
        rule: The rule.
        space: The space of its unit.
        box: Some of the points: a box of them.
        total: The charge.
    """

    rule: Rule
    space: Space
    box: Box
    total: Total

    @property
    def text(self) -> str:
        """The box as text; empty if the rule has one cell only."""
        return self.space.text(self.box)

    @property
    def point(self) -> tuple[int, ...]:
        """One of the points."""
        return tuple(low for low, _ in self.box)


def cells_of(
    balances: Balances, rule: Rule, part: Part = EVERYTHING, day: int = 0
) -> list[Cell]:
    """Return the cells of a rule over history that a part of the data touches."""
    family = balances.family(rule.unit)
    regions = family.space.regions(part, day, timeless=False)
    overlay = family.segments.overlay(list(regions))
    places = np.flatnonzero(overlay.inside.any(axis=1))
    charge = Charge(
        (_number(balances, rule),),
        family.rows((_number(balances, rule),)),
        places,
        nothing(len(places)),
        everywhere=False,
    )
    then = family.segments.then()
    (totals,) = spent_before(family, ReleaseCosts(overlay, (charge,)), charge)
    return [
        Cell(rule, family.space, then.box(overlay, int(place)), total)
        for place, total in zip(places, totals, strict=True)
    ]


def spent_before(
    family: Family, inquiry: ReleaseCosts, charge: Charge
) -> list[list[Total]]:
    """Return, by rule and piece, the charge before this release."""
    spent = family.spent(inquiry, charge)
    rules = np.arange(len(charge.numbers))
    by_piece = [
        spent.at(np.full_like(rules, piece)).totals()
        for piece in range(len(charge.places))
    ]
    return [[totals[rule] for totals in by_piece] for rule in rules.tolist()]


def fullest(cells: Iterable[Cell], compiled: CompiledPolicy) -> Cell:
    """Return the cell that leaves the least of its rule's budget."""
    found = list(cells)
    own_filter = compiled.filter_of(found[0].rule.budget)
    return max(found, key=lambda one: own_filter.fullness(one.total))


def standing_of(
    cell: Cell, compiled: CompiledPolicy, share: Fraction = Fraction(1)
) -> RuleLoss:
    """Return the loss of a rule in a cell, with its limit."""
    budget = cell.rule.budget
    own_filter = compiled.filter_of(budget).unlocked(share)
    allowed = own_filter.admits(cell.total)
    return RuleLoss(
        rule=cell.rule,
        allowed=allowed,
        before=cell.total,
        alone=Total(),
        own_filter=own_filter,
        filter_name=compiled.policy.filter_name,
        report_delta=compiled.report_delta(budget),
        cell=cell.text,
        cells_denying=int(not allowed),
        share=share,
    )


def standing_in(balances: Balances, rule: Rule, day: int) -> RuleLoss:
    """Return the loss of a rule over history in its fullest cell.

    If it is over its limit, the result shows whether it is over at both ends of time.
    """
    found = verdict_over_history(balances, rule)
    if found.allowed or balances.family(rule.unit).space.period is None:
        return found
    ends = (Part(periods=((end, end),)) for end in (FIRST_DAY, LAST_DAY))
    every = all(
        not standing_of(fullest(cells, balances.compiled), balances.compiled).allowed
        for cells in (cells_of(balances, rule, end, day) for end in ends)
    )
    return replace(found, every_period=every)


def denying_cell(
    balances: Balances, release: RecordedRelease, day: int, loss: RuleLoss
) -> Cell:
    """Return the cell of a denying verdict of a rule over history."""
    number = _number(balances, loss.rule)
    for family, inquiry in balances.charges_of(release, day):
        for charge in inquiry.charges:
            if number in charge.numbers:
                then, overlay = family.segments.then(), inquiry.overlay
                boxes = (then.box(overlay, int(place)) for place in charge.places)
                spent = spent_before(family, inquiry, charge)
                before = spent[charge.numbers.index(number)]
                for box, total in zip(boxes, before, strict=True):
                    found = Cell(loss.rule, family.space, box, total)
                    if total == loss.before and found.text == loss.cell:
                        return found
    message = "a verdict has a cell that the release does not touch"
    raise InvariantError(Problem(Code.INTERNAL, message))


def spent_in(
    cell: Cell, reserved: Iterable[ReservedRelease], compiled: CompiledPolicy
) -> list[Spent]:
    """Return the charge of each counted release in a cell."""
    return spent_in_each([cell], reserved, compiled)[0]


def spent_in_each(
    cells: list[Cell], reserved: Iterable[ReservedRelease], compiled: CompiledPolicy
) -> list[list[Spent]]:
    """Return, by cell, the charge of each counted release."""
    found: list[list[Spent]] = [[] for _ in cells]
    for one in reserved if cells else ():
        if one.counts:
            for place, cell in enumerate(cells):
                losses = list(_charged_in(cell, one.release, one.day, compiled))
                if losses:
                    bare = undated(one.release, cell.rule, cell.space, compiled)
                    found[place].append(
                        Spent(one.release.id, total_of(losses), bool(bare))
                    )
    return found


def _charged_in(
    cell: Cell, release: RecordedRelease, day: int, compiled: CompiledPolicy
) -> Iterator[Loss]:
    vocabulary = compiled.policy.vocabulary
    conditions = (cell.rule.predicate, *cell.rule.settings)
    facts = facts_of(release, vocabulary)
    for mechanism, one in zip(release.mechanisms, facts, strict=True):
        if not all(holds(predicate, one) for predicate in conditions):
            continue
        sides = _sides(cell, mechanism, day, compiled)
        if all(sides):
            yield charged(mechanism, cell.rule.unit, vocabulary)
        elif any(sides):
            yield moved(mechanism, cell.rule.unit, vocabulary)


def _sides(
    cell: Cell, mechanism: RecordedMechanism, day: int, compiled: CompiledPolicy
) -> list[bool]:
    static = compiled.policy.vocabulary.population.static
    timeless = not static.isdisjoint(mechanism.attributes)
    part = mechanism.undivided.get(cell.space.unit, mechanism.part)
    regions = cell.space.regions(part, day, timeless=timeless)
    return [holds_point(region, cell.point) for region in regions]


def holds_point(region: Region, point: tuple[int, ...]) -> bool:
    """Return whether a region has a point."""
    return region is None or any(
        all(low <= one <= high for one, (low, high) in zip(point, box, strict=True))
        for box in region
    )


def _number(balances: Balances, rule: Rule) -> int:
    number = balances.compiled.rules.number(rule.id)
    check(number is not None, "LED-3: only rules over history have balances")
    assert number is not None
    return number
