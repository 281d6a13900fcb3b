"""The sparse vector technique: the first queries above a threshold.

In a release the noise is fixed: Laplace of scale 1 / eps-threshold on the threshold and
2 / eps-queries on each query. With s the largest change of any query between neighbors,
the same noise is that of the technique for `eps-threshold * s` and `eps-queries * s`:
a threshold shifted by s costs s * eps-threshold, and then each query, by at most 2 * s,
costs s * eps-queries. Both parts grow with s. Queries may be chosen by earlier answers;
the threshold is public. Only the signs are published, no noisy value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.amounts import Amount, least, plus
from modicum.accounting.argument_ranges import require_above_zero
from modicum.accounting.curves import Curve, composed, pure_curve
from modicum.accounting.decimals import precise
from modicum.accounting.mechanisms.kind import (
    Kind,
    Parameter,
    change,
    description,
    whole_number,
)
from modicum.accounting.mechanisms.laplace import laplace
from modicum.core.rationals import Number


@lru_cache(maxsize=4096)
@precise
def sparse_vector(
    *, eps_threshold: Fraction, eps_queries: Fraction, positives: int
) -> Curve:
    """Return the curve of the sparse vector technique with fresh thresholds.

    Args:
        eps_threshold: The threshold's noise is Laplace of scale
            sensitivity / eps_threshold, drawn anew after each positive; > 0.
        eps_queries: The queries' noise is Laplace of scale
            2 * sensitivity / eps_queries; > 0.
        positives: The largest number of positive answers before it stops, >= 1. All of
            them are charged, whether or not they occur.

    Returns:
        `positives` times the loss up to the first positive; delta is 0. Negative
        answers cost nothing, however many.

    Raises:
        InputError: If an argument is not above 0.

    Neighboring relation:
        That of each query's sensitivity.

    Source:
        Lyu, Su & Li 2017, Thm 4 (arXiv:1603.01699), for pure eps. Renyi: shifting
        the threshold by one sensitivity keeps every negative answer as likely and
        costs the positive one exp(eps_queries); what remains is a post-processing
        of the noisy threshold (as in Zhu & Wang 2020).

    Examples:
        >>> half = Fraction(1, 2)
        >>> curve = sparse_vector(eps_threshold=half, eps_queries=half, positives=3)
        >>> curve.eps
        Fraction(3, 1)
    """
    require_above_zero("eps of the threshold", eps_threshold)
    require_above_zero("eps of the queries", eps_queries)
    require_above_zero("the number of positives", positives)
    threshold = laplace(sensitivity_l1=eps_threshold, scale=Fraction(1))
    pure = pure_curve(eps_threshold + eps_queries)

    def renyi(order: Fraction) -> Amount:
        return least(plus(threshold.at(order), eps_queries), pure.at(order))

    one = Curve(pure.eps, pure.rho, pure.mu2, renyi)
    return composed([(one, positives)])


@lru_cache(maxsize=4096)
def sparse_vector_one_threshold(
    *, eps_threshold: Fraction, eps_queries: Fraction
) -> Curve:
    """Return the curve of the sparse vector technique with one threshold for all.

    Args:
        eps_threshold: The threshold's noise is Laplace of scale
            sensitivity / eps_threshold, drawn once; > 0.
        eps_queries: The queries' noise is Laplace of scale
            2 * positives * sensitivity / eps_queries, for the largest number of
            positive answers before it stops; > 0.

    Returns:
        The curve of any pure mechanism, at the sum of both; nothing better is
        proven. delta is 0.

    Raises:
        InputError: If an argument is not above 0.

    Neighboring relation:
        That of each query's sensitivity.

    Source:
        Lyu, Su & Li 2017, Thm 4 (arXiv:1603.01699).

    Examples:
        >>> half = Fraction(1, 2)
        >>> sparse_vector_one_threshold(eps_threshold=half, eps_queries=half).eps
        Fraction(1, 1)
    """
    require_above_zero("eps of the threshold", eps_threshold)
    require_above_zero("eps of the queries", eps_queries)
    return pure_curve(eps_threshold + eps_queries)


def describe_sparse_vector(
    *,
    attributes: Sequence[str],
    sensitivity: Mapping[str, object] | None = None,
    eps_threshold: Number | None = None,
    eps_queries: Number | None = None,
    positives: int | None = None,
    **more: object,
) -> dict[str, object]:
    """Describe the sparse vector technique with fresh thresholds.

    Args:
        attributes: Attributes of the data it reads.
        sensitivity: By unit, `linf(…)`: the largest change of any query between
            neighbors.
        eps_threshold: The threshold's noise is Laplace of scale 1 / eps_threshold,
            drawn anew after each positive.
        eps_queries: The queries' noise is Laplace of scale 2 / eps_queries.
        positives: The largest number of positive answers before it stops, 1 by
            default.
        more: `name`, `cost`, `where`, `periods`, `groups`, labels and the other
            keys of the release format.

    Examples:
        >>> describe_sparse_vector(attributes=[], eps_threshold=1)["eps-threshold"]
        1
    """
    given = {
        "eps-threshold": eps_threshold,
        "eps-queries": eps_queries,
        "positives": positives,
    }
    return description(
        "sparse-vector", attributes, more, sensitivity=sensitivity, **given
    )


_THRESHOLD = Parameter(
    "eps-threshold", "the threshold's noise has scale 1/eps-threshold"
)

KINDS = (
    Kind(
        "sparse-vector",
        (
            Parameter("eps-queries", "the queries' noise has scale 2/eps-queries"),
            _THRESHOLD,
            whole_number(
                "positives",
                "largest number of positive answers; the threshold is drawn again",
            ),
            change("L-infinity", "the queries"),
        ),
        lambda v: sparse_vector(
            eps_threshold=v["eps-threshold"] * v["sensitivity"],
            eps_queries=v["eps-queries"] * v["sensitivity"],
            positives=int(v["positives"]),
        ),
        norm="linf",
        measure="eps",
        slips=dict.fromkeys(
            ("eps", "epsilon", "scale"),
            "its noise is `eps-threshold` and `eps-queries`",
        ),
    ),
    Kind(
        "sparse-vector-one-threshold",
        (
            Parameter(
                "eps-queries", "the queries' noise has scale 2*positives/eps-queries"
            ),
            _THRESHOLD,
        ),
        lambda v: sparse_vector_one_threshold(
            eps_threshold=v["eps-threshold"], eps_queries=v["eps-queries"]
        ),
    ),
)
