"""The tail of a standard normal at many points, quickly."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

from modicum.accounting.decimals import mills_ratio, normal_density, precise

#: Beyond this, a tail is below 1e-64.
FAR = 17
#: Upper bound of the relative error of `tail` up to `FAR`.
ERROR = Decimal("1e-35")

# Nodes are this many to 1; terms of the series; digits of its integers.
_NODES = 32
_TERMS = 24
_SCALE = 10**42


def tail(z: Decimal) -> Decimal:
    """Return P(Z > z), with a relative error of at most `ERROR`; 0 beyond `FAR`.

    The Taylor series of the tail at the nearest node c, over the density there: the
    derivatives are Hermite polynomials. With d = z - c at most 1/64, the rest after
    K = 24 terms is at most (FAR + 1/64 + sqrt(K))**K d**(K+1) / (K+1)! times
    exp(FAR d), hence below 1e-37, and the ratio is at least 1/18.

    Source:
        Abramowitz & Stegun 26.2.28 for the derivatives.

    Examples:
        >>> f"{precise(tail)(Decimal('1.96')):.12f}"
        '0.024997895148'
    """
    if z < 0:
        return 1 - tail(-z)
    if z > FAR:
        return Decimal(0)
    node = int(z * _NODES + Decimal("0.5"))
    density, terms = _series(node)
    away = int((z - Decimal(node) / _NODES).scaleb(42))
    total = 0
    for term in terms:
        total = term + total * away // _SCALE
    return density * Decimal(total).scaleb(-42)


@lru_cache(maxsize=_NODES * (FAR + 1))
@precise
def _series(node: int) -> tuple[Decimal, tuple[int, ...]]:
    """Return the density at a node, and the terms of the ratio, the last one first."""
    c = Decimal(node) / _NODES
    found = [mills_ratio(c)]
    before, hermite, factorial = Decimal(0), Decimal(1), Decimal(1)
    for k in range(_TERMS):
        factorial *= k + 1
        found.append((-1 if k % 2 == 0 else 1) * hermite / factorial)
        before, hermite = hermite, c * hermite - k * before
    scaled = (int((one * _SCALE).to_integral_value()) for one in reversed(found))
    return normal_density(c), tuple(scaled)
