"""Noise for numbers of the caller's, at the reserved scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples.small import workspace

import modicum as mo
from modicum.api.local import Workspace
from modicum.api.local.reservation_use import Use, _float_above
from modicum.core.errors import Code, ConflictError, InputError
from modicum.engines.noise import NoiseSampler
from modicum.integrations.loader import Adapters


class Noting(NoiseSampler):
    """Checks as OpenDP's sampler does, adds 1000, and notes what it is asked."""

    def __init__(self) -> None:
        self.checked: list[tuple[str, Fraction, Fraction]] = []
        self.added: list[tuple[str, Fraction, list[int]]] = []

    def check(self, noise: str, scale: Fraction, sensitivity: Fraction) -> None:
        super().check(noise, scale, sensitivity)
        self.checked.append((noise, scale, sensitivity))

    def add(self, noise: str, scale: Fraction, values: Sequence[int]) -> list[int]:
        self.added.append((noise, scale, list(values)))
        return [one + 1000 for one in values]


class Fake(Adapters):
    """Libraries with a sampler that notes."""

    def __init__(self) -> None:
        self.noting = Noting()

    def sampler(self) -> Noting:
        return self.noting


GAUSSIAN = mo.gaussian(
    name="n", attributes=["age"], sensitivity={"user": mo.l2(3)},
    sigma=Fraction("40.1"), discrete=True,
)  # fmt: skip
LAPLACE = mo.laplace(
    name="n", attributes=["age"], sensitivity={"user": mo.l1(3)}, scale=40,
    discrete=True,
)  # fmt: skip


def used(folder: Path, mechanism: Any) -> tuple[Workspace, Fake, Use]:
    ledger = workspace(folder)
    decision = ledger.submit(mo.Release("r-1", mechanisms=[mechanism]))
    assert decision.allowed, decision.explain()
    fake = Fake()
    return ledger, fake, Use(ledger, "r-1", fake)


@pytest.mark.parametrize(
    ("mechanism", "noise", "scale"),
    [(GAUSSIAN, "gaussian", "40.1"), (LAPLACE, "laplace", "40")],
)
def test_what_is_drawn_is_what_is_reserved(
    tmp_path: Path, mechanism: Any, noise: str, scale: str
) -> None:
    ledger, fake, use = used(tmp_path, mechanism)
    with use:
        assert use.noise("n", [3, -7, 10**30]) == [1003, 993, 10**30 + 1000]
    ((kind, drawn, values),) = fake.noting.added
    assert (kind, values) == (noise, [3, -7, 10**30])
    assert Fraction(scale) <= drawn <= Fraction(scale) * (1 + Fraction(1, 2**52))
    assert fake.noting.checked == [(noise, drawn, Fraction(3))]
    assert ledger.standing("r-1").status.value == "published"


@given(
    scale=st.fractions(min_value=Fraction(1, 10**6), max_value=2**50)
    | st.floats(1e-6, 1e15).map(Fraction)
)
@settings(max_examples=examples(300))
def test_a_scale_is_rounded_up_to_a_float_and_no_further(scale: Fraction) -> None:
    found = _float_above(scale)
    assert Fraction(float(found)) == found
    assert found >= scale
    assert Fraction(math.nextafter(float(found), 0)) < scale


def test_it_is_drawn_by_opendp(tmp_path: Path) -> None:
    ledger = workspace(tmp_path)
    ledger.submit(mo.Release("r-1", mechanisms=[LAPLACE]))
    with Use(ledger, "r-1", Adapters()) as use:
        found = use.noise("n", [0] * 4000)
    assert len(set(found)) > 20
    # The mean of |noise| of scale 40 is about 40; ten standard errors to each side.
    assert abs(sum(map(abs, found)) / 4000 - 40) < 10 * 40 / 4000**0.5


def test_values_are_not_taken_before_they_may_be(tmp_path: Path) -> None:
    _, _, use = used(tmp_path, LAPLACE)
    values = iter([1, 2])
    with pytest.raises(ConflictError, match="before the block"):
        use.noise("n", values)
    assert list(values) == [1, 2]


def test_each_mechanism_is_answered_once_and_inside(tmp_path: Path) -> None:
    _, fake, use = used(tmp_path, GAUSSIAN)
    with pytest.raises(ConflictError, match="before the block"):
        use.noise("n", [1])
    with use:
        use.noise("n", [1])
        with pytest.raises(ConflictError, match="has already run"):
            use.noise("n", [1])
    with pytest.raises(ConflictError, match="after the block"):
        use.noise("n", [1])
    assert len(fake.noting.added) == 1


@pytest.mark.parametrize("values", [[1.0], ["canary"], [None], [1, float("nan")], 3])
def test_only_whole_numbers_get_noise_and_no_other_is_told(
    tmp_path: Path, values: Any
) -> None:
    _, fake, use = used(tmp_path, GAUSSIAN)
    with use:
        with pytest.raises(InputError) as caught:
            use.noise("n", values)
        assert "canary" not in caught.value.render()
        assert caught.value.__context__ is None
        assert fake.noting.added == []
        assert use.noise("n", [1]) == [1001]  # It was not used up.


@pytest.mark.parametrize(
    ("mechanism", "code"),
    [
        (
            mo.gaussian(name="n", attributes=["age"],
                        sensitivity={"user": mo.l2(1)}, sigma=40),
            Code.DOES_NOT_FIT,
        ),
        (
            mo.declared(name="n", attributes=["age"],
                        cost={"user": mo.zcdp(Fraction("0.001"))}),
            Code.DOES_NOT_FIT,
        ),
        (
            mo.laplace(name="n", attributes=["age"], discrete=True,
                       cost={"user": mo.pure_dp(Fraction("0.001"))}),
            Code.MISSING_KEY,
        ),
        (
            {**GAUSSIAN, "sampling": {"unit": "user", "rate": Fraction(1, 2)}},
            Code.NOT_SUPPORTED,
        ),
    ],
)  # fmt: skip
def test_other_mechanisms_are_refused(
    tmp_path: Path, mechanism: Any, code: Code
) -> None:
    _, fake, use = used(tmp_path, mechanism)
    with use, pytest.raises(InputError) as caught:
        use.noise("n", [1])
    assert caught.value.code is code
    assert fake.noting.added == []


def test_noise_too_large_to_draw_is_refused_before_it_runs(tmp_path: Path) -> None:
    large = mo.gaussian(
        name="n", attributes=["age"], sensitivity={"user": mo.l2(1)}, sigma=2**51,
        discrete=True,
    )  # fmt: skip
    _, fake, use = used(tmp_path, large)
    with use, pytest.raises(InputError, match="too large to be drawn"):
        use.noise("n", [1])
    assert fake.noting.added == []
