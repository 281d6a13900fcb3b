"""The workloads W1 to W4: mixes, widths, utilities, seeds, and what never changes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.core.canonical import digest, encode
from modicum.core.errors import Code, InputError, InvariantError
from modicum.planner.rotation import Rotation
from modicum.workloads.cohere import (
    ALIASES,
    MIXES,
    Recipe,
    cohere,
    promised,
    widths_of,
)
from modicum.workloads.document import to_plain
from modicum.workloads.mechanisms import SIZES
from modicum.workloads.model import DOMAIN, SAMPLING, Requests, Workload
from modicum.workloads.random_draws import beta_quarters
from modicum.workloads.registry import NAMES, generated, usual_rounds
from modicum.workloads.releases import spans
from modicum.workloads.summary import summary

#: Digests of the plain form, for seed 0 and the published recipe.
GOLDEN = {
    "w1": "90c4b87909f0d3d1641a3e8158cc9b0a8c2b0767236a9839ce6075d590376c2f",
    "w2": "a88efadd7336cb8066bb713def28e346cb6fe59a3d3923491f5b35444739db3a",
    "w3": "7a276c3100e23c44ffeaa910a447a7d56d20f2778b7cd52efd7e76a2dca551ca",
    "w4": "1f5ecca348f7c3b5d510941a522c1e1e1d876700fc03f261776ec1f89d6ba499",
    "s1": "de51ab363e99fd8b727ec68d72f592bcfbbeaa56a3156a5024a5e15eeaea726c",
    "s2": "1f841c52566a38ed6f4a225a046faffef5fff6f872343e59dc7a4639aabe1782",
    "s3": "7aa9f1f65300c81820d7ca9bb9924c2ab717f5455bba9ca94ffe9063274a860b",
}
#: What is drawn, each from a stream of its own.
FREE = ("id", "round", "type", "first", "width", "utility")


def columns(workload: Workload) -> dict[str, list[int]]:
    return {name: getattr(workload.requests, name).tolist() for name in FREE}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_workload_never_changes(name: str) -> None:
    assert digest(encode(to_plain(generated(name)))) == GOLDEN[name]


def test_every_workload_has_a_digest() -> None:
    assert set(GOLDEN) == set(NAMES) - set(ALIASES)


@pytest.mark.parametrize("name", MIXES)
def test_types_are_equally_likely(name: str) -> None:
    workload = cohere(name, Recipe(seed=1))
    counts = np.bincount(workload.requests.type, minlength=len(workload.types))
    expected = len(workload.requests) / len(workload.types)
    assert len(workload.types) == len(MIXES[name]) * len(SIZES) * 2
    assert ((counts - expected) ** 2 / expected).sum() < 3 * len(counts) + 20


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("w1", {"gaussian": 1 / 11}),
        ("w2", {"gaussian": 1 / 11, "laplace": 1 / 11, "sparse-vector": 2 / 3}),
        ("w3", {"dp-sgd": 1 / 2, "pate": 1 / 2}),
        ("w4", {"randomized-response": 2 / 3, "dp-sgd": 1 / 2, "laplace": 1 / 11}),
    ],
)
def test_widths_go_with_mechanisms(name: str, shares: dict[str, float]) -> None:
    found = summary(cohere(name, Recipe(seed=2))).by_mechanism
    for mechanism, share in shares.items():
        own = found[mechanism]
        assert own.width / own.requests / DOMAIN == pytest.approx(share, rel=0.06)


def test_requests_arrive_504_a_week() -> None:
    workload = cohere("w1", Recipe(seed=3))
    counts = np.array(list(summary(workload).by_round.values()))
    assert len(counts) == workload.rounds == 40
    assert workload.first_round == 11
    assert list(workload.round_numbers) == sorted(set(workload.requests.round.tolist()))
    assert abs(counts.mean() - 504) < 5 * (504 / 40) ** 0.5
    spread = ((counts - 504) ** 2 / 504).sum()  # Chi-square, 40 degrees.
    assert 10 < spread < 100


def test_requests_come_in_the_order_of_arrival() -> None:
    requests = cohere("w4", Recipe(seed=4, rounds=5)).requests
    assert requests.id.tolist() == list(range(len(requests)))
    assert (np.diff(requests.round) >= 0).all()
    rounds = [requests.of_round(number) for number in range(11, 16)]
    assert sum(map(len, rounds)) == len(requests)
    again = np.concatenate([one.width for one in rounds])
    assert again.tolist() == requests.width.tolist()
    assert len(requests.of_round(16)) == 0


# --- widths and the ring --------------------------------------------------------------


@given(st.floats(0, 1), st.integers(1, 300_000))
@settings(max_examples=examples(300), deadline=None)
def test_a_width_is_odd_or_the_ring(share: float, domain: int) -> None:
    (width,) = widths_of(np.array([share]), domain)
    half = round(share * domain / 2)  # To the even number, as here.
    assert width == min(2 * half + 1, domain)


@given(st.integers(0, 10**6), st.integers(1, 60))
@settings(max_examples=examples(60), deadline=None)
def test_a_range_lies_around_its_center(seed: int, domain: int) -> None:
    recipe = Recipe(seed=seed, rounds=1, domain=domain)
    workload = cohere("w4", recipe)
    requests = workload.requests
    centers = recipe.stream("centers").random(len(requests))
    for one in range(0, len(requests), 40):
        width, center = int(requests.width[one]), int(centers[one] * domain)
        half = width // 2
        around = {number % domain for number in range(center - half, center + half + 1)}
        read: set[int] = set()
        for begin, end in spans(domain, requests, one) or [(0, domain)]:
            assert 0 <= begin < end <= domain
            read |= set(range(begin, end))
        assert read == (around if width < domain else set(range(domain)))
        assert len(read) == width


def test_some_ranges_go_on_over_the_end() -> None:
    requests = cohere("w1", Recipe(seed=5)).requests
    over = requests.first + requests.width > DOMAIN
    assert over.mean() == pytest.approx(1 / 11, rel=0.1)


# --- utilities ------------------------------------------------------------------------


@pytest.mark.parametrize("name", MIXES)
def test_utility_is_what_the_paper_says(name: str) -> None:
    recipe = Recipe(seed=6, rounds=3)
    workload = cohere(name, recipe)
    requests = workload.requests
    appreciation = beta_quarters(recipe.stream("utilities"), len(requests)).tolist()
    eps = {"mouse": 0.05, "hare": 0.2, "elephant": 0.75}
    raw = []
    for number, appreciated in enumerate(appreciation):
        kind = requests.of_type(number)
        worth = appreciated * eps[kind.size] ** 2 * float(kind.sampling)
        raw.append(max(1, int(1000 * worth)))
    expected = [1000 * len(raw) * one // sum(raw) for one in raw]
    off = [abs(a - b) for a, b in zip(expected, requests.utility.tolist(), strict=True)]
    assert sum(1 for one in off if one) <= 1  # Floats may round to the other side.
    total = int(requests.utility.sum())
    assert 999 * len(raw) < total <= 1000 * len(raw)


def test_a_promise_is_that_of_the_most_expensive_mechanism_of_a_size() -> None:
    types = cohere("w4").types
    for kind in types:
        eps = {"mouse": "0.05", "hare": "0.2", "elephant": "0.75"}[kind.size]
        assert promised(kind, types) == Fraction(eps) ** 2 * kind.sampling


def test_elephants_hold_most_of_the_utility() -> None:
    found = summary(cohere("w4", Recipe(seed=7)))
    part = {
        name: one.utility / found.all.utility for name, one in found.by_size.items()
    }
    assert part["elephant"] == pytest.approx(0.93, abs=0.015)
    assert part["hare"] == pytest.approx(0.065, abs=0.01)
    assert part["mouse"] < 0.01


def test_all_requests_may_be_worth_the_same() -> None:
    recipe = Recipe(seed=8, rounds=2)
    plain = cohere("w4", recipe)
    equal = cohere("w4", replace(recipe, objective="requests"))
    assert set(equal.requests.utility.tolist()) == {1}
    assert {**columns(equal), "utility": 0} == {**columns(plain), "utility": 0}


# --- one choice moves nothing else ----------------------------------------------------


def test_a_sampling_rate_moves_nothing_but_itself() -> None:
    recipe = Recipe(seed=9, rounds=2)
    usual = cohere("w4", recipe)
    for rate in ("0.05", "0.25", "0.45", "0.65", "0.85", "1"):
        fixed = cohere("w4", replace(recipe, sampling=(Fraction(rate),)))
        assert {kind.sampling for kind in fixed.types} == {Fraction(rate)}
        for name in ("round", "first", "width"):
            assert columns(fixed)[name] == columns(usual)[name]
        kinds = [one.on_everybody() for one in map(fixed.requests.of_type, range(99))]
        assert kinds == [usual.requests.of_type(n).on_everybody() for n in range(99)]


def test_workloads_of_one_seed_share_what_they_have_in_common() -> None:
    recipe = Recipe(seed=10, rounds=2)
    first, *others = (cohere(name, recipe) for name in MIXES)
    for other in others:
        assert columns(other)["round"] == columns(first)["round"]
        # Sizes, rates and appreciations are the same, and so is what follows.
        assert columns(other)["utility"] == columns(first)["utility"]


def test_fewer_rounds_are_the_beginning_of_more() -> None:
    recipe = Recipe(seed=11, objective="requests")
    more = columns(cohere("w4", replace(recipe, rounds=30)))
    fewer = columns(cohere("w4", replace(recipe, rounds=12)))
    count = len(fewer["id"])
    assert {name: more[name][:count] for name in FREE} == fewer
    assert more["round"][count] == 11 + 12


def test_repetitions_have_nothing_in_common() -> None:
    one, other = (cohere("w1", Recipe(repetition=number)) for number in (0, 1))
    same = min(len(one.requests), len(other.requests))
    for name in ("width", "first"):
        a, b = getattr(one.requests, name)[:same], getattr(other.requests, name)[:same]
        assert (a == b).mean() < 0.01
    correlation = np.corrcoef(one.requests.width[:same], other.requests.width[:same])
    assert abs(correlation[0, 1]) < 0.04


def test_columns_are_independent_of_each_other() -> None:
    requests = cohere("w1", Recipe(seed=12)).requests
    table = np.stack([requests.type, requests.width, requests.first, requests.round])
    off = np.corrcoef(table) - np.eye(4)
    assert np.abs(off).max() < 0.04


# --- names and mistakes ---------------------------------------------------------------


def test_a_workload_has_several_names() -> None:
    recipe = Recipe(rounds=1)
    for alias, name in ALIASES.items():
        assert columns(cohere(alias.upper(), recipe)) == columns(cohere(name, recipe))
    assert [usual_rounds(name) for name in ("W4", "gm", "s1")] == [40, 40, 20]
    assert cohere("gm").sampling == SAMPLING == (Fraction("0.25"), Fraction(1))


@pytest.mark.parametrize(
    ("name", "recipe", "code"),
    [
        ("w5", Recipe(), Code.UNKNOWN_CHOICE),
        ("w1", Recipe(rounds=0), Code.OUT_OF_RANGE),
        ("w1", Recipe(rounds=10**6), Code.OUT_OF_RANGE),
        ("w1", Recipe(domain=0), Code.OUT_OF_RANGE),
        ("w1", Recipe(seed=-1), Code.OUT_OF_RANGE),
        ("w1", Recipe(objective="profit"), Code.UNKNOWN_CHOICE),
        ("w1", Recipe(sampling=()), Code.OUT_OF_RANGE),
        ("w1", Recipe(sampling=(Fraction(1), Fraction(1))), Code.OUT_OF_RANGE),
        ("w1", Recipe(sampling=(Fraction(0),)), Code.OUT_OF_RANGE),
        ("w1", Recipe(sampling=(Fraction(2),)), Code.OUT_OF_RANGE),
    ],
)
def test_what_cannot_be_made_is_refused(name: str, recipe: Recipe, code: Code) -> None:
    with pytest.raises(InputError) as caught:
        generated(name, recipe)
    assert caught.value.code is code
    assert caught.value.problems[0].help


def test_a_round_of_a_workload_is_the_next_one_of_a_rotation() -> None:
    """Published rounds have a group in round 0; a rotation has none there."""
    workload = cohere("w1", Recipe(rounds=2))
    rotation = Rotation(active=workload.window)
    first = workload.first_round + 1
    assert len(rotation.active_groups(first)) == workload.window
    assert len(rotation.active_groups(first - 1)) == workload.window - 1
    joined = range(workload.window)
    assert list(rotation.active_groups(first)) == [round_ + 1 for round_ in joined]


def test_an_unknown_name_has_no_usual_rounds() -> None:
    with pytest.raises(InputError) as caught:
        usual_rounds("w9")
    assert "w1, w2" in caught.value.problems[0].help


def test_columns_cannot_be_written_and_are_equally_long() -> None:
    requests = cohere("w1", Recipe(rounds=1)).requests
    with pytest.raises(ValueError, match="read-only"):
        requests.width[0] = 5
    with pytest.raises(InvariantError):
        Requests(
            requests.types,
            requests.id,
            requests.round,
            requests.type,
            requests.first,
            requests.width[1:],
            requests.utility,
        )
