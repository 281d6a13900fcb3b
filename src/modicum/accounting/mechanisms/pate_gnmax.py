"""Votes of teachers, each trained on its own part of the data (PATE)."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from modicum.accounting.argument_ranges import require_above_zero
from modicum.accounting.curves import Curve
from modicum.accounting.mechanisms.gaussian import gaussian
from modicum.accounting.mechanisms.kind import Kind, noise_size


@lru_cache(maxsize=4096)
def pate_gnmax(*, sigma: Fraction) -> Curve:
    """Return the curve of releasing the class with most votes under Gaussian noise.

    Args:
        sigma: Standard deviation of the noise on each class's count, in votes, > 0.

    Returns:
        rho = 1/sigma**2, mu**2 = 2/sigma**2 and alpha/sigma**2 at each order,
        whatever the votes; pure eps is infinite.

    Raises:
        InputError: If sigma is not above 0.

    Neighboring relation:
        A change of everything that one teacher was trained on. Its vote moves from
        one class to another: two counts change by 1, an L2 change of the root of 2.

    Source:
        Papernot et al. 2018, Prop. 8 (arXiv:1802.08908).

    Examples:
        >>> pate_gnmax(sigma=Fraction(40)).at(Fraction(2))
        Fraction(1, 800)
    """
    require_above_zero("sigma", sigma)
    return gaussian(rho=1 / sigma**2)


KINDS = (
    Kind(
        "pate-gnmax",
        (noise_size("sigma", "standard deviation of each count's noise"),),
        lambda v: pate_gnmax(sigma=v["sigma"]),
        relation="a change of all training data of one teacher",
    ),
)
