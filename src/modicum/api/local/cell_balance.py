"""The charge of one cell of a rule, and the releases with the largest shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from modicum.accounting import INFINITE, Total
from modicum.api.local.alternatives.trials import HeadView
from modicum.api.local.explanation.budget_fit import largest_rho
from modicum.api.local.explanation.charges import (
    Cell,
    cells_of,
    fullest,
    spent_in,
    standing_of,
)
from modicum.api.local.explanation.contributions import (
    Spent,
    decisive,
    shares,
    spenders_view,
    undated_text,
)
from modicum.api.local.explanation.denial_text import amount, ordered
from modicum.api.local.policies.rule_standing import CellSpent
from modicum.api.schema.ledger import Head
from modicum.api.schema.policy import CellCharge, RuleBalance
from modicum.core.document import from_python
from modicum.core.errors import Code, InputError, Problem
from modicum.core.fields import Fields
from modicum.core.reader import Problems
from modicum.ledger.decision.amounts import amounts
from modicum.policy import CompiledPolicy, Rule
from modicum.policy.rule_lookup import find_rules
from modicum.policy.rules import Stage
from modicum.release import EVERYTHING, Part
from modicum.release.part_parser import read_part

#: Maximum number of steps in the history of a cell.
STEPS_MAX: Final = 200


class CellBalance(CellSpent, frozen=True):
    """The charge of a cell of a rule, by release, at an entry of the ledger.

    Attributes:
        cells: The number of cells in the selected part; this is the fullest.
        nearby: The charge on that coordinate, in ledger units, for releases about
            others, where segments are too many to separate.
        seq: The number of the ledger entry of the result.
        head: The hash of that entry.
        steps: The number of each entry that recorded a release, and the charge from
            it on; the latest ones. Empty if segments are too many to separate.
    """

    cells: int
    nearby: int
    seq: int
    head: str
    steps: tuple[tuple[int, Total], ...] = ()

    @property
    def cause(self) -> str:
        """Why it is over, if that is because `periods` are missing; else empty."""
        return "" if self.loss.allowed else undated_text(self.spenders, 0)

    def view(self, most: int) -> RuleBalance:
        """Return the public form.

        Args:
            most: The maximum number of spenders.
        """
        found = self.spent
        spent, limit = ordered(found.together, found.limit, found.scale)
        rho = self.rho_left
        return RuleBalance(
            rule=self.loss.rule.id,
            unit=self.loss.rule.unit,
            cell=self.loss.cell or None,
            cells=self.cells,
            allowed=self.loss.allowed,
            cause=self.cause or None,
            measure=found.measure,
            spent=spent,
            limit=limit,
            rho_left=None if rho is None else amount(rho),
            releases=len(self.spenders),
            spenders=spenders_view(self.spenders[:most], self.coordinate),
            nearby=amount(self.nearby),
            ledger=Head(seq=self.seq, head=self.head),
            history=self._history(),
        )

    def _history(self) -> tuple[CellCharge, ...]:
        """Return its steps on the scale of the limit; none if one has another."""
        own_filter, found = self.loss.own_filter, []
        for entry, total in self.steps:
            allowed = own_filter.admits(total)
            step = amounts(replace(self.loss, before=total, allowed=allowed))
            if (step.measure, step.limit) != (self.spent.measure, self.spent.limit):
                return ()
            spent, _ = ordered(step.together, step.limit, step.scale)
            found.append(CellCharge(entry=entry, spent=spent))
        return tuple(found)


def cell_balance(
    head_view: HeadView,
    rule: Rule,
    part: Part = EVERYTHING,
    spent_of: Callable[[Cell], list[Spent]] | None = None,
) -> CellBalance:
    """Return the charge of the fullest cell of a rule within a part, by release.

    Args:
        head_view: The ledger.
        rule: A rule over history of its policy.
        part: The part to search; by default everything.
        spent_of: Returns the charge of each release in a cell; by default the log is
            read for it.
    """
    compiled = head_view.balances.compiled
    cells = cells_of(head_view.balances, rule, part, head_view.day)
    cell = fullest(cells, compiled)
    loss = standing_of(cell, compiled)
    if spent_of is None:
        spent = spent_in(cell, head_view.reserved, compiled)
    else:
        spent = spent_of(cell)
    coordinate = decisive(loss)
    found = shares(spent, coordinate)
    known, whole = sum(one.units for one in found), cell.total.units(coordinate)
    return CellBalance(
        loss=loss,
        cells=len(cells),
        rho_left=largest_rho(loss.own_filter, cell.total),
        coordinate=coordinate,
        spenders=found,
        nearby=0 if whole >= INFINITE else whole - known,
        seq=head_view.seq,
        head=head_view.head,
        steps=_steps(spent, head_view) if known == whole else (),
    )


def _steps(
    spent: Sequence[Spent], head_view: HeadView
) -> tuple[tuple[int, Total], ...]:
    """Return the charge of a cell after each release, in the order of their entries."""
    standings = ((head_view.standing(one.release), one.total) for one in spent)
    known = [(one.seq, total) for one, total in standings if one is not None]
    if len(known) < len(spent):
        return ()  # There is no ledger, so there are no entries.
    known.sort(key=lambda one: one[0])
    earlier, steps = known[:-STEPS_MAX], []
    charge = Total()
    if earlier:  # Column by column, which is quick.
        finite = map(sum, zip(*(one.finite for _, one in earlier), strict=True))
        infinite = map(sum, zip(*(one.infinite for _, one in earlier), strict=True))
        charge = Total(tuple(finite), tuple(infinite))
    for entry, total in known[-STEPS_MAX:]:
        charge = charge.joined(total)
        steps.append((entry, charge))
    return tuple(steps)


def rule_named(compiled: CompiledPolicy, named: str) -> Rule:
    """Return the rule over history that a name means.

    Args:
        compiled: The policy.
        named: The id of a rule, or a scope that has one context only.

    Raises:
        InputError: If there is none, or the name means several.
    """
    places = find_rules(compiled, named)
    over_history = [one.number for one in places if one.stage is Stage.HISTORY]
    if not over_history:
        raise InputError(
            Problem(
                Code.UNKNOWN_CHOICE,
                f"the rule {named} checks each release alone: it has no balance",
            )
        )
    rules = [compiled.rules[number] for number in over_history]
    if len(rules) > 1:
        raise InputError(
            Problem(
                Code.UNKNOWN_CHOICE,
                f"`{named}` matches {len(rules)} rules",
                help="choose one of  " + ",  ".join(rule.id for rule in rules[:20]),
            )
        )
    return rules[0]


def part_named(
    compiled: CompiledPolicy,
    *,
    where: object = None,
    periods: object = None,
    groups: object = None,
) -> Part:
    """Return the part of the data selected in the syntax of a release.

    Args:
        compiled: The policy.
        where: Values by partitioning attribute, or a list of such boxes.
        periods: A period, a span of them, or a list.
        groups: A user group, a span of them, or a list.

    Raises:
        InputError: With every mistake found.
    """
    named = {"where": where, "periods": periods, "groups": groups}
    given = {key: value for key, value in named.items() if value is not None}
    found = Problems()
    fields = Fields(from_python(given), "the cell")
    part = read_part(fields, EVERYTHING, compiled.policy.vocabulary, found)
    with found.guard():
        fields.finish()
    found.raise_any()
    return part
