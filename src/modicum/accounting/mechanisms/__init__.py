"""The costs of single mechanisms: every measure that a proof exists for.

Each mechanism has a module: its curve, its parameters, and its description in a
release. `_TABLE` lists them, and everything else about kinds of mechanisms follows from
it.

Each function takes exact rationals and returns a `Curve`. A measure without a proof
is infinite. The result holds under the neighboring relation for which the sensitivity
(or the declared guarantee) holds.
"""

from typing import TYPE_CHECKING, Final

from modicum.accounting.mechanisms.kind import Kinds
from modicum.core.facade import facade

if TYPE_CHECKING:
    from modicum.accounting.mechanisms.declared import (
        declared_gdp,
        declared_pure,
        declared_renyi,
        declared_zcdp,
    )
    from modicum.accounting.mechanisms.discrete_gaussian import discrete_gaussian
    from modicum.accounting.mechanisms.discrete_laplace import discrete_laplace
    from modicum.accounting.mechanisms.exponential import exponential
    from modicum.accounting.mechanisms.gaussian import gaussian, gaussian_rho
    from modicum.accounting.mechanisms.laplace import laplace, poisson_laplace
    from modicum.accounting.mechanisms.pate_gnmax import pate_gnmax
    from modicum.accounting.mechanisms.randomized_response import randomized_response
    from modicum.accounting.mechanisms.report_noisy_max import report_noisy_max
    from modicum.accounting.mechanisms.sparse_vector import (
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
    "poisson_laplace",
    "randomized_response",
    "report_noisy_max",
    "sparse_vector",
    "sparse_vector_one_threshold",
]

#: Each kind, the module here that describes it, and where it can be named: in
#: `modicum account`; or in a `release`, which prices it, and in predicates.
_TABLE: Final = (
    ("laplace", "laplace", "account release"),
    ("discrete-laplace", "discrete_laplace", "account release"),
    ("gaussian", "gaussian", "account release"),
    ("discrete-gaussian", "discrete_gaussian", "account release"),
    ("randomized-response", "randomized_response", "account release"),
    ("declared", "declared", "release"),
    ("exponential", "exponential", "account release"),
    ("permute-and-flip", "report_noisy_max", "account release"),
    ("report-noisy-max", "report_noisy_max", "account release"),
    ("sparse-vector", "sparse_vector", "account release"),
    ("sparse-vector-one-threshold", "sparse_vector", "account"),
    ("dp-sgd", "dp_sgd", "account release"),
    ("pate-gnmax", "pate_gnmax", "account release"),
    ("binary-tree", "binary_tree", "account release"),
    ("square-root-factorization", "matrix_factorization", "account release"),
    ("matrix-factorization", "matrix_factorization", "release"),
    ("pure", "declared", "account"),
    ("zcdp", "declared", "account"),
    ("gdp", "declared", "account"),
)

#: The kinds of `modicum account`.
ACCOUNT_KINDS: Final = Kinds(_TABLE, "account")
#: The kinds of releases.
RELEASE_KINDS: Final = Kinds(_TABLE, "release")
#: The values of ``m.mechanism`` in predicates.
MECHANISM_KINDS: Final = tuple(sorted(RELEASE_KINDS))

__getattr__ = facade(
    __name__,
    {
        "modicum.accounting.mechanisms.declared": (
            "declared_gdp declared_pure declared_renyi declared_zcdp"
        ),
        "modicum.accounting.mechanisms.discrete_gaussian": "discrete_gaussian",
        "modicum.accounting.mechanisms.discrete_laplace": "discrete_laplace",
        "modicum.accounting.mechanisms.exponential": "exponential",
        "modicum.accounting.mechanisms.gaussian": "gaussian gaussian_rho",
        "modicum.accounting.mechanisms.laplace": "laplace poisson_laplace",
        "modicum.accounting.mechanisms.pate_gnmax": "pate_gnmax",
        "modicum.accounting.mechanisms.randomized_response": "randomized_response",
        "modicum.accounting.mechanisms.report_noisy_max": "report_noisy_max",
        "modicum.accounting.mechanisms.sparse_vector": (
            "sparse_vector sparse_vector_one_threshold"
        ),
    },
)
