"""What single mechanisms cost: every measure that a proof exists for.

Each function takes exact rationals and returns a `Curve`. A measure without a proof
is infinite. The result holds under the neighboring relation for which the sensitivity
(or the declared guarantee) holds.
"""

from typing import TYPE_CHECKING

from modicum.core.facade import facade

if TYPE_CHECKING:
    from modicum.accounting.mechanisms.declared_guarantee import (
        declared_gdp,
        declared_pure,
        declared_renyi,
        declared_zcdp,
    )
    from modicum.accounting.mechanisms.discrete_noise import (
        discrete_gaussian,
        discrete_laplace,
    )
    from modicum.accounting.mechanisms.laplace_gaussian import (
        gaussian,
        gaussian_rho,
        laplace,
    )
    from modicum.accounting.mechanisms.pate import pate_gnmax
    from modicum.accounting.mechanisms.randomized_responses import randomized_response
    from modicum.accounting.mechanisms.selection import (
        exponential,
        report_noisy_max,
        sparse_vector,
        sparse_vector_one_threshold,
    )

__all__ = [
    "declared_gdp",
    "declared_pure",
    "declared_renyi",
    "declared_zcdp",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential",
    "gaussian",
    "gaussian_rho",
    "laplace",
    "pate_gnmax",
    "randomized_response",
    "report_noisy_max",
    "sparse_vector",
    "sparse_vector_one_threshold",
]

__getattr__ = facade(
    __name__,
    {
        "modicum.accounting.mechanisms.randomized_responses": "randomized_response",
        "modicum.accounting.mechanisms.declared_guarantee": (
            "declared_gdp declared_pure declared_renyi declared_zcdp"
        ),
        "modicum.accounting.mechanisms.discrete_noise": (
            "discrete_gaussian discrete_laplace"
        ),
        "modicum.accounting.mechanisms.laplace_gaussian": (
            "gaussian gaussian_rho laplace"
        ),
        "modicum.accounting.mechanisms.selection": (
            "exponential report_noisy_max sparse_vector sparse_vector_one_threshold"
        ),
        "modicum.accounting.mechanisms.pate": "pate_gnmax",
    },
)
