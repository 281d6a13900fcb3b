"""Tables of moves to choose from: small, and drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from modicum.risk.noise import GaussianNoise, LaplaceNoise, Noise
from modicum.risk.profile import Influence


def influence(
    people: Sequence[Sequence[float]],
    *,
    dimensions: int = 1,
    groups: Mapping[str, Sequence[int]] | None = None,
) -> Influence:
    """Return the influence of people of whom each is one kind.

    Args:
        people: The moves of each person; 0 is left out.
        dimensions: How many coordinates there are.
        groups: For each group, the places of its members.
    """
    moves = [[move for move in one if move] for one in people]
    ends = np.cumsum([0, *(len(one) for one in moves)])
    members = {
        name: np.bincount(np.array(places, dtype=np.int64), minlength=len(people))
        for name, places in (groups or {}).items()
    }
    return Influence(
        dimensions,
        np.array([move for one in moves for move in one], dtype=np.float64),
        ends.astype(np.int64),
        np.ones(len(people), dtype=np.int64),
        members,
    )


def merged(one: Influence, times: Sequence[int]) -> Influence:
    """Return the influence of a table in which each kind stands for so many people."""
    return Influence(
        one.dimensions, one.moves, one.starts, np.array(times, dtype=np.int64)
    )


class Silent:
    """Draws that are all 0."""

    def laplace(self, scale: Fraction) -> int:
        assert scale > 0
        return 0


class Scripted:
    """Draws that are given; remembers the scales that were asked for."""

    def __init__(self, draws: Sequence[int]) -> None:
        self.left = list(draws)
        self.scales: list[Fraction] = []

    def laplace(self, scale: Fraction) -> int:
        self.scales.append(scale)
        return self.left.pop(0)


MOVES = st.one_of(
    st.sampled_from([0.0, 1.0, 0.5, 0.1, 2.0]),
    st.floats(0, 3, allow_nan=False).map(lambda x: round(x, 3)),
)
EPSILONS = st.sampled_from(
    [Fraction(n, d) for n in (1, 2, 3, 7, 10) for d in (1, 3, 10, 100)]
)
TAUS = st.sampled_from(
    [Fraction(n, 20) for n in (1, 5, 10, 15, 19, 20)] + [Fraction(1, 3)]
)
DELTA = Fraction(1, 10**6)


@st.composite
def noises(draw: st.DrawFn) -> Noise:
    """Draw noise of any kind."""
    sensitivity = draw(st.sampled_from([Fraction(1), Fraction(1, 3), Fraction(5, 2)]))
    dimensions = draw(st.integers(1, 4))
    kind = draw(st.sampled_from(["laplace", "published", "exact"]))
    if kind == "laplace":
        return LaplaceNoise(sensitivity, dimensions)
    calibration = "published" if kind == "published" else "exact"
    return GaussianNoise(sensitivity, DELTA, dimensions, calibration)  # type: ignore[arg-type]


def people(most: int = 12) -> st.SearchStrategy[list[list[float]]]:
    """Draw the moves of some people."""
    return st.lists(st.lists(MOVES, max_size=3), min_size=1, max_size=most)
