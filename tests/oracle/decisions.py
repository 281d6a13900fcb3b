"""What a decision should be, read from the log's own bytes. Slow and obvious.

It shares no code with the ledger: it parses the stored JSON itself, adds up losses
as rationals, and converts with mpmath by the definition of the filter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath

mpmath.mp.dps = 40

#: Decisions closer to a limit than this are not judged.
CLOSE = mpmath.mpf(10) ** -9

#: The filter `combined-v1`, written out.
RHO_SHARE = Fraction(1, 2)
MECHANISM_SHARE = Fraction(1, 4)
ORDERS = dict.fromkeys((4, 8, 16, 32, 64, 128), Fraction(1, 24))

#: Where the coordinates stand in a stored loss.
GRID = [1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192]
GRID += [256, 512, 1024, 10**6, 10**10]


@dataclass(frozen=True)
class Limit:
    """A rule, written by hand: whom it is about, and its (eps, delta)."""

    rule: str
    about: Callable[[dict[str, Any]], bool]
    eps: Fraction
    delta: Fraction


def counted_releases(payloads: Iterable[bytes]) -> list[dict[str, Any]]:
    """Return the stored releases that count, by reading the log from the start."""
    standing: dict[str, dict[str, Any]] = {}
    for payload in payloads:
        event = json.loads(payload)["event"]
        body = event["body"]
        if event["kind"] in ("release-reserved", "past-recorded"):
            standing[body["release"]["id"]] = body["release"]
        if event["kind"] in ("release-voided", "release-expired"):
            del standing[body["release"]]
    return list(standing.values())


def margin(limit: Limit, releases: Iterable[dict[str, Any]], unit: str) -> Any:
    """Return how far the matching mechanisms together are within a limit.

    Positive: the filter holds. Negative: it does not. In units of eps.
    """
    losses = [
        mechanism["losses"][unit]
        for release in releases
        for mechanism in release["mechanisms"]
        if limit.about(mechanism)
    ]
    if not losses:
        return mpmath.inf
    sums = [
        mpmath.inf
        if any(loss[place] == "inf" for loss in losses)
        else mpmath.mpf(sum(int(loss[place]) for loss in losses))
        for place in range(len(losses[0]))
    ]
    delta = sums[-1] / mpmath.mpf(10) ** 18
    if delta > _mpf(MECHANISM_SHARE * limit.delta):
        return -mpmath.inf
    eps, rho, rdp = sums[0], sums[1], sums[3:-1]
    unit_size = mpmath.mpf(10) ** 12
    candidates = [eps / unit_size, _zcdp(rho / unit_size, RHO_SHARE * limit.delta)]
    for order, share in ORDERS.items():
        divergence = rdp[GRID.index(order)] / unit_size
        candidates.append(_renyi(divergence, order, share * limit.delta))
    return _mpf(limit.eps) - min(candidates)


def _mpf(value: Fraction) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator


def _renyi(divergence: Any, order: Any, delta: Fraction) -> Any:
    a = mpmath.mpf(order)
    eps = divergence + mpmath.log((a - 1) / a)
    return max(eps - (mpmath.log(_mpf(delta)) + mpmath.log(a)) / (a - 1), 0)


def _zcdp(rho: Any, delta: Fraction) -> Any:
    if rho == 0 or rho == mpmath.inf:
        return rho
    best = mpmath.inf
    low, high = mpmath.mpf(-8), mpmath.mpf(35)
    for _ in range(30):  # Zoom in on the best order, from a coarse scan.
        step = (high - low) / 20
        tried = [low + step * i for i in range(21)]
        values = [
            _renyi(rho * (1 + mpmath.exp(u)), 1 + mpmath.exp(u), delta) for u in tried
        ]
        place = min(range(21), key=lambda i: values[i])
        best = min(best, values[place])
        low, high = tried[max(place - 1, 0)], tried[min(place + 1, 20)]
    return best
