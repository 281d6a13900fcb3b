"""Guards, approvals, the population and invariants: read, and kept as written."""

from __future__ import annotations

import pytest
from samples.small import POLICY, compiled

from modicum.core.errors import Code, InputError, Problem
from modicum.policy.predicates import predicate_text

UNITS = POLICY.replace(
    "units: {user: {id: user_id}}",
    "units: {user: {id: user_id},"
    " user-day: {id: user_id, time: {column: at, period: day}, within: user}}",
)


def refused(text: str) -> list[Problem]:
    with pytest.raises(InputError) as caught:
        compiled(text)
    return list(caught.value.problems)


def test_a_guard_is_kept_with_its_words() -> None:
    text = POLICY + (
        "guards:\n"
        "  - {name: bounded, unless: '\"user\" in m.contribution_bound',"
        " message: state the bound}\n"
    )
    (guard,) = compiled(text).policy.guards
    assert (guard.name, guard.message) == ("bounded", "state the bound")
    assert predicate_text(guard.unless) == '"user" in m.contribution_bound'
    assert guard.mark is not None
    assert compiled(POLICY).policy.guards == ()


def test_approvals_are_kept_in_order() -> None:
    text = POLICY + (
        "approvals:\n"
        "  - {when: 'release.audience == \"public\"', need: 2, from: [officer]}\n"
        '  - {when: "true", need: 1, from: [officer, steward],'
        " requester_may_approve: true}\n"
    )
    found = compiled(text).policy.approvals
    assert [(one.need, one.roles) for one in found] == [
        (2, ("officer",)),
        (1, ("officer", "steward")),
    ]
    assert [one.requester_may_approve for one in found] == [False, True]


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("{when: 'm.ml == \"none\"', need: 1, from: [a]}", Code.CEL_SUBSET),
        ("{when: '\"age\" in m.attributes', need: 1, from: [a]}", Code.CEL_SUBSET),
        ("{when: 'true', need: 1.5, from: [a]}", Code.OUT_OF_RANGE),
        ("{when: 'true', need: 101, from: [a]}", Code.OUT_OF_RANGE),
        ("{when: 'true', need: 1, from: [a, a]}", Code.DUPLICATE_NAME),
        ("{when: 'true', need: 1, from: []}", Code.MISSING_KEY),
        ("{when: 'true', need: 1, from: a}", Code.WRONG_TYPE),
        ("{when: 'true', need: 1}", Code.MISSING_KEY),
        ("{need: 1, from: [a]}", Code.MISSING_KEY),
        ("{when: 'true', need: 1, from: [a], requester: true}", Code.UNKNOWN_KEY),
        (
            "{when: 'true', need: 1, from: [a], requester_may_approve: 1}",
            Code.WRONG_TYPE,
        ),
    ],
)
def test_a_malformed_approval_has_its_code(entry: str, code: Code) -> None:
    problems = refused(f"{POLICY}approvals:\n  - {entry}\n")
    assert [problem.code for problem in problems] == [code]


def test_the_population_is_divided_by_public_attributes() -> None:
    text = UNITS + (
        "population:\n"
        "  partition_by:\n"
        "    project: 900\n"
        "    country: {values: [CH, DE], immutable: [user]}\n"
        "    year: {range: [1900, 2030]}\n"
        "  time_detail: {user-day: 62}\n"
    )
    policy = compiled(text).policy
    project, country, year = policy.vocabulary.population.partitions.values()
    assert (project.values, project.low, project.high) == (None, 0, 899)
    assert (country.values, country.immutable) == (("CH", "DE"), ("user",))
    assert (country.low, country.high) == (0, 1)
    assert (year.values, year.low, year.high) == (None, 1900, 2030)
    assert policy.vocabulary.population.time_detail == {"user-day": 62}


@pytest.mark.parametrize(
    ("block", "code"),
    [
        ("partition_by: {a: 0}", Code.OUT_OF_RANGE),
        ("partition_by: {a: 1000000001}", Code.OUT_OF_RANGE),
        ("partition_by: {a: {values: []}}", Code.MISSING_KEY),
        ("partition_by: {a: {values: [x, x]}}", Code.DUPLICATE_NAME),
        ("partition_by: {a: {range: [1]}}", Code.WRONG_TYPE),
        ("partition_by: {a: {range: [2, 1]}}", Code.OUT_OF_RANGE),
        ("partition_by: {a: {range: [1, 2], values: [x]}}", Code.KEYS_CONFLICT),
        ("partition_by: {a: {values: [x], immutable: [day]}}", Code.UNKNOWN_UNIT),
        ("partition_by: {a: {values: [x], frozen: [user]}}", Code.UNKNOWN_KEY),
        ("time_detail: {user: 62}", Code.KEYS_CONFLICT),
        ("time_detail: {user-day: 0}", Code.OUT_OF_RANGE),
        ("time: {user-day: 1}", Code.UNKNOWN_KEY),
    ],
)
def test_a_malformed_population_has_its_code(block: str, code: Code) -> None:
    problems = refused(f"{UNITS}population:\n  {block}\n")
    assert [problem.code for problem in problems] == [code]


def test_what_is_published_outside_dp_is_kept() -> None:
    text = POLICY + "disclosed_invariants: [state_population, unit_count]\n"
    assert compiled(text).policy.disclosed_invariants == (
        "state_population",
        "unit_count",
    )
    assert refused(POLICY + "disclosed_invariants: [a, a]\n")
    assert refused(POLICY + "disclosed_invariants: a\n")


def test_a_static_attribute_is_kept_as_such() -> None:
    text = POLICY.replace("[low, {health: weak}]", "[low, {health: weak}, static]")
    attributes = compiled(text).policy.attributes
    assert [name for name, one in attributes.items() if one.static] == ["age"]
