"""The workloads W1 to W4 of Cohere's evaluation (Küchler et al., S&P 2024).

Requests arrive as a Poisson process, 504 a week on average; a round is a week. Their
mechanism, size and sampling rate are uniformly distributed. Each reads a range on a
ring of partitioning elements, of random width around a random center; its utility is
that of the size and the sample, times a random appreciation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

import numpy as np

from modicum.core.errors import Code, InputError, Problem
from modicum.workloads.mechanisms import SIZES
from modicum.workloads.model import WINDOW, Ingredients, Requests, Workload
from modicum.workloads.random_draws import (
    BETAS,
    UNIFORMS_PER_WIDTH,
    Integers,
    Reals,
    beta_quarters,
    numbers_below,
    stream,
    waits,
)
from modicum.workloads.request_types import RequestType, types_of

#: The definitions of utility.
OBJECTIVES = ("utility", "requests")
#: Requests are worth so much on average.
UTILITY_MEAN = 1000
#: More rounds than this are refused.
ROUNDS_MAX = 10_000

_MICROSECOND = 10**6
_GAP = 20 * 60 * _MICROSECOND
_WEEK = 7 * 24 * 60 * 60 * _MICROSECOND
# Number of rows of uniform numbers drawn at once.
_BLOCK = 4096

#: The mechanisms of each mix, each with the distribution of its widths.
MIXES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "w1": {"gaussian": "1,10"},
        "w2": {
            "gaussian": "1,10",
            "laplace": "1,10",
            "sparse-vector": "1,1/2",
            "randomized-response": "1,1/2",
        },
        "w3": {"dp-sgd": "2,2", "pate": "2,2"},
        "w4": {
            "gaussian": "1,10",
            "laplace": "1,10",
            "sparse-vector": "1,1/2",
            "randomized-response": "1,1/2",
            "dp-sgd": "2,2",
            "pate": "2,2",
        },
    }
)
#: Aliases of the mixes.
ALIASES: Mapping[str, str] = MappingProxyType(
    {"gm": "w1", "basic": "w2", "mix": "w2", "ml": "w3", "mixed": "w4", "all": "w4"}
)


@dataclass(frozen=True, slots=True)
class Recipe(Ingredients):
    """The parameters of a workload."""

    def stream(self, role: str) -> np.random.Generator:
        """Return the generator of one role."""
        return stream(self.seed, self.repetition, role)


def cohere(name: str, recipe: Recipe | None = None) -> Workload:
    """Return a workload of the evaluation.

    The same recipe gives the same workload everywhere. Seed and repetition alone
    determine the arrivals, and the appreciation of each; the sampling rates determine
    only themselves, and the resulting utility. Fewer rounds are a prefix of more,
    except for the scale of utilities.

    Args:
        name: ``w1`` to ``w4``, or a key of `ALIASES`.
        recipe: The other parameters; those of the paper, with seed 0, by default.

    Raises:
        InputError: If the name or something in the recipe is unknown or out of range.
    """
    recipe = recipe or Recipe()
    name = mix_named(name)
    _check(recipe)
    first_round = WINDOW - 1
    weeks = _arrivals(recipe)
    count = len(weeks)
    types = types_of(MIXES[name], recipe.sampling)
    kinds = _types(recipe, len(MIXES[name]), count)
    width = _widths(recipe, tuple(MIXES[name].values()), kinds, count)
    center = numbers_below(recipe.stream("centers").random(count), recipe.domain)
    requests = Requests(
        types=types,
        id=np.arange(count),
        round=first_round + weeks,
        type=kinds,
        first=np.where(width < recipe.domain, center - width // 2, 0) % recipe.domain,
        width=width,
        utility=_utilities(recipe, types, kinds),
    )
    return Workload(
        name=name,
        seed=recipe.seed,
        repetition=recipe.repetition,
        objective=recipe.objective,
        sampling=recipe.sampling,
        rounds=recipe.rounds,
        domain=recipe.domain,
        window=WINDOW,
        requests=requests,
    )


def mix_named(name: str) -> str:
    """Return the name of a mix: ``w1`` for ``gm``.

    Raises:
        InputError: If there is none of that name.
    """
    lower = name.lower()
    found = ALIASES.get(lower, lower)
    if found not in MIXES:
        raise InputError(
            Problem(
                Code.UNKNOWN_CHOICE,
                f"unknown workload `{name[:40]}`",
                help=f"choose one of {', '.join((*MIXES, *ALIASES))}",
            )
        )
    return found


def _check(recipe: Recipe) -> None:
    if not 1 <= recipe.rounds <= ROUNDS_MAX:
        raise _out_of_range("number of rounds", recipe.rounds, f"1 to {ROUNDS_MAX}")
    if not 1 <= recipe.domain <= 2**40:
        raise _out_of_range("number of elements", recipe.domain, "1 to 2**40")
    if not recipe.sampling or len(set(recipe.sampling)) < len(recipe.sampling):
        given = len(recipe.sampling)
        raise _out_of_range("number of rates", given, "1 on, each rate once")
    if recipe.objective not in OBJECTIVES:
        raise InputError(
            Problem(
                Code.UNKNOWN_CHOICE,
                f"unknown objective `{recipe.objective[:40]}`",
                help=f"choose {' or '.join(OBJECTIVES)}",
            )
        )


def _out_of_range(what: str, value: int, bounds: str) -> InputError:
    return InputError(
        Problem(
            Code.OUT_OF_RANGE, f"the {what} is {value}", help=f"it is from {bounds}"
        )
    )


# --- the columns ----------------------------------------------------------------------


def _arrivals(recipe: Recipe) -> Integers:
    """Return the week of each arrival, from 0."""
    generator = recipe.stream("arrivals")
    horizon = recipe.rounds * _WEEK
    times = np.empty(0, dtype=np.int64)
    last = 0
    while last < horizon:
        more = last + np.cumsum(waits(generator.random(_BLOCK), _GAP))
        times = np.concatenate((times, more))
        last = int(times[-1])
    weeks: Integers = times[times < horizon] // _WEEK
    return weeks


def _types(recipe: Recipe, mechanisms: int, count: int) -> Integers:
    """Return which type each request has, in the order of `types_of`."""

    def chosen(role: str, choices: int) -> Integers:
        return numbers_below(recipe.stream(role).random(count), choices)

    rates = len(recipe.sampling)
    sized = chosen("mechanisms", mechanisms) * len(SIZES) + chosen("sizes", len(SIZES))
    return sized * rates + chosen("sampling", rates)


def _widths(
    recipe: Recipe, betas: tuple[str, ...], kinds: Integers, count: int
) -> Integers:
    """Return how many elements each request reads: an odd number, or all."""
    uniforms = recipe.stream("widths").random((count, UNIFORMS_PER_WIDTH))
    mechanism = kinds // (len(SIZES) * len(recipe.sampling))
    share = np.empty(count)
    for number, beta in enumerate(betas):
        own = mechanism == number
        share[own] = BETAS[beta](uniforms[own])
    return widths_of(share, recipe.domain)


def widths_of(share: Reals, domain: int) -> Integers:
    """Return widths around a center, for shares of the ring.

    Args:
        share: From 0 to 1.
        domain: How many elements the ring has.

    Returns:
        One more than twice the half of the share, which is rounded to the nearest
        whole number, a half to the even one; at most the ring.

    Examples:
        >>> widths_of(np.array([0.0, 0.05, 0.15, 0.25, 1.0]), 20).tolist()
        [1, 1, 5, 5, 20]
    """
    half = np.rint(share * domain / 2).astype(np.int64)
    return np.minimum(2 * half + 1, domain)


def _utilities(
    recipe: Recipe, types: tuple[RequestType, ...], kinds: Integers
) -> Integers:
    """Return the utility of each request; about `UTILITY_MEAN` on average."""
    count = len(kinds)
    if recipe.objective == "requests":
        return np.ones(count, dtype=np.int64)
    appreciation = beta_quarters(recipe.stream("utilities"), count)
    promise = np.array([float(1000 * promised(kind, types)) for kind in types])
    raw = np.maximum(1, (appreciation * promise[kinds]).astype(np.int64))
    worth: Integers = UTILITY_MEAN * count * raw // max(1, int(raw.sum()))
    return worth


def promised(kind: RequestType, types: tuple[RequestType, ...]) -> Fraction:
    """Return the utility of a type of request, without appreciation.

    Args:
        kind: The type.
        types: The types of the workload: cheap mechanisms get the epsilon of the most
            expensive one of their size.
    """
    eps = max(other.eps for other in types if other.size == kind.size)
    return eps * eps * kind.sampling
