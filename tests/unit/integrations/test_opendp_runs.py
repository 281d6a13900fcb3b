"""OpenDP under a reservation: within what is reserved, once, and in no other words."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples.small import POLICY, workspace

from modicum.api.local import Workspace
from modicum.api.local.reservation_use import Use
from modicum.api.ports.reservation import Reserved
from modicum.core.errors import (
    Code,
    ConflictError,
    InputError,
    ModicumError,
    UnavailableError,
)
from modicum.integrations.loader import Adapters
from modicum.integrations.opendp_measurements import OpenDP

dp: Any = import_module("opendp.prelude")
dp.enable_features("contrib")

COUNTS = (dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64"))
EUCLIDEAN = (dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64"))
ROWS = (dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance())


def laplace(scale: float) -> Any:
    return dp.m.make_laplace(*COUNTS, scale=scale)


def gaussian(scale: float) -> Any:
    return dp.m.make_gaussian(*EUCLIDEAN, scale=scale)


def with_delta(delta: float, scale: float = 20.0) -> Any:
    return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian(scale)), delta)


def release(kind: str, cost: Any) -> dict[str, Any]:
    return {
        "release": "r-1",
        "mechanisms": [
            {
                "name": "counts",
                "mechanism": kind,
                "attributes": ["age"],
                "cost": {"user": cost},
            }
        ],
    }


def reserve(ws: Workspace, kind: str = "declared", **cost: Any) -> Use:
    assert ws.submit(release(kind, cost)).allowed
    return Use(ws, "r-1", Adapters())


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    return workspace(tmp_path)


@pytest.fixture
def reserved(ws: Workspace) -> Callable[..., Use]:
    return lambda *kind, **cost: reserve(ws, *kind, **cost)


def status(ws: Workspace) -> str:
    return ws.standing("r-1").status.value


def test_a_query_appears_with_what_opendp_states(ws: Workspace) -> None:
    """And never with less."""
    use = reserve(ws, eps=Fraction(1, 10))
    query = use.opendp("counts").fit(laplace, 10.0, 1)
    assert status(ws) == "reserved"  # Looking costs nothing.
    with use:
        answer = query([5, 7, -3])
    assert len(answer) == 3
    assert all(isinstance(one, int) for one in answer)
    assert status(ws) == "published"
    charged = ws.release_of(ws.standing("r-1")).mechanisms[0].losses["user"]
    stated = Fraction(query.measurement.map(1))
    assert query.stated == {"user": (stated, 0)}
    assert stated <= Fraction(charged.coordinates[0], 10**12) == Fraction(1, 10)


def test_a_loss_above_the_reserved_one_is_refused_before_anything_is_spent(
    ws: Workspace,
) -> None:
    use = reserve(ws, eps=Fraction(1, 10))
    adapter = use.opendp("counts")
    # On paper, noise of scale 10 is enough; as a float, 0.1 is a little more.
    for scale in (10.0, 9.9, 5.0):
        with pytest.raises(InputError) as caught:
            adapter.check(laplace(scale), 1)
        assert caught.value.code is Code.COST_TOO_LOW
    assert status(ws) == "reserved"
    adapter.check(laplace(math.nextafter(10.0, 11)), 1)
    adapter.check(laplace(20.0), 2 - 1)


@pytest.fixture(scope="module")
def priced(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return workspace(tmp_path_factory.mktemp("priced"))


@given(
    change=st.integers(1, 1000),
    reserved=st.fractions(Fraction(1, 1000), 2, max_denominator=10**6),
    measure=st.sampled_from(["eps", "rho"]),
)
@settings(max_examples=examples(40), deadline=None)
def test_what_fits_is_within_and_hardly_below(
    priced: Workspace, change: int, reserved: Fraction, measure: str
) -> None:
    (one,) = priced.prepare(release("declared", {measure: reserved})).release.mechanisms
    adapter = OpenDP(cast("Use", None), Reserved(one))
    if measure == "eps":
        found = adapter.fit(laplace, float(change / reserved), change)
        stated = Fraction(found.measurement.map(change))
    else:
        scale = change / math.sqrt(2 * reserved)
        found = adapter.fit(gaussian, scale, float(change))
        stated = Fraction(found.measurement.map(float(change)))
    assert reserved * (1 - Fraction(1, 10**12)) <= stated <= reserved


@pytest.mark.parametrize(
    ("cost", "build", "fits"),
    [
        ({"rho": 0.005}, lambda: gaussian(10.01), True),
        ({"rho": 0.005}, lambda: gaussian(9.99), False),
        # Pure eps implies rho = eps tanh(eps / 2), and not the other way round.
        ({"rho": 0.005}, lambda: laplace(10.01), True),
        ({"rho": 0.005}, lambda: laplace(9.98), False),
        ({"rho": 0.005}, lambda: with_delta(9.9e-9, scale=500.0), False),
        ({"eps": 0.5}, lambda: gaussian(1000.0), False),
        # An eps beside a delta says more than the rho that it implies.
        ({"eps": 0.5, "delta": 1e-8}, lambda: gaussian(10.0), False),
        ({"eps": 0.5, "delta": 1e-8}, lambda: with_delta(9.9e-9), True),
        # The float 1e-8 is a little above 1e-8.
        ({"eps": 0.5, "delta": 1e-8}, lambda: with_delta(1e-8), False),
        ({"eps": 0.2, "delta": 1e-8}, lambda: with_delta(9.9e-9), False),
        ({"eps": 0.5, "delta": 1e-8}, lambda: laplace(2.01), True),
        ({"rho": 0.005}, lambda: dp.c.make_approximate(gaussian(10.01)), True),
        ({"eps": 0.3}, lambda: dp.c.make_composition([laplace(10.0)] * 2), True),
        ({"eps": 0.3}, lambda: dp.c.make_composition([laplace(10.0)] * 4), False),
        ({"mu": 0.2}, lambda: laplace(10.0), True),
        ({"mu": 0.05}, lambda: laplace(10.0), False),
    ],
)
def test_every_measure_is_held_to_all_that_is_charged(
    reserved: Callable[..., Use],
    cost: dict[str, Any],
    build: Callable[[], Any],
    fits: bool,
) -> None:
    adapter = reserved(**cost).opendp("counts")
    measurement = build()
    d_in = 1.0 if "L2" in str(measurement.input_metric) else 1
    if fits:
        assert adapter.check(measurement, d_in)
        return
    with pytest.raises(InputError) as caught:
        adapter.check(measurement, d_in)
    assert caught.value.code is Code.COST_TOO_LOW


def test_a_described_gaussian_is_told_to_be_declared(
    reserved: Callable[..., Use],
) -> None:
    """What Gaussian noise is charged as mu, OpenDP does not state."""
    adapter = reserved("gaussian", rho=0.01).opendp("counts")
    with pytest.raises(InputError, match="exceeds the reservation") as caught:
        adapter.check(gaussian(100.0), 1.0)
    assert "mechanism: declared" in caught.value.problems[0].help
    assert "mu2" in caught.value.problems[0].notes[0]


# --- what is not believed -----------------------------------------------------------


def threshold() -> Any:
    domain = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T="i64"))
    metric = dp.l01inf_distance(dp.absolute_distance(T="i64"))
    return dp.m.make_laplace_threshold(domain, metric, scale=2.0, threshold=40)


def user_measurement() -> Any:
    dp.enable_features("honest-but-curious")
    try:
        return dp.m.make_user_measurement(
            *COUNTS, dp.max_divergence(), lambda x: x, lambda _: 0.0
        )
    finally:
        dp.disable_features("honest-but-curious")


def user_transformation() -> Any:
    dp.enable_features("honest-but-curious")
    try:
        return dp.t.make_user_transformation(
            *COUNTS, *COUNTS, lambda x: x, lambda _: 0
        ) >> laplace(10.0)
    finally:
        dp.disable_features("honest-but-curious")


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (threshold, "make_laplace_threshold"),
        (lambda: dp.c.make_composition([threshold()]), "make_laplace_threshold"),
        (user_measurement, "make_user_measurement"),
        (lambda: dp.c.make_composition([user_measurement()]), "make_user_measurement"),
        (user_transformation, "make_user_transformation"),
        (
            lambda: dp.c.make_adaptive_composition(
                *COUNTS, dp.max_divergence(), 1, [0.1]
            ),
            "make_adaptive_composition",
        ),
        (lambda: "laplace", "not an OpenDP measurement"),
        (lambda: dp.c.make_zCDP_to_approxDP(gaussian(1e6)), "SmoothedMaxDivergence"),
        (lambda: laplace(0.0), "no finite loss"),
    ],
)
def test_what_is_not_believed_is_refused(
    reserved: Callable[..., Use], build: Callable[[], Any], named: str
) -> None:
    adapter = reserved(eps=1.5, delta=1e-8).opendp("counts")
    with pytest.raises(InputError, match=named):
        adapter.check(build(), 1)


def test_a_chain_is_looked_through_and_believed(ws: Workspace) -> None:
    use = reserve(ws, eps=0.2)
    build = (
        ROWS
        >> dp.t.then_clamp((0, 10))
        >> dp.t.then_sum()
        >> dp.m.then_laplace(scale=100.0)
    )
    query = use.opendp("counts").check(build, 1)
    with use:
        assert isinstance(query([1, 2, 3]), int)


def test_a_distance_says_what_neighbors_may_differ_by(
    reserved: Callable[..., Use],
) -> None:
    exchanged = (
        (dp.vector_domain(dp.atom_domain((0, 10)), size=3), dp.change_one_distance())
        >> dp.t.then_metric_unbounded()
        >> dp.t.then_sum()
        >> dp.m.then_laplace(scale=100.0)
    )
    adapter = reserved(eps=0.2).opendp("counts")
    with pytest.raises(InputError, match="added or removed"):
        adapter.check(exchanged, 1)


def test_substituted_rows_are_two_apart(tmp_path: Path) -> None:
    policy = POLICY.replace(
        "units: {user: {id: user_id}}",
        "units: {user: {id: user_id, neighbors: substitute}}",
    )
    use = reserve(workspace(tmp_path, policy=policy), eps=0.2)
    build = (
        ROWS
        >> dp.t.then_clamp((0, 10))
        >> dp.t.then_sum()
        >> dp.m.then_laplace(scale=101.0)
    )
    with pytest.raises(InputError, match="distance 2"):
        use.opendp("counts").check(build, 1)
    assert use.opendp("counts").check(build, 2)


# --- units --------------------------------------------------------------------------


def test_every_stated_unit_needs_a_distance(tmp_path: Path) -> None:
    policy = POLICY.replace(
        "units: {user: {id: user_id}}",
        "units: {user: {id: user_id}, day: {id: user_id,"
        " time: {column: at, period: day}, within: user}}",
    )
    ws = workspace(tmp_path, policy=policy)
    ws.submit(
        {
            "release": "r-1",
            "mechanisms": [
                {
                    "name": "counts",
                    "mechanism": "declared",
                    "attributes": ["age"],
                    "cost": {"user": {"eps": 0.7}, "day": {"eps": 0.1}},
                }
            ],
        }
    )
    adapter = Use(ws, "r-1", Adapters()).opendp("counts")
    with pytest.raises(InputError, match="no distance is given for `user`"):
        adapter.check(laplace(11.0), 1)
    with pytest.raises(InputError, match="no distance is given for `day`"):
        adapter.check(laplace(11.0), 7, unit="user")
    with pytest.raises(InputError, match="unknown privacy unit `week`"):
        adapter.check(laplace(11.0), {"week": 1})
    with pytest.raises(InputError, match="for `user`"):
        adapter.check(laplace(11.0), {"user": 8, "day": 1})
    assert set(adapter.check(laplace(11.0), {"user": 7, "day": 1}).stated) == {
        "user",
        "day",
    }


# --- running ------------------------------------------------------------------------


def test_it_runs_once_and_in_the_block_only(ws: Workspace) -> None:
    use = reserve(ws, eps=0.2)
    first = use.opendp("counts").check(laplace(10.0), 1)
    with pytest.raises(ConflictError, match="before the block"):
        first([1])
    with use:
        second = use.opendp("counts").check(laplace(20.0), 1)
        first([1])
        for again in (first, second):
            with pytest.raises(ConflictError, match="has already run"):
                again([1])
    with pytest.raises(ConflictError, match="after the block"):
        second([1])


CANARY = 987_654_321_987_654_321_987


@pytest.mark.parametrize("data", [[CANARY], ["987654321"], "987654321", [9876.54321]])
def test_a_failure_tells_nothing_of_the_data(ws: Workspace, data: Any) -> None:
    use = reserve(ws, eps=0.2)
    query = use.opendp("counts").check(laplace(10.0), 1)
    with pytest.raises(ModicumError) as caught, use:
        query(data)
    assert isinstance(caught.value, UnavailableError | InputError)
    assert "9876" not in caught.value.render()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert status(ws) == "started"


def test_data_outside_of_the_domain_is_not_measured(ws: Workspace) -> None:
    """OpenDP would take it, and its proof would not hold."""
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    build = dp.m.make_laplace(domain, dp.l1_distance(T=float), scale=10.0)
    assert len(build([float("nan")])) == 1  # As it is.
    use = reserve(ws, eps=0.2)
    query = use.opendp("counts").check(build, 1.0)
    with pytest.raises(InputError, match="input domain"), use:
        query([1.0, float("nan")])
    assert status(ws) == "started"
