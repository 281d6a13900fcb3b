"""The meaning of each epsilon: for the people in a table, or for any table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import accumulate
from math import inf, nextafter

import numpy as np

from modicum.core.errors import Code
from modicum.core.rationals import rational
from modicum.risk.arguments import mistake
from modicum.risk.choice import Choice, Claim
from modicum.risk.indicator import Indicator, carried
from modicum.risk.losses import person_losses
from modicum.risk.noise import Noise
from modicum.risk.study.histograms import Histogram, Quantity, histogram
from modicum.risk.study.study import Candidate, Group, Spread

#: Maximum number of kinds of people with exact losses: takes a tenth of a second.
_EXACT_MAX = 10_000
_SHARES = (0.0, 0.5, 0.99, 1.0)


def of_people(
    indicator: Indicator, epsilons: Iterable[Fraction], *, groups: Sequence[str] = ()
) -> tuple[Candidate, ...]:
    """Return the meaning of epsilons for a table's people: for its controller only.

    Args:
        indicator: The indicators of everybody.
        epsilons: Candidates above 0, in any order; duplicates count once.
        groups: Names of groups of people, as in the influence.

    Returns:
        The candidates, ascending. Quantiles are those of actual people.

    Raises:
        InputError: If there is no such group.

    Neighboring relation:
        None: the results are computed without noise.

    Source:
        `Indicator.quantile` and `person_losses`.

    Examples:
        >>> from modicum.risk.noise import LaplaceNoise
        >>> from modicum.risk.profile import Influence
        >>> two = Influence(1, np.array([1.0]), np.array([0, 0, 1]), np.array([9, 1]))
        >>> seen = Indicator(two, LaplaceNoise(Fraction(1)))
        >>> of_people(seen, [Fraction(1)])[0].rdr.ratio
        0.5
    """
    return tuple(
        Candidate(
            epsilon,
            indicator.noise.half_width(epsilon),
            _indicators(indicator, epsilon, None),
            _losses(indicator, epsilon),
            tuple(_indicators(indicator, epsilon, name) for name in groups),
        )
        for epsilon in sorted(set(epsilons))
    )


def of_any_table(choice: Choice) -> tuple[Candidate, ...]:
    """Return the meaning of epsilons in every table, from a releasable choice.

    Args:
        choice: A choice whose claim is `dp`.

    Returns:
        Its candidates: from a person who does not move the answer to one who moves it
        by the maximum.

    Raises:
        InputError: If the choice makes no promise: its numbers are about rows.

    Neighboring relation:
        That of the sensitivity.

    Source:
        The rows of the choice.

    Examples:
        >>> from modicum.risk.selection.data_independent import data_independent
        >>> from modicum.risk.noise import LaplaceNoise
        >>> found = of_any_table(data_independent(LaplaceNoise(Fraction(1)), tau=0.5))
        >>> found[0].rdr.ratio
        0.5
    """
    if choice.claim is not Claim.DP:
        raise mistake(
            f"the numbers of the choice {choice.method} depend on rows",
            "show them for people, to the data controller",
            Code.NOT_SUPPORTED,
        )
    return tuple(
        Candidate(row.epsilon, row.half_width, Spread(row.least, row.greatest))
        for row in choice.rows
    )


def counted(
    indicator: Indicator, epsilon: Fraction, *, quantity: Quantity = "rdr"
) -> Histogram:
    """Return the number of people by indicator, or by individual loss.

    Args:
        indicator: The indicators of everybody.
        epsilon: The candidate; > 0.
        quantity: `rdr` or `own-loss`: eps_i for Laplace noise, mu_i for Gaussian noise.

    Returns:
        A histogram: for the controller of the data only.

    Neighboring relation:
        None: people are counted without noise.

    Source:
        `Indicator.profile` and `person_losses`.

    Examples:
        >>> from modicum.risk.noise import LaplaceNoise
        >>> from modicum.risk.profile import Influence
        >>> two = Influence(1, np.array([1.0]), np.array([0, 0, 1]), np.array([9, 1]))
        >>> seen = Indicator(two, LaplaceNoise(Fraction(1)))
        >>> counted(seen, Fraction(1), quantity="own-loss").bins[1].high
        1.0
    """
    noise, distances = indicator.noise, indicator.distances
    if quantity == "rdr":
        profile = indicator.profile(epsilon)
    elif len(distances.values) <= _EXACT_MAX:
        exact = np.array([_loss(noise, epsilon, d) for d in distances.values])
        profile = carried(distances, lambda _: exact)
    else:
        profile = person_losses(distances, noise, epsilon=epsilon)
    return histogram(profile, epsilon=epsilon, quantity=quantity)


def group_sizes(indicator: Indicator, groups: Sequence[str]) -> tuple[Group, ...]:
    """Return groups of people with how many belong to each.

    Args:
        indicator: The indicators of everybody.
        groups: Names, as in the influence.

    Returns:
        The groups, in this order.

    Raises:
        InputError: If there is no such group.

    Neighboring relation:
        None: people are counted without noise.

    Source:
        None: it is counting.

    Examples:
        >>> from modicum.risk.noise import LaplaceNoise
        >>> from modicum.risk.profile import Influence
        >>> old = {"old": np.array([2])}
        >>> one = Influence(1, np.array([]), np.array([0, 0]), np.array([9]), old)
        >>> group_sizes(Indicator(one, LaplaceNoise(Fraction(1))), ["old"])
        (Group(name='old', people=2),)
    """
    return tuple(Group(name, _size(indicator, name)) for name in groups)


def _size(indicator: Indicator, group: str | None) -> int:
    members = indicator.influence.members
    if group is None:
        return indicator.distances.total
    if group not in members:
        raise mistake(
            f"unknown group `{group}`",
            "use groups of people that the influence was computed for",
            Code.UNKNOWN_CHOICE,
        )
    return int(members[group].sum())


def _indicators(
    indicator: Indicator, epsilon: Fraction, group: str | None
) -> Spread | None:
    if not _size(indicator, group):
        return None
    if indicator.follows_distance:
        found = [indicator.quantile(share, epsilon, group) for share in _SHARES]
    else:  # One look at all people is enough for all quantiles.
        profile = indicator.profile(epsilon, group)
        found = [profile.quantile(share) for share in _SHARES]
    return _spread(found)


def _losses(indicator: Indicator, epsilon: Fraction) -> Spread | None:
    if not indicator.distances.total:
        return None
    # A loss rises with the distance, so that its quantiles are those of distances.
    noise = indicator.noise
    distances = [indicator.distance(share) for share in _SHARES]
    return _spread([_loss(noise, epsilon, one) for one in distances])


def _loss(noise: Noise, epsilon: Fraction, distance: float) -> float:
    """Return the least float that is no less than a person's loss.

    A person who moves the answer by the sensitivity has epsilon itself, not a float
    above it, which would look like more than any person can lose.
    """
    exact = rational(float(distance)) / noise.width(epsilon)
    nearest = float(exact)
    return nearest if rational(nearest) >= exact else nextafter(nearest, inf)


def _spread(found: Sequence[float]) -> Spread:
    # Numbers that are the same but for rounding may fall by their last digit.
    least, median, p99, greatest = accumulate(found, max)
    return Spread(least, greatest, median, p99)
