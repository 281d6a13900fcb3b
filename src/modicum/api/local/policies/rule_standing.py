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


class RuleStanding(Struct, frozen=True):
    """Where a rule over history stands.

    Attributes:
        loss: What it was charged in its fullest cell, and what it admits.
        spent: The same on the filter's own scale: `together` and `limit`.
        rho_left: How much rho of Gaussian noise it still admits, in ledger units;
            None if it enforces nothing.
        coordinate: What its spenders are measured by.
        spenders: The releases that were charged in that cell, largest first.
    """

    loss: RuleLoss
    spent: Amounts
    rho_left: int | None
    coordinate: int
    spenders: tuple[Contributor, ...]

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
        spent=amounts(loss),
        rho_left=largest_rho(loss.own_filter, loss.before),
        coordinate=coordinate,
        spenders=shares(charged, coordinate),
    )
