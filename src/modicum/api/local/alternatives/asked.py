"""A release that was asked for, looked at again at the ledger's present head."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from modicum.api.local.evaluation import Description
from modicum.api.local.explanation.remedies import Explanation, Fit, FullCell, Options
from modicum.core.record import dataclass
from modicum.ledger import RuleLoss
from modicum.policy.rules import Stage

if TYPE_CHECKING:
    from modicum.api.local.alternatives.trials import Look, Trials
    from modicum.api.local.explanation.charges import Cell

#: Of so many rules that deny, it is told who filled them.
_EXPLAINED = 3
#: What is varied to find what would pass, in order.
_CLOSEST = ("noise", "epsilon", "rho", "mu", "where", "periods")


@dataclass(frozen=True, slots=True)
class Asked:
    """A release, and the ledger that it was asked of.

    Attributes:
        release: The release; if it is a mapping, as it is when it is looked at.
        id: Its id.
        look: Lends the ledger at its present head.
    """

    release: Description
    id: str
    look: Callable[[], AbstractContextManager[Look]]

    def largest_fit(self, vary: str, mechanism: str | None) -> Fit:
        """Return the closest variant that every rule lets pass, at the present head.

        Args:
            vary: What is varied, such as `noise`.
            mechanism: The name of the one mechanism to vary; None for all.

        Raises:
            InputError: If there is no such thing to vary, or no such mechanism.
        """
        from modicum.api.local.alternatives.largest_fit import largest_fit
        from modicum.api.local.alternatives.trials import Trials

        with self.look() as look:
            trials = Trials(look, self.release)
            status = self._stands(look)
            if status:
                why = f"{self.id} stands already ({status}): nothing has to change"
                return trials.nothing(vary, why)
            return largest_fit(trials, vary, mechanism)

    def options(self) -> Options:
        """Return the changes after which it passes at the present head."""
        from modicum.api.local.alternatives.options import options
        from modicum.api.local.alternatives.trials import Trials

        with self.look() as look:
            trials = Trials(look, self.release)
            return Options() if self._stands(look) else options(trials)

    def explanation(self) -> Explanation | None:
        """Return what the log tells about the denial; None if it passes now."""
        from modicum.api.local.alternatives.trials import Trials

        with self.look() as look:
            trials = Trials(look, self.release)
            if self._stands(look) or trials.verdict.allowed:
                return None
            return Explanation(tuple(_full_cells(trials)), _closest(trials), look.seq)

    def _stands(self, look: Look) -> str:
        known = look.standing(self.id)
        return known.status.value if known and known.status.counts else ""


def _closest(trials: Trials) -> Fit:
    """Return the first variant that passes; else why the first kind does not."""
    from modicum.api.local.alternatives.largest_fit import largest_fit

    for vary in _CLOSEST:
        fit = largest_fit(trials, vary)
        if fit.found:
            return fit
    return trials.nothing("one thing", "no change of one kind is enough")


def _full_cells(trials: Trials) -> Iterator[FullCell]:
    """Yield the cells of the first rules that deny, and who filled them."""
    from modicum.api.local.explanation.budget_fit import largest_rho
    from modicum.api.local.explanation.charges import spent_in_each
    from modicum.api.local.explanation.contributions import decisive, shares

    look = trials.look
    denying = [
        loss
        for loss in trials.verdict.losses
        if not loss.allowed and loss.rule.stage is Stage.HISTORY
    ][:_EXPLAINED]
    cells = [_cell(trials, loss) for loss in denying]
    spent = spent_in_each(cells, look.brought, look.balances.compiled)
    for loss, own in zip(denying, spent, strict=True):
        coordinate = decisive(loss)
        yield FullCell(
            rule=loss.rule.id,
            cell=loss.cell,
            rho_left=largest_rho(loss.own_filter, loss.before),
            coordinate=coordinate,
            spenders=shares(own, coordinate),
        )


def _cell(trials: Trials, loss: RuleLoss) -> Cell:
    from modicum.api.local.explanation.charges import denying_cell

    look = trials.look
    return denying_cell(look.balances, trials.recorded, look.day, loss)
