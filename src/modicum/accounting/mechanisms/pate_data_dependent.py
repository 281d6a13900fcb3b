"""The data-dependent loss of votes: for study, never for a ledger.

The value depends on how the teachers voted, which is private. To publish it, to
store it or to decide by it would reveal the votes. That is why nothing here returns
a `Curve`: without one, nothing can be charged.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from modicum.accounting.argument_ranges import (
    require_above_zero,
    require_order,
    require_probability,
)
from modicum.accounting.decimals import precise, to_decimal


@precise
def pate_gnmax_data_dependent(
    *, q: Fraction, sigma: Fraction, order: Fraction
) -> Decimal:
    """Return the Renyi divergence of one noisy vote, given the votes.

    Private like the votes themselves: it must not enter a ledger, a report or a
    decision. Use `pate_gnmax` for these.

    Args:
        q: An upper bound of the probability that the noisy winner is not the winner
            of the votes; from 0 to 1.
        sigma: Standard deviation of the noise on each class's count, in votes, > 0.
        order: The Renyi order, above 1.

    Returns:
        The lesser of the bound by the votes, where it applies, and order/sigma**2.

    Raises:
        InputError: If an argument is out of range.

    Neighboring relation:
        A change of everything that one teacher was trained on.

    Source:
        Papernot et al. 2018, Thm 6 with the orders of Prop. 10 (arXiv:1802.08908).

    Examples:
        >>> agreed = Fraction(1, 10**10)
        >>> value = pate_gnmax_data_dependent(
        ...     q=agreed, sigma=Fraction(40), order=Fraction(20)
        ... )
        >>> f"{value:.3e}"
        '5.301e-10'
    """
    require_probability("q", q)
    require_above_zero("sigma", sigma)
    require_order(order)
    whatever_the_votes = to_decimal(order / sigma**2)
    if q in (0, 1):
        return Decimal(0) if q == 0 else whatever_the_votes
    s2 = to_decimal(sigma**2)
    ln_q = to_decimal(q).ln()
    mu2 = (-ln_q * s2).sqrt()
    mu1 = mu2 + 1
    if mu2 <= 1 or to_decimal(order) > mu1:
        return whatever_the_votes
    eps2 = mu2 / s2
    margin = (mu1 / mu2).ln() + (mu2 / (mu2 - 1)).ln()
    likely = ln_q + eps2  # The theorem needs q exp(eps2) below 1.
    if likely >= 0 or ln_q > (mu2 - 1) * eps2 - mu2 * margin:
        return whatever_the_votes
    less_one = to_decimal(order - 1)
    share = to_decimal(q)
    a = (1 - share) / (1 - (likely * (mu2 - 1) / mu2).exp())
    ln_b = mu1 / s2 - ln_q / mu2
    grown = (1 - share) * (less_one * a.ln()).exp()
    grown += share * (less_one * ln_b).exp()
    return min(grown.ln() / less_one, whatever_the_votes)
