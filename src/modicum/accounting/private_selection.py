"""The loss of the best of a random number of runs of one mechanism.

K is drawn from a public distribution, a mechanism runs K times, each time with fresh
randomness, and only the best of its K outputs is published; none if K is 0. What is
assumed:

- the distribution of K does not depend on the data;
- K stays secret, and so does every run but the best one;
- which output is better follows from the outputs alone, by an order that is fixed
  before. So a score that decides is part of the output, and its loss part of the
  mechanism's. Among equal ones, the first is taken, or one at random.

A mechanism may draw a candidate, such as a set of hyperparameters, from a public
distribution before it runs on it. It has every curve that all of its candidates have.

The proof is that of Papernot & Steinke 2022, Lemma 7 (arXiv:2110.03620), with the
privacy profile of the mechanism in place of a second Renyi order. Let Q and Q' be the
laws of its output on two neighboring tables, and A and A' those of the selection. For
an output y and u from 0 to 1, let q be the probability under Q of a worse output, and u
times that of an equally good one; likewise q' under Q'. Let f(x) = E[x^K]: all runs are
worse than y with probability f(q), for u = 0. With u uniform, in densities,

    A(y) = Q(y) E_u[f'(q)].

x^a y^(1-a) is jointly convex, so the sum of A^a A'^(1-a) is at most that of
Q^a Q'^(1-a) E_u[f'(q)^a f'(q')^(1-a)]. K = 0 adds its probability, the same on both
tables. With C such that f'(q)^a f'(q')^(1-a) <= E[K] exp((a-1) C) for all u and y,

    D_a(A, A') <= D_a(Q, Q') + C + ln(E[K] + P(K = 0)) / (a-1).                      (1)

Here q and q' are the probabilities of one event: the output is worse, or equally good
and a coin shows heads. So 1 - q' <= exp(e) (1 - q) + d if the mechanism is (e, d)-DP.

- Truncated negative binomial: f'(x) = E[K] (g/w)^(1+n), w = 1 - (1-g) x >= g. Then
  f'(q)^a f'(q')^(1-a) = E[K] ((g/w) (w'/w)^(a-1))^(1+n). As w' is at most
  exp(e) w - g (exp(e) - 1) + (1-g) d, it is at most exp(e) w once
  (1-g) d <= g (exp(e) - 1). So C = (1+n) e, with the least such e. It is at most
  ln(1/g), as w' <= 1. Theorem 2 of the paper bounds w'/w by
  exp(r (1 - 1/b)) g^(-1/b), for r the divergence of an order b. That is never less:
  with its logarithm as e, r converts to a d that is small enough.
- Poisson: f'(x) = m exp(-m (1-x)). With exp(e) = a/(a-1), m (a (q-1) - (a-1) (q'-1)) is
  at most m (a-1) d, as in Theorem 6 of the paper: C = m d.

C does not fall with the order; as the order grows, (1) gives a pure epsilon. If Q is
rho-zCDP, the least value of (1) over all orders is at most
R = rho + C + 2 sqrt(rho ln(E[K] + P(K = 0))): at lower orders it bounds the divergence,
which does not fall, and at higher ones (1) over the order falls. So the selection is
R-zCDP.

If a run differs from one with this curve by an event of probability d, then so does the
selection by one of at most E[K] d; given that there is none, K is of the same family
with a smaller mean, of which (1) is no more.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.amounts import (
    INFINITY,
    ZERO,
    Amount,
    decimal_of,
    is_infinite,
    least,
    plus,
)
from modicum.accounting.conversions.epsilon_delta import best_delta
from modicum.accounting.curves import UNKNOWN, Curve, interpolated, pure_curve
from modicum.accounting.decimals import precise, to_decimal
from modicum.accounting.grid import ORDERS
from modicum.accounting.losses import total_of
from modicum.accounting.number_of_runs import Runs

#: More than `ln` below may err by; its square root is added, too.
_ERROR = Decimal("1e-38")


@lru_cache(maxsize=256)
@precise
def selected(base: Curve, runs: Runs) -> Curve:
    """Return the curve of the best of a random number of runs of a mechanism.

    Args:
        base: The curve of one run, with all of its output: the score that decides, and
            the candidate that was drawn, from a public distribution.
        runs: The distribution of the number of runs.

    Returns:
        The least of (1) at the orders of the grid, and what its limit proves for any
        pure mechanism. rho is R; mu is infinite without a pure epsilon. delta is that
        of one run times the mean number of runs.

    Neighboring relation:
        That of `base`.

    Source:
        Papernot & Steinke 2022, Lemma 7 and Thms 2 and 6 (arXiv:2110.03620), as proven
        above; for pure eps, Liu & Talwar 2019 (arXiv:1811.07971). In place of a second
        order, the profile: Koskela, Redberg & Wang 2024 (arXiv:2402.06701).

    Examples:
        >>> from modicum.accounting.number_of_runs import NegativeBinomial
        >>> one = pure_curve(Fraction(1))
        >>> geometric = NegativeBinomial(Fraction(1), Fraction(1, 20))
        >>> best = selected(one, geometric).eps
        >>> f"{float(best):.6g}"  # below 3
        '2.78158'
    """
    total = total_of([replace(base, delta=ZERO).loss()])
    surplus = runs.surplus(lambda eps: best_delta(total, eps).value, base.eps)
    mean = decimal_of(runs.mean)
    log = (mean + runs.none).ln() + _ERROR
    points: dict[Fraction, Amount] = {}
    lowest: Amount = INFINITY
    for order in reversed(ORDERS):
        bound = plus(base.at(order), plus(surplus(order), log / to_decimal(order - 1)))
        lowest = least(lowest, bound)
        if not is_infinite(lowest):
            points[order] = lowest
    most = surplus(INFINITY)
    pure = pure_curve(plus(base.eps, most))
    rho = plus(plus(base.rho, most), 2 * (decimal_of(base.rho) * log).sqrt())
    known = interpolated(points) if points else UNKNOWN
    return Curve(
        eps=pure.eps,
        rho=least(pure.rho, rho),
        mu2=pure.mu2,
        renyi=lambda order: least(known.renyi(order), pure.renyi(order)),
        delta=min(Fraction(1), Fraction(mean) * base.delta),
    )
