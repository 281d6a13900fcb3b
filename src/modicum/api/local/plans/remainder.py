"""What user groups left over when they retired: first come, first served."""

from __future__ import annotations

from dataclasses import dataclass

from modicum.api.local.explanation.charges import cells_of, fullest, standing_of
from modicum.ledger import Balances, RuleLoss
from modicum.ledger.decision.amounts import filled
from modicum.ledger.state.rounds import Planning
from modicum.policy import Rule
from modicum.release import Part


@dataclass(frozen=True, slots=True)
class Remainder:
    """What one rule still admits for a group that retired.

    Attributes:
        group: The number of the group.
        until: The round in which it was active no more.
        standing: Where the rule stands in the group's fullest cell.
    """

    group: int
    until: str
    standing: RuleLoss


def remainders(
    balances: Balances, planning: Planning, day: int = 0
) -> tuple[Remainder, ...]:
    """Return, for each group that retired, the rule that leaves the least.

    Args:
        balances: What was charged.
        planning: Rounds and user groups, up to the same head.
        day: The day around which distant periods are put together, as an ordinal.

    Returns:
        The groups in the order of their numbers. Groups without any rule over a unit
        that they divide are left out.
    """
    rules = [
        rule
        for rule in balances.compiled.rules
        if balances.family(rule.unit).space.grouped
    ]
    return tuple(
        Remainder(number, group.until, _fullest(balances, rules, number, day))
        for number, group in sorted(planning.groups.items())
        if group.until and rules
    )


def _fullest(balances: Balances, rules: list[Rule], group: int, day: int) -> RuleLoss:
    """Return where the rule stands that leaves the least to a group."""
    part, compiled = Part(groups=((group, group),)), balances.compiled
    cells = (fullest(cells_of(balances, one, part, day), compiled) for one in rules)
    unlocked = balances.unlocked.of_unit
    return max(
        (standing_of(cell, compiled, unlocked(cell.rule.unit)) for cell in cells),
        key=filled,
    )
