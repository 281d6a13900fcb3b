"""Which rules a plan has to look at."""

from __future__ import annotations

from modicum.accounting import Filter
from modicum.ledger import Balances
from modicum.ledger.decision.limits import budget_of
from modicum.policy import CompiledPolicy


def filter_of(compiled: CompiledPolicy, number: int) -> Filter:
    """Return what a rule over history admits once everything is unlocked.

    Args:
        compiled: The policy.
        number: The number of the rule.
    """
    return compiled.filter_of(budget_of(compiled, number))


class Constraining:
    """Tells which rules over history can be the only ones to deny.

    Args:
        balances: What was charged, its segments cut for all that may be charged.
    """

    def __init__(self, balances: Balances) -> None:
        self._balances = balances
        self._compiled = balances.compiled
        # Rules are pruned by what they admit in the end, not by how it is unlocked.
        self._pruned = balances.unlocked.whole
        self._known: dict[int, bool] = {}

    def among(self, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """Return those of some rules that a plan has to look at.

        Args:
            numbers: The numbers of the rules.
        """
        return tuple(one for one in numbers if self._decides(one))

    def _decides(self, number: int) -> bool:
        found = self._known.get(number)
        if found is None:
            limited = filter_of(self._compiled, number).enforced
            found = self._known[number] = limited and not self._implied(number)
        return found

    def _implied(self, number: int) -> bool:
        """Return whether another rule denies whatever this one does.

        A rule is implied by another, cell by cell. Where its cells are told apart less
        than those of the other, they may be charged for more.
        """
        if not self._pruned:
            return False
        witness = int(self._compiled.pruned.witness[number])
        if witness < 0:
            return False
        own, other = self._unit(number), self._unit(witness)
        if own == other:
            return True
        family = self._balances.family(own)
        rounded = family.rounded or family.segments.frozen
        apart = self._balances.family(other).space.period is not None
        return not rounded and not (apart and family.space.detail is not None)

    def _unit(self, number: int) -> str:
        rules = self._compiled.rules
        return rules.bases[number // len(rules.contexts)].unit
