"""An audit of noise from outside: does what comes out give away more than is priced?

A mechanism is asked many times about two neighboring answers, as far apart as was
priced. One half of what it says is looked at to choose how to tell the two apart; the
other half, which the choice never saw, shows how well that does. What is found is a
lower bound of the true loss, wrong with at most the probability that is given: a sound
sampler is rejected no more often than that, whatever the choice was.

For pure ε: an event, and exact (Clopper-Pearson) bounds of its two probabilities. For
ρ: a score of outputs, and the inequality of Donsker and Varadhan. For every score f,
``E_P f - ln E_Q exp f <= KL(P || Q) <= ρ``; the means are bounded by the empirical
Bernstein inequality (Maurer & Pontil 2009, Theorem 4).

An answer may have two parts, each with noise of its own. Then outputs are also told
apart by sum and difference, which show whether noise is drawn only once for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Outputs = NDArray[np.int64]
Counts = NDArray[np.int64]
#: Returns noisy answers, one row for each of so many questions about one true answer.
Mechanism = Callable[[tuple[int, ...], int], Outputs]

_CELLS = 40
_CELLS_EACH = 12
_SCORE_MAX = 4


@dataclass(frozen=True)
class Priced:
    """What is said of a mechanism.

    Attributes:
        noise: `laplace` or `gaussian`.
        loss: ε or ρ of two answers that are `apart`.
        apart: How far each part of the answer moves.
    """

    noise: str
    loss: Fraction
    apart: tuple[int, ...]


def loss_found(mechanism: Mechanism, priced: Priced, draws: int, error: float) -> float:
    """Return a lower bound of the loss of a mechanism.

    Args:
        mechanism: The mechanism.
        priced: What it is said to cost, and for which neighbors.
        draws: How often it is asked about each of the two.
        error: How probable it may be that the loss is smaller than what is returned.
    """
    here = mechanism((0,) * len(priced.apart), draws)
    there = mechanism(priced.apart, draws)
    half = draws // 2
    # Each way round may be the one that tells: half of the error is for either.
    return max(
        _bound(
            (ours[:half], theirs[:half]),
            (ours[half:], theirs[half:]),
            priced.noise,
            error / 2,
        )
        for ours, theirs in ((here, there), (there, here))
    )


def rejects(mechanism: Mechanism, priced: Priced, draws: int, error: float) -> bool:
    """Return whether a mechanism certainly costs more than it is said to."""
    return loss_found(mechanism, priced, draws, error) > priced.loss


Pair = tuple[Outputs, Outputs]
#: Returns the cell of each output, and how many cells there are.
View = tuple[Callable[[Outputs], NDArray[np.intp]], int]


def _views(seen: Outputs) -> Iterator[View]:
    """Yield ways to part outputs into cells, in each of which about as many lie."""
    if seen.shape[1] == 1:
        yield _view(seen, [(1,)], _CELLS)
        return
    yield _view(seen, [(1, 0), (0, 1)], _CELLS_EACH)
    yield _view(seen, [(1, 1)], _CELLS)
    yield _view(seen, [(1, -1)], _CELLS)


def _view(seen: Outputs, directions: Sequence[tuple[int, ...]], cells: int) -> View:
    shares = np.linspace(0, 1, cells + 1)[1:-1]
    borders = [
        np.unique(np.quantile(seen @ np.array(one), shares)) for one in directions
    ]
    sizes = [len(one) + 1 for one in borders]

    def cell_of(outputs: Outputs) -> NDArray[np.intp]:
        found = np.zeros(len(outputs), dtype=np.intp)
        for direction, border, size in zip(directions, borders, sizes, strict=True):
            place = np.searchsorted(border, outputs @ np.array(direction), side="right")
            found = found * size + place
        return found

    return cell_of, math.prod(sizes)


def _bound(seen: Pair, held_out: Pair, noise: str, error: float) -> float:
    """Return a bound from outputs that are held out, in the way that others show."""
    measure = _by_event if noise == "laplace" else _by_score
    best, chosen = -math.inf, None
    for cell_of, cells in _views(np.concatenate(seen)):
        counts = [np.bincount(cell_of(one), minlength=cells) for one in seen]
        shares = [(one + 0.5) / (one.sum() + cells / 2) for one in counts]
        scores = np.clip(np.log(shares[0] / shares[1]), -_SCORE_MAX, _SCORE_MAX)
        for score in _events(scores) if noise == "laplace" else [scores]:
            found = measure(counts[0], counts[1], score, error)
            if found > best:
                best, chosen = found, (cell_of, cells, score)
    assert chosen is not None
    cell_of, cells, score = chosen
    ours, theirs = (np.bincount(cell_of(one), minlength=cells) for one in held_out)
    return measure(ours, theirs, score, error)


# --- pure ε: an event -----------------------------------------------------------------


def _events(scores: Numbers) -> Iterator[Numbers]:
    """Yield sets of cells: those of the highest scores."""
    for least in np.unique(scores):
        yield (scores >= least).astype(float)


def _by_event(ours: Counts, theirs: Counts, event: Numbers, error: float) -> float:
    """Return a lower bound of ln of how much more probable an event is for us."""
    hits = [int(one[event > 0].sum()) for one in (ours, theirs)]
    low = binomial_bound(hits[0], int(ours.sum()), error / 2, upper=False)
    high = binomial_bound(hits[1], int(theirs.sum()), error / 2, upper=True)
    return math.log(low / high) if low > 0 else -math.inf


def binomial_bound(hits: int, number: int, error: float, *, upper: bool) -> float:
    """Return the bound of Clopper and Pearson of a probability, to one side."""
    from scipy.stats import beta  # type: ignore[import-untyped]

    if upper:
        return (
            1.0 if hits == number else float(beta.isf(error, hits + 1, number - hits))
        )
    return 0.0 if hits == 0 else float(beta.ppf(error, hits, number - hits + 1))


# --- ρ: a score -----------------------------------------------------------------------


def _by_score(ours: Counts, theirs: Counts, scores: Numbers, error: float) -> float:
    """Return a lower bound of the KL divergence, by the score of each cell."""
    raised = np.exp(scores)
    high = -mean_bound(-raised, theirs, error / 2)
    return mean_bound(scores, ours, error / 2) - math.log(high)


def mean_bound(values: Numbers, counts: Counts, error: float) -> float:
    """Return a lower bound of a mean, of values that came so often each."""
    number, rare = int(counts.sum()), math.log(2 / error)
    mean = float(values @ counts) / number
    spread = float((values - mean) ** 2 @ counts) / (number - 1)
    width = float(values.max() - values.min())
    return mean - (
        math.sqrt(2 * spread * rare / number) + 7 * width * rare / (3 * (number - 1))
    )
