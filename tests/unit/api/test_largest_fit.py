"""The closest release that passes: least noise, largest cost, most of the data."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import parted
from samples.parted import (
    COUNTRIES,
    MONTHS,
    PEOPLE,
    TODAY,
    Person,
    costs,
    holds_month,
    holds_person,
    mechanism,
    noise,
    policy,
    priced,
    release,
    trials,
)

from modicum.api.local.alternatives import smaller_parts
from modicum.api.local.alternatives.largest_fit import (
    VARIED,
    largest_fit,
    number_on,
    rung_above,
    rung_below,
)
from modicum.api.local.alternatives.options import options
from modicum.api.local.alternatives.part_text import days_text
from modicum.api.local.alternatives.trials import Trials
from modicum.api.local.explanation.release_text import written
from modicum.core.errors import Code, InputError
from modicum.ledger import decide
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text

SEEDS = st.integers(min_value=0, max_value=2**32)
RELATIONS = st.sampled_from(["add-remove", "add-remove", "substitute", "any-change"])


def allowed(tried: Trials, variant: Any) -> bool:
    """Return whether a release passes, asked on balances of its own."""
    head_view = tried.head_view
    compiled = head_view.balances.compiled
    fresh = parted.head_view(compiled, [one.release for one in head_view.reserved])
    return decide(fresh.balances, priced(variant, compiled), TODAY).allowed


# --- the ladder -----------------------------------------------------------------------


@settings(max_examples=examples(200))
@given(st.integers(min_value=-(10**6), max_value=10**6))
def test_a_ladder_has_all_numbers_of_four_digits_in_order(rung: int) -> None:
    number = number_on(rung)
    assert number < number_on(rung + 1)
    assert rung_below(number) == rung_above(number) == rung
    digits = Decimal(number.numerator) / Decimal(number.denominator)
    assert len(digits.normalize().as_tuple().digits) <= 4
    between = (number + number_on(rung + 1)) / 2
    assert rung_below(between) == rung
    assert rung_above(between) == rung + 1


# --- noise and costs ------------------------------------------------------------------


def a_step_less(number: Fraction, vary: str) -> Fraction:
    """Return the next number of four digits that costs more."""
    power = Fraction(10)
    while power <= number:
        power *= 10
    while power > number:
        power /= 10
    step = power / 1000
    if vary in ("noise", "sigma"):
        return number - (step / 10 if number == power else step)
    return number + step


@settings(max_examples=examples(25))
@given(SEEDS, RELATIONS)
def test_the_least_noise_passes_and_a_step_less_does_not(seed: int, near: str) -> None:
    rng, compiled = random.Random(seed), policy(near)
    history = parted.filled(rng, compiled)
    vary = rng.choice(["noise", "rho"])
    own = noise(rng.choice(["0.7", "2", "31"])) if vary == "noise" else {}
    asked = release("asked", mechanism(attributes=["pay"], **own))
    tried = Trials(parted.head_view(compiled, history), asked)
    fit = largest_fit(tried, vary)
    path = ("sigma",) if vary == "noise" else ("cost", "user-month", "rho")
    if not fit.found:
        # However little it costs: what is left is less than one unit of the ledger.
        tiny = mechanism(attributes=["pay"], cost=costs("1e-12"))
        assert not allowed(tried, release("asked", tiny))
        return
    assert fit.release is not None
    assert allowed(tried, fit.release)
    found = number_at(fit.release, path)
    closer = a_step_less(found, vary)
    mine = (
        noise(str(float(closer)))
        if vary == "noise"
        else {"cost": costs(str(float(closer)))}
    )
    assert not allowed(tried, release("asked", mechanism(attributes=["pay"], **mine)))


def number_at(variant: Any, path: tuple[str, ...], place: int = 0) -> Fraction:
    value = variant["mechanisms"][place]
    for key in path:
        value = value[key]
    return Fraction(value)


def test_mechanisms_are_varied_by_one_factor_or_one_by_name() -> None:
    two = release(
        "asked",
        mechanism("a", **noise("1")),
        mechanism("b", **noise("2.5")),
    )
    tried = trials(two, policy())
    both = largest_fit(tried, "noise")
    assert both.release is not None
    sigmas = [number_at(both.release, ("sigma",), place) for place in (0, 1)]
    assert sigmas[1] == pytest.approx(2.5 * sigmas[0], rel=1e-3)
    assert allowed(tried, both.release)
    # rho of both together is 1/(2 s^2) (1 + 1/6.25); it may be 0.5.
    assert sigmas[0] == pytest.approx((1 + 1 / 6.25) ** 0.5, rel=1e-3)
    one = largest_fit(tried, "sigma", "a")
    assert one.release is not None
    assert number_at(one.release, ("sigma",), 1) == Fraction(5, 2)
    assert number_at(one.release, ("sigma",), 0) > sigmas[0]
    with pytest.raises(InputError) as caught:
        largest_fit(tried, "noise", "c")
    assert caught.value.code is Code.UNKNOWN_CHOICE


def test_less_noise_is_found_where_there_is_room() -> None:
    tried = trials(release("asked", mechanism(**noise("100"))), policy())
    fit = largest_fit(tried, "noise")
    assert fit.release is not None
    assert number_at(fit.release, ("sigma",)) == 1  # rho 0.5, all of the budget.
    assert fit.changes == ("counts: sigma 1 instead of 100",)


def test_eps_and_mu_of_declared_costs_are_varied() -> None:
    for key, vary in (("eps", "epsilon"), ("mu", "mu")):
        cost = {unit: {key: 9} for unit in ("user", "user-month")}
        asked = release("asked", {**mechanism(cost=cost), "mechanism": "declared"})
        tried = trials(asked, policy())
        fit = largest_fit(tried, vary)
        assert fit.release is not None
        # eps-DP is eps^2/2-zCDP, and so is mu-GDP: 1 costs rho 0.5.
        for unit in ("user", "user-month"):
            assert number_at(fit.release, ("cost", unit, key)) >= 1
        assert allowed(tried, fit.release)


def test_a_refusal_says_why() -> None:
    full = trials(
        release("asked", mechanism(**noise("1"))),
        policy(),
        [release("before", mechanism(cost=costs("0.5")))],
    )
    fit = largest_fit(full, "noise")
    assert (fit.found, fit.text, fit.release) == (False, "", None)
    assert "even with 10^12 times more of it, pay @standard denies" in fit.why
    none = largest_fit(full, "scale")
    assert "no mechanism has" in none.why[0]
    assert "the mechanism has not" in largest_fit(full, "scale", "counts").why[0]
    assert none.to_dict()["release"] is None
    with pytest.raises(InputError) as caught:
        largest_fit(full, "nois")
    assert 'did you mean "noise"' in caught.value.render()
    assert largest_fit(full, "sampling_rate").why == (
        "no mechanism has this parameter: the `rate` of samples",
    )


SAMPLED = """
modicum: policy/v1
name: sampled
units: {user: {id: user_id}}
schema: {attributes: {page: low}}
policies:
  - {name: all, when: "true", unit: user, budget: {eps: 0.1}}
"""


@pytest.mark.parametrize("above", [False, True])
def test_noise_and_the_rate_of_a_sample_are_varied(*, above: bool) -> None:
    compiled = compile_text(SAMPLED.encode(), "p.yaml")
    sampling = {"sampling": {"unit": "user", "rate": Decimal("0.5")}}
    counts = {
        "mechanism": "laplace",
        "attributes": [],
        "scale": 2,
        "sensitivity": {"user": {"l1": 1}},
    }
    asked = {"release": "asked", "mechanisms": [counts]} | (sampling if above else {})
    if not above:
        asked["mechanisms"] = [counts | sampling]
    tried = Trials(parted.head_view(compiled, []), asked)
    assert not tried.verdict.allowed
    for vary, path in (("noise", ("scale",)), ("sampling_rate", ("sampling", "rate"))):
        fit = largest_fit(tried, vary)
        assert allowed(tried, fit.release)
        # ln(1 + q (exp(eps) - 1)) is 0.1 for these.
        expected = {"noise": "5.239", "sampling_rate": "0.1621"}[vary]
        text = f"mechanism-1: {path[-1]} {expected} instead of"
        assert fit.changes[0].startswith(text)
    assert "sampling_rate" in {one.kind for one in options(tried)}


CHOICES: dict[str, tuple[str, dict[str, Any]]] = {
    "exponential": ("linf", {"eps": 3}),
    "permute-and-flip": ("linf", {"eps": 3}),
    "report-noisy-max": ("linf", {"eps": 3}),
    "sparse-vector": ("linf", {"eps-threshold": 1, "eps-queries": 2, "positives": 2}),
    "pate-gnmax": ("teachers", {"sigma": Decimal("0.5")}),
    "dp-sgd": ("", {"noise-multiplier": Decimal("0.5"), "steps": 3}),
}


@pytest.mark.parametrize("kind", CHOICES)
def test_the_noise_of_choices_and_trainings_is_varied(kind: str) -> None:
    """More noise is less of an eps; the parameters of a mechanism keep their ratio."""
    norm, given_ = CHOICES[kind]
    own: dict[str, Any] = (
        {"sensitivity": {unit: {norm: 1} for unit in ("user", "user-month")}}
        if norm
        else {"sampling": {"unit": "user-month", "rate": Decimal("0.9")}}
    )
    if not norm:
        own["cost"] = {"user": {"rho": 2}}
    one = {"mechanism": kind, "attributes": ["pay"], **given_, **own}
    tried = trials(release("asked", one), policy())
    assert not tried.verdict.allowed
    fit = largest_fit(tried, "noise")
    assert fit.release is not None
    assert allowed(tried, fit.release)
    varied = [key for key in given_ if key not in ("positives", "steps")]
    ratios = {
        key: number_at(fit.release, (key,)) / Fraction(given_[key]) for key in varied
    }
    less = "eps" in varied[0]
    assert all((ratio < 1) == less for ratio in ratios.values())
    assert len({round(float(ratio), 2) for ratio in ratios.values()}) == 1
    mechanisms: Any = fit.release["mechanisms"]
    for key in varied:
        near = {**mechanisms[0]}
        power = 1 if less else -1
        near[key] = Decimal(str(float(number_at(fit.release, (key,))))) * (
            1 + power * Decimal("0.02")
        )
        assert not allowed(tried, release("asked", near)), key
    assert largest_fit(tried, "epsilon").release is None


def test_what_is_not_varied_is_named() -> None:
    one = {
        "mechanism": "randomized-response",
        "attributes": ["pay"],
        "truth": Decimal("0.999"),
        "public_frame": True,
        "contribution_bound": {"user": 9, "user-month": 9},
    }
    fit = largest_fit(trials(release("asked", one), policy()), "noise")
    assert fit.release is None
    assert "the `truth` of randomized response is not varied" in fit.why[0]


@pytest.mark.parametrize("sigma", ["1e14", "1e-14"])
def test_nothing_is_said_of_values_that_were_not_tried(sigma: str) -> None:
    """A rule limits it, to a sigma of 1: twelve powers of ten do not reach that."""
    asked = {one: release("a", mechanism(**noise(one))) for one in ("0.9", "1", sigma)}
    tried = trials(asked[sigma], policy())
    assert [allowed(tried, asked[one]) for one in ("0.9", "1")] == [False, True]
    fit = largest_fit(tried, "noise")
    assert fit.release is None
    assert fit.why
    assert all(line.startswith("even with 10^12 times ") for line in fit.why)


def test_what_nothing_limits_has_no_closest_variant() -> None:
    text = parted.POLICY.replace("NEIGHBORS", "add-remove")
    for budget in ("{rho: 2}", "{rho: 1}", "{rho: 0.5}"):
        text = text.replace(budget, "unlimited", 1)
    text = text.replace("budget: {scale: 3}", "budget: same")
    asked = release("a", mechanism(**noise("1")))
    allowing = compile_text((text + "unmatched: allow\n").encode(), "policy.yaml")
    fit = largest_fit(trials(asked, allowing), "noise")
    assert fit.why == ("even with 10^12 times less of it, no rule denies",)
    denying = trials(asked, compile_text(text.encode(), "policy.yaml"))
    for vary in ("noise", "where", "periods"):
        fit = largest_fit(denying, vary)
        assert not fit.found
        assert "unmatched: allow" in fit.why[0]
    assert denying.tried == 0  # No noise helps, and none is tried.


def test_a_fit_is_a_file_that_says_the_same() -> None:
    from modicum.core.yaml_reader import read_document

    asked = release(
        "asked", mechanism(**noise("0.3")), ml="none", where={"birth": 1990}
    )
    tried = trials(asked, policy())
    fit = largest_fit(tried, "noise")
    assert fit.release is not None
    again = priced(written(read_document(fit.text.encode(), "fit.yaml")), policy())
    assert again == priced(dict(fit.release), policy())
    assert set(VARIED) >= {"noise", "where", "periods"}


# --- parts ----------------------------------------------------------------------------


def people_of(variant: Any, compiled: CompiledPolicy) -> set[tuple[str, Person]]:
    """Return whom each mechanism of a release reads."""
    return {
        (str(one.description["name"]), person)
        for one in priced(variant, compiled).mechanisms
        for person in PEOPLE
        if holds_person(one.part, person)
    }


def months_of(variant: Any, compiled: CompiledPolicy) -> set[tuple[str, str]]:
    return {
        (str(one.description["name"]), month)
        for one in priced(variant, compiled).mechanisms
        for month in MONTHS
        if holds_month(one.part, month)
    }


def only(asked: Any, compiled: CompiledPolicy, key: str, kept: set[Any]) -> Any:
    """Return a release about some people, or some months, only; None if about none."""
    found = []
    for one, each in zip(
        asked["mechanisms"], priced(asked, compiled).mechanisms, strict=True
    ):
        if key == "where":
            mine = [who for who in sorted(kept) if holds_person(each.part, who)]
            part: Any = [{"country": who[0], "birth": who[1]} for who in mine]
        else:
            mine = part = [one for one in sorted(kept) if holds_month(each.part, one)]
        if mine:
            found.append({**one, key: part})
    return {**asked, "mechanisms": found} if found else None


@settings(max_examples=examples(25))
@given(SEEDS)
def test_all_that_passes_by_itself_is_kept(seed: int) -> None:
    """Where everybody is charged apart, the largest part is all who pass alone."""
    rng, compiled = random.Random(seed), policy()
    history = parted.filled(rng, compiled)
    asked = parted.some(rng, 99, large=True)
    key = rng.choice(["where", "periods"])
    if key == "periods":  # Some rule has no periods: only what passes it can be fitted.
        asked["mechanisms"] = asked["mechanisms"][:1]
        asked["mechanisms"][0]["periods"] = list(MONTHS)
    tried = Trials(parted.head_view(compiled, history), asked)
    atoms: set[Any] = set(PEOPLE) if key == "where" else set(MONTHS)
    fit = largest_fit(tried, key)
    if "which covers all periods" in " ".join(fit.why):
        return
    alone = {
        atom
        for atom in atoms
        if (one := only(asked, compiled, key, {atom})) and tried.allows(one)
    }
    if not fit.found:
        assert not alone
        return
    assert fit.release is not None
    assert allowed(tried, fit.release)
    kept = people_of if key == "where" else months_of
    assert kept(fit.release, compiled) == kept(
        only(asked, compiled, key, alone), compiled
    )


@settings(max_examples=examples(15))
@given(SEEDS, st.sampled_from(["substitute", "any-change"]))
def test_nobody_who_was_left_out_can_be_added_again(seed: int, near: str) -> None:
    rng, compiled = random.Random(seed), policy(near)
    history = parted.filled(rng, compiled)
    asked = parted.some(rng, 99, large=True)
    tried = Trials(parted.head_view(compiled, history), asked)
    fit = largest_fit(tried, "where")
    if not fit.found:
        for person in PEOPLE:
            one = only(asked, compiled, "where", {person})
            assert one is None or not tried.allows(one)
        return
    assert fit.release is not None
    assert allowed(tried, fit.release)
    kept = {person for _, person in people_of(fit.release, compiled)}
    read = {person for _, person in people_of(asked, compiled)}
    for person in read - kept:
        assert not tried.allows(only(asked, compiled, "where", {*kept, person}))


def test_one_mechanism_may_give_way_to_the_others() -> None:
    asked = release(
        "asked",
        mechanism("a", cost=costs("0.4"), where={"country": ["CH", "DE"]}),
        mechanism("b", cost=costs("0.4"), where={"country": ["DE", "FR"]}),
        where={"country": "IT"},
        periods="2026-04",
    )
    tried = trials(asked, policy())
    one = largest_fit(tried, "where", "b")
    assert one.release is not None
    assert [each["where"] for each in one.release["mechanisms"]] == [  # type: ignore[attr-defined]
        {"country": ["CH", "DE"]},
        {"country": "FR"},
    ]
    assert "where" not in one.release
    assert allowed(tried, one.release)
    both = largest_fit(tried, "where")
    assert both.changes == ("without country DE",)
    # Where nothing of a mechanism is left, it is left out, and that is said.
    full = [release("before", mechanism(cost=costs("0.2"), where={"country": "FR"}))]
    asked["mechanisms"][1]["where"] = {"country": ["FR"]}
    gone = largest_fit(trials(asked, policy(), full), "where")
    assert gone.changes == (
        "without country FR",
        "without b, for which nothing is left",
    )
    assert gone.release is not None
    assert [each["name"] for each in gone.release["mechanisms"]] == ["a"]  # type: ignore[attr-defined]


def test_what_cannot_help_is_said_at_once() -> None:
    text = parted.POLICY.replace("NEIGHBORS", "add-remove")
    text = text.replace("immutable: [user]", "immutable: []")
    compiled = compile_text(text.encode(), "policy.yaml")
    full = [release("before", mechanism(cost=costs("0.5")))]
    asked = release("asked", mechanism(), where={"country": ["CH", "DE"]})
    fit = largest_fit(trials(asked, compiled, full), "where")
    assert "no attribute that is fixed for its unit `user-month` divides" in fit.why[0]
    everything = [release("before", mechanism(attributes=["age"], cost=costs("1.99")))]
    huge = release("asked", mechanism(attributes=["age"]), periods=list(MONTHS))
    widened = text.replace("budget: {rho: 1}", "budget: {rho: 3}")
    timed = compile_text(widened.encode(), "policy.yaml")
    fit = largest_fit(trials(huge, timed, everything), "periods")
    assert "its unit `user` has no periods" in fit.why[0]
    static = release("asked", mechanism(attributes=["born", "pay"]), periods="2026-03")
    fit = largest_fit(trials(static, policy(), full), "periods")
    assert fit.why == ("it reads `born`, which covers all periods",)
    fits = trials(release("asked", mechanism()), policy())
    assert largest_fit(fits, "where").why == (
        "all of it is allowed: nothing is left out",
    )


def test_rows_are_not_chosen_by_what_is_not_read() -> None:
    text = parted.POLICY.replace("NEIGHBORS", "add-remove")
    text = text.replace("{age: low,", "{country: low, birth: low, age: low,")
    compiled = compile_text(text.encode(), "policy.yaml")
    full = [
        release(
            "before",
            mechanism(cost=costs("0.5"), attributes=["country", "pay"]),
            where={"country": "CH"},
        )
    ]
    fit = largest_fit(trials(release("asked", mechanism()), compiled, full), "where")
    assert "it does not read `birth`" in fit.why[0]
    reads = release("asked", mechanism(attributes=["country", "pay"]))
    fit = largest_fit(trials(reads, compiled, full), "where")
    assert fit.changes == ("without country CH",)


def test_days_are_kept_even_where_a_month_is_priced_by_its_days() -> None:
    text = """
modicum: policy/v1
name: days
units:
  user-day: {id: user_id, time: {column: at, period: day}, within: user-month}
  user-month: {id: user_id, time: {column: at, period: month}}
schema: {attributes: {age: low}}
policies:
  - {name: month, when: "true", unit: user-month, budget: {rho: 0.5}}
"""
    compiled = compile_text(text.encode(), "policy.yaml")
    cost = {"user-day": {"rho": 0.001}}
    one = {"mechanism": "gaussian", "attributes": ["age"], "cost": cost}
    asked = {"release": "a", "mechanisms": [one], "periods": "2026-05"}
    tried = trials(asked, compiled)
    fit = largest_fit(tried, "periods")
    assert fit.release is not None
    assert tried.allows(dict(fit.release))
    (found,) = priced(dict(fit.release), compiled).mechanisms
    assert found.part.periods is not None
    kept = {day for low, high in found.part.periods for day in range(low, high + 1)}
    first = date(2026, 5, 1).toordinal()
    for day in {*range(first, first + 31)} - kept:
        spans = [
            {
                "from": date.fromordinal(one).isoformat(),
                "to": date.fromordinal(one).isoformat(),
            }
            for one in sorted({*kept, day})
        ]
        assert not tried.allows({**asked, "periods": spans})


def test_open_ends_and_long_lists_are_cut_at_what_is_full() -> None:
    full = [release("before", mechanism(cost=costs("0.5"), periods="2026-03"))]
    asked = release("asked", mechanism(), periods={"from": "2025-12-15"})
    fit = largest_fit(trials(asked, policy(), full), "periods")
    assert fit.release is not None
    assert fit.release["mechanisms"][0]["periods"] == [  # type: ignore[index]
        {"from": "2025-12-15", "to": "2026-02-28"},
        {"from": "2026-04"},
    ]
    whole = release("asked", mechanism())
    fit = largest_fit(trials(whole, policy(), full), "periods")
    assert fit.changes == ("without 2026-03",)
    assert COUNTRIES


# --- ledgers that are finely divided --------------------------------------------------

LANDS = tuple(f"L{number:02}" for number in range(20))
BORN = range(1900, 2021)


def fine(near: str = "add-remove") -> CompiledPolicy:
    text = parted.POLICY.replace("NEIGHBORS", near)
    text = text.replace("[CH, DE, FR, IT]", f"[{', '.join(LANDS)}]")
    return compile_text(text.replace("[1990, 1993]", "[1900, 2020]").encode(), "p.yaml")


def a_box(rng: random.Random) -> Any:
    first = rng.randint(1900, 2015)
    return {
        "country": rng.sample(LANDS, rng.randint(1, 8)),
        "birth": {"from": first, "to": min(2020, first + rng.randint(1, 40))},
    }


def overlapping(rng: random.Random, number: int) -> Any:
    """Return a release about some people and months; so many fill what they touch."""
    cost = costs(rng.choice(["0.1", "0.2", "0.3"]))
    part: Any = {
        "where": [a_box(rng) for _ in range(rng.choice([1, 2]))],
        "periods": sorted(rng.sample(MONTHS, rng.randint(1, 3))),
    }
    reads = rng.choice([["age"], ["pay"]])
    return release(f"r-{number}", mechanism(attributes=reads, cost=cost, **part))


def test_a_fine_ledger_is_not_searched_but_asked_where_it_is_full() -> None:
    rng, compiled = random.Random(7), fine()
    history = [overlapping(rng, number) for number in range(45)]
    asked = release("asked", mechanism(), where=[a_box(rng) for _ in range(6)])
    tried = trials(asked, compiled, history)
    family = tried.head_view.balances.family("user-month")
    assert family.segments.count > 200
    fit = largest_fit(tried, "where")
    assert fit.release is not None
    assert tried.tried <= 3
    assert tried.allows(dict(fit.release))
    (kept,) = priced(dict(fit.release), compiled).mechanisms
    (own,) = priced(asked, compiled).mechanisms
    left_out = 0
    for person in sorted(rng.sample(list(people(own)), 120)):
        one = {"where": {"country": person[0], "birth": person[1]}}
        alone = {**asked, **one}
        assert holds_person(kept.part, person) == tried.allows(alone)
        left_out += not holds_person(kept.part, person)
    assert 0 < left_out < 120


def people(mechanism: Any) -> Iterator[Person]:
    for country in LANDS:
        for year in BORN:
            if holds_person(mechanism.part, (country, year)):
                yield country, year


def test_full_periods_are_found_at_once() -> None:
    rng, compiled = random.Random(9), fine()
    history = [overlapping(rng, number) for number in range(25)]
    asked = release("asked", mechanism(), periods=list(MONTHS))
    tried = trials(asked, compiled, history)
    fit = largest_fit(tried, "periods")
    alone = {month for month in MONTHS if tried.allows({**asked, "periods": month})}
    if not fit.found:
        assert not alone
        return
    assert {month for _, month in months_of(fit.release, compiled)} == alone


@settings(max_examples=examples(12))
@given(SEEDS, RELATIONS, st.sampled_from(["where", "periods"]))
def test_a_search_that_is_stopped_says_so_and_what_it_offers_passes(
    seed: int, near: str, key: str
) -> None:
    rng, compiled = random.Random(seed), policy(near)
    history = parted.filled(rng, compiled)
    asked = parted.some(rng, 99, large=True)
    tried = Trials(parted.head_view(compiled, history), asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(smaller_parts, "TRIES_MAX", 2)
        patch.setattr(smaller_parts, "_TRIES_MIN", 2)
        fit = largest_fit(tried, key)
    assert tried.tried <= 4  # And once more what is offered; and the first alone.
    if fit.release is not None:
        assert allowed(tried, fit.release)


def test_a_stopped_search_says_how_many_variants_it_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(smaller_parts, "TRIES_MAX", 2)
    monkeypatch.setattr(smaller_parts, "_TRIES_MIN", 2)
    compiled = policy("substitute")
    full = [release("before", mechanism(cost=costs("0.5"), where={"country": "CH"}))]
    fit = largest_fit(trials(release("asked", mechanism()), compiled, full), "where")
    assert any("tried 2 variants and stopped" in line for line in fit.why)


# --- what nobody has data of ----------------------------------------------------------

BY_DAYS = """
modicum: policy/v1
name: days
units:
  user-day: {id: user_id, time: {column: at, period: day}, within: user-month}
  user-month: {id: user_id, time: {column: at, period: month}}
schema: {attributes: {age: low}}
policies:
  - {name: month, when: "true", unit: user-month, budget: {rho: 0.5}}
"""
OPEN: tuple[Any, ...] = ({"from": "2026-05"}, {"to": "2026-05"}, None)


@pytest.mark.parametrize("periods", OPEN, ids=str)
@pytest.mark.parametrize("rho", [0.02, 0.1])
def test_single_days_are_offered_near_the_present_only(
    periods: Any, rho: float
) -> None:
    compiled = compile_text(BY_DAYS.encode(), "policy.yaml")
    one: Any = {
        "mechanism": "gaussian",
        "attributes": ["age"],
        "cost": {"user-day": {"rho": rho}},
    }
    asked = release("a", one | ({} if periods is None else {"periods": periods}))
    tried = trials(asked, compiled)
    fit = largest_fit(tried, "periods")
    assert fit.release is not None
    assert tried.allows(dict(fit.release))
    (kept,) = priced(dict(fit.release), compiled).mechanisms
    (own,) = priced(asked, compiled).mechanisms
    assert kept.part.periods is not None
    for low, high in kept.part.periods:
        assert date(2025, 1, 1).toordinal() <= low
        assert high <= date(2027, 12, 31).toordinal()
        assert own.part.periods is None or any(
            first <= low and high <= last for first, last in own.part.periods
        )


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        ("2026-11-01", "2026-11-07", "from 2026-11-01 to 2026-11-07"),
        ("2026-11-02", "2026-11-08", "2026-W45"),
        ("2026-11-02", "2026-11-15", "from 2026-11-02 to 2026-11-15"),
        ("2026-11-03", "2026-11-30", "from 2026-11-03 to 2026-11-30"),
        ("2026-11-01", "2026-12-31", "from 2026-11 to 2026-12"),
        ("2026-11-01", "9999-12-31", "from 2026-11"),
        ("2026-11-02", "9999-12-31", "from 2026-11-02"),
        ("0001-01-01", "2026-11-30", "to 2026-11"),
        ("0001-01-01", "2026-11-29", "to 2026-11-29"),
    ],
)
def test_both_ends_of_days_are_months_or_both_are_days(
    first: str, last: str, words: str
) -> None:
    span = [date.fromisoformat(one).toordinal() for one in (first, last)]
    assert days_text(*span) == words
