"""The status of one rule in a ledger: spent, left, and by which releases."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from modicum.api.local.explanation.budget_fit import largest_rho
from modicum.api.local.explanation.charges import cells_of, fullest, spent_in
from modicum.api.local.explanation.contributions import Contributor, decisive, shares
from modicum.api.local.policies.replay import History
from modicum.ledger import Balances, RuleLoss
from modicum.ledger.decision.amounts import Amounts, amounts
from modicum.ledger.decision.decide import verdict_over_history
from modicum.policy import CompiledPolicy, Rule


class CellSpent(Struct, frozen=True):
    """The charge of a cell of a rule, by release.

    Attributes:
        loss: The loss of the rule there, with its limit.
        rho_left: How much rho of Gaussian noise the cell still admits, in ledger
            units; None if nothing is enforced.
        coordinate: The measure of its spenders.
        spenders: The releases that were charged there, the largest first.
    """

    loss: RuleLoss
    rho_left: int | None
    coordinate: int
    spenders: tuple[Contributor, ...]

    @property
    def spent(self) -> Amounts:
        """The charge, on the filter's own scale: `together` and `limit`."""
        return amounts(self.loss)


class RuleStanding(CellSpent, frozen=True):
    """The status of a rule over history: its fullest cell."""

    @property
    def left(self) -> int:
        """The distance to its limit on its own scale, in that scale's units."""
        return max(self.spent.limit - self.spent.together, 0)


def in_cells(count: int) -> str:
    """Return ``in 3 cells`` with a leading blank, to follow ``over``.

    A rule over its limit denies matching releases in these cells only.
    """
    return " in 1 cell" if count == 1 else f" in {count} cells"


def rule_standing(
    rule: Rule, history: History, compiled: CompiledPolicy
) -> RuleStanding:
    """Return the status of a rule over history."""
    reserved = history.reserved(compiled)
    balances = Balances(compiled, reserved)
    cell = fullest(cells_of(balances, rule), compiled)
    loss = verdict_over_history(balances, rule)
    loss = replace(loss, before=cell.total, cell=cell.text)
    coordinate = decisive(loss)
    charged = spent_in(cell, reserved, compiled)
    return RuleStanding(
        loss=loss,
        rho_left=largest_rho(loss.own_filter, loss.before),
        coordinate=coordinate,
        spenders=shares(charged, coordinate),
    )
