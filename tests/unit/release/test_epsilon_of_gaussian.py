"""Gaussian noise given by eps and delta: sigma follows, and is what is charged."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from modicum.accounting.budgets import ApproxBudget
from modicum.accounting.calibration import meets
from modicum.accounting.named_mechanisms import curve_of_kind, kind_named
from modicum.core.document import from_python
from modicum.core.errors import Code, InputError, Problem
from modicum.release import Label, Mechanism, Vocabulary, parse_release, price
from modicum.release.units import Unit

UNITS = Vocabulary(frozenset({"age"}), {}, ("user", "day"), "add-remove")
USER = Vocabulary(frozenset({"age"}), {}, ("user",), "add-remove")


def noise(vocabulary: Vocabulary = USER, **more: Any) -> Mechanism:
    """Return Gaussian noise, as it is read."""
    given = {
        "mechanism": "gaussian",
        "attributes": ["age"],
        "sensitivity": {"user": {"l2": 3}},
        **more,
    }
    read = parse_release(
        from_python({"release": "r", "mechanisms": [given]}), vocabulary
    )
    price(read, vocabulary)
    return read.mechanisms[0]


def refused(vocabulary: Vocabulary = USER, **more: Any) -> Problem:
    with pytest.raises(InputError) as caught:
        noise(vocabulary, **more)
    return caught.value.problems[0]


@pytest.mark.parametrize("kind", ["gaussian", "discrete-gaussian"])
@pytest.mark.parametrize(
    ("eps", "delta"), [("1", "1e-6"), ("0.01", "1e-9"), ("30", "1e-12"), ("1", "0.4")]
)
def test_sigma_meets_the_eps_and_delta_that_are_given(
    kind: str, eps: str, delta: str
) -> None:
    target = ApproxBudget(Fraction(eps), Fraction(delta))
    sigma = noise(mechanism=kind, eps=target.eps, delta=target.delta).parameters[
        "sigma"
    ]

    def within(value: Fraction) -> bool:
        values = {"sensitivity": Fraction(3), "sigma": value}
        return meets(curve_of_kind(kind_named(kind), values), target)

    assert within(sigma)
    assert not within(sigma * Fraction(999_999, 1_000_000))


def test_the_same_release_with_sigma_is_the_same_mechanism() -> None:
    found = noise(eps=1, delta=1e-6)
    assert found == noise(sigma=found.parameters["sigma"])
    assert found.parameters.keys() == {"sigma"}


def test_eps_without_delta_says_what_to_write_and_shows_the_command() -> None:
    problem = refused(eps=1)
    assert problem.code is Code.MISSING_KEY
    assert problem.message == "the noise of `gaussian` also needs `delta`"
    assert problem.help == (
        "also write `delta: …`, or `sigma`, which  modicum account mechanism"
        " gaussian sensitivity=3 --for eps=1,delta=…  finds"
    )
    assert "also needs `eps`" in refused(delta=1e-6).message


def test_epsilon_is_told_to_be_called_eps() -> None:
    for more in ({"delta": 1e-6}, {"sigma": 2}, {}):
        with pytest.raises(InputError) as caught:
            noise(epsilon=1, **more)
        (problem,) = caught.value.problems
        assert problem.code is Code.UNKNOWN_KEY
        assert problem.label == 'did you mean "eps"?'
        assert "write `eps` and `delta`" in problem.help


@pytest.mark.parametrize(
    ("kind", "key", "remedy"),
    [
        ("laplace", "epsilon", "`scale`: the l1 sensitivity divided by epsilon"),
        ("discrete-laplace", "eps", "`scale`: the l1 sensitivity divided by epsilon"),
        ("gaussian", "scale", "its noise is `sigma`"),
        ("discrete-gaussian", "std", "its noise is `sigma`"),
    ],
)
def test_a_parameter_of_another_kind_is_told_what_to_write(
    kind: str, key: str, remedy: str
) -> None:
    norm = "l1" if "laplace" in kind else "l2"
    given: dict[str, Any] = {"mechanism": kind, key: 1}
    given["sensitivity"] = {"user": {norm: 1}}
    problem = refused(**given)
    assert problem.code is Code.UNKNOWN_KEY
    assert remedy in problem.help


def test_a_sensitivity_without_its_unit_or_norm_is_told_what_to_write() -> None:
    bare = refused(sensitivity=1, sigma=2)
    such = "write it by privacy unit, such as "
    assert bare.help == f"{such} sensitivity: {{user: {{l2: 1}}}}"
    assert refused(cost=1).help == f"{such} cost: {{user: {{rho: 1}}}}"
    assert (
        refused(contribution_bound=4).help == f"{such} contribution_bound: {{user: 4}}"
    )
    for key, given in (("sensitivity", "{l2: 3}"), ("cost", "{rho: 3}")):
        written: dict[str, Any] = {key: {given[1:].split(":")[0]: 3}}
        bare = refused(**written)
        assert bare.code is Code.UNKNOWN_UNIT
        assert bare.help == f"write  {key}: {{user: {given}}}"
    assert refused(sensitivity={"user": 3}, sigma=2).help == "write  {l2: 3}"


def test_a_unit_without_a_sensitivity_is_told_to_get_one() -> None:
    covered = Vocabulary(
        frozenset({"age"}),
        {},
        ("user", "day"),
        "add-remove",
        {
            "user": Unit("user", "user_id"),
            "day": Unit("day", "user_id", within=("user",)),
        },
    )
    problem = refused(covered, sensitivity={"day": {"l2": 1}}, sigma=2)
    assert problem.code is Code.COST_NOT_DERIVABLE
    assert "give `sensitivity: {user: {l2: …}}` too" in problem.help


def test_eps_of_several_units_is_refused() -> None:
    both = {"user": {"l2": 3}, "day": {"l2": 1}}
    problem = refused(UNITS, sensitivity=both, eps=1, delta=1e-6)
    assert problem.code is Code.KEYS_CONFLICT
    assert "`eps` has no privacy unit" in problem.message
    assert "user, day" in problem.message
    assert "modicum account mechanism gaussian" in problem.help
    assert "has none" in refused(sensitivity={}, eps=1, delta=1e-6).message


def test_eps_beside_sigma_is_refused() -> None:
    assert refused(eps=1, delta=1e-6, sigma=5).code is Code.KEYS_CONFLICT


def test_eps_of_a_mechanism_on_a_sample_is_refused() -> None:
    sample = {"unit": "user", "rate": 0.1, "by": "poisson"}
    problem = refused(eps=1, delta=1e-6, sampling=sample)
    assert problem.code is Code.KEYS_CONFLICT
    assert "on a sample" in problem.message


@pytest.mark.parametrize(
    "wrong", [{"eps": 0}, {"eps": -1}, {"delta": 0}, {"delta": 1}, {"delta": 2}]
)
def test_a_target_out_of_range_is_refused(wrong: dict[str, Any]) -> None:
    assert refused(**{"eps": 1, "delta": 1e-6, **wrong}).code is Code.OUT_OF_RANGE


def test_a_label_called_eps_stays_a_label() -> None:
    labeled = Vocabulary(
        frozenset({"age"}), {"eps": Label(("a",), "a")}, ("user",), "add-remove"
    )
    assert noise(labeled, eps="a", sigma=5).labels == {"eps": "a"}
    assert refused(labeled, eps="a", delta=1e-6).code is Code.UNKNOWN_KEY


def test_many_mechanisms_are_not_given_by_eps() -> None:
    one = {"mechanism": "gaussian", "attributes": [], "eps": 1, "delta": 1e-6}
    one["sensitivity"] = {"user": {"l2": 1}}

    def read(number: int) -> int:
        plain = from_python({"release": "r", "mechanisms": [one] * number})
        return len(parse_release(plain, USER).mechanisms)

    assert read(1) == 1
    with pytest.raises(InputError) as caught:
        read(101)
    assert caught.value.code is Code.TOO_LARGE
