"""Losses, conversions, sums and filters against the 50-digit oracle, for all inputs."""

from __future__ import annotations

from fractions import Fraction

import pytest
from budget import examples
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from oracle import accounting as oracle
from oracle.accounting import MP, Real, Sums, real
from samples import prices

from modicum.accounting import (
    COORDINATES,
    INFINITE,
    ORDERS,
    ApproxBudget,
    Budget,
    GdpBudget,
    Loss,
    PureBudget,
    Total,
    Unlimited,
    ZcdpBudget,
    filter_for,
    tightest_epsilon,
)
from modicum.accounting.conversions.moments import (
    renyi_cap,
    renyi_epsilon,
    zcdp_cap,
    zcdp_epsilon,
)
from modicum.accounting.filters.budget import figure, fixed_figure, limit
from modicum.accounting.grid import DELTA, EPS, FIRST_ORDER, MU2, RHO, order_index
from modicum.accounting.losses import total_of
from modicum.core.errors import InvariantError

pytestmark = pytest.mark.soak

UNIT = Fraction(1, 10**12)
DELTA_UNIT = Fraction(1, 10**18)

#: What 50 digits leave uncertain, in ledger units.
NOISE = MP.mpf(10) ** -20


def quick(n: int) -> settings:
    return settings(max_examples=examples(n), deadline=None)


def magnitudes(low: int, high: int) -> st.SearchStrategy[Fraction]:
    """Rationals of every size from 10^low to 10^high, alike likely."""
    return st.builds(
        lambda mantissa, exponent: Fraction(mantissa) * Fraction(10) ** exponent,
        st.integers(1000, 9999),
        st.integers(low - 3, high - 4),
    )


#: Limits and deltas whose unit fits them, as files would state them.
deltas = st.one_of(
    magnitudes(-18, 0),
    st.integers(1, 17).map(lambda n: Fraction(1, 10**n)),
)
#: Up to 0.9; above, see `test_the_search_covers_the_range_it_claims`.
usual_deltas = deltas.map(lambda delta: min(delta, Fraction(9, 10)))
epsilons = magnitudes(-9, 6)
#: Those the oracle spells out; the others have tests of their own.
filters = st.sampled_from(sorted(oracle.SHARES))


# --- comparing a rounded integer with the truth --------------------------------


def assert_rounded_up(units: int, truth: Real, allowed: Real = 1) -> None:
    """The units are at least the truth, and less than `allowed` units above it."""
    exact = truth * 10**12
    if exact > INFINITE:
        assert units == INFINITE
        return
    slack = NOISE + abs(exact) * MP.mpf(10) ** -40
    assert exact - slack <= units
    assert units <= exact + allowed + slack


def assert_rounded_down(units: int, truth: Real, relative: Real) -> None:
    """The units are at most the truth, and one unit or `relative` below it."""
    exact = truth * 10**12
    assert units <= exact + NOISE
    assert units >= exact - 1 - abs(exact) * relative - NOISE


def assert_exactly_rounded_up(units: int, truth: Fraction, unit: Fraction) -> None:
    if truth / unit > INFINITE - 1:
        assert units == INFINITE
    else:
        assert 0 <= units - truth / unit < 1


def by_order(loss: Loss) -> list[tuple[Fraction, int]]:
    return list(zip(ORDERS, loss.coordinates[FIRST_ORDER:DELTA], strict=True))


def assert_pure_mu2(units: int, eps: Fraction, answers: int = 1) -> None:
    """Tight up to eps = 200; beyond, only a bound within a tenth is claimed."""
    truth = answers * oracle.pure_mu2(eps)
    if eps <= 200:
        assert_rounded_up(units, truth, allowed=answers)
    else:
        assert_rounded_up(units, truth, allowed=truth * 10**11)


# --- 1. curves -----------------------------------------------------------------


@pytest.mark.spec("ACC-2")
@quick(60)
@given(
    st.one_of(epsilons, st.just(Fraction(10**6)), st.just(Fraction(1, 10**9))),
    magnitudes(-3, 3),
)
@example(Fraction(10**6), Fraction(1))
@example(Fraction(1, 10**9), Fraction(3))
@example(Fraction(200), Fraction(1, 7))
@example(Fraction(201), Fraction(1, 7))
def test_laplace_is_the_formula_rounded_up(eps: Fraction, scale: Fraction) -> None:
    loss = prices.laplace(sensitivity_l1=eps * scale, scale=scale)

    assert_exactly_rounded_up(loss.coordinates[EPS], eps, UNIT)
    assert_rounded_up(loss.coordinates[RHO], oracle.laplace_rho(eps))
    assert_pure_mu2(loss.coordinates[MU2], eps)
    for order, units in by_order(loss):
        assert_rounded_up(units, oracle.laplace_renyi(eps, order))
    assert loss.coordinates[DELTA] == 0


@pytest.mark.spec("ACC-2")
@quick(60)
@given(epsilons, st.one_of(st.just(Fraction(0)), magnitudes(-25, 0)))
@example(Fraction(10**6), Fraction(0))
@example(Fraction(1, 10**9), Fraction(1, 10**18))
@example(Fraction(200), Fraction(1, 3 * 10**18))
@example(Fraction(201), Fraction(999, 1000))
def test_declared_pure_is_randomized_response_rounded_up(
    eps: Fraction, delta: Fraction
) -> None:
    loss = prices.declared_pure(eps=eps, delta=delta)

    assert_exactly_rounded_up(loss.coordinates[EPS], eps, UNIT)
    assert_rounded_up(loss.coordinates[RHO], oracle.pure_rho(eps))
    assert_pure_mu2(loss.coordinates[MU2], eps)
    for order, units in by_order(loss):
        assert_rounded_up(units, oracle.pure_renyi(eps, order))
    assert_exactly_rounded_up(loss.coordinates[DELTA], delta, DELTA_UNIT)


@st.composite
def surveys(draw: st.DrawFn) -> tuple[Fraction, int, int]:
    """A truth probability from barely better than chance to barely not certain."""
    values = draw(st.sampled_from([2, 3, 4, 5, 10, 20]))
    near = draw(magnitudes(-12, 0))
    share = near if draw(st.booleans()) else 1 - near
    answers = draw(st.one_of(st.just(1), st.integers(1, 1000)))
    return Fraction(1, values) + share * (1 - Fraction(1, values)), values, answers


@quick(40)
@given(surveys())
@example((Fraction(1, 2), 2, 1))
@example((Fraction(1, 7), 7, 12))
@example((Fraction(3, 4), 2, 1))
def test_randomized_response_is_the_divergence_rounded_up(
    survey: tuple[Fraction, int, int],
) -> None:
    truth, values, answers = survey
    p, q = oracle.answer_pair(truth, values)
    eps = Fraction(truth) * (values - 1) / (1 - truth)

    loss = prices.randomized_response(truth=truth, values=values, answers=answers)

    ln_ratio = MP.log(real(eps))
    assert_rounded_up(loss.coordinates[EPS], answers * ln_ratio)
    for order, units in by_order(loss):
        assert_rounded_up(units, answers * oracle.renyi_discrete(p, q, order))
    assert loss.coordinates[DELTA] == 0
    # rho and mu2 are those of any pure mechanism with this eps.
    pure = ln_ratio * MP.tanh(ln_ratio / 2)
    assert_rounded_up(loss.coordinates[RHO], answers * pure)
    near = Fraction(str(MP.nstr(ln_ratio, 45)))
    assert_pure_mu2(loss.coordinates[MU2], near, answers)


@quick(40)
@given(surveys())
def test_rho_of_randomized_response_bounds_its_whole_curve(
    survey: tuple[Fraction, int, int],
) -> None:
    """What zCDP means: D_alpha <= alpha * rho at every order, and so at order 1."""
    truth, values, answers = survey
    p, q = oracle.answer_pair(truth, values)

    loss = prices.randomized_response(truth=truth, values=values, answers=answers)

    rho = loss.coordinates[RHO] / MP.mpf(10) ** 12 / answers
    assert oracle.kl_discrete(p, q) <= rho + MP.mpf(10) ** -40
    for order in ORDERS:
        assert oracle.renyi_discrete(p, q, order) <= real(order) * rho + 1e-40


@pytest.mark.spec("ACC-2")
@quick(100)
@given(st.one_of(st.just(Fraction(0)), magnitudes(-20, 8)))
def test_concentrated_losses_are_exact_rationals_rounded_up(rho: Fraction) -> None:
    noise = prices.gaussian(rho=rho)
    assert noise.coordinates[EPS] == (INFINITE if rho else 0)
    assert_exactly_rounded_up(noise.coordinates[RHO], rho, UNIT)
    assert_exactly_rounded_up(noise.coordinates[MU2], 2 * rho, UNIT)
    for order, units in by_order(noise):
        assert_exactly_rounded_up(units, order * rho, UNIT)
    assert noise.coordinates[DELTA] == 0

    if rho:
        declared = prices.declared_zcdp(rho=rho)
        assert declared.coordinates[MU2] == INFINITE, "zCDP implies no mu"
        same = [i for i in range(COORDINATES) if i != MU2]
        assert [declared.coordinates[i] for i in same] == [
            noise.coordinates[i] for i in same
        ]


@quick(60)
@given(magnitudes(-10, 4))
def test_declared_gdp_is_exact_rationals_rounded_up(mu: Fraction) -> None:
    loss = prices.declared_gdp(mu=mu)

    assert loss.coordinates[EPS] == INFINITE
    assert_exactly_rounded_up(loss.coordinates[RHO], mu * mu / 2, UNIT)
    assert_exactly_rounded_up(loss.coordinates[MU2], mu * mu, UNIT)
    for order, units in by_order(loss):
        assert_exactly_rounded_up(units, order * mu * mu / 2, UNIT)
    assert loss.coordinates[DELTA] == 0


@quick(50)
@given(magnitudes(-4, 4), magnitudes(-4, 4))
def test_gaussian_rho_is_exact(sensitivity: Fraction, sigma: Fraction) -> None:
    rho = prices.gaussian_rho(sensitivity_l2=sensitivity, sigma=sigma)
    assert rho * 2 * sigma**2 == sensitivity**2


priced = st.one_of(
    st.builds(lambda e: prices.laplace(sensitivity_l1=e, scale=Fraction(1)), epsilons),
    st.builds(lambda r: prices.gaussian(rho=r), magnitudes(-9, 3)),
    st.builds(
        lambda e, d: prices.declared_pure(eps=e, delta=d), epsilons, magnitudes(-18, 0)
    ),
    st.builds(lambda r: prices.declared_zcdp(rho=r), magnitudes(-9, 3)),
    st.builds(lambda m: prices.declared_gdp(mu=m), magnitudes(-5, 2)),
    st.builds(
        lambda s: prices.randomized_response(truth=s[0], values=s[1], answers=s[2]),
        surveys(),
    ),
)


@quick(50)
@given(priced)
def test_every_curve_rises_with_its_order(loss: Loss) -> None:
    renyi = [units for _, units in by_order(loss)]
    assert renyi == sorted(renyi)
    assert loss.coordinates[RHO] <= loss.coordinates[EPS]
    assert renyi[-1] <= loss.coordinates[EPS]
    assert all(
        units <= order * loss.coordinates[RHO] + order
        for order, units in by_order(loss)
    ), "zCDP bounds every order, but for rounding rho"


# --- 2. conversions --------------------------------------------------------------


@pytest.mark.spec("ACC-7")
@quick(60)
@given(st.one_of(magnitudes(-12, 2), magnitudes(2, 6)), usual_deltas)
def test_zcdp_epsilon_is_the_least_over_real_orders(
    rho: Fraction, delta: Fraction
) -> None:
    units = -(-rho.numerator * 10**12 // rho.denominator)

    found = zcdp_epsilon(units, delta)

    truth = oracle.zcdp_epsilon(units * UNIT, delta)
    assert_rounded_up(found, truth, allowed=1 + truth * 10**-3)


@quick(20)
@given(magnitudes(2, 6), magnitudes(-6, 0))
@example(Fraction(10**6), Fraction(1, 1000))
@example(Fraction(1000), Fraction(1, 10_000))
def test_the_search_covers_the_range_it_claims(
    rho: Fraction, missing: Fraction
) -> None:
    """Rho up to 1e6 and delta up to 1, as conversions.py says of its search."""
    delta = min(1 - missing, Fraction(999_999, 10**6))
    units = int(rho / UNIT)

    found = zcdp_epsilon(units, delta)

    assert_rounded_up(found, oracle.zcdp_epsilon(units * UNIT, delta), 10**6)


@quick(60)
@given(magnitudes(-9, 6), deltas)
def test_zcdp_cap_is_the_most_over_real_orders(eps: Fraction, delta: Fraction) -> None:
    truth = oracle.zcdp_cap(eps, delta)
    assert_rounded_down(zcdp_cap(eps, delta), truth, relative=MP.mpf(10) ** -6)


@quick(60)
@given(magnitudes(-9, 5), deltas)
def test_zcdp_cap_undoes_zcdp_epsilon(eps: Fraction, delta: Fraction) -> None:
    cap = zcdp_cap(eps, delta)
    within = oracle.zcdp_epsilon(cap * UNIT, delta)
    beyond = oracle.zcdp_epsilon((cap + 2) * UNIT + cap * UNIT / 10**12, delta)
    assert within <= real(eps) * (1 + MP.mpf(10) ** -40)
    assert beyond > real(eps)


@pytest.mark.spec("ACC-7")
@quick(100)
@given(st.sampled_from(ORDERS), st.integers(0, 10**15), deltas)
def test_renyi_epsilon_is_the_formula_rounded_up(
    order: Fraction, units: int, delta: Fraction
) -> None:
    truth = oracle.renyi_epsilon(order, units * UNIT, delta)
    assert_rounded_up(renyi_epsilon(order, units, delta), truth)


@pytest.mark.spec("ACC-2")
@quick(100)
@given(st.sampled_from(ORDERS), epsilons, deltas)
def test_renyi_cap_is_the_formula_rounded_down(
    order: Fraction, eps: Fraction, delta: Fraction
) -> None:
    truth = oracle.renyi_cap(order, eps, delta)
    assert_rounded_down(renyi_cap(order, eps, delta), truth, relative=0)


@quick(40)
@given(magnitudes(-8, 2), deltas)
def test_zcdp_epsilon_bounds_the_exact_delta_of_gaussian_noise(
    rho: Fraction, delta: Fraction
) -> None:
    """An independent check: the exact privacy profile knows nothing of orders."""
    units = -(-rho.numerator * 10**12 // rho.denominator)
    eps = zcdp_epsilon(units, delta) / MP.mpf(10) ** 12
    exact = oracle.gaussian_delta(MP.sqrt(2 * real(units * UNIT)), eps)
    assert exact <= real(delta)


# --- sums, as the oracle sees them ----------------------------------------------


def sums_of(total: Total) -> Sums:
    """Read a total by the storage format: which integer stands where."""

    def value(index: int) -> Fraction | None:
        if total.infinite[index] or total.finite[index] >= 2**62:
            return None
        return total.finite[index] * UNIT

    return Sums(
        eps=value(0),
        rho=value(1),
        mu2=value(2),
        orders={order: value(3 + i) for i, order in enumerate(ORDERS)},
        delta=total.finite[3 + len(ORDERS)] * DELTA_UNIT,
    )


@pytest.mark.spec("ACC-7")
@quick(60)
@given(st.lists(priced, min_size=1, max_size=5), usual_deltas)
def test_tightest_epsilon_is_the_least_of_all_ways(
    losses: list[Loss], delta: Fraction
) -> None:
    total = total_of(losses)

    found = tightest_epsilon(total, delta)

    truth = oracle.tightest_epsilon(sums_of(total), delta)
    if truth == MP.inf:
        assert found.units == INFINITE
    else:
        assert_rounded_up(found.units, truth, allowed=MP.mpf(10) ** 6)


@quick(60)
@given(st.lists(priced, min_size=1, max_size=3), usual_deltas)
def test_tightest_epsilon_names_the_way_that_gives_it(
    losses: list[Loss], delta: Fraction
) -> None:
    sums = sums_of(total_of(losses))
    left = delta - sums.delta
    assume(left > 0)

    found = tightest_epsilon(total_of(losses), delta)

    ways: dict[str, Real] = {
        "pure": sums.eps and real(sums.eps),
        "zcdp": sums.rho and oracle.zcdp_epsilon(sums.rho, left),
    }
    for order, loss in sums.orders.items():
        ways[f"rdp({float(order):g})"] = loss and oracle.renyi_epsilon(
            order, loss, left
        )
    if found.units < INFINITE:
        assert_rounded_up(found.units, ways[found.method], MP.mpf(10) ** 6)


# --- 3. filters ------------------------------------------------------------------


def with_coordinates(values: dict[int, int | None], delta: int) -> Total:
    """A total with these finite coordinates; the others are infinite."""
    finite = [0] * COORDINATES
    infinite = [1] * COORDINATES
    for index, value in values.items():
        if value is not None:
            finite[index], infinite[index] = max(0, value), 0
    finite[DELTA], infinite[DELTA] = delta, 0
    return Total(tuple(finite), tuple(infinite))


WATCHED = [Fraction(n) for n in (4, 8, 16, 32, 64, 128)]


@st.composite
def borders(draw: st.DrawFn) -> tuple[str, Fraction, Fraction, Total]:
    """A budget and a total whose coordinates stand near the oracle's own caps."""
    name = draw(filters)
    eps = draw(magnitudes(-3, 3)) / draw(st.sampled_from([1, 1, 3, 7]))
    delta = draw(magnitudes(-17, 0))
    mechanisms, rho, orders = oracle.SHARES[name]
    caps: dict[int, Real] = {EPS: real(eps)}
    caps[RHO] = oracle.zcdp_cap(eps, (rho or Fraction(1)) * delta)
    for order in WATCHED:
        share = orders.get(int(order), Fraction(1, 24))
        caps[order_index(order)] = oracle.renyi_cap(order, eps, share * delta)
    near = st.integers(-6, 6)
    wide = st.integers(7, 10**14)
    values: dict[int, int | None] = {}
    for index, cap in caps.items():
        kind = draw(st.sampled_from(["near", "over", "over", "infinite"]))
        if kind != "infinite":
            away = draw(near if kind == "near" else wide)
            values[index] = int(MP.floor(cap * 10**12)) + away
    border = (mechanisms * delta) // DELTA_UNIT
    spent = max(0, border + draw(st.sampled_from([-border, -1, 0, 0, 1, border])))
    return name, eps, delta, with_coordinates(values, spent)


def holds(name: str, eps: Fraction, delta: Fraction, total: Total, by: int) -> bool:
    return oracle.filter_holds(name, eps, delta, sums_of(total).moved(by * UNIT))


@pytest.mark.spec("ACC-5")
@quick(150)
@given(borders())
def test_a_filter_admits_exactly_what_its_definition_does(
    case: tuple[str, Fraction, Fraction, Total],
) -> None:
    name, eps, delta, total = case

    admits = filter_for(ApproxBudget(eps, delta), name).admits(total)

    if admits:
        assert holds(name, eps, delta, total, -2), "sound: never beyond the budget"
    else:
        assert not holds(name, eps, delta, total, +2), "complete: never needlessly no"


@quick(80)
@given(filters, magnitudes(-2, 3), magnitudes(-16, 0), st.lists(priced, max_size=4))
def test_a_filter_decides_priced_releases_as_its_definition_does(
    name: str, eps: Fraction, delta: Fraction, losses: list[Loss]
) -> None:
    total = total_of(losses)

    admits = filter_for(ApproxBudget(eps, delta), name).admits(total)

    if admits:
        assert holds(name, eps, delta, total, -2)
    else:
        assert not holds(name, eps, delta, total, +2)


@quick(150)
@given(borders())
def test_what_is_shown_and_what_is_decided_agree(
    case: tuple[str, Fraction, Fraction, Total],
) -> None:
    """Together > limit exactly if denied, when the limit is a whole number of units.

    Delta is a second cap, shown apart.
    """
    name, eps, delta, total = case
    budget = ApproxBudget(eps, delta)
    limits = filter_for(budget, name)
    assume(total.units(DELTA) <= limits.delta_cap)

    shown = figure(budget, name, total)

    assert limit(budget) == eps // UNIT
    if not limits.admits(total):
        assert shown > limit(budget)
    elif eps % UNIT == 0:
        assert shown <= limit(budget)
    else:
        assert shown <= limit(budget) + 1


@quick(80)
@given(borders())
def test_the_figure_is_the_least_eps_at_which_the_filter_holds(
    case: tuple[str, Fraction, Fraction, Total],
) -> None:
    name, eps, delta, total = case
    shown = figure(ApproxBudget(eps, delta), name, total)
    truth = oracle.filter_figure(name, delta, sums_of(total))
    if truth == MP.inf:
        assert shown == INFINITE
    else:
        assert_rounded_up(shown, truth, allowed=MP.mpf(10) ** 6)


@quick(150)
@given(borders())
def test_the_nearest_coordinate_is_within_its_cap_exactly_if_any_is(
    case: tuple[str, Fraction, Fraction, Total],
) -> None:
    name, eps, delta, total = case
    limits = filter_for(ApproxBudget(eps, delta), name)
    nearest = limits.nearest(total)
    assert nearest is not None
    assert nearest in limits.caps
    index, cap = nearest
    delta_is_fine = total.units(DELTA) <= limits.delta_cap
    assert limits.admits(total) == (delta_is_fine and total.units(index) <= cap)


factors = st.one_of(st.just(Fraction(1)), magnitudes(0, 2))


@quick(150)
@given(borders(), factors, factors)
def test_a_looser_budget_never_admits_less(
    case: tuple[str, Fraction, Fraction, Total],
    eps_factor: Fraction,
    delta_factor: Fraction,
) -> None:
    name, eps, delta, total = case
    tight = filter_for(ApproxBudget(eps, delta), name)
    looser = ApproxBudget(
        eps * eps_factor, min(delta * delta_factor, Fraction(999_999, 10**6))
    )
    assume(looser.delta >= delta)
    loose = filter_for(looser, name)

    assert loose.delta_cap >= tight.delta_cap
    assert {i for i, _ in tight.caps} <= {i for i, _ in loose.caps}
    assert all(cap <= dict(loose.caps)[index] for index, cap in tight.caps)
    assert loose.admits(total) or not tight.admits(total)


single = st.one_of(
    st.builds(PureBudget, magnitudes(-6, 5)),
    st.builds(ZcdpBudget, magnitudes(-6, 5)),
    st.builds(GdpBudget, magnitudes(-3, 2)),
)


def capped(budget: Budget) -> tuple[int, Fraction]:
    """The coordinate a budget in one measure limits, and the limit, by definition."""
    match budget:
        case PureBudget(eps=eps):
            return 0, eps
        case ZcdpBudget(rho=rho):
            return 1, rho
        case GdpBudget(mu=mu):
            return 2, mu * mu
        case _:
            raise AssertionError(budget)


@pytest.mark.spec("ACC-5")
@quick(150)
@given(single, filters, st.integers(-3, 3), st.integers(0, 2))
def test_a_budget_in_one_measure_admits_up_to_its_limit_and_no_delta(
    budget: Budget, name: str, away: int, spent: int
) -> None:
    index, most = capped(budget)
    units = max(0, most // UNIT + away)
    total = with_coordinates({index: int(units)}, spent)

    limits = filter_for(budget, name)

    assert limits.admits(total) == (units * UNIT <= most and spent == 0)
    assert (figure(budget, name, total) <= limit(budget)) == (units * UNIT <= most)
    assert fixed_figure(budget, total) == (units if spent == 0 else INFINITE)


@quick(80)
@given(
    st.one_of(single, st.builds(ApproxBudget, magnitudes(-3, 3), magnitudes(-17, 0))),
    filters,
    st.lists(priced, max_size=3),
    priced,
)
def test_one_loss_more_never_turns_no_into_yes(
    budget: Budget, name: str, losses: list[Loss], more: Loss
) -> None:
    before = total_of(losses)
    after = before.plus(more)
    limits = filter_for(budget, name)
    assert limits.admits(before) or not limits.admits(after)
    assert figure(budget, name, before) <= figure(budget, name, after)
    assert fixed_figure(budget, before) <= fixed_figure(budget, after)


#: Larger than any finite sum that a coordinate can hold.
huge = magnitudes(5, 40)


@pytest.mark.spec("ACC-4")
@quick(60)
@given(
    st.one_of(
        st.builds(PureBudget, huge),
        st.builds(ZcdpBudget, huge),
        st.builds(GdpBudget, huge),
        st.builds(ApproxBudget, huge, deltas),
    ),
    filters,
    st.booleans(),
)
@example(PureBudget(Fraction(10**7)), "combined-v1", False)
@example(ZcdpBudget(Fraction(10**7)), "combined-v1", False)
@example(GdpBudget(Fraction(3000)), "combined-v1", True)
def test_an_infinite_coordinate_is_never_within_a_cap(
    budget: Budget, name: str, saturated: bool
) -> None:
    nothing = (0,) * COORDINATES
    infinite = tuple(0 if i == DELTA else 1 for i in range(COORDINATES))
    sums = tuple(0 if i == DELTA else INFINITE for i in range(COORDINATES))
    total = Total(sums, nothing) if saturated else Total(nothing, infinite)

    assert not filter_for(budget, name).admits(total)
    assert figure(budget, name, total) > limit(budget)
    assert fixed_figure(budget, total) > limit(budget)


@quick(60)
@given(filters, magnitudes(-3, 3), usual_deltas, priced)
def test_one_release_alone_weighs_no_more_than_in_a_history(
    name: str, eps: Fraction, delta: Fraction, loss: Loss
) -> None:
    """A batch fixed beforehand needs no shares; it weighs the tightest epsilon."""
    budget = ApproxBudget(eps, delta)
    total = total_of([loss])

    alone = fixed_figure(budget, total)

    truth = oracle.tightest_epsilon(sums_of(total), delta)
    if truth == MP.inf:
        assert alone == INFINITE
    else:
        assert_rounded_up(alone, truth, allowed=MP.mpf(10) ** 6)
    if filter_for(budget, name).admits(total):
        assert alone <= limit(budget) + 1
    assert fixed_figure(Unlimited(), total) == total.units(EPS)


# --- 4. sums -----------------------------------------------------------------------

entries = st.one_of(
    st.integers(0, 10**15),
    st.sampled_from([0, 1, INFINITE - 1, INFINITE]),
)
vectors = st.lists(entries, min_size=COORDINATES, max_size=COORDINATES).map(
    lambda values: Loss(tuple(values))
)


@pytest.mark.spec("ACC-3")
@quick(80)
@given(
    st.lists(vectors, max_size=6).flatmap(
        lambda losses: st.tuples(st.just(losses), st.permutations(losses))
    )
)
def test_sums_are_exact_in_any_order(orders: tuple[list[Loss], list[Loss]]) -> None:
    losses, shuffled = orders
    total = total_of(losses)
    for index in range(COORDINATES):
        column = [loss.coordinates[index] for loss in losses]
        truth = sum(value for value in column if value < 2**62)
        lost = any(value == 2**62 for value in column) or truth >= 2**62
        assert total.units(index) == (2**62 if lost else truth)

    assert total_of(shuffled) == total
    half = len(losses) // 2
    assert total_of(losses[:half]).joined(total_of(losses[half:])) == total


@pytest.mark.spec("ACC-3")
@quick(80)
@given(st.lists(vectors, max_size=4), vectors)
def test_taking_back_restores_the_sum(losses: list[Loss], more: Loss) -> None:
    before = total_of(losses)
    assert before.plus(more).minus(more) == before


@quick(80)
@given(st.lists(vectors, max_size=3), vectors)
def test_only_what_can_have_been_added_is_taken_back(
    losses: list[Loss], other: Loss
) -> None:
    """A sum or a count that would fall below 0 stops the program."""
    total = total_of(losses)
    missing = False
    for index, value in enumerate(other.coordinates):
        column = [loss.coordinates[index] for loss in losses]
        if value == INFINITE:
            missing |= INFINITE not in column
        else:
            missing |= sum(v for v in column if v != INFINITE) < value
    if missing:
        with pytest.raises(InvariantError, match="only what was added"):
            total.minus(other)
    else:
        assert total.minus(other).plus(other) == total
