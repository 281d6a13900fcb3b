"""What one rule says to a release."""

from __future__ import annotations

from fractions import Fraction

from modicum.accounting import Filter, Total
from modicum.accounting.grid import RHO
from modicum.core.record import dataclass
from modicum.ledger.decision.locked import Locked
from modicum.policy import Rule


@dataclass(frozen=True, slots=True)
class RuleLoss:
    """What one rule says to a release; the module `amounts` puts it in numbers.

    Of all cells that the release touches, it is the one that has the least left of its
    limit: the one that is over it by the most, if any denies.

    Attributes:
        rule: The rule.
        allowed: Whether it lets the release pass.
        before: What the cell was charged before; nothing for a rule that looks at
            one release alone.
        alone: What this release adds.
        own_filter: What the rule admits, as far as it is unlocked in the cell; for a
            rule that looks at one release alone, only its cap on the mechanisms' own
            deltas is used.
        filter_name: The policy's filter.
        report_delta: The delta at which the loss is also shown, if one is known.
        cell: The cell in words; empty if the rule has one cell only.
        denying: How many cells deny.
        share: What part of the rule's budget is unlocked in the cell.
        locked: Why nothing of it is; None if something is, or the rule allows it.
        undated: If the rule denies it, and would not deny it alone: its mechanisms that
            are charged to every period, because they name no `periods`.
        every_period: Whether cells at both ends of time are over the limit, as they
            are where releases name no `periods`.
    """

    rule: Rule
    allowed: bool
    before: Total
    alone: Total
    own_filter: Filter
    filter_name: str
    report_delta: Fraction | None
    cell: str = ""
    denying: int = 0
    share: Fraction = Fraction(1)
    locked: Locked | None = None
    undated: tuple[str, ...] = ()
    every_period: bool = False

    @property
    def together(self) -> Total:
        """What the cell would be charged in all."""
        return self.before.joined(self.alone)

    @property
    def compared(self) -> int | None:
        """The coordinate by which its cells were compared; None if none is capped."""
        columns = [index for index, _ in self.own_filter.caps]
        return RHO if RHO in columns else min(columns, default=None)
