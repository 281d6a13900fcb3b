"""Keys that are told by noise: their losses against sums over what can come out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from samples import asked

from modicum.core.errors import Code, InputError
from modicum.query.key_selection import Selection, tail

DELTA = Fraction("1e-7")


@cache
def chance(scale: float, least: int) -> float:
    """Return how likely discrete Laplace noise is at least so much: summed up."""
    far = int(50 * scale) + abs(least) + 50
    every = sum(math.exp(-abs(k) / scale) for k in range(-far, far + 1))
    return sum(math.exp(-abs(k) / scale) for k in range(least, far + 1)) / every


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(1, 2000), st.integers(1, 300))
def test_the_tail_is_that_of_a_brute_force_sum(hundredths: int, least: int) -> None:
    scale = Fraction(hundredths, 100)
    result = float(tail(scale, least))
    assert result == pytest.approx(chance(float(scale), least), rel=1e-9, abs=1e-29)


def selection(
    noise: str = "laplace",
    *,
    delta: Fraction = DELTA,
    loss: str = "1",
    rows: tuple[int, int] = (10, 70),
    share: str = "0.2",
    unit: str = "user-day",
) -> Selection:
    measure = "eps" if noise == "laplace" else "rho"
    query = asked.query(
        asked.BY_TOPIC,
        noise=noise,
        loss={unit: {measure: Fraction(loss)}},
        bounds={"user-day": rows[0], "user-month": rows[1]},
        discover={"delta": delta, "share": Fraction(share)},
    )
    found = query.compiled.selection
    assert found is not None
    return found


@pytest.mark.spec("QRY-10")
@settings(max_examples=examples(15), deadline=None)
@given(
    st.sampled_from(["laplace", "gaussian"]),
    st.sampled_from(["user-day", "user-month"]),
    st.integers(1, 12),
    st.integers(0, 40),
    st.sampled_from(["0.001", "0.3", "2", "50", "900"]),
    st.sampled_from(["1e-3", "1e-7", "1e-15", "0.4"]),
)
def test_delta_is_the_chance_that_a_key_of_one_change_passes(
    noise: str, unit: str, most: int, more: int, loss: str, delta: str
) -> None:
    wanted = Fraction(delta)
    found = selection(
        noise, unit=unit, rows=(most, most + more), loss=loss, delta=wanted
    )
    # October has 31 days.
    rows = {"user-day": most, "user-month": min(most + more, 31 * most)}
    for name, keys in rows.items():
        result = tail(found.scale, found.threshold - 1)
        assert found.delta[name] >= result * keys
        assert found.delta[name] <= result * keys * (1 + Fraction(1, 10**9))
        assert found.eps[name] >= found.l1[name] / found.scale
    assert found.delta[unit] <= wanted * (1 + Fraction(1, 10**10))
    spent = Fraction(loss) * Fraction("0.2")
    if noise == "gaussian":
        spent = Fraction(math.sqrt(2 * spent))
    assert found.eps[unit] <= spent * (1 + Fraction(1, 10**10))
    if found.threshold > 2:  # One less would be too little, for one of two reasons.
        less = tail(found.scale, found.threshold - 2)
        hidden = 1 - math.exp(-1 / found.scale)
        assert less * rows[unit] > wanted or float(less) > hidden * (1 - 1e-9)


# --- (ε, δ) by its definition ---------------------------------------------------------


def told_sets(
    counts: Sequence[int], scale: float, threshold: int
) -> Iterator[tuple[tuple[bool, ...], float]]:
    """Yield every set of keys that may be told, with its exact probability."""
    passing = [chance(scale, threshold - n) if n else 0.0 for n in counts]
    for result in product([False, True], repeat=len(counts)):
        yield (
            result,
            math.prod(
                p if is_told else 1 - p
                for p, is_told in zip(passing, result, strict=True)
            ),
        )


def needed_delta(
    one: Sequence[int], other: Sequence[int], found: Selection, eps: float
) -> float:
    """Return the least δ for which two tables' told sets are so close."""
    scale = float(found.scale)
    ours = dict(told_sets(one, scale, found.threshold))
    theirs = dict(told_sets(other, scale, found.threshold))
    return sum(
        max(0.0, p - math.exp(eps) * theirs[result]) for result, p in ours.items()
    )


@pytest.mark.spec("QRY-10")
@pytest.mark.parametrize(
    ("unit", "rows", "loss", "delta"),
    [
        ("user-day", (2, 4), "4", "0.05"),
        ("user-day", (1, 3), "40", "0.3"),
        ("user-month", (2, 2), "10", "0.01"),
        ("user-month", (3, 4), "2", "0.2"),
        ("user-day", (2, 2), "30", "1e-5"),
    ],
)
def test_what_is_told_of_neighbors_is_as_close_as_is_charged(
    unit: str, rows: tuple[int, int], loss: str, delta: str
) -> None:
    """Rows of one id come to some keys and go from others, as its moves allow."""
    found = selection(unit=unit, rows=rows, loss=loss, delta=Fraction(delta))
    top = found.threshold
    for name, most in found.l1.items():
        coming = rows[0] if name == "user-day" else rows[1]
        going = most - coming
        eps, allowed = float(found.eps[name]), float(found.delta[name])
        cells = [(0, 1), (1, 2), (top - 1, top), (1, 0), (top, top - 1)]
        for pairs in combinations_with_replacement(cells, min(most, 3)):
            if sum(b > a for a, b in pairs) > coming:
                continue
            if sum(b < a for a, b in pairs) > going:
                continue
            one, other = zip(*pairs, strict=True)
            assert needed_delta(one, other, found, eps) <= allowed * (1 + 1e-9) + 1e-12
            assert needed_delta(other, one, found, eps) <= allowed * (1 + 1e-9) + 1e-12


def test_a_lower_threshold_would_tell_too_much() -> None:
    found = selection(rows=(2, 2), loss="5", delta=Fraction("0.01"))
    lower = replace(found, threshold=found.threshold - 1)
    eps = float(found.eps["user-day"])
    assert needed_delta([1, 1], [0, 0], found, eps) <= float(found.delta["user-day"])
    assert needed_delta([1, 1], [0, 0], lower, eps) > float(found.delta["user-day"])


# --- refusals -------------------------------------------------------------------------


def test_a_delta_that_cannot_be_computed_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        selection(delta=Fraction(1, 10**30))
    assert caught.value.code is Code.OUT_OF_RANGE


def test_a_change_that_moves_rows_of_other_ids_is_refused() -> None:
    policy = asked.compiled(
        asked.POLICY.replace(
            "schema:", "  device: {id: device_id, within: user}\nschema:", 1
        )
    )
    with pytest.raises(InputError) as caught:
        asked.query(
            asked.BY_TOPIC,
            policy=policy,
            bounds={"device": 3, "user": 10},
            loss={"device": {"rho": Fraction(1)}},
            discover={"delta": DELTA},
        )
    assert caught.value.code is Code.NOT_BOUNDED


def test_keys_that_are_not_public_need_discovery() -> None:
    with pytest.raises(InputError) as caught:
        asked.query(asked.BY_TOPIC.replace("topic", "page, topic"))
    assert caught.value.code is Code.DOES_NOT_FIT
    problem = caught.value.problems[0]
    assert "`topic`" in problem.message
    assert "`page`" not in problem.message
    assert str(problem.mark) == "sql:1:14"
