"""Privacy loss distributions, by dp-accounting, of batches fixed beforehand.

Only for parameters that were all fixed before the first output. The privacy loss of
such a batch is the sum of independent losses, so convolving their distributions gives
its exact (eps, delta) curve. For a history whose mechanisms are chosen from earlier
answers this is *not* true: stopping when the distribution convolved so far reaches a
budget is no filter (Regehr et al. 2026, arXiv:2602.15815). To charge a batch to a
filter, use `batch_curve`.

Only the library's distributions are used, with explicit counts and pessimistic
estimates, and results are checked. Errors are counted as mass at infinity:

- *Rounding of losses.* Each distribution is put on a grid by connecting the dots of
  its (eps, delta) curve (Doroshenko et al. 2022, arXiv:2207.04380). The curve, as a
  function of e^eps, is convex, so the chords lie above it: the pair on the grid
  dominates the true one. Domination survives convolution (Zhu, Dong & Wang 2022,
  arXiv:2106.08567).
- *Tails* that the library cuts go to infinity, or up to the lowest loss that is kept.
- *Floats.* A distribution whose (eps, delta) curve is too low by at most x everywhere
  dominates again when x of mass is added at infinity. What the floats of a single
  distribution and of the convolutions can amount to is bounded beside the code.

`eps` is evaluated at the remainder of delta, then raised by one part in 1e9 and 1e-12.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, reduce

from modicum.accounting.amounts import Amount, decimal_of
from modicum.accounting.batch_format import Part, merged
from modicum.accounting.curves import Curve, composed
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import brief
from modicum.integrations.pld.directions import BatchLoss, below
from modicum.integrations.pld.mechanisms import (
    identity,
    interval_for,
    library_errors,
    loss_of,
)


def batch_epsilon(parts: Sequence[Part], delta: Fraction) -> Amount:
    """Return epsilon at `delta` of a batch, by its privacy loss distribution.

    Neighboring relation:
        The one the parts hold under.

    Source:
        Sommer, Meiser & Mohammadi 2019 (doi:10.2478/popets-2019-0029); Zhu, Dong &
        Wang 2022 (arXiv:2106.08567); Doroshenko et al. 2022
        (arXiv:2207.04380).

    Examples:
        >>> noise = Part("gaussian", (("sigma", Fraction(10)),), times=4)
        >>> f"{float(batch_epsilon([noise], Fraction(1, 10**6))):.4f}"
        '0.8341'
    """
    _require(0 < delta < 1, f"delta {brief(delta)} is not between 0 and 1")
    return batch_loss(tuple(parts)).epsilon(delta)


def batch_delta(parts: Sequence[Part], eps: Fraction) -> Fraction:
    """Return delta at `eps` of a batch, by its privacy loss distribution.

    Neighboring relation:
        The one the parts hold under.

    Source:
        As for `batch_epsilon`.

    Examples:
        >>> noise = Part("gaussian", (("sigma", Fraction(10)),), times=4)
        >>> f"{float(batch_delta([noise], Fraction(1))):.2e}"
        '1.75e-08'
    """
    _require(eps >= 0, f"epsilon {brief(eps)} is negative")
    return batch_loss(tuple(parts)).delta(eps)


def batch_curve(
    parts: Sequence[Part], *, delta: Fraction = Fraction(1, 10**10)
) -> Curve:
    """Return the curve of a batch, so that it can be charged to a filter as one loss.

    The curve is fixed before the first output of the batch; batch after batch may be
    chosen from earlier answers, as long as each is charged before it starts.

    Neighboring relation:
        The one the parts hold under.

    Source:
        Feldman & Zrnic 2021 (arXiv:2008.11193) and Whitehouse et al. 2023
        (arXiv:2203.05481) for charging it; the formula is proven in `Side.divergence`.

    Examples:
        >>> noise = Part("gaussian", (("sigma", Fraction(10)),), times=4)
        >>> curve = batch_curve([noise])
        >>> f"{float(curve.at(Fraction(8))):.4f}", f"{float(curve.delta):.0e}"
        ('0.1600', '1e-10')
    """
    _require(0 <= delta < 1, f"delta {brief(delta)} is not between 0 and 1")
    summed = composed((part.curve, part.times) for part in merged(parts))
    loss = batch_loss(tuple(parts))
    if any(side.infinite >= Fraction(1, 2) for side in loss.sides):
        return summed
    cut = [side.cut(max(below(delta), 2 * side.infinite)) for side in loss.sides]
    lost = max(Fraction(side.infinite) for side in cut)

    @lru_cache(maxsize=1024)
    def renyi(order: Fraction) -> Amount:
        return Fraction(max(side.divergence(order) for side in cut))

    largest = max(side.largest for side in cut)
    eps = min(decimal_of(summed.eps), decimal_of(Fraction(largest)))
    return Curve(eps, summed.rho, summed.mu2, renyi, max(lost, summed.delta))


@lru_cache(maxsize=16)
def batch_loss(parts: tuple[Part, ...]) -> BatchLoss:
    """Return the distribution of a batch's privacy loss."""
    found = merged(parts)
    interval = interval_for(found)
    with library_errors():
        losses = [loss_of(part, interval) for part in found]
        if not losses:
            return identity(interval)
        return reduce(BatchLoss.joined, losses)


def _require(condition: bool, message: str) -> None:  # noqa: FBT001
    if not condition:
        raise InputError(Problem(Code.OUT_OF_RANGE, message))
