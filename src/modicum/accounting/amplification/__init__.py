"""Privacy amplification: the cost of a mechanism on a secret sample.

Three conditions, without which nothing is amplified. The sample stays secret. It is
drawn anew for what is charged: mechanisms that read one sample are composed first and
amplified once (`shared_sample`). And it is drawn as stated: a shuffled batch is neither
a Poisson sample nor one without replacement.
"""

from typing import TYPE_CHECKING

from modicum.core.facade import facade

if TYPE_CHECKING:
    from modicum.accounting.amplification.bounds import amplified_eps
    from modicum.accounting.amplification.poisson_sampling import (
        poisson,
        shared_sample,
        unit_level_rate,
    )
    from modicum.accounting.amplification.replacement import (
        poisson_substitute,
        without_replacement,
    )
    from modicum.accounting.amplification.sampled_gaussian import poisson_gaussian

__all__ = [
    "amplified_eps",
    "poisson",
    "poisson_gaussian",
    "poisson_substitute",
    "shared_sample",
    "unit_level_rate",
    "without_replacement",
]

__getattr__ = facade(
    __name__,
    {
        "modicum.accounting.amplification.bounds": "amplified_eps",
        "modicum.accounting.amplification.sampled_gaussian": "poisson_gaussian",
        "modicum.accounting.amplification.poisson_sampling": (
            "poisson shared_sample unit_level_rate"
        ),
        "modicum.accounting.amplification.replacement": (
            "poisson_substitute without_replacement"
        ),
    },
)
