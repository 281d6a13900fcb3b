"""A stored description costs what it cost when it was asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from itertools import combinations
from typing import Any, TypeAlias

import pytest
from budget import examples
from hypothesis import assume, given, seed, settings
from hypothesis import strategies as st

from modicum.accounting import Loss
from modicum.accounting.mechanisms import RELEASE_KINDS as KINDS
from modicum.core.canonical import encode
from modicum.core.document import from_python
from modicum.core.errors import InputError
from modicum.release import (
    EVERYTHING,
    Partition,
    Population,
    PricedMechanism,
    Relation,
    Unit,
    Vocabulary,
    parse_release,
    price,
)
from modicum.release import stored_description as described_module
from modicum.release.stored_description import (
    Price,
    PriceList,
    UnknownDescription,
    derivations,
)

Written: TypeAlias = dict[str, Any]


def words(user: Relation, day: Relation, period: Any = "day") -> Vocabulary:
    units = {
        "user": Unit("user", "id", neighbors=user),
        "month": Unit("month", "id", "month", "at", ("user",), {"user": 5}, day),
        "day": Unit("day", "id", period, "at", ("user",), {}, day),
    }
    country = Partition("country", ("CH", "DE"), 0, 1, (), None)
    return Vocabulary(
        frozenset({"age", "country", "born"}),
        {},
        tuple(units),
        user,
        units,
        Population({"country": country}, static=frozenset({"born"})),
    )


VOCABULARIES = (
    words("add-remove", "add-remove"),
    words("add-remove", "any-change", "week"),
    words("any-change", "add-remove"),
    words("any-change", "substitute"),
    words("substitute", "substitute"),
    Vocabulary(frozenset({"age", "country", "born"}), {}, ("user",), "add-remove"),
)
#: What one example leaves in these, the others meet.
LISTS = tuple(map(PriceList, VOCABULARIES))

few = st.sampled_from([1, 2, "0.5", "1e-7", "31"]).map(str).map(Decimal)
#: As long as a file can hold them, and as large or small.
freaks = st.from_regex(
    r"[1-9][0-9]{0,28}(\.[0-9]{1,28})?(e-?[1-3]?[0-9]{1,2})?", fullmatch=True
)
numbers = few | freaks.filter(lambda text: len(text) <= 64).map(Decimal)
deltas = st.sampled_from(["1e-6", "1e-20", "0.3"]).map(Decimal)
costs = st.one_of(
    st.fixed_dictionaries({"eps": numbers}, optional={"delta": deltas}),
    st.fixed_dictionaries({"rho": numbers}),
    st.fixed_dictionaries({"mu": numbers}),
    st.dictionaries(
        st.sampled_from([Decimal("1.25"), 8, 10**10]), numbers, min_size=1
    ).map(lambda by_order: {"rdp": by_order}),
)
parts = st.fixed_dictionaries(
    {
        "attributes": st.sampled_from(
            [[], ["country"], ["age", "country"], ["born", "country"]]
        )
    },
    optional={
        "where": st.sampled_from([{"country": "CH"}, {"country": ["DE"]}]),
        "periods": st.sampled_from(
            ["2026", "2026-11", "2026-11-03", ["2026-11-03", "2026-12-24"]]
        ),
        "groups": st.sampled_from([1, [1, 4]]),
    },
)


@st.composite
def mechanisms(draw: st.DrawFn, units: tuple[str, ...]) -> Written:
    kind = draw(st.sampled_from(sorted(KINDS)))
    one: Written = {"name": draw(st.sampled_from("abc")), "mechanism": kind}
    one |= draw(parts)
    sizes = range(1, len(units) + 1)
    subsets = [some for size in sizes for some in combinations(units, size)]
    stated = draw(st.sampled_from([*subsets, units]))
    norm = KINDS[kind].norm
    plain = st.sampled_from([1, 2, 3])
    if norm is not None and draw(st.booleans()):
        one["scale" if norm == "l1" else "sigma"] = draw(few | plain)
        one["sensitivity"] = {unit: {norm: draw(plain)} for unit in stated}
        if KINDS[kind].of_unit:
            one["steps"] = draw(plain)
            for moves in one["sensitivity"].values():
                moves["participations"] = draw(plain)
                if draw(st.booleans()):
                    moves["separation"] = draw(plain)
        if "coefficients" in KINDS[kind].described:
            one["coefficients"] = draw(st.lists(few | plain, min_size=1, max_size=4))
    elif kind == "randomized-response":
        one |= {"truth": draw(st.sampled_from([0.5, 0.75])), "public_frame": True}
        one["contribution_bound"] = {unit: draw(plain) for unit in stated}
        if draw(st.booleans()):
            one["values"] = draw(st.sampled_from([2, 7]))
    else:
        one["cost"] = {unit: draw(costs) for unit in stated}
    if draw(st.booleans()):
        measure = KINDS[kind].measure or "eps"
        one.setdefault("cost", {"user": {measure: 10**9}})
    return one


def asked(mechanism: Written, vocabulary: Vocabulary) -> PricedMechanism:
    node = from_python({"release": "r", "mechanisms": [mechanism]})
    return price(parse_release(node, vocabulary), vocabulary).mechanisms[0]


def stored(one: PricedMechanism) -> Written:
    """Return a description as it comes back from where it was stored."""
    found: Written = json.loads(encode(dict(one.mechanism.plain)))
    return found


def again(
    prices: PriceList, described: Mapping[str, Any], one: PricedMechanism
) -> Mapping[str, Loss] | UnknownDescription:
    mechanism = one.mechanism
    found = prices.of(described, mechanism.attributes, mechanism.part)
    return found.losses if isinstance(found, Price) else found


@pytest.mark.spec("AUD-9")
@settings(max_examples=examples(250), deadline=None)
@given(data=st.data(), number=st.integers(0, len(VOCABULARIES) - 1))
def test_what_was_asked_for_costs_the_same_again(
    data: st.DataObject, number: int
) -> None:
    vocabulary = VOCABULARIES[number]
    try:
        one = asked(data.draw(mechanisms(vocabulary.units)), vocabulary)
    except InputError:
        return
    assert again(LISTS[number], stored(one), one) == one.losses
    assert again(PriceList(vocabulary), stored(one), one) == one.losses


def test_most_of_what_is_generated_has_a_price() -> None:
    """Else the test above would say little."""
    wanted = {*KINDS, "declared", "computed", "2 x user", "31 x day"}
    found: set[str] = set()

    @settings(max_examples=150, deadline=None, database=None)
    @given(data=st.data(), number=st.integers(0, len(VOCABULARIES) - 1))
    def look(data: st.DataObject, number: int) -> None:
        vocabulary = VOCABULARIES[number]
        try:
            one = asked(data.draw(mechanisms(vocabulary.units)), vocabulary)
        except InputError:
            return
        found.add(one.mechanism.kind)
        found.update(one.sources.values())

    # Some are rare, and what hypothesis draws depends on the modules at hand.
    for number in range(50):
        if not (wanted <= found and len(found) > 20):
            seed(number)(look)()
    assert wanted <= found
    assert len(found) > 20


def test_days_that_are_read_change_the_price() -> None:
    vocabulary = VOCABULARIES[0]
    one: Written = {
        "mechanism": "declared",
        "attributes": ["age"],
        "cost": {"day": {"rho": "0.001"}, "user": {"rho": 1}},
    }
    one["cost"]["day"]["rho"] = Decimal("0.001")
    prices = PriceList(vocabulary)
    read = [{}, {"periods": "2026-11-03"}, {"periods": "2026-11"}]
    found = [asked({**one, **part}, vocabulary) for part in (*read, *read)]
    assert len({each.losses["month"] for each in found}) == 3
    for each in found:
        assert again(prices, stored(each), each) == each.losses
    # Who reads what is true at all times reads every day.
    timeless = asked({**one, "attributes": ["born"], **read[1]}, vocabulary)
    assert again(prices, stored(timeless), timeless) == timeless.losses
    assert timeless.losses == found[0].losses


GAUSSIAN: Written = {
    "mechanism": "gaussian",
    "attributes": ["age"],
    "sigma": 5,
    "sensitivity": {"user": {"l2": 1}},
    "cost": {"user": {"rho": 1}},
}
RESPONSE: Written = {
    "mechanism": "randomized-response",
    "attributes": [],
    "truth": Decimal("0.75"),
    "public_frame": True,
    "contribution_bound": {"user": 3},
}
ALONE = VOCABULARIES[-1]


def test_a_description_has_the_fields_that_are_known() -> None:
    one = asked(GAUSSIAN, ALONE)
    assert stored(one).keys() == described_module._FIELDS
    timed = asked(
        {**RESPONSE, "contribution_bound": {"day": 1}, "periods": "2026"},
        VOCABULARIES[0],
    )
    assert stored(timed).keys() == described_module._FIELDS | described_module._PART


@pytest.mark.spec("AUD-9")
@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"kind": "pld"}, "kind `pld`"),
        ({"kind": "declared"}, "parameter `sigma`"),
        ({"drawn": None}, "field `drawn`"),
        ({"sampling": {"unit": "user", "rate": "0.5", "by": "x"}}, "sampling by `by`"),
        ({"parameters": {"sigma": "5", "clip": "1"}}, "parameter `clip`"),
        ({"cost": {"user": {"pld": "1"}}}, "cost in `pld`"),
    ],
)
def test_what_another_version_may_know_is_said(changed: Written, why: str) -> None:
    one = asked(GAUSSIAN, ALONE)
    prices = PriceList(ALONE)
    again(prices, stored(one), one)
    found = again(prices, stored(one) | changed, one)
    assert isinstance(found, UnknownDescription)
    assert why in found.why


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": None},
        {"parameters": None},
        {"parameters": {"sigma": 5}},
        {"parameters": {"sigma": "5.0"}},
        {"parameters": {"sigma": "05"}},
        {"parameters": {"sigma": "5e0"}},
        {"parameters": {"sigma": "-5"}},
        {"parameters": {"sigma": "0"}},
        {"parameters": {"sigma": "2/6"}},
        {"parameters": {"sigma": "10/5"}},
        {"parameters": {"sigma": "1/0"}},
        {"parameters": {"sigma": "9" * 501}},
        {"parameters": {"sigma": "9" * 100}},
        {"parameters": {"sigma": "\N{ARABIC-INDIC DIGIT ONE}"}},
        {"sensitivity": {}},
        {"sensitivity": []},
        {"sensitivity": {"user": "1", "nobody": "1"}},
        {"contribution_bound": {"user": True}},
        {"contribution_bound": {"user": "1"}},
        {"contribution_bound": {"user": 10**7}},
        {"public_frame": 0},
        {"public_frame": True},
        {"cost": {"user": {}}},
        {"cost": {"user": None}},
        {"cost": {"user": {"unlimited": True}}},
        {"cost": {"user": {"rho": "1", "eps": "1"}}},
        {"cost": {"user": {"rho": "0.01"}}},
        {"cost": {"user": {"eps": "9"}}},
        {"cost": {"user": {"rdp": {"9": "1"}}}},
        {"cost": {"nobody": {"rho": "1"}}},
    ],
)
def test_what_nobody_can_have_asked_for_has_no_price(changed: Written) -> None:
    one = asked(GAUSSIAN, ALONE)
    prices = PriceList(ALONE)
    assert again(prices, stored(one), one) == one.losses
    with pytest.raises(InputError):
        again(prices, stored(one) | changed, one)
    less = stored(one)
    del less[next(iter(changed))]
    with pytest.raises(InputError):
        again(prices, less, one)


@pytest.mark.parametrize(
    "sampling",
    [
        None,
        "half",
        {"unit": "user"},
        {"rate": "0.5"},
        {"unit": "nobody", "rate": "0.5"},
        {"unit": "user", "rate": "0.50"},
        {"unit": "user", "rate": "1"},
        {"unit": "user", "rate": "0"},
        {"unit": "user", "rate": "1/0"},
        {"unit": "user", "rate": 1},
    ],
)
def test_a_sample_that_nobody_can_have_asked_for_has_no_price(sampling: Any) -> None:
    one = asked(GAUSSIAN, ALONE)
    prices = PriceList(ALONE)
    assert again(prices, stored(one), one) == one.losses
    with pytest.raises(InputError):
        again(prices, stored(one) | {"sampling": sampling}, one)


def test_what_has_no_sensitivity_must_not_give_one() -> None:
    one = asked(RESPONSE, ALONE)
    assert again(PriceList(ALONE), stored(one), one) == one.losses
    with pytest.raises(InputError):
        again(PriceList(ALONE), stored(one) | {"sensitivity": {"user": "1"}}, one)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("0.5"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@settings(max_examples=examples(300), deadline=None)
@given(data=st.data(), value=PLAIN)
def test_whatever_is_stored_is_priced_refused_or_unfamiliar(
    data: st.DataObject, value: Any
) -> None:
    one = asked(data.draw(st.sampled_from([GAUSSIAN, RESPONSE])), ALONE)
    described = stored(one)
    place: Written = described
    name = data.draw(st.sampled_from(sorted(place)))
    while isinstance(place[name], dict) and place[name] and data.draw(st.booleans()):
        place = place[name]
        name = data.draw(st.sampled_from(sorted(place)))
    assume(place[name] is not value)
    if data.draw(st.booleans()):
        place[name] = value
    else:
        place[data.draw(st.text(max_size=3))] = value
    try:
        found = PriceList(ALONE).of(described, ("age",), EVERYTHING)
    except InputError:
        return
    assert isinstance(found, UnknownDescription) or found.losses.keys() == {"user"}


def test_equal_ones_are_priced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[object] = []

    def counted(*args: Any) -> Any:
        asked_for.append(args)
        return price(*args)

    monkeypatch.setattr("modicum.release.stored_description.price", counted)
    monkeypatch.setattr(described_module, "_PRICES_MAX", 3)
    prices = PriceList(ALONE)
    for sigma in (5, 6, 5, 7, 6):
        for name, reads in (("a", ["age"]), ("b", ["age", "country"])):
            written = {**GAUSSIAN, "sigma": sigma, "name": name, "attributes": reads}
            one = asked(written, ALONE)
            assert again(prices, stored(one), one) == one.losses
    assert len(asked_for) == 3
    one = asked({**GAUSSIAN, "sigma": 8}, ALONE)
    again(prices, stored(one), one)
    assert len(prices._known._found) == 1  # It began anew, rather than grow.


def test_a_derivation_is_told_only_of_the_loss_that_it_gives() -> None:
    vocabulary = words("add-remove", "add-remove")
    laplace = {"mechanism": "laplace", "attributes": [], "scale": 1}
    priced = asked(laplace | {"sensitivity": {"user": {"l1": 1}}}, vocabulary)
    known = stored(priced), priced.mechanism.part
    assert derivations(*known, priced.losses, vocabulary) == {
        "month": "2 x user",
        "day": "2 x user",
    }
    others = {**priced.losses, "day": priced.losses["user"]}
    assert derivations(*known, others, vocabulary) == {"month": "2 x user"}
    unknown = {**known[0], "kind": "of another version"}
    assert derivations(unknown, known[1], priced.losses, vocabulary) == {}
