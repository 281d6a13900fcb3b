"""The scenarios S1 to S3 of DPolicy's evaluation (Küchler et al., S&P 2025).

Which attributes belong to which categories was drawn there, and is drawn here, from a
seed of our own. The example policies and the workloads are made from the same schema.

Requests are those of W4, in twenty rounds. In S1, most models only answer queries: a
separate context. In S2, requests read some of 150 attributes in ten categories. In S3,
they read the rows of some month, and half of them an attribute with a limit for each
month. The example policies `dpolicy-s1` to `dpolicy-s3` are the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from random import Random

import numpy as np

from modicum.core.errors import Code, InputError, Problem
from modicum.workloads.cohere import Recipe, cohere
from modicum.workloads.model import Labels, Requests, Workload
from modicum.workloads.random_draws import Booleans, Integers, Reals, numbers_below

SEED = 42
ATTRIBUTES = 150
CATEGORIES = ("low",) * 5 + ("medium",) * 4 + ("high",)
RISKS = ("low", "medium", "high")
#: After each category, an attribute joins another one with this probability.
ANOTHER_CATEGORY = 0.6
#: Category number n is drawn with a weight of 1 / (n + 1) to this power.
SKEW = 0.1


def risk_of(attribute: int) -> str:
    """Return a risk level: of ten attributes, one is high and one medium.

    Args:
        attribute: Its number, from 0.
    """
    return {9: "high", 8: "medium"}.get(attribute % 10, "low")


@lru_cache(maxsize=1)
def all_memberships() -> tuple[dict[int, str], ...]:
    """Return the categories of every attribute, each with the level of membership."""
    random = Random(SEED)
    return tuple(memberships(random) for _ in range(ATTRIBUTES))


def memberships(random: Random) -> dict[int, str]:
    """Return the categories of an attribute: member of one, and further ones.

    Args:
        random: Decides; only its `random()` is used, which is the same everywhere.
    """
    joined: dict[int, str] = {}
    for category in _drawn(random):
        if joined:
            joined[category] = "strong" if random.random() < 0.5 else "weak"
        else:
            joined[category] = "member"
        if random.random() >= ANOTHER_CATEGORY:
            break
    return joined


def _drawn(random: Random) -> Iterator[int]:
    """Yield all categories in a random order, the first ones more likely early."""
    left = {n: 1 / (n + 1) ** SKEW for n in range(len(CATEGORIES))}
    while left:
        at = random.random() * sum(left.values())
        sums = zip(left, accumulate(left.values()), strict=True)
        category = next((n for n, total in sums if at < total), max(left))
        del left[category]
        yield category


#: The names of the scenarios.
SCENARIOS = ("s1", "s2", "s3")
#: Number of rounds of the evaluation.
ROUNDS = 20
#: The probability that a model only answers queries.
BLACK_BOX = 0.8
#: After each attribute, a request reads another one with this probability.
ANOTHER_ATTRIBUTE = 0.75
#: Number of rounds per month.
ROUNDS_PER_MONTH = 4

_MODELS = ("dp-sgd", "pate")
# Months before and after the present one; the present one is as likely as three others.
_OFFSETS = np.array([-4, -3, -2, -1, 0, 0, 0, 1, 2])
_MONTH_BEFORE = 100
_RACERS = 2048  # Requests whose attributes are drawn at once.


def dpolicy(name: str, recipe: Recipe | None = None) -> Workload:
    """Return a workload whose requests have labels.

    Args:
        name: ``s1`` to ``s3``.
        recipe: The parameters of the base; twenty rounds with seed 0, by default.

    Raises:
        InputError: If the name or something in the recipe is unknown or out of range.
    """
    recipe = recipe or Recipe(rounds=ROUNDS)
    scenario = name.lower()
    if scenario not in SCENARIOS:
        raise InputError(
            Problem(
                Code.UNKNOWN_CHOICE,
                f"unknown scenario `{name[:40]}`",
                help=f"choose one of {', '.join(SCENARIOS)}",
            )
        )
    base = cohere("w4", recipe)
    label = {"s1": _context, "s2": _scope, "s3": _time_units}[scenario]
    labels = label(recipe, base.requests)
    return replace(base, name=scenario, requests=replace(base.requests, labels=labels))


def month_of(rounds: Integers) -> Integers:
    """Return the month in which each round lies.

    Args:
        rounds: Numbers of rounds.
    """
    return _MONTH_BEFORE - (-(rounds + 2) // ROUNDS_PER_MONTH)


# --- the scenarios --------------------------------------------------------------------


def _context(recipe: Recipe, requests: Requests) -> Labels:
    model = np.array([kind.mechanism in _MODELS for kind in requests.types])
    has_context = recipe.stream("contexts").random(len(requests)) < BLACK_BOX
    return _labels(
        requests,
        black_box=model[requests.type] & has_context,
        reads=np.zeros((len(requests), 1), dtype=np.int64),
    )


def _scope(recipe: Recipe, requests: Requests) -> Labels:
    counts = _counts(recipe.stream("attribute-counts").random(len(requests)))
    ranks = _drawn_attributes(recipe, len(requests))
    reads = np.sort(np.where(_first(counts, ATTRIBUTES), ranks, -1), axis=1)
    return _labels(requests, reads=reads)


def _time_units(recipe: Recipe, requests: Requests) -> Labels:
    count = len(requests)
    dynamic = recipe.stream("attributes").random(count) >= 0.5
    reads = np.stack((np.zeros(count, dtype=np.int64), np.where(dynamic, 1, -1)), 1)
    drawn = numbers_below(recipe.stream("months").random(count), len(_OFFSETS))
    return _labels(requests, reads=reads, later=_OFFSETS[drawn])


def _labels(
    requests: Requests,
    *,
    reads: Integers,
    black_box: Booleans | None = None,
    later: Integers | None = None,
) -> Labels:
    """Return labels; of each row of `reads`, the numbers from 0 on are read."""
    count = len(requests)
    read = reads >= 0
    starts = np.concatenate(([0], np.cumsum(read.sum(axis=1))))
    month = month_of(requests.round)
    return Labels(
        black_box=np.zeros(count, dtype=np.bool_) if black_box is None else black_box,
        month=month if later is None else month + later,
        starts=starts,
        attributes=reads[read],
    )


# --- attributes of S2 -----------------------------------------------------------------


def weights() -> Reals:
    """Return how likely each attribute is to be drawn first; they add up to 1.

    In each risk level, the attributes follow Zipf's law, stretched so that levels
    with few attributes fall off as far as those with many.
    """
    risks = np.array([risk_of(number) for number in range(ATTRIBUTES)])
    found = np.empty(ATTRIBUTES)
    for risk in RISKS:
        own = risks == risk
        stretch = ATTRIBUTES / own.sum()
        found[own] = 1 / (stretch * np.arange(own.sum()) + 1)
    shares: Reals = found / found.sum()
    return shares


def _counts(uniforms: Reals) -> Integers:
    """Return how many attributes requests read: 1, and one more again and again."""
    more = ANOTHER_ATTRIBUTE ** np.arange(1, ATTRIBUTES)
    return 1 + np.searchsorted(-more, -uniforms)


def _first(counts: Integers, width: int) -> Booleans:
    """Return rows with this many of the first places marked."""
    marked: Booleans = np.arange(width) < counts[:, None]
    return marked


def _drawn_attributes(recipe: Recipe, count: int) -> Integers:
    """Return rows of all attributes in the order in which they would be drawn.

    In a race in which each attribute arrives at its own rate, the order of arrival is
    that of drawing by weight, without putting back.
    """
    generator = recipe.stream("attributes")
    rates = weights()
    rows = [np.empty((0, ATTRIBUTES), dtype=np.int64)]
    for begin in range(0, count, _RACERS):
        uniforms = generator.random((min(_RACERS, count - begin), ATTRIBUTES))
        rows.append(np.argsort(-np.log1p(-uniforms) / rates, axis=1))
    return np.concatenate(rows)
