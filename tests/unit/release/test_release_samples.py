"""Releases on secret samples: their format, their losses by definition, refusals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from oracle.accounting import real
from oracle.mechanisms import (
    discrete_laplace,
    gaussian_step,
    laplace_step,
    mixed,
    worse_way,
)

import modicum as mo
from modicum.accounting import INFINITE
from modicum.accounting.grid import EPS, MU2, RHO, order_index
from modicum.core.document import from_python
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import LOSS_UNIT
from modicum.core.yaml_reader import read_document
from modicum.release import (
    PricedMechanism,
    Relation,
    Unit,
    Vocabulary,
    content_digest,
    parse_release,
    price,
    read_and_price,
)
from modicum.release.sampling import (
    Sampling,
    sampling_from_plain,
    sampling_note,
    sampling_to_plain,
)
from modicum.release.stored_description import Price, PriceList

GAUSSIAN: dict[str, Any] = {
    "mechanism": "gaussian",
    "attributes": [],
    "sensitivity": {"user": {"l2": 2}},
    "sigma": 8,
}
LAPLACE: dict[str, Any] = {
    "mechanism": "laplace",
    "attributes": [],
    "sensitivity": {"user": {"l1": 1}},
    "scale": 2,
}
TENTH: dict[str, Any] = {"unit": "user", "rate": 0.1}


def vocabulary(
    user: Relation = "add-remove", visit: Relation = "add-remove"
) -> Vocabulary:
    units = (
        Unit("user", "u", neighbors=user),
        Unit("visit", "v", None, None, ("user",), {"user": 3}, visit),
        Unit("day", "u", "day", "at", ("user",), {}, visit),
    )
    facts = {unit.name: unit for unit in units}
    return Vocabulary(frozenset({"page"}), {}, tuple(facts), "add-remove", facts)


WORDS = vocabulary()


def release(*mechanisms: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"release": "r", "mechanisms": list(mechanisms), **more}


def priced(
    mechanism: dict[str, Any], vocab: Vocabulary = WORDS, **more: Any
) -> PricedMechanism:
    node = from_python(release(mechanism, **more))
    return price(parse_release(node, vocab), vocab).mechanisms[0]


def problems(
    mechanism: dict[str, Any], vocab: Vocabulary = WORDS, **more: Any
) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        priced(mechanism, vocab, **more)
    return caught.value.problems


def at(one: PricedMechanism, unit: str, index: int) -> Fraction:
    units = one.losses[unit].coordinates[index]
    assert units < INFINITE
    return Fraction(units, LOSS_UNIT)


# --- losses by definition -------------------------------------------------------------


@pytest.mark.spec("REL-13")
@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 3), Fraction(9, 10)])
@pytest.mark.parametrize("order", [Fraction(2), Fraction(8), Fraction(5, 2)])
def test_gaussian_noise_by_integration(rate: Fraction, order: Fraction) -> None:
    one = priced(GAUSSIAN | {"sampling": {"unit": "user", "rate": rate}})
    found = real(at(one, "user", order_index(order)))
    exact = max(gaussian_step(rate, Fraction(4), order))
    assert (
        exact
        <= found
        <= exact * real(Fraction(1001, 1000)) + real(Fraction(2, LOSS_UNIT))
    )


@pytest.mark.spec("REL-13")
@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 3), Fraction(9, 10)])
@pytest.mark.parametrize("order", [Fraction(2), Fraction(8)])
def test_laplace_noise_by_integration(rate: Fraction, order: Fraction) -> None:
    one = priced(LAPLACE | {"sampling": {"unit": "user", "rate": rate}})
    found = real(at(one, "user", order_index(order)))
    exact = max(laplace_step(rate, Fraction(1, 2), order))
    assert (
        exact
        <= found
        <= exact * real(Fraction(1001, 1000)) + real(Fraction(2, LOSS_UNIT))
    )


@pytest.mark.spec("REL-13")
def test_discrete_noise_by_summation() -> None:
    rate, scale = Fraction(1, 4), Fraction(2)
    discrete = LAPLACE | {
        "mechanism": "discrete-laplace",
        "sampling": {"unit": "user", "rate": rate},
    }
    one = priced(discrete)
    with_it = discrete_laplace(scale, 1, 200)
    without = discrete_laplace(scale, 0, 200)
    for order in (Fraction(2), Fraction(8)):
        exact = worse_way(mixed(with_it, without, rate), without, order)
        assert exact <= real(at(one, "user", order_index(order)))


@pytest.mark.spec("REL-13")
def test_pure_eps_is_amplified_and_rho_of_gaussian_noise_is_not() -> None:
    sampled = priced(LAPLACE | {"sampling": TENTH})
    assert at(sampled, "user", EPS) == Fraction("0.062854723474")
    sampled = priced(GAUSSIAN | {"sampling": TENTH})
    whole = priced(GAUSSIAN)
    for index in (RHO, MU2):
        assert at(sampled, "user", index) == at(whole, "user", index)
    two = order_index(Fraction(2))
    assert at(sampled, "user", two) < at(whole, "user", two) / 50


@pytest.mark.spec("REL-13")
def test_other_units_start_from_what_is_stated_for_them() -> None:
    """A day costs what it costs without a sample, or two users that are sampled."""
    near = {"user": {"l1": 1}, "day": {"l1": 0.01}, "visit": {"l1": 1}}
    stated = priced(LAPLACE | {"sensitivity": near, "sampling": TENTH})
    assert at(stated, "day", EPS) == Fraction(1, 200)
    two = 2 * at(stated, "user", EPS)
    assert two - Fraction(1, 10**11) < at(stated, "visit", EPS) <= two
    derived = priced(LAPLACE | {"sampling": TENTH})
    assert at(derived, "day", EPS) == at(derived, "visit", EPS)
    assert derived.sources == {
        "user": "computed",
        "visit": "2 x user",
        "day": "2 x user",
    }
    part = priced(LAPLACE | {"sampling": TENTH, "periods": "2026-11-03"})
    assert part.losses["user"] == derived.losses["user"]


@pytest.mark.spec("REL-13")
def test_a_visit_that_is_sampled_makes_a_user_cheaper_by_groups() -> None:
    near = {"user": {"l1": 3}, "visit": {"l1": 1}}
    each = {"unit": "visit", "rate": 0.1}
    one = priced(LAPLACE | {"sensitivity": near, "sampling": each})
    assert 3 * at(one, "visit", EPS) - at(one, "user", EPS) < Fraction(1, 10**11)
    assert at(one, "user", EPS) < Fraction(1, 5)


@pytest.mark.spec("REL-13")
@pytest.mark.parametrize("rate", [1e-300, 0.999999999999, 1e-12])
@pytest.mark.parametrize("noise", [1e-100, 1e100, 0.001, 30])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_no_number_is_too_large_or_too_small(
    rate: float, noise: float, kind: str
) -> None:
    alone = Vocabulary(frozenset(), {}, ("user",), "add-remove")
    base, key = (LAPLACE, "scale") if kind == "laplace" else (GAUSSIAN, "sigma")
    written = base | {key: noise}
    sampled = written | {"sampling": {"unit": "user", "rate": rate}}
    now = priced(sampled, alone).losses["user"].coordinates
    then = priced(written, alone).losses["user"].coordinates
    assert all(less <= more for less, more in zip(now, then, strict=True))
    assert any(now)


# --- stated costs ---------------------------------------------------------------------


@pytest.mark.spec("REL-13")
def test_a_cost_beside_a_sample_is_at_least_the_amplified_one() -> None:
    sampled = LAPLACE | {"sampling": TENTH}
    enough = priced(sampled | {"cost": {"user": {"eps": 0.07}}})
    assert at(enough, "user", EPS) == Fraction(7, 100)
    assert enough.sources["user"] == "declared, covers the computed"
    (found,) = problems(sampled | {"cost": {"user": {"eps": 0.0628}}})
    assert found.code is Code.COST_TOO_LOW
    (found,) = problems(GAUSSIAN | {"sampling": TENTH, "cost": {"user": {"rho": 0.01}}})
    assert found.code is Code.COST_TOO_LOW


@pytest.mark.spec("REL-13")
def test_a_declared_rho_on_a_sample_is_no_gaussian_noise() -> None:
    cost = {"visit": {"rho": 0.01}}
    assert at(priced(GAUSSIAN | {"cost": cost}), "visit", MU2) == Fraction(2, 100)
    sampled = priced(
        GAUSSIAN
        | {"sensitivity": {"user": {"l2": 200}}, "cost": cost, "sampling": TENTH}
    )
    found = sampled.losses["visit"].coordinates
    assert found[RHO] == LOSS_UNIT // 100
    assert found[MU2] > LOSS_UNIT // 50


# --- refusals -------------------------------------------------------------------------


@pytest.mark.spec("REL-13")
@pytest.mark.parametrize(
    ("mechanism", "code", "said"),
    [
        (
            {"mechanism": "declared", "cost": {"user": {"eps": 1}}},
            Code.NOT_SUPPORTED,
            "a declared cost is not amplified",
        ),
        (
            {
                "mechanism": "randomized-response",
                "truth": 0.75,
                "contribution_bound": {"user": 1},
                "public_frame": True,
            },
            Code.NOT_SUPPORTED,
            "`randomized-response` is not amplified",
        ),
        (
            {"mechanism": "gaussian", "cost": {"user": {"rho": 1}}},
            Code.MISSING_KEY,
            "`sampling` of `user` has no effect without `sigma` and `sensitivity",
        ),
        (
            {**LAPLACE, "sensitivity": {"visit": {"l1": 1}}},
            Code.MISSING_KEY,
            "has no effect without `sensitivity: {user: {l1: …}}`",
        ),
        (
            {**LAPLACE, "sampling": {"unit": "user", "rate": 1}},
            Code.OUT_OF_RANGE,
            "the rate of a sample must be strictly between 0 and 1",
        ),
        (
            {**LAPLACE, "sampling": {"unit": "user", "rate": 0}},
            Code.OUT_OF_RANGE,
            "strictly between",
        ),
        ({**LAPLACE, "sampling": {"unit": "user"}}, Code.MISSING_KEY, "`rate`"),
        ({**LAPLACE, "sampling": {"rate": 0.1}}, Code.MISSING_KEY, "`unit`"),
        (
            {**LAPLACE, "sampling": {"unit": "nobody", "rate": 0.1}},
            Code.UNKNOWN_UNIT,
            "nobody",
        ),
        (
            {**LAPLACE, "sampling": {**TENTH, "by": "shuffling"}},
            Code.NOT_SUPPORTED,
            "Poisson samples only",
        ),
        ({**LAPLACE, "sampling": {**TENTH, "size": 3}}, Code.UNKNOWN_KEY, "size"),
        ({**LAPLACE, "sampling": 0.1}, Code.WRONG_TYPE, "mapping"),
    ],
)
@pytest.mark.parametrize("above", [False, True])
def test_what_no_sample_amplifies_is_refused(
    mechanism: dict[str, Any], code: Code, said: str, *, above: bool
) -> None:
    sampling = mechanism.get("sampling", TENTH)
    written = {key: value for key, value in mechanism.items() if key != "sampling"}
    written["attributes"] = []
    if above:
        (found,) = problems(written, sampling=sampling)
    else:
        (found,) = problems(written | {"sampling": sampling})
    assert found.code is code
    assert said in found.message


@pytest.mark.spec("REL-13")
@pytest.mark.parametrize("relation", ["substitute", "any-change"])
def test_only_adding_and_removing_is_amplified(relation: Relation) -> None:
    (found,) = problems(LAPLACE | {"sampling": TENTH}, vocabulary(user=relation))
    assert found.code is Code.COST_NOT_DERIVABLE
    assert f"whose neighbors are {relation}" in found.message
    assert "add-remove" in found.help


@pytest.mark.spec("REL-13")
def test_who_may_leave_the_sample_needs_a_cost_of_its_own() -> None:
    near = {"user": {"l1": 1}, "visit": {"l1": 1}, "day": {"l1": 1}}
    written = LAPLACE | {"sensitivity": near, "sampling": TENTH}
    vocab = vocabulary(visit="substitute")
    # A day of a user lies in that user; a visit may be another user's in another table.
    (found,) = problems(written, vocab)
    assert found.code is Code.COST_NOT_DERIVABLE
    assert found.message == "no loss is proven for `visit` on a sample of `user`"
    sure = {unit: near[unit] for unit in ("user", "day")}
    fine = priced(written | {"sensitivity": sure}, vocab)
    assert at(fine, "day", EPS) <= Fraction(1, 2)
    assert fine.sources["visit"] == "4 x user, 2 removals and 2 additions"


# --- format ---------------------------------------------------------------------------


@pytest.mark.spec("REL-13")
def test_a_release_gives_its_sample_to_each_of_its_mechanisms() -> None:
    own = {"unit": "visit", "rate": 0.5}
    both = {"user": {"l1": 3}, "visit": {"l1": 1}}
    second = {**LAPLACE, "name": "own", "sensitivity": both, "sampling": own}
    written = release(GAUSSIAN, second, sampling=TENTH)
    for found in (
        parse_release(from_python(written), WORDS).mechanisms,
        [one.mechanism for one in read_and_price(written, WORDS).mechanisms],
        [one.mechanism for one in read_and_price(written, WORDS).mechanisms],
    ):
        assert [one.sampling for one in found] == [
            Sampling("user", Fraction(1, 10)),
            Sampling("visit", Fraction(1, 2)),
        ]


@pytest.mark.spec("REL-13")
def test_what_is_remembered_is_told_apart_by_the_sample_of_the_release() -> None:
    vocab = vocabulary()
    for rate in (0.1, 0.2, None, 0.1, 0.2, None):
        above: dict[str, Any] = {}
        if rate is not None:
            above["sampling"] = {"unit": "user", "rate": rate}
        written = release(LAPLACE, **above)
        (quick,) = read_and_price(written, vocab).mechanisms
        slow = priced(LAPLACE, **above)
        assert quick.losses == slow.losses
        assert quick.mechanism.plain == slow.mechanism.plain


@pytest.mark.spec("REL-5")
def test_a_sample_has_one_form_and_changes_the_digest() -> None:
    def digest(written: dict[str, Any]) -> str:
        return content_digest(parse_release(from_python(written), WORDS))

    sampled = release(LAPLACE | {"sampling": TENTH})
    text = (
        b"{release: r, sampling: {by: poisson, rate: 1e-1, unit: user},"
        b" mechanisms: [{mechanism: laplace, attributes: [], scale: 2.0,"
        b" sensitivity: {user: {l1: 1}}}]}"
    )
    written = parse_release(read_document(text, "r.yaml"), WORDS)
    drafted = mo.Release("r", mechanisms=[LAPLACE], sampling=TENTH)
    assert content_digest(written) == digest(sampled) == digest(drafted.to_dict())
    assert written.mechanisms[0].plain["sampling"] == {"unit": "user", "rate": "0.1"}
    others = (
        release(LAPLACE),
        release(LAPLACE | {"sampling": {"unit": "user", "rate": 0.11}}),
        release(LAPLACE | {"sampling": {"unit": "visit", "rate": 0.1}}),
    )
    assert len({digest(sampled), *map(digest, others)}) == 4
    assert (
        "sampling"
        not in parse_release(from_python(others[0]), WORDS).mechanisms[0].plain
    )


@pytest.mark.spec("REL-13")
@pytest.mark.parametrize("rate", [Fraction(1, 8), Fraction(1, 3), Fraction(1, 7**20)])
def test_a_stored_description_is_priced_again(rate: Fraction) -> None:
    one = priced(GAUSSIAN | {"sampling": {"unit": "user", "rate": rate}})
    described = one.mechanism.plain
    again = PriceList(WORDS).of(described, (), one.mechanism.part)
    assert isinstance(again, Price)
    assert again.losses == one.losses
    assert sampling_from_plain(described["sampling"]) == one.mechanism.sampling
    assert one.mechanism.sampling is not None
    assert sampling_to_plain(one.mechanism.sampling) == described["sampling"]
    prices = PriceList(WORDS)
    for other in (described, priced(GAUSSIAN).mechanism.plain, described):
        found = prices.of(other, (), one.mechanism.part)
        assert isinstance(found, Price)
        assert (found.losses == one.losses) == (other is described)


def test_a_sample_in_words() -> None:
    def said(rate: str) -> str:
        return sampling_note({"sampling": {"unit": "user", "rate": rate}})

    assert said("0.1") == "on a fresh Poisson sample of 10 % by user"
    assert said("0.0125") == "on a fresh Poisson sample of 1.25 % by user"
    assert said("1/3") == "on a fresh Poisson sample of 1/3 by user"
    assert said("2") == "on a sample that this version does not support"
    assert sampling_note({}) == ""
    training = priced(
        {
            "mechanism": "dp-sgd",
            "attributes": [],
            "noise-multiplier": 1,
            "steps": 10,
            "sampling": {"unit": "user", "rate": Fraction(1, 10)},
        }
    )
    assert sampling_note(training.mechanism.plain).endswith(
        "of 10 % by user in each of 10 steps"
    )


@pytest.mark.parametrize("inherited", [True, False])
def test_so_many_samples_are_priced_in_one_release(
    inherited: bool,
) -> None:
    """Each takes up to half a second, and equal ones take it once."""

    def described(*scales: int) -> dict[str, Any]:
        own = {} if inherited else {"sampling": TENTH}
        listed = [
            {**LAPLACE, **own, "name": f"n{n}", "scale": scale}
            for n, scale in enumerate(scales)
        ]
        whole = {"sampling": TENTH} if inherited else {}
        return {"release": "r", **whole, "mechanisms": listed}

    fifty = range(1, 51)
    for allowed in (described(*fifty), described(*fifty, *fifty)):
        assert parse_release(from_python(allowed), WORDS).mechanisms
    for reading in (
        lambda plain, _: parse_release(from_python(plain), WORDS),
        read_and_price,
    ):
        with pytest.raises(InputError, match="more than 50 different") as caught:
            reading(described(*fifty, 51), WORDS)
        assert caught.value.code is Code.TOO_LARGE
