"""What single mechanisms cost: every measure that a proof exists for.

Each function takes exact rationals and returns a `Curve`. A measure without a proof
is infinite. The result holds under the neighboring relation for which the sensitivity
(or the declared guarantee) holds.
"""

from modicum.accounting.mechanisms.answers import randomized_response
from modicum.accounting.mechanisms.declared import (
    declared_gdp,
    declared_pure,
    declared_zcdp,
)
from modicum.accounting.mechanisms.noise import gaussian, gaussian_rho, laplace

__all__ = [
    "declared_gdp",
    "declared_pure",
    "declared_zcdp",
    "gaussian",
    "gaussian_rho",
    "laplace",
    "randomized_response",
]
