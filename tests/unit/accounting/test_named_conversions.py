"""Named conversions: published vectors, published figures, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import pytest

from modicum.accounting.conversions.advanced_composition import (
    adaptive_epsilon,
    advanced_epsilon,
)
from modicum.accounting.conversions.guarantees import (
    Guarantee,
    Measure,
    Target,
    Wanted,
    check_relation,
)
from modicum.accounting.conversions.optimal_composition import (
    optimal_pure_delta,
    optimal_pure_epsilon,
)
from modicum.accounting.conversions.profiles import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma_for,
    laplace_delta,
)
from modicum.accounting.conversions.registry import CONVERSIONS, convert
from modicum.accounting.curves import interpolated
from modicum.core.errors import Code, InputError

VECTORS: dict[str, dict[str, Any]] = json.loads(
    (
        Path(__file__).parents[2] / "golden" / "theory_vectors_conversions.json"
    ).read_text()
)
MILLIONTH = Fraction(1, 10**6)
NEVER = Target("pure")

Inputs = Mapping[str, Any]


def exact(value: Any) -> Fraction:
    return Fraction(str(value))


def counts(epsilons: list[Any]) -> dict[Fraction, int]:
    found: dict[Fraction, int] = {}
    for eps in epsilons:
        found[exact(eps)] = found.get(exact(eps), 0) + 1
    return found


def renyi(v: Inputs) -> Guarantee:
    return Guarantee("rdp", points=((exact(v["alpha"]), exact(v["r"])),))


def rho(v: Inputs) -> Guarantee:
    return Guarantee("rho", exact(v["rho"]))


def at_delta(v: Inputs) -> Target:
    return Target("eps", exact(v["delta"]))


def at_eps(v: Inputs) -> Target:
    return Target("delta", exact(v["eps"]))


def between(v: Inputs) -> Fraction:
    points = ((exact(v["a1"]), exact(v["r1"])), (exact(v["a2"]), exact(v["r2"])))
    return convert(Guarantee("rdp", points=points), Target("rdp", exact(v["a"]))).value


def pure(v: Inputs, to: Wanted, method: str) -> Fraction:
    return convert(Guarantee("eps", exact(v["eps"])), Target(to), method).value


COMPUTED = {
    "rdp_to_eps_mironov": lambda v: convert(renyi(v), at_delta(v), "mironov").value,
    "rdp_to_eps_cks": lambda v: convert(renyi(v), at_delta(v), "cks").value,
    "rdp_to_delta_cks": lambda v: convert(renyi(v), at_eps(v), "cks").value,
    "zcdp_to_eps_bs": lambda v: convert(rho(v), at_delta(v), "bun-steinke").value,
    "zcdp_to_eps_opt": lambda v: convert(rho(v), at_delta(v), "real-order").value,
    "zcdp_to_delta_opt": lambda v: convert(rho(v), at_eps(v), "real-order").value,
    "gdp_to_delta": lambda v: gaussian_delta(exact(v["mu"]) ** 2, exact(v["eps"])),
    "gdp_to_eps": lambda v: gaussian_epsilon(exact(v["mu"]) ** 2, exact(v["delta"])),
    "gaussian_sigma_for": lambda v: gaussian_sigma_for(
        exact(v["eps"]), exact(v["delta"]), exact(v["sensitivity"])
    ),
    "pure_to_zcdp_bs": lambda v: pure(v, "rho", "bun-steinke"),
    "pure_to_gdp": lambda v: pure(v, "mu", "tight"),
    "advanced_composition_eps": lambda v: advanced_epsilon(
        counts(v["eps"]), exact(v["delta_slack"])
    ),
    "whitehouse_filter_eps": lambda v: adaptive_epsilon(
        counts(v["eps"]), exact(v["delta_slack"])
    ),
    "optimal_pure_composition_delta": lambda v: optimal_pure_delta(
        counts(v["eps"]), exact(v["at_eps"])
    ),
    "optimal_pure_composition_eps": lambda v: optimal_pure_epsilon(
        counts(v["eps"]), exact(v["delta"])
    ),
    "laplace_delta": lambda v: laplace_delta(exact(v["eps"]), exact(v["at_eps"])),
    "rdp_grid_interpolation": between,
}


@pytest.mark.parametrize(
    ("name", "case"),
    [
        pytest.param(name, case, id=f"{name}-{number}")
        for name, group in VECTORS.items()
        for number, case in enumerate(group["cases"])
    ],
)
def test_the_value_is_the_vector_and_not_below_it(
    name: str, case: dict[str, Any]
) -> None:
    truth = Fraction(case["out_str"])
    # The vectors have 20 digits, and were computed of inputs that were binary floats.
    noise = truth * Fraction(1, 10**13)

    found = COMPUTED[name](case["in"])

    assert truth - noise <= found <= truth + noise + Fraction(1, 10**12)


def test_every_vector_is_tested() -> None:
    assert set(VECTORS) == set(COMPUTED)
    assert all(group["cases"] for group in VECTORS.values())


# --- published figures ----------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "lemma", "simple", "tight", "gaussian"),
    [
        ("0.015", "0.8078", "0.9255", "0.7717", "0.7147"),
        ("14.415", "41.9400", "42.6391", "41.2294", "39.2236"),
        ("0.735", "6.7180", "7.1082", "6.5024", "6.0934"),
    ],
)
def test_the_figures_of_wikimedia_are_lemma_3_6(
    value: str, lemma: str, simple: str, tight: str, gaussian: str
) -> None:
    """Printed as 0.8, 41.94 and 6.72 at delta 1e-6; the default is lower."""
    proven = Guarantee("rho", Fraction(value))
    target = Target("eps", MILLIONTH)

    def shown(method: str | None) -> str:
        return f"{float(convert(proven, target, method).value):.4f}"

    assert shown("bun-steinke-lemma-3.6") == lemma
    assert shown("bun-steinke") == simple
    assert shown("real-order") == shown(None) == tight
    assert f"{float(gaussian_epsilon(2 * proven.value, MILLIONTH)):.4f}" == gaussian


def test_lemma_3_6_begins_where_epsilon_is_rho() -> None:
    proven = Guarantee("rho", Fraction(1))
    found = convert(proven, Target("eps", Fraction(9, 10)), "bun-steinke-lemma-3.6")
    assert found.value - 1 in {0, Fraction(1, 10**12)}
    below = Target("delta", Fraction(99, 100))
    assert convert(proven, below, "bun-steinke-lemma-3.6").value == 1
    assert convert(proven, below, "bun-steinke").value == 1


# --- which conversion -----------------------------------------------------------


@pytest.mark.parametrize(
    ("proven", "target", "default"),
    [
        (Guarantee("eps", Fraction(1)), Target("eps", MILLIONTH), "optimal"),
        (Guarantee("eps", Fraction(1), times=9), Target("delta", Fraction(5)), None),
        (Guarantee("eps", Fraction(1)), Target("pure"), "basic"),
        (Guarantee("eps", Fraction(1)), Target("rho"), "tight"),
        (Guarantee("eps", Fraction(1)), Target("rdp", Fraction(8)), "tight"),
        (Guarantee("rho", Fraction(1)), Target("eps", MILLIONTH), "real-order"),
        (Guarantee("mu", Fraction(1)), Target("eps", MILLIONTH), "gaussian-exact"),
        (Guarantee("mu", Fraction(1)), Target("delta", Fraction(2)), "gaussian-exact"),
        (Guarantee("mu", Fraction(1)), Target("rho"), "gaussian"),
    ],
)
def test_the_tightest_conversion_is_the_default(
    proven: Guarantee, target: Target, default: str | None
) -> None:
    chosen = convert(proven, target)
    every = [
        convert(proven, target, c.name).value
        for c in CONVERSIONS
        if proven.measure in c.sources and c.target == target.measure
    ]
    assert chosen.value == min(every)
    assert default is None or chosen.conversion.name == default


def test_the_best_order_between_two_is_found() -> None:
    one = Guarantee("eps", Fraction(1))
    orders = (Fraction(64), Fraction(10**4))
    points = tuple((a, convert(one, Target("rdp", a)).value) for a in orders)
    proven, target = Guarantee("rdp", points=points), Target("eps", MILLIONTH * 1000)
    found = convert(proven, target)
    assert found.conversion.name == "cks-interpolated"
    assert found.value < convert(proven, target, "cks").value
    assert found.value >= convert(one, target).value, "the best that eps = 1 allows"


@pytest.mark.parametrize("measure", ["rho", "mu", "rdp"])
def test_running_twice_adds_up(measure: Measure) -> None:
    points = ((Fraction(8), Fraction(1)),) if measure == "rdp" else ()
    value = Fraction(0) if points else Fraction(1)
    once = Guarantee(measure, value, points=points)
    twice = Guarantee(measure, value, points=points, times=2)
    at_8 = Target("rdp", Fraction(8))
    assert convert(twice, at_8).value == 2 * convert(once, at_8).value


@pytest.mark.parametrize("value", [Fraction(0), Fraction(1, 10**9), Fraction(10**5)])
def test_every_conversion_answers_at_the_ends(value: Fraction) -> None:
    for conversion in CONVERSIONS:
        for measure in conversion.sources:
            own = MILLIONTH / 10 if measure == "eps-delta" else Fraction(0)
            points = ((Fraction(8), value),) if measure == "rdp" else ()
            kept = Fraction(0) if points else value
            at = {"eps": MILLIONTH, "delta": value, "rdp": Fraction(8)}
            target = Target(conversion.target, at.get(conversion.target, Fraction(0)))
            proven = Guarantee(measure, kept, own, points)
            found = convert(proven, target, conversion.name).value
            assert found >= 0
            if value == 0 and measure in {"eps", "rho", "mu"}:
                assert found <= Fraction(6), conversion.name


def test_nothing_costs_nothing() -> None:
    for measure in ("eps", "rho", "mu"):
        nothing = Guarantee(measure)
        assert convert(nothing, Target("eps", MILLIONTH)).value == 0
        assert convert(nothing, Target("delta", Fraction(0))).value == 0


# --- refusals -------------------------------------------------------------------


REFUSED: list[tuple[Measure, Wanted]] = [
    ("rho", "pure"),
    ("rho", "mu"),
    ("mu", "pure"),
    ("rdp", "pure"),
    ("rdp", "rho"),
    ("rdp", "mu"),
    ("eps-delta", "pure"),
    ("eps-delta", "rho"),
    ("eps-delta", "mu"),
    ("eps-delta", "rdp"),
]


def a_guarantee(measure: Measure) -> Guarantee:
    own = MILLIONTH / 10 if measure == "eps-delta" else Fraction(0)
    points = ((Fraction(8), Fraction(1)),) if measure == "rdp" else ()
    return Guarantee(measure, Fraction(1), own, points)


def a_target(measure: Wanted) -> Target:
    at = {"eps": MILLIONTH, "delta": Fraction(1), "rdp": Fraction(8)}
    return Target(measure, at.get(measure, Fraction(0)))


@pytest.mark.spec("ACC-12")
@pytest.mark.parametrize(("measure", "wanted"), REFUSED)
def test_what_no_proof_allows_is_refused_with_the_reason(
    measure: Measure, wanted: Wanted
) -> None:
    with pytest.raises(InputError) as caught:
        convert(a_guarantee(measure), a_target(wanted))
    (problem,) = caught.value.problems
    assert problem.code is Code.NOT_SUPPORTED
    assert problem.notes
    assert "it converts to epsilon at a delta" in problem.help


def test_everything_else_converts() -> None:
    for measure in get_args(Measure):
        for wanted in get_args(Wanted):
            if (measure, wanted) not in REFUSED:
                assert convert(a_guarantee(measure), a_target(wanted)).value >= 0


def test_rho_never_licenses_the_gaussian_profile() -> None:
    with pytest.raises(InputError) as caught:
        convert(a_guarantee("rho"), a_target("eps"), "gaussian-exact")
    assert caught.value.code is Code.NOT_SUPPORTED
    assert "`real-order`" in caught.value.problems[0].help


def test_an_order_above_the_highest_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        convert(a_guarantee("rdp"), Target("rdp", Fraction(16)))
    assert "highest order of the guarantee is 8" in caught.value.render()


def test_below_the_lowest_order_its_value_holds() -> None:
    assert convert(a_guarantee("rdp"), Target("rdp", Fraction(2))).value == 1
    assert interpolated({Fraction(8): Fraction(1)}).at(Fraction(2)) == 1


def test_own_deltas_beyond_the_asked_one_are_refused() -> None:
    proven = Guarantee("eps-delta", Fraction(1), MILLIONTH, times=2)
    for method in (None, "basic", "advanced", "optimal"):
        with pytest.raises(InputError) as caught:
            convert(proven, Target("eps", MILLIONTH), method)
        assert caught.value.code is Code.OUT_OF_RANGE
    spent = Guarantee("eps-delta", Fraction(1), MILLIONTH)
    assert convert(spent, Target("eps", MILLIONTH)).value == 1


def test_a_relation_is_kept() -> None:
    check_relation("substitute", "substitute")
    for proven, wanted in (("substitute", "add-remove"), ("add-remove", "substitute")):
        with pytest.raises(InputError) as caught:
            check_relation(proven, wanted)
        assert caught.value.code is Code.NOT_SUPPORTED


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Guarantee("rho", Fraction(-1)),
        lambda: Guarantee("eps", Fraction(1), MILLIONTH),
        lambda: Guarantee("eps-delta", Fraction(1)),
        lambda: Guarantee("eps-delta", Fraction(1), Fraction(1)),
        lambda: Guarantee("rdp", Fraction(1)),
        lambda: Guarantee("rho", points=((Fraction(8), Fraction(1)),)),
        lambda: Guarantee("rdp", points=((Fraction(1), Fraction(1)),)),
        lambda: Guarantee("rdp", points=((Fraction(2), Fraction(1)),) * 2),
        lambda: Guarantee("rho", Fraction(1), times=0),
        lambda: Target("eps"),
        lambda: Target("eps", Fraction(1)),
        lambda: Target("delta", Fraction(-1)),
        lambda: Target("rdp", Fraction(1)),
    ],
)
def test_a_guarantee_makes_sense(wrong: Any) -> None:
    with pytest.raises(InputError) as caught:
        wrong()
    assert caught.value.code is Code.OUT_OF_RANGE
    assert caught.value.problems[0].help


@pytest.mark.parametrize(
    ("proven", "target", "least"),
    [
        (Guarantee("eps", Fraction(10**7)), Target("eps", MILLIONTH), 9 * 10**6),
        (Guarantee("eps", Fraction(10**7)), Target("rho"), 10**7),
        (Guarantee("eps", Fraction(10**5), times=100), Target("pure"), 10**7),
        (Guarantee("rho", Fraction(10**11)), Target("eps", MILLIONTH), 10**11),
        (Guarantee("mu", Fraction(10**6)), Target("eps", MILLIONTH), 10**11),
        (
            Guarantee("rdp", points=((Fraction(8), Fraction(10**9)),)),
            Target("eps", MILLIONTH),
            10**9,
        ),
    ],
)
def test_losses_beyond_the_ledger_are_not_cut_off(
    proven: Guarantee, target: Target, least: int
) -> None:
    """A coordinate of the ledger ends at 4.6e6; a conversion must not."""
    for conversion in CONVERSIONS:
        if proven.measure in conversion.sources and conversion.target == target.measure:
            try:
                found = convert(proven, target, conversion.name)
            except InputError:
                continue
            assert found.value >= least, conversion.name
