"""Events of dp-accounting become mechanisms that never cost less."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import dp_accounting as dpa
import pytest
from budget import examples
from dp_accounting import dp_event, pld, rdp
from hypothesis import given, settings
from hypothesis import strategies as st
from samples.small import workspace

from modicum.accounting import tightest_epsilon
from modicum.accounting.losses import total_of
from modicum.core.errors import Code, InputError
from modicum.integrations.dp_events import from_dp_event

DELTA = Fraction(1, 10**6)
ADD_REMOVE = dpa.NeighboringRelation.ADD_OR_REMOVE_ONE


def described(event: Any, relation: str = "add-remove") -> list[dict[str, object]]:
    return from_dp_event(event, unit="user", relation=relation, attributes=["age"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("events")


def epsilon(folder: Path, event: Any) -> float:
    """Return the epsilon of an event as a release, by what the ledger would store."""
    found = described(event)
    if not found:
        return 0.0
    one = workspace(folder).prepare({"release": "e", "mechanisms": found})
    losses = [mechanism.losses["user"] for mechanism in one.release.mechanisms]
    return tightest_epsilon(total_of(losses), DELTA).units / 1e12


GAUSSIANS = st.floats(0.5, 50).map(dpa.GaussianDpEvent)
LAPLACES = st.floats(0.5, 50).map(dpa.LaplaceDpEvent)
SAMPLED = st.builds(
    lambda rate, noise: dpa.PoissonSampledDpEvent(rate, dpa.GaussianDpEvent(noise)),
    st.floats(0.001, 1),
    st.floats(0.8, 5),
)
ALONE = GAUSSIANS | LAPLACES | SAMPLED
EVENTS = st.lists(
    st.builds(dpa.SelfComposedDpEvent, ALONE, st.integers(1, 40)) | ALONE,
    min_size=1,
    max_size=3,
).map(dpa.ComposedDpEvent)


@given(EVENTS)
@settings(max_examples=examples(12), deadline=None)
def test_a_release_costs_no_less_than_the_event(folder: Path, event: Any) -> None:
    """Against the privacy loss distribution: tighter than any Renyi bound."""
    accountant = pld.PLDAccountant(ADD_REMOVE, value_discretization_interval=1e-3)
    accountant.compose(event)
    # Its own answer is rounded up to its grid: so much a release may be below it.
    known = accountant.get_epsilon(float(DELTA))
    assert epsilon(folder, event) >= known * (1 - 1e-2) - 1e-2


@pytest.mark.parametrize(
    "event",
    [
        dpa.GaussianDpEvent(3.0),
        dpa.SelfComposedDpEvent(dpa.GaussianDpEvent(7.0), 5),
        dpa.SelfComposedDpEvent(
            dpa.PoissonSampledDpEvent(0.05, dpa.GaussianDpEvent(1.5)), 60
        ),
        dpa.SelfComposedDpEvent(dpa.LaplaceDpEvent(30.0), 100),
        dpa.ZCDpEvent(0.02),
    ],
)
def test_nor_much_more(folder: Path, event: Any) -> None:
    """Against the Renyi accountant: what a release costs is about as tight."""
    accountant = rdp.RdpAccountant(neighboring_relation=ADD_REMOVE)
    accountant.compose(event)
    assert epsilon(folder, event) <= accountant.get_epsilon(float(DELTA)) * 1.2


def test_each_event_is_described_by_what_it_is() -> None:
    composed = dpa.ComposedDpEvent(
        [
            dpa.GaussianDpEvent(2.0),
            dpa.SelfComposedDpEvent(dpa.LaplaceDpEvent(4.0), 2),
            dpa.NoOpDpEvent(),
            dp_event.DiscreteLaplaceDpEvent(0.5, 3),
            dpa.ComposedDpEvent([dpa.GaussianDpEvent(2.0)]),
            dpa.SelfComposedDpEvent(dpa.UnsupportedDpEvent(), 0),
        ]
    )
    found = described(composed)
    assert [one["name"] for one in found] == [
        "event-1",
        "event-2",
        "event-3",
        "event-4",
    ]
    gaussian, first, second, discrete = found
    assert gaussian["cost"] == {"user": {"rho": Fraction(2, 8)}}
    assert first["mechanism"] == second["mechanism"] == "laplace"
    assert first["scale"] == Fraction(4)
    assert discrete["mechanism"] == "discrete-laplace"
    assert discrete["sensitivity"] == {"user": {"l1": 3}}
    assert discrete["scale"] == Fraction(2)
    assert described(dpa.NoOpDpEvent()) == []


def test_an_event_that_only_states_its_guarantee(folder: Path) -> None:
    class EpsilonDeltaDpEvent:
        """As later versions have it."""

        epsilon, delta = 0.25, 1e-9

    (found,) = described(EpsilonDeltaDpEvent())
    # As a float, 1e-9 is a little more than that; rounded up to the ledger's digits.
    delta = Fraction(10**9 + 1, 10**18)
    assert found["cost"] == {"user": {"eps": Fraction(1, 4), "delta": delta}}
    assert epsilon(folder, EpsilonDeltaDpEvent()) >= 0.2499  # Part of delta is left.
    twice = described(dpa.SelfComposedDpEvent(EpsilonDeltaDpEvent(), 2))
    assert len(twice) == 2


@pytest.mark.parametrize(
    ("event", "named"),
    [
        (dpa.UnsupportedDpEvent(), "UnsupportedDpEvent"),
        (dpa.NonPrivateDpEvent(), "NonPrivateDpEvent"),
        (dpa.RandomizedResponseDpEvent(0.5, 2), "RandomizedResponseDpEvent"),
        (dpa.ZCDpEvent(0.1, 0.5), "ZCDpEvent with xi"),
        (dp_event.DiscreteLaplaceDpEvent(0.5, 1.5), "sensitivity that is not whole"),
        (
            dpa.PoissonSampledDpEvent(0.1, dpa.LaplaceDpEvent(1.0)),
            "PoissonSampledDpEvent of LaplaceDpEvent",
        ),
        (
            dpa.SampledWithoutReplacementDpEvent(100, 10, dpa.GaussianDpEvent(1.0)),
            "SampledWithoutReplacementDpEvent",
        ),
    ],
)
def test_what_cannot_be_priced_is_refused_by_name(event: Any, named: str) -> None:
    for one in (event, dpa.ComposedDpEvent([dpa.GaussianDpEvent(1.0), event])):
        with pytest.raises(InputError, match=named) as caught:
            described(one)
        assert caught.value.code is Code.UNKNOWN_MECHANISM


def test_samples_are_refused_where_neighbors_are_substituted() -> None:
    event = dpa.PoissonSampledDpEvent(0.1, dpa.GaussianDpEvent(1.0))
    with pytest.raises(InputError, match="substituted"):
        described(event, "substitute")
    assert described(dpa.GaussianDpEvent(1.0), "substitute")
    with pytest.raises(InputError, match="do not support the relation `any`"):
        described(event, "any")


@pytest.mark.parametrize("noise", [0.0, -1.0, float("nan"), float("inf"), 1e-13])
def test_events_without_noise_are_refused(noise: float) -> None:
    with pytest.raises(InputError) as caught:
        described(dpa.GaussianDpEvent(noise))
    assert caught.value.code is Code.OUT_OF_RANGE


def test_endless_events_are_refused() -> None:
    deep: Any = dpa.GaussianDpEvent(1.0)
    for _ in range(200):
        deep = dpa.ComposedDpEvent([deep])
    with pytest.raises(InputError, match="levels"):
        described(deep)
    with pytest.raises(InputError, match="an integer"):
        described(dpa.SelfComposedDpEvent(dpa.GaussianDpEvent(1.0), -1))
