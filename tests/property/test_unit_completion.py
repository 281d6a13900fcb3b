"""Losses completed between units: against formulas, and never below what is proven."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from budget import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from modicum.accounting import INFINITE, Loss, mechanisms
from modicum.accounting.curves import Curve
from modicum.accounting.grid import DELTA, EPS, MU2, ORDERS, RHO, order_index
from modicum.accounting.group_privacy import group
from modicum.core.document import from_python
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import LOSS_UNIT as UNIT
from modicum.release import (
    PricedMechanism,
    Relation,
    Unit,
    Vocabulary,
    parse_release,
    price,
)
from modicum.release.units import PERIODS, RELATIONS, nests, steps


def vocabulary(*units: Unit) -> Vocabulary:
    names = tuple(unit.name for unit in units)
    facts = {unit.name: unit for unit in units}
    return Vocabulary(frozenset({"page"}), {}, names, "add-remove", facts)


def days_and_months(
    day: Relation = "add-remove", month: Relation = "add-remove"
) -> Vocabulary:
    return vocabulary(
        Unit("month", "u", "month", "at", neighbors=month),
        Unit("day", "u", "day", "at", ("month",), neighbors=day),
    )


def users_and_days(
    user: Relation, day: Relation = "add-remove", days: int | None = None
) -> Vocabulary:
    groups = {} if days is None else {"user": days}
    return vocabulary(
        Unit("user", "u", neighbors=user),
        Unit("day", "u", "day", "at", ("user",), groups, day),
    )


def priced(words: Vocabulary, **mechanism: Any) -> PricedMechanism:
    described = {"mechanism": "declared", "attributes": [], **mechanism}
    release = {"release": "r", "mechanisms": [described]}
    parsed = parse_release(from_python(release), words)
    return price(parsed, words).mechanisms[0]


def problem(words: Vocabulary, **mechanism: Any) -> Problem:
    with pytest.raises(InputError) as caught:
        priced(words, **mechanism)
    (found,) = caught.value.problems
    return found


# --- known numbers --------------------------------------------------------------------


@pytest.mark.spec("REL-8")
def test_a_month_of_days_by_group_privacy_and_by_a_bound() -> None:
    alone = priced(days_and_months(), cost={"day": {"rho": 0.015}})
    assert alone.losses["month"].coordinates[RHO] == 14_415 * UNIT // 1000
    assert alone.sources == {"month": "31 x day", "day": "declared"}
    bounded = priced(
        days_and_months(), cost={"day": {"rho": 0.015}, "month": {"rho": 0.735}}
    )
    assert bounded.losses["month"].coordinates[RHO] == 735 * UNIT // 1000
    assert bounded.sources["month"] == "declared"


@pytest.mark.spec("REL-8")
@pytest.mark.parametrize(
    ("words", "cost", "unit", "index", "expected", "source"),
    [
        (days_and_months(), {"day": {"eps": 1}}, "month", EPS, 31, "31 x day"),
        (users_and_days("add-remove"), {"user": {"eps": 1}}, "day", EPS, 2, "2 x user"),
        (
            users_and_days("any-change"),
            {"user": {"eps": 1}},
            "day",
            EPS,
            1,
            "user, any change",
        ),
        (
            users_and_days("substitute", "substitute"),
            {"user": {"eps": 1}},
            "day",
            EPS,
            1,
            "user, substitution",
        ),
        (
            users_and_days("add-remove"),
            {"user": {"rho": 0.1}},
            "day",
            RHO,
            Fraction("0.4"),
            "2 x user",
        ),
        (
            users_and_days("add-remove", days=90),
            {"day": {"rho": 0.001}},
            "user",
            RHO,
            Fraction("8.1"),
            "90 x day",
        ),
        (
            days_and_months("any-change", "any-change"),
            {"day": {"mu": 0.1}},
            "month",
            MU2,
            Fraction("9.61"),
            "31 x day",
        ),
        (
            days_and_months("add-remove", "any-change"),
            {"day": {"eps": 1}},
            "month",
            EPS,
            62,
            "62 x day, 31 removals and 31 additions",
        ),
    ],
)
def test_known_numbers(
    words: Vocabulary,
    cost: Mapping[str, Any],
    unit: str,
    index: int,
    expected: Fraction | int,
    source: str,
) -> None:
    found = priced(words, cost=cost)
    assert found.losses[unit].coordinates[index] == expected * UNIT
    assert found.sources[unit] == source


def test_a_curve_is_grouped_before_it_is_rounded() -> None:
    """Gaussian noise of 31 days is Gaussian noise 31 times as near."""
    gaussian = {"mechanism": "gaussian", "sigma": 10, "sensitivity": {"day": {"l2": 1}}}
    found = priced(days_and_months(), **gaussian)
    direct = mechanisms.gaussian(rho=Fraction(961, 200)).loss()
    assert found.losses["month"] == direct
    assert found.sources == {"month": "31 x day", "day": "computed"}


def test_sources_of_what_is_covered_and_of_what_is_mixed() -> None:
    gaussian = {"mechanism": "gaussian", "sigma": 10, "sensitivity": {"day": {"l2": 1}}}
    covered = priced(days_and_months(), **gaussian, cost={"day": {"rho": 0.5}})
    assert covered.sources["day"] == "declared, covers the computed"
    assert covered.losses["month"].coordinates[RHO] == 961 * UNIT // 2
    mixed = priced(
        days_and_months(), cost={"day": {"rho": 0.015}, "month": {"eps": 14}}
    )
    assert mixed.sources["month"] == "declared"
    mixed = priced(days_and_months(), cost={"day": {"rho": 0.01}, "month": {"eps": 90}})
    assert mixed.sources["month"] == "declared or 31 x day, whichever is less"
    assert mixed.losses["month"].coordinates[EPS] == 90 * UNIT
    low = order_index(ORDERS[0])
    assert mixed.losses["month"].coordinates[low] == 961 * UNIT // 80


def test_what_is_derived_has_no_delta_if_it_can_and_else_the_least_eps() -> None:
    words = vocabulary(
        Unit("user", "u", neighbors="any-change"),
        Unit("month", "u", "month", "at", neighbors="any-change"),
        Unit("day", "u", "day", "at", ("user", "month")),
    )
    fine = {"eps": 0.1, "delta": 1e-9}
    found = priced(words, cost={"user": fine, "month": {"eps": 3}})
    assert found.sources["day"] == "month, any change"
    assert found.losses["day"] == found.losses["month"]
    less = {"eps": 0.05, "delta": 1e-6}
    for cost in ({"user": fine, "month": less}, {"user": less, "month": fine}):
        found = priced(words, cost=cost)
        (least,) = (unit for unit, one in cost.items() if one is less)
        assert found.sources["day"] == f"{least}, any change"
        assert found.losses["day"] == found.losses[least]


# --- what must not be derived ---------------------------------------------------------


@pytest.mark.spec("REL-8")
def test_a_delta_that_reaches_1_is_no_guarantee() -> None:
    found = problem(days_and_months(), cost={"day": {"eps": 0.8, "delta": 1e-6}})
    assert found.code is Code.COST_NOT_DERIVABLE
    assert found.message.startswith("no guarantee at `month` for ")
    assert "31 x day gives delta = 4.8e+4, which exceeds 1" in found.notes[0]


@pytest.mark.spec("REL-8")
def test_without_a_bound_there_is_no_guarantee() -> None:
    found = problem(users_and_days("add-remove"), cost={"day": {"eps": 1}})
    assert found.code is Code.COST_NOT_DERIVABLE
    assert "without an enforced bound there is no guarantee" in found.notes[0]
    assert "groups: {user: …}" in found.help


@pytest.mark.parametrize("day", ["add-remove", "any-change"])
def test_substituting_users_says_nothing_about_days_that_come(day: Relation) -> None:
    found = problem(users_and_days("substitute", day), cost={"user": {"eps": 1}})
    assert found.code is Code.COST_MISSING
    assert "`user` gives none: replacing one" in found.notes[1]


def test_units_without_an_order_give_each_other_nothing() -> None:
    words = vocabulary(Unit("person", "p"), Unit("house", "h"))
    found = problem(words, cost={"person": {"eps": 1}})
    assert found.code is Code.COST_MISSING
    assert len(found.notes) == 1
    ordered = vocabulary(
        Unit("person", "p"), Unit("house", "h"), Unit("visit", "v", within=("person",))
    )
    found = problem(ordered, cost={"person": {"eps": 1}, "visit": {"eps": 1}})
    assert (
        "neither of `house` and `person` is declared within the other" in found.notes[1]
    )


def test_a_mistake_at_one_unit_is_reported_once() -> None:
    """What would follow from it is not missed as well."""
    found = problem(
        days_and_months(),
        mechanism="gaussian",
        sigma=10,
        sensitivity={"day": {"l2": 1}},
        cost={"day": {"rho": 0.0001}},
    )
    assert found.code is Code.COST_TOO_LOW


def test_huge_groups_and_tiny_losses_are_no_trouble() -> None:
    words = users_and_days("add-remove", days=10**6)
    found_tiny = priced(words, cost={"day": {"eps": 1e-300}})
    assert found_tiny.losses["user"].coordinates[EPS] == 1
    found = problem(words, cost={"day": {"eps": 1e-300, "delta": 0.5}})
    assert "delta = 5.0e+5" in found.notes[0]
    found = problem(words, cost={"day": {"eps": 300, "delta": 1e-300}})
    assert "no delta below 1" in found.notes[0]


# --- randomized response --------------------------------------------------------------


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("answers", [1, 2])
@pytest.mark.parametrize("frame", [False, True])
def test_who_answers_matters_unless_one_replaces_one(
    relation: Relation, answers: int, *, frame: bool
) -> None:
    words = vocabulary(Unit("user", "u", neighbors=relation))
    described = {
        "mechanism": "randomized-response",
        "truth": 0.75,
        "contribution_bound": {"user": answers},
        "public_frame": frame,
    }
    if frame or (relation == "substitute" and answers == 1):
        one = mechanisms.randomized_response(
            truth=Fraction(3, 4), values=2, answers=answers
        )
        assert priced(words, **described).losses["user"] == one.loss()
    else:
        found = problem(words, **described)
        assert found.code is Code.COST_NOT_DERIVABLE
        assert f"under {relation} neighbors" in found.notes[0]


@pytest.mark.spec("REL-10")
def test_a_contribution_bound_is_a_fact_that_prices_nothing() -> None:
    cost = {"day": {"rho": 0.015}}
    without = priced(days_and_months(), cost=cost)
    stated = priced(
        days_and_months(), cost=cost, contribution_bound={"day": 10, "month": 70}
    )
    assert stated.losses == without.losses
    assert stated.mechanism.contribution_bound == {"day": 10, "month": 70}


# --- generated ------------------------------------------------------------------------

amounts = st.fractions(min_value=Fraction(1, 10**4), max_value=3, max_denominator=10**4)
exact_costs = st.one_of(
    st.builds(lambda x: {"eps": float(round(x, 4))}, amounts),
    st.builds(lambda x: {"rho": float(round(x, 4))}, amounts),
    st.builds(lambda x: {"mu": float(round(x, 4))}, amounts),
)
delta_costs = st.builds(
    lambda x, d: {"eps": float(round(x, 4)), "delta": d},
    amounts,
    st.sampled_from([1e-6, 1e-9, 1e-12]),
)
relations = st.sampled_from(RELATIONS)
sizes = st.integers(1, 40)


@st.composite
def vocabularies(draw: st.DrawFn) -> Vocabulary:
    """Return a user, a device, and calendar units, in some true order."""
    units = [Unit("user", "u", neighbors=draw(relations))]
    if draw(st.booleans()):
        groups = {"user": draw(sizes)} if draw(st.booleans()) else {}
        units.append(
            Unit("device", "d", None, None, ("user",), groups, draw(relations))
        )
    periods = draw(st.sets(st.sampled_from(PERIODS), max_size=3))
    for period in sorted(periods, key=PERIODS.index, reverse=True):
        within = ["user", *(q for q in periods if q != period and nests(period, q))]
        kept = [cover for cover in within if draw(st.booleans())]
        groups = {"user": draw(sizes)} if "user" in kept and draw(st.booleans()) else {}
        relation = draw(relations)
        units.append(Unit(period, "u", period, "at", tuple(kept), groups, relation))
    return vocabulary(*draw(st.permutations(units)))


def curve_of(cost: Mapping[str, float]) -> Curve:
    exact = {key: Fraction(repr(value)) for key, value in cost.items()}
    if "rho" in exact:
        return mechanisms.declared_zcdp(rho=exact["rho"])
    if "mu" in exact:
        return mechanisms.declared_gdp(mu=exact["mu"])
    return mechanisms.declared_pure(
        eps=exact["eps"], delta=exact.get("delta", Fraction(0))
    )


def proofs(
    words: Vocabulary, unit: str, cost: Mapping[str, Mapping[str, float]]
) -> list[Loss]:
    """Return every loss that is proven for a unit, each from one statement."""
    found = []
    for other, stated in cost.items():
        count = steps(words.unit_facts, unit, other)
        if count is not None:
            found.append(group(curve_of(stated), count).loss())
    return found


def follows(loss: Loss, proven: list[Loss]) -> bool:
    """Return whether a loss is at least one that is proven, or a mix of exact ones."""
    exact = [one.coordinates for one in proven if not one.coordinates[DELTA]]
    options = [one.coordinates for one in proven]
    if exact:
        options.append(tuple(map(min, *exact)) if len(exact) > 1 else exact[0])
    return any(
        all(mine >= theirs for mine, theirs in zip(loss.coordinates, one, strict=True))
        for one in options
    )


@st.composite
def situations(draw: st.DrawFn) -> tuple[Vocabulary, dict[str, dict[str, float]]]:
    words = draw(vocabularies())
    stated = draw(st.sets(st.sampled_from(words.units), min_size=1))
    costs = exact_costs if draw(st.booleans()) else st.one_of(exact_costs, delta_costs)
    return words, {unit: draw(costs) for unit in words.units if unit in stated}


@settings(max_examples=examples(250), deadline=None)
@given(situations())
def test_what_is_charged_is_proven_and_the_best_of_it(
    situation: tuple[Vocabulary, dict[str, dict[str, float]]],
) -> None:
    words, cost = situation
    try:
        found = priced(words, cost=cost)
    except InputError as error:
        assert any(  # noqa: PT017
            all(
                min(loss.coordinates[:DELTA]) == INFINITE
                for loss in proofs(words, unit, cost)
            )
            for unit in words.units
        ), error.render()
        return
    for unit in words.units:
        proven = proofs(words, unit, cost)
        loss = found.losses[unit]
        assert follows(loss, proven)
        if all(not one.coordinates[DELTA] for one in proven):
            columns = zip(*(one.coordinates for one in proven), strict=True)
            assert loss.coordinates == tuple(map(min, columns))
        elif unit in cost:
            own = curve_of(cost[unit]).loss().coordinates
            pairs = zip(loss.coordinates, own, strict=True)
            assert all(mine <= theirs for mine, theirs in pairs)
        assert found.neighbors[unit] == words.unit_facts[unit].neighbors


@settings(max_examples=examples(100), deadline=None)
@given(situations(), st.data())
def test_a_statement_more_never_makes_a_loss_larger(
    situation: tuple[Vocabulary, dict[str, dict[str, float]]], data: st.DataObject
) -> None:
    words, cost = situation
    assume(all("delta" not in one for one in cost.values()))
    rest = [unit for unit in words.units if unit not in cost]
    assume(rest)
    more = {**cost, data.draw(st.sampled_from(rest)): data.draw(exact_costs)}
    try:
        before = priced(words, cost=cost)
    except InputError:
        return
    after = priced(words, cost=more)
    for unit in words.units:
        pairs = zip(
            after.losses[unit].coordinates,
            before.losses[unit].coordinates,
            strict=True,
        )
        assert all(now <= then for now, then in pairs)


@settings(max_examples=examples(100), deadline=None)
@given(situations())
def test_the_order_of_units_in_the_policy_does_not_matter_for_exact_losses(
    situation: tuple[Vocabulary, dict[str, dict[str, float]]],
) -> None:
    words, cost = situation
    assume(all("delta" not in one for one in cost.values()))
    turned = vocabulary(*(words.unit_facts[unit] for unit in reversed(words.units)))
    try:
        found = priced(words, cost=cost)
    except InputError:
        with pytest.raises(InputError):
            priced(turned, cost=cost)
    else:
        assert priced(turned, cost=cost).losses == found.losses
