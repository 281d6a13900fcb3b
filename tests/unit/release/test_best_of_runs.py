"""Releases of the best of several runs: their prices, refusals, and their audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from msgspec import structs
from samples.audited import activated, described_anew, sealed
from samples.small import POLICY, compiled, workspace

import modicum as mo
from modicum.accounting import Loss
from modicum.accounting.curves import Curve, composed, pure_curve
from modicum.accounting.group_privacy import group
from modicum.accounting.mechanisms import ACCOUNT_KINDS, declared_zcdp, gaussian
from modicum.accounting.named_mechanisms import sampled_curve
from modicum.accounting.number_of_runs import NegativeBinomial, Poisson, Runs
from modicum.accounting.private_selection import selected
from modicum.api.local.evaluation import price_release
from modicum.core.document import from_python
from modicum.core.errors import Code, InputError, Problem
from modicum.ledger import RecordedRelease, audit
from modicum.ledger.log.events import PastRecorded
from modicum.ledger.proof.repricing import UnderstatedError, UnknownDescriptionError
from modicum.policy.json_schema.release import release_schema
from modicum.release import (
    Mechanism,
    Unit,
    Vocabulary,
    parse_release,
    price,
    read_and_price,
)
from modicum.release.selection import selection_from_plain, selection_note
from modicum.release.vocabulary import Label

GAMMA = Fraction(1, 20)
GEOMETRIC = {"distribution": "geometric", "gamma": 0.05}
NOISE = mo.gaussian(
    name="n", attributes=["age"], sensitivity={"user": mo.l2(1)}, sigma=4
)
TRAINING = mo.dp_sgd(
    attributes=["age"],
    noise_multiplier=1,
    steps=10,
    sampling={"unit": "user", "rate": Fraction(1, 100)},
)
UNITS = (
    Unit("user", "u"),
    Unit("visit", "v", None, None, ("user",), {"user": 3}),
)
WORDS = Vocabulary(
    frozenset({"age"}),
    {},
    ("user", "visit"),
    "add-remove",
    {unit.name: unit for unit in UNITS},
)


def read(mechanism: Mapping[str, Any], words: Vocabulary = WORDS) -> Mechanism:
    node = from_python({"release": "r", "mechanisms": [{"name": "n", **mechanism}]})
    return parse_release(node, words).mechanisms[0]


def losses(mechanism: Mapping[str, Any]) -> Mapping[str, Loss]:
    node = from_python({"release": "r", "mechanisms": [mechanism]})
    return price(parse_release(node, WORDS), WORDS).mechanisms[0].losses


def problem(mechanism: Mapping[str, Any], words: Vocabulary = WORDS) -> Problem:
    with pytest.raises(InputError) as caught:
        read(mechanism, words)
    return caught.value.problems[0]


# --- what is read -----------------------------------------------------------------


READ = [
    (GEOMETRIC, NegativeBinomial(Fraction(1), GAMMA)),
    (
        {"distribution": "logarithmic", "gamma": 0.05},
        NegativeBinomial(Fraction(0), GAMMA),
    ),
    (
        {"distribution": "negative-binomial", "eta": -0.5, "gamma": 0.05},
        NegativeBinomial(Fraction(-1, 2), GAMMA),
    ),
    ({"distribution": "poisson", "mean": 10}, Poisson(Fraction(10))),
]


@pytest.mark.parametrize(("told", "runs"), READ)
def test_a_number_of_runs_is_read(told: dict[str, Any], runs: Runs) -> None:
    assert read(NOISE | {"selection": told}).selection == runs


@pytest.mark.spec("REL-5")
def test_a_distribution_has_one_meaning_whatever_it_is_called() -> None:
    same = {"distribution": "negative-binomial", "eta": 1, "gamma": 0.05}
    one, other = (read(NOISE | {"selection": told}) for told in (GEOMETRIC, same))
    assert one.encoded == other.encoded
    assert "selection" not in read(NOISE).plain


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ("geometric", Code.WRONG_TYPE),
        ({}, Code.MISSING_KEY),
        ({"distribution": "binomial", "mean": 3}, Code.UNKNOWN_CHOICE),
        ({"distribution": "geometric"}, Code.MISSING_KEY),
        ({"distribution": "geometric", "gamma": 1}, Code.OUT_OF_RANGE),
        ({"distribution": "geometric", "gamma": 0}, Code.OUT_OF_RANGE),
        (
            {"distribution": "negative-binomial", "eta": -1, "gamma": 0.5},
            Code.OUT_OF_RANGE,
        ),
        ({"distribution": "poisson", "mean": 0}, Code.OUT_OF_RANGE),
        ({"distribution": "poisson", "mean": 3, "eta": 1}, Code.UNKNOWN_KEY),
    ],
)
def test_no_other_number_of_runs_is_accepted(wrong: object, code: Code) -> None:
    assert problem(NOISE | {"selection": wrong}).code is code


def test_so_many_selections_are_priced_in_one_release() -> None:
    """Each takes up to half a second."""
    many = [{**NOISE, "name": f"n{n}", "selection": GEOMETRIC} for n in range(21)]

    def parsed(mechanisms: list[dict[str, Any]]) -> int:
        node = from_python({"release": "r", "mechanisms": mechanisms})
        return len(parse_release(node, WORDS).mechanisms)

    assert parsed(many[:20]) == 20
    # As plain data, as it comes over HTTP, it is read by another way.
    for reading in (parsed, priced_as_plain):
        with pytest.raises(InputError, match="more than 20 mechanisms") as caught:
            reading(many)
        assert caught.value.code is Code.TOO_LARGE


def priced_as_plain(mechanisms: list[dict[str, Any]]) -> int:
    plain = {"release": "r", "mechanisms": mechanisms}
    return len(read_and_price(plain, WORDS).mechanisms)


@pytest.mark.parametrize("mean", ["1/0", "1/00", "3/-1", "x", "1e5"])
def test_what_is_stored_is_a_number(mean: str) -> None:
    with pytest.raises(ValueError, match="no distribution"):
        selection_from_plain({"distribution": "poisson", "mean": mean})


def test_a_label_of_that_name_is_the_label() -> None:
    label = {"selection": Label(("some", "none"), "none")}
    words = Vocabulary(WORDS.attributes, label, ("user",), "add-remove")
    assert read(NOISE | {"selection": "some"}, words).labels == {"selection": "some"}
    found = problem(NOISE | {"selection": GEOMETRIC}, words)
    assert found.code is Code.WRONG_TYPE


def test_it_is_told_in_words() -> None:
    shape = {"distribution": "negative-binomial", "eta": 0.5, "gamma": 0.05}
    notes = [
        selection_note(read(NOISE | {"selection": told}).plain)
        for told in (GEOMETRIC, shape)
    ]
    assert notes == [
        "a geometric number of times (gamma 0.05, mean 20), and the best is taken",
        "a negative binomial number of times (eta 0.5, gamma 0.05, mean 12.2361), and"
        " the best is taken",
    ]
    later = "and is selected in a way that this version does not support"
    assert selection_note({"selection": {"distribution": "zeta"}}) == later
    assert selection_note({}) == ""


# --- what it costs ----------------------------------------------------------------


def training() -> Curve:
    values = {
        "noise-multiplier": Fraction(1),
        "sampling-rate": Fraction(1, 100),
        "steps": Fraction(10),
    }
    return ACCOUNT_KINDS["dp-sgd"].build(values)


def on_sample() -> Curve:
    values = {"sigma": Fraction(4), "sensitivity": Fraction(1)}
    return sampled_curve(ACCOUNT_KINDS["gaussian"], values, Fraction(1, 10), "poisson")


@pytest.mark.parametrize(
    ("mechanism", "once"),
    [
        (NOISE, gaussian(rho=Fraction(1, 32))),
        (NOISE | {"sampling": {"unit": "user", "rate": 0.1}}, on_sample()),
        (NOISE | {"cost": {"user": {"rho": 0.03125}}}, gaussian(rho=Fraction(1, 32))),
        (TRAINING, training()),
        (
            mo.declared(attributes=[], cost={"user": mo.zcdp(Fraction(1, 8))}),
            declared_zcdp(rho=Fraction(1, 8)),
        ),
        (
            mo.declared(
                attributes=[], cost={"user": mo.approx_dp(1, Fraction("1e-9"))}
            ),
            pure_curve(Fraction(1), Fraction("1e-9")),
        ),
    ],
)
def test_the_best_run_costs_the_selection_of_one(
    mechanism: dict[str, Any], once: Curve
) -> None:
    best = selected(once, NegativeBinomial(Fraction(1), GAMMA))
    found = losses(mechanism | {"selection": GEOMETRIC})
    assert found["user"] == best.loss()
    assert found["user"] != losses(mechanism)["user"]


@pytest.mark.spec("REL-8")
def test_other_units_follow_from_the_selection() -> None:
    """Two changes of a user make one of a visit, whatever each run would give."""
    best = selected(gaussian(rho=Fraction(1, 32)), Poisson(Fraction(3)))
    told = NOISE | {"selection": {"distribution": "poisson", "mean": 3}}
    assert losses(told)["visit"] == group(best, 2).loss()


def test_a_run_that_costs_nothing_costs_nothing_again() -> None:
    for runs in (NegativeBinomial(Fraction(1), GAMMA), Poisson(Fraction(9))):
        assert not any(selected(composed([]), runs).loss().coordinates)


@pytest.mark.spec("REL-19")
def test_what_others_see_of_each_run_is_no_selection() -> None:
    answers = mo.randomized_response(
        attributes=["age"],
        truth=Fraction(3, 4),
        contribution_bound={"user": 1},
        public_frame=True,
        selection=GEOMETRIC,
    )
    with pytest.raises(InputError) as caught:
        losses(answers)
    (found,) = caught.value.problems
    assert found.code is Code.NOT_SUPPORTED
    assert "contribution_bound" in found.help


# --- the ledger -------------------------------------------------------------------

WIDE = (
    POLICY.replace("budget: 2.0}", "budget: 9.0}")
    .replace("budget: {low: 2.0", "budget: {low: 9.0")
    .replace("budget: {high: 1.2}", "budget: {high: 9.0}")
    .replace("eps: 1.5, delta", "eps: 9, delta")
)


@pytest.mark.spec("REL-19")
def test_a_selection_is_decided_recorded_and_verified(tmp_path: Path) -> None:
    ws = workspace(tmp_path, policy=WIDE)
    once = ws.submit({"release": "once", "mechanisms": [NOISE]})
    best = ws.submit(
        {"release": "best", "mechanisms": [NOISE | {"selection": GEOMETRIC}]}
    )
    assert once.allowed
    assert best.allowed
    assert any("the number and the other runs" in one for one in best.notices)
    assert not any("the number" in one for one in once.notices)
    assert ws.verify().decisions == 2


def honest() -> RecordedRelease:
    told = {"release": "r-1", "mechanisms": [NOISE | {"selection": GEOMETRIC}]}
    return price_release(told, compiled(WIDE))


def audited(selection: Any) -> None:
    """Audit the losses of the honest release beside another selection."""
    release = honest()
    (one,) = release.mechanisms
    described: dict[str, Any] = {**one.description, "selection": selection}
    if selection is None:
        del described["selection"]
    other = structs.replace(release, mechanisms=(replace(one, description=described),))
    digest = compiled(WIDE).policy.digest
    audit(sealed([activated(WIDE), PastRecorded(described_anew(other), digest)]))


STORED = {"distribution": "negative-binomial", "eta": "1", "gamma": "0.05"}


@pytest.mark.spec("AUD-9")
def test_an_audit_prices_the_selection_again() -> None:
    audited(STORED)
    for less in (None, STORED | {"gamma": "0.06"}, STORED | {"eta": "-0.5"}):
        audited(less)  # It states more than that costs.
    for more in (
        STORED | {"gamma": "0.049"},
        STORED | {"eta": "1.01"},
        {"distribution": "poisson", "mean": "20"},
    ):
        with pytest.raises(UnderstatedError, match=r"states .* for `user`, and its"):
            audited(more)
    for malformed in (
        "geometric",
        {"distribution": "geometric", "gamma": "0.05"},
        STORED | {"gamma": "0.050"},
        STORED | {"gamma": "1/0"},
        STORED | {"gamma": "5e-2"},
        STORED | {"gamma": 1},
        STORED | {"eta": "-1"},
        STORED | {"mean": "20"},
        {"distribution": "poisson", "eta": "1"},
    ):
        with pytest.raises(UnderstatedError, match="has no price"):
            audited(malformed)
    for later in (STORED | {"distribution": "zeta"}, STORED | {"most": "30"}):
        with pytest.raises(UnknownDescriptionError, match="its selection by"):
            audited(later)


# --- the schema, and data layers --------------------------------------------------


def test_the_schema_accepts_what_is_read() -> None:
    schema = Draft202012Validator(release_schema(WORDS))
    for told, _ in READ:
        noise = {**NOISE, "attributes": ["age"], "selection": told}
        assert schema.is_valid({"release": "r", "mechanisms": [noise]})
    wrong = {"selection": {"distribution": "poisson", "gamma": 0.5}}
    noise = {**NOISE, "attributes": ["age"], **wrong}
    assert not schema.is_valid({"release": "r", "mechanisms": [noise]})
