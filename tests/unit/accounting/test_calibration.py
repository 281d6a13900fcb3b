"""The noise for a target: it meets it, and less would not."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from oracle import accounting as oracle
from oracle.accounting import MP, real

from modicum.accounting.amounts import decimal_of
from modicum.accounting.budgets import (
    ApproxBudget,
    Budget,
    GdpBudget,
    PureBudget,
    RenyiBudget,
    Unlimited,
    ZcdpBudget,
)
from modicum.accounting.calibration import Family, calibrate, meets, most, most_runs
from modicum.accounting.curves import Curve
from modicum.accounting.mechanisms import ACCOUNT_KINDS as KINDS
from modicum.accounting.mechanisms import (
    declared_pure,
    gaussian,
    gaussian_rho,
    laplace,
)
from modicum.accounting.named_mechanisms import (
    calibrated,
    curve_of_kind,
    kind_named,
    sampled_curve,
)
from modicum.core.errors import Code, InputError

ONE = Fraction(1)
MILLIONTH = Fraction(1, 10**6)
APPROX = ApproxBudget(ONE, MILLIONTH)
TARGETS: list[Budget] = [
    PureBudget(Fraction(1, 3)),
    APPROX,
    ApproxBudget(Fraction(1, 10), Fraction(1, 10**9)),
    ZcdpBudget(Fraction(1, 10)),
    GdpBudget(Fraction(1, 2)),
    RenyiBudget(((Fraction(4), Fraction(1, 2)), (Fraction(32), ONE))),
]


def gaussian_noise(sigma: Fraction) -> Curve:
    return gaussian(rho=gaussian_rho(sensitivity_l2=ONE, sigma=sigma))


def laplace_noise(scale: Fraction) -> Curve:
    return laplace(sensitivity_l1=ONE, scale=scale)


#: Kinds with every other parameter given, and what is open.
OPEN: dict[str, dict[str, Fraction]] = {
    "laplace": {"sensitivity": Fraction(2)},
    "gaussian": {},
    "discrete-laplace": {"sensitivity": Fraction(2)},
    "discrete-gaussian": {},
    "randomized-response": {"values": Fraction(3)},
    "exponential": {},
    "permute-and-flip": {},
    "report-noisy-max": {},
    "sparse-vector": {"eps-threshold": Fraction(1, 20)},
    "sparse-vector-one-threshold": {"eps-threshold": Fraction(1, 20)},
    "pate-gnmax": {},
    "binary-tree": {"steps": Fraction(92), "participations": Fraction(30)},
    "square-root-factorization": {
        "steps": Fraction(92),
        "participations": Fraction(30),
        "separation": Fraction(2),
    },
    "pure": {},
    "zcdp": {},
    "gdp": {},
}


@pytest.mark.spec("ACC-15")
@pytest.mark.parametrize("name", OPEN)
def test_the_parameter_meets_the_target_and_no_cheaper_one_does(name: str) -> None:
    kind, given = kind_named(name), OPEN[name]
    met = 0
    for target in TARGETS:
        try:
            parameter, found = calibrated(kind, given, target)
        except InputError:  # Not every mechanism has a proof in every measure.
            continue
        met += 1
        rising = next(p.rising for p in kind.parameters if p.name == parameter)
        less = found * (1 + Fraction(1, 10**9) * (1 if rising else -1))
        assert meets(curve_of_kind(kind, {**given, parameter: found}), target)
        assert not meets(curve_of_kind(kind, {**given, parameter: less}), target)
        assert len(str(found.numerator * 10**30 // found.denominator).strip("0")) <= 13
    assert met >= 2


def test_every_kind_is_tested_or_slow() -> None:
    assert set(KINDS) == {*OPEN, "dp-sgd"}


def test_gaussian_noise_is_balle_and_wang_s() -> None:
    sigma = calibrate(Family("sigma", gaussian_noise), APPROX)
    mu = 1 / real(sigma)
    assert oracle.gaussian_delta(mu, MP.mpf(1)) <= real(MILLIONTH)
    more = mu * (1 + MP.mpf(10) ** -9)
    assert oracle.gaussian_delta(more, MP.mpf(1)) > real(MILLIONTH)


def test_round_numbers_stay_round() -> None:
    assert calibrate(Family("scale", laplace_noise), PureBudget(Fraction(1, 3))) == 3
    assert calibrate(Family("sigma", gaussian_noise), GdpBudget(Fraction(1, 2))) == 2
    assert calibrated(kind_named("pure"), {}, PureBudget(ONE)) == ("eps", ONE)


def test_randomized_response_tells_the_truth_with_the_right_odds() -> None:
    _, truth = calibrated(
        kind_named("randomized-response"), {"values": Fraction(4)}, PureBudget(ONE)
    )
    best = MP.e / (MP.e + 3)
    assert best * (1 - MP.mpf(10) ** -9) <= real(truth) <= best


@pytest.mark.parametrize(
    ("family", "target"),
    [
        (Family("sigma", gaussian_noise), PureBudget(Fraction(100))),
        (Family("sigma", gaussian_noise), Unlimited()),
        (
            Family("scale", lambda _: declared_pure(eps=ONE, delta=MILLIONTH)),
            ApproxBudget(Fraction(5), MILLIONTH / 2),
        ),
        (
            Family("scale", lambda _: declared_pure(eps=ONE, delta=MILLIONTH)),
            PureBudget(Fraction(5)),
        ),
        (Family("eps", lambda _: declared_pure(eps=ONE), rising=True), GdpBudget(ONE)),
    ],
)
def test_what_cannot_be_met_is_refused(family: Family, target: Budget) -> None:
    with pytest.raises(InputError) as caught:
        calibrate(family, target)
    assert caught.value.code is Code.OUT_OF_RANGE
    assert caught.value.problems[0].help


def test_what_is_always_met_is_as_cheap_as_it_goes() -> None:
    always = Family("eps", lambda _: declared_pure(eps=ONE), rising=True)
    assert calibrate(always, PureBudget(ONE)) == 10**15


def test_a_budget_of_nothing_admits_nothing() -> None:
    assert not meets(gaussian_noise(ONE), ZcdpBudget(Fraction(0)))
    assert meets(declared_pure(eps=Fraction(0)), ZcdpBudget(Fraction(0)))


def test_a_loss_is_compared_above_its_own_error() -> None:
    """A decimal loss that only seems to be at the limit does not meet it."""
    curve = laplace_noise(Fraction(3))
    at_limit = Fraction(decimal_of(curve.rho))
    assert not meets(curve, ZcdpBudget(at_limit))
    assert meets(curve, ZcdpBudget(at_limit + Fraction(1, 10**29)))


# --- how often ------------------------------------------------------------------


def test_runs_add_up_to_the_target() -> None:
    curve = gaussian_noise(Fraction(10))
    for target in (ZcdpBudget(ONE), APPROX, GdpBudget(Fraction(3, 10))):
        count = most_runs(curve, target)
        assert meets_after(curve, count, target)
        assert not meets_after(curve, count + 1, target)
    assert most_runs(gaussian(rho=Fraction(1, 10)), ZcdpBudget(ONE)) == 10


def meets_after(curve: Curve, count: int, target: Budget) -> bool:
    rho = curve.rho * count
    assert isinstance(rho, Fraction)
    return meets(gaussian(rho=rho), target)


def test_a_single_run_may_be_too_much() -> None:
    with pytest.raises(InputError, match="even one"):
        most_runs(gaussian_noise(ONE), ZcdpBudget(Fraction(1, 10)))


def test_what_costs_nothing_may_run_for_ever() -> None:
    assert most(lambda _: declared_pure(eps=Fraction(0)), PureBudget(ONE)) >= 10**11


# --- DP-SGD ---------------------------------------------------------------------

TRAINING = {"sampling-rate": Fraction(1, 100), "steps": Fraction(200)}


def test_the_noise_of_training_meets_the_target() -> None:
    kind = kind_named("dp-sgd")
    target = RenyiBudget(((Fraction(8), Fraction(1, 10)), (Fraction(16), ONE)))
    name, noise = calibrated(kind, TRAINING, target)
    assert name == "noise-multiplier"
    less = noise * (1 - Fraction(1, 10**8))
    assert meets(curve_of_kind(kind, {**TRAINING, name: noise}), target)
    assert not meets(curve_of_kind(kind, {**TRAINING, name: less}), target)


def test_steps_are_counted_whole() -> None:
    kind = kind_named("dp-sgd")
    given = {"sampling-rate": Fraction(1, 100), "noise-multiplier": Fraction(2)}
    target = RenyiBudget(((Fraction(8), Fraction(1, 10)),))
    name, steps = calibrated(kind, given, target)
    assert name == "steps"
    assert meets(curve_of_kind(kind, {**given, "steps": steps}), target)
    assert not meets(curve_of_kind(kind, {**given, "steps": steps + 1}), target)


# --- kinds ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (lambda: kind_named("telepathy"), Code.UNKNOWN_MECHANISM),
        (lambda: curve_of_kind(kind_named("gaussian"), {}), Code.MISSING_KEY),
        (
            lambda: curve_of_kind(kind_named("gaussian"), {"scale": ONE}),
            Code.UNKNOWN_KEY,
        ),
        (
            lambda: curve_of_kind(kind_named("gaussian"), {"sigma": Fraction(0)}),
            Code.OUT_OF_RANGE,
        ),
        (
            lambda: curve_of_kind(
                kind_named("discrete-laplace"),
                {"scale": ONE, "sensitivity": Fraction(1, 2)},
            ),
            Code.OUT_OF_RANGE,
        ),
        (
            lambda: curve_of_kind(
                kind_named("randomized-response"), {"truth": Fraction(2)}
            ),
            Code.OUT_OF_RANGE,
        ),
        (
            lambda: curve_of_kind(
                kind_named("randomized-response"), {"truth": Fraction(1, 10)}
            ),
            Code.OUT_OF_RANGE,
        ),
        (lambda: calibrated(kind_named("dp-sgd"), {}, APPROX), Code.MISSING_KEY),
        (
            lambda: calibrated(kind_named("pure"), {"eps": ONE}, APPROX),
            Code.MISSING_KEY,
        ),
        (
            lambda: sampled_curve(
                kind_named("pure"), {"eps": ONE}, MILLIONTH, "shuffled"
            ),
            Code.NOT_SUPPORTED,
        ),
        (
            lambda: sampled_curve(
                kind_named("pate-gnmax"), {"sigma": ONE}, MILLIONTH, "poisson"
            ),
            Code.NOT_SUPPORTED,
        ),
        (
            lambda: sampled_curve(kind_named("dp-sgd"), TRAINING, MILLIONTH, "poisson"),
            Code.NOT_SUPPORTED,
        ),
    ],
)
def test_mistakes_in_a_mechanism_are_named(
    wrong: Callable[[], object], code: Code
) -> None:
    with pytest.raises(InputError) as caught:
        wrong()
    assert caught.value.code is code
    assert caught.value.problems[0].help


@pytest.mark.parametrize("sampling", ["poisson", "without-replacement"])
@pytest.mark.parametrize("name", ["gaussian", "laplace", "pure"])
def test_a_sample_costs_no_more_than_the_whole(name: str, sampling: str) -> None:
    kind = kind_named(name)
    values = {kind.parameters[0].name: ONE}
    whole = curve_of_kind(kind, values).loss()
    part = sampled_curve(kind, values, Fraction(1, 10), sampling).loss()
    pairs = zip(part.coordinates, whole.coordinates, strict=True)
    assert all(sampled <= unsampled for sampled, unsampled in pairs)
    assert part.coordinates != whole.coordinates
    everything = sampled_curve(kind, values, ONE, sampling).loss()
    assert everything == whole
