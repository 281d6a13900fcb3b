"""Where one rule stands in a ledger: what is spent, what is left, and by whom."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from modicum.accounting import Total
from modicum.api.local.explanation.budget_fit import largest_rho
from modicum.api.local.explanation.charges import cells_of, fullest, spent_in
from modicum.api.local.explanation.contributions import Contributor, decisive, shares
from modicum.api.local.policies.replay import History
from modicum.ledger import Balances, RuleLoss
from modicum.ledger.decision.amounts import Amounts, amounts
from modicum.ledger.decision.decide import verdict_over_history
from modicum.policy import CompiledPolicy, Rule


class CellSpent(Struct, frozen=True):
    """What a cell of a rule was charged, and by whom.

    Attributes:
        loss: What the rule was charged there, and what it admits.
        rho_left: How much rho of Gaussian noise the cell still admits, in ledger
            units; None if nothing is enforced.
        coordinate: What its spenders are measured by.
        spenders: The releases that were charged there, the largest first.
    """

    loss: RuleLoss
    rho_left: int | None
    coordinate: int
    spenders: tuple[Contributor, ...]

    @property
    def spent(self) -> Amounts:
        """What was charged, on the filter's own scale: `together` and `limit`."""
        return amounts(self.loss)


class RuleStanding(CellSpent, frozen=True):
    """Where a rule over history stands: its fullest cell."""

    @property
    def left(self) -> int:
        """How far it is from its limit on its own scale, in that scale's units."""
        return max(self.spent.limit - self.spent.together, 0)


def in_cells(count: int) -> str:
    """Return ``in 3 cells`` with a blank before it, to stand behind ``over``.

    A rule over its limit denies what falls under it in these cells, and elsewhere not.
    """
    return " in 1 cell" if count == 1 else f" in {count} cells"


def rule_standing(
    rule: Rule, history: History, compiled: CompiledPolicy
) -> RuleStanding:
    """Return where a rule over history stands."""
    brought = history.brought(compiled)
    balances = Balances(compiled, brought)
    cell = fullest(cells_of(balances, rule), compiled)
    loss = verdict_over_history(balances, rule, Total())
    loss = replace(loss, before=cell.total, cell=cell.words)
    coordinate = decisive(loss)
    charged = spent_in(cell, brought, compiled)
    return RuleStanding(
        loss=loss,
        rho_left=largest_rho(loss.own_filter, loss.before),
        coordinate=coordinate,
        spenders=shares(charged, coordinate),
    )
