"""The filter of advanced composition, for adaptively chosen losses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from modicum.accounting.decimals import loss_units, precise, to_decimal
from modicum.accounting.grid import DELTA, EPS, INFINITE
from modicum.accounting.losses import Loss
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import DELTA_UNIT, LOSS_UNIT, brief, floor_units


@dataclass(frozen=True, slots=True)
class AdvancedCompositionFilter:
    """Advanced composition with parameters chosen from earlier answers.

    While every loss was admitted, all answers together are (eps, delta_slack +
    delta_sum)-differentially private, at any stopping time.

    Neighboring relation:
        The one the losses hold under, the same for all.

    Source:
        Whitehouse, Ramdas, Rogers & Wu 2023, Thm 1 (arXiv:2203.05481).

    Attributes:
        eps: The limit, fixed before the first answer, > 0.
        delta_slack: The delta of the conversion, strictly between 0 and 1.
        delta_sum: The most that the mechanisms' own deltas may sum to, >= 0.
        squares: The sum of the squares of eps so far, in units of 1e-24.
        deltas: The sum of deltas so far, in units of 1e-18.
        infinite: Whether a loss without a finite eps was added; then it no longer
            holds.

    Examples:
        >>> from modicum.accounting.mechanisms import declared_pure
        >>> loss = declared_pure(eps=Fraction(1, 10)).loss()
        >>> limit = Fraction(1), Fraction(1, 10**6)
        >>> empty = AdvancedCompositionFilter(*limit, Fraction(0))
        >>> empty.admits(loss), empty.after(loss).spent
        (True, 530652176976)
    """

    eps: Fraction
    delta_slack: Fraction
    delta_sum: Fraction
    squares: int = 0
    deltas: int = 0
    infinite: bool = False

    #: The theorem that makes it sound, and its conditions.
    THEOREM = (
        "Whitehouse et al. 2023, Thm 1: sqrt(2 ln(1/delta_slack) sum eps_i^2)"
        " + sum eps_i^2 / 2 <= eps and sum delta_i <= delta_sum; eps, delta_slack and"
        " delta_sum are fixed before the first answer, each eps_i and delta_i when it"
        " is charged"
    )

    def __post_init__(self) -> None:
        if self.eps <= 0 or not 0 < self.delta_slack < 1 or self.delta_sum < 0:
            raise InputError(
                Problem(
                    Code.OUT_OF_RANGE,
                    f"no such filter: eps {brief(self.eps)},"
                    f" delta_slack {brief(self.delta_slack)},"
                    f" delta_sum {brief(self.delta_sum)}",
                    help="eps > 0, 0 < delta_slack < 1, and delta_sum >= 0",
                )
            )

    @property
    def theorem(self) -> str:
        """The theorem that makes it sound, and its conditions."""
        return self.THEOREM

    @property
    def spent(self) -> int:
        """The left side of the condition, in units of 1e-12, rounded up."""
        return INFINITE if self.infinite else _advanced(self.squares, self.delta_slack)

    @property
    def holds(self) -> bool:
        """Whether everything added so far is within the limits."""
        within = self.deltas <= floor_units(self.delta_sum, DELTA_UNIT)
        return within and self.spent <= min(floor_units(self.eps), INFINITE - 1)

    def admits(self, loss: Loss) -> bool:
        """Return whether one more loss is within the limits."""
        return self.after(loss).holds

    def after(self, loss: Loss) -> AdvancedCompositionFilter:
        """Return the filter with one more loss added, admitted or not."""
        eps = loss.coordinates[EPS]
        return replace(
            self,
            squares=self.squares + (0 if eps >= INFINITE else eps * eps),
            deltas=self.deltas + loss.coordinates[DELTA],
            infinite=self.infinite or eps >= INFINITE,
        )


@precise
def _advanced(squares: int, delta_slack: Fraction) -> int:
    if squares == 0:
        return 0
    total = Decimal(squares) / LOSS_UNIT / LOSS_UNIT
    # ln(1/delta') is at least 0, and its error is far below the guard of loss_units.
    ln_inverse = max(Decimal(0), -to_decimal(delta_slack).ln())
    return loss_units((2 * ln_inverse * total).sqrt() + total / 2)
