"""Distances that depend on each person's own rows to the last bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from modicum.risk.noise import Noise
from modicum.risk.profile import Influence, Profile


def own_distances(influence: Influence, noise: Noise) -> Profile:
    """Return how many people move the answer how far, at most by the sensitivity.

    A distance that was rounded in a way that depends on other people could put many
    people on the other side of a bound at once, when one person comes. So moves are
    scaled by what is public, and added up in an order of their own.

    Args:
        influence: How each kind of person moves the answer.
        noise: The noise; its sensitivity is public.

    Returns:
        Distances in the noise's norm, in units of the answer.

    Neighboring relation:
        With and without all rows of one person, and with other rows of one person:
        where moves depend on own rows alone, one person's distance is all that changes.

    Source:
        `Influence.distances`, with moves and sums cut at the sensitivity.

    Examples:
        >>> from fractions import Fraction
        >>> from modicum.risk.noise import LaplaceNoise
        >>> two = Influence(1, np.array([9.0]), np.array([0, 0, 1]), np.array([5, 1]))
        >>> own_distances(two, LaplaceNoise(Fraction(1))).values.tolist()
        [0.0, 1.0]
    """
    kinds = np.repeat(np.arange(len(influence.people)), np.diff(influence.starts))
    sizes = np.abs(influence.moves)
    moves = sizes[np.lexsort((sizes, kinds))]
    most = float(noise.sensitivity)
    unit = np.ldexp(1.0, int(np.frexp(most)[1]))  # A power of two divides exactly.
    cut = replace(influence, moves=np.minimum(moves, most) / unit)
    if noise.norm == "l1":
        found = cut.by_kind(cut.moves)
    else:
        found = np.sqrt(cut.by_kind(cut.moves**2))
    return influence.profile_of(np.minimum(found * unit, most))
