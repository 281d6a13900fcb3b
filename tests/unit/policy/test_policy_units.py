"""The `units` block: what is read, and that no false order between units stands."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.core.errors import Code, InputError, Problem
from modicum.core.yaml_reader import read_document
from modicum.policy.compiler import compile_text
from modicum.policy.declarations.units import UNITS_MAX, read_relation, read_units
from modicum.release import Relation, Unit, larger
from modicum.release.units import PERIODS, RELATIONS, nests, touches


def read(units: object, neighbors: Relation = "add-remove") -> dict[str, Unit]:
    text = json.dumps(units)
    return read_units(read_document(text.encode(), "policy.yaml"), neighbors)


def problems(units: object) -> list[Problem]:
    with pytest.raises(InputError) as caught:
        read(units)
    assert all(problem.mark is not None for problem in caught.value.problems)
    return list(caught.value.problems)


def timed(period: str, column: str = "at", own_id: str = "u", **more: Any) -> Any:
    return {"id": own_id, "time": {"column": column, "period": period}, **more}


@pytest.mark.spec("REL-7")
def test_everything_that_can_be_said_is_read() -> None:
    units = read(
        {
            "user": {"id": "u"},
            "device": {"id": "d", "within": "user", "groups": {"user": 5}},
            "day": timed(
                "day",
                within=["month", "user"],
                neighbors="any-change",
                groups={"user": 90, "month": 31},
            ),
            "month": timed("month", within="user", neighbors="substitute"),
        }
    )
    assert list(units) == ["user", "device", "day", "month"]
    assert units["user"] == Unit("user", "u")
    assert units["device"] == Unit("device", "d", within=("user",), groups={"user": 5})
    assert units["day"] == Unit(
        "day",
        "u",
        "day",
        "at",
        ("month", "user"),
        {"user": 90, "month": 31},
        "any-change",
    )
    assert units["month"].neighbors == "substitute"


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_unit_has_the_relation_of_the_policy_unless_it_states_its_own(
    relation: Relation,
) -> None:
    units = read({"a": {"id": "a"}, "b": {"id": "b", "neighbors": relation}}, relation)
    assert units["a"].neighbors == relation
    for own in RELATIONS:
        stated = read({"b": {"id": "b", "neighbors": own}}, relation)
        assert stated["b"].neighbors == own
    node = read_document(relation.encode(), "policy.yaml")
    assert read_relation(node) == relation


def test_a_policy_puts_its_units_into_the_vocabulary() -> None:
    policy = {
        "modicum": "policy/v1",
        "name": "p",
        "dp": {"neighbors": "any-change"},
        "units": {
            "user": {"id": "u"},
            "day": timed("day", within="user", neighbors="add-remove"),
        },
        "schema": {"attributes": {"a": ["low", {}]}},
        "policies": [
            {"name": "all", "when": "true", "unit": "user", "budget": {"eps": 1}}
        ],
    }
    compiled = compile_text(json.dumps(policy).encode(), "policy.yaml")
    vocab = compiled.policy.vocabulary
    assert vocab.units == ("user", "day")
    assert vocab.relation("user") == "any-change"
    assert vocab.relation("day") == "add-remove"
    assert vocab.covers["day"] == {"day", "user"}
    assert not vocab.independent


# --- orders ---------------------------------------------------------------------------


@pytest.mark.parametrize(("small", "large"), list(itertools.product(PERIODS, repeat=2)))
def test_within_of_periods_stands_exactly_where_they_nest(
    small: str, large: str
) -> None:
    units = {"a": timed(small, within="b"), "b": timed(large)}
    if nests(small, large):  # type: ignore[arg-type]
        assert read(units)["a"].within == ("b",)
        return
    (problem,) = problems(units)
    assert problem.code is Code.FALSE_UNIT_ORDER
    many = touches(small, large)  # type: ignore[arg-type]
    assert f"a {small} can touch {many} {large}s" in problem.notes[0]
    turned = nests(large, small)  # type: ignore[arg-type]
    assert ("reverse it" in problem.help) is turned
    if turned:  # And the remedy works.
        read({"a": timed(small), "b": timed(large, within="a")})


@pytest.mark.parametrize(
    ("units", "code"),
    [
        ({"a": timed("day", "at", within="b"), "b": timed("month", "seen")}, "MOD205"),
        ({"a": timed("day", "at", "x", within="b"), "b": timed("month")}, "MOD205"),
        ({"a": {"id": "u", "within": "b"}, "b": timed("month")}, "MOD205"),
        ({"a": {"id": "u", "within": "a"}}, "MOD120"),
        (
            {"a": {"id": "u", "within": "b"}, "b": {"id": "v", "within": "a"}},
            "MOD120",
        ),
        ({"a": {"id": "u", "within": "c"}, "b": {"id": "v"}}, "MOD111"),
        ({"a": {"id": "u", "within": ["b", "b"]}, "b": {"id": "v"}}, "MOD116"),
        ({"a": {"id": "u", "groups": {"b": 2}}, "b": {"id": "v"}}, "MOD205"),
        ({"a": {"id": "u", "groups": {"a": 2}}}, "MOD205"),
        ({"a": {"id": "u", "groups": {"c": 2}}, "b": {"id": "v"}}, "MOD111"),
        ({"a": timed("day", within="b", groups={"b": 30}), "b": timed("month")}, 106),
        ({"a": {"id": "u"}, "b": {"id": "v", "groups": {"a": 0}}}, "MOD205"),
        (
            {"a": {"id": "u"}, "b": {"id": "v", "within": "a", "groups": {"a": 0}}},
            106,
        ),
        ({"a": {"id": "u", "time": {"period": "day"}}}, 103),
        ({"a": {"id": "u", "time": {"column": "at"}}}, 103),
        ({"a": {"id": "u", "time": {"column": "at", "period": "hour"}}}, 115),
        ({"a": {"id": "u", "time": "day"}}, 104),
        ({"a": {"id": "u", "within": {"b": 1}}, "b": {"id": "v"}}, 104),
        ({"a": {"id": "u", "groups": 7}}, 104),
        ({"a": {"id": "u", "neighbors": "bounded"}}, 115),
        ({"a": {"id": "u", "order": "b"}}, 102),
        ({"a": {}}, 103),
        ({"a": "u"}, 104),
        ({"a b": {"id": "u"}}, 107),
        ({}, 103),
        ([], 104),
        ({f"u{n}": {"id": "u"} for n in range(UNITS_MAX + 1)}, 106),
    ],
)
def test_mistakes_have_their_codes(units: object, code: str | int) -> None:
    (problem,) = problems(units)
    assert problem.code.value in {code, f"MOD{code}"}


@pytest.mark.parametrize(
    "units",
    [
        # A device belongs to one user; that is the author's to know.
        {"a": {"id": "d", "within": "b"}, "b": {"id": "u"}},
        {"a": timed("day", "at", "d", within="b"), "b": {"id": "u"}},
        {"a": timed("day", within="b"), "b": {"id": "u"}},
        # A visit lasts no longer than its day.
        {"a": {"id": "visit", "within": "b"}, "b": timed("day")},
        {"a": {"id": "u", "within": []}},
        {"a": timed("day", within="b", groups={"b": 40}), "b": timed("month")},
    ],
)
def test_what_the_author_may_claim(units: object) -> None:
    assert read(units)


@pytest.mark.spec("REL-7")
def test_what_follows_from_claims_must_not_be_false_either() -> None:
    (problem,) = problems(
        {
            "month": timed("month", within="visit"),
            "visit": {"id": "visit", "within": "day"},
            "day": timed("day"),
        }
    )
    assert problem.code is Code.FALSE_UNIT_ORDER
    assert "month within visit within day" in problem.notes[0]


def test_several_mistakes_are_reported_at_once() -> None:
    found = problems(
        {
            "a": {"id": 7, "within": "b", "x": 1},
            "b": {"id": "v", "neighbors": "none", "time": {"column": "t"}},
        }
    )
    assert [problem.code for problem in found] == [
        Code.WRONG_TYPE,
        Code.UNKNOWN_KEY,
        Code.UNKNOWN_CHOICE,
        Code.MISSING_KEY,
    ]


# --- generated ------------------------------------------------------------------------

NAMES = "abcde"
drawn_units = st.dictionaries(
    st.sampled_from(NAMES),
    st.builds(
        lambda own_id, period, within: (own_id, period, tuple(sorted(within))),
        st.sampled_from(["u", "u", "v"]),
        st.one_of(st.none(), st.sampled_from(PERIODS)),
        st.sets(st.sampled_from(NAMES), max_size=2),
    ),
    min_size=1,
)


def is_false(units: Mapping[str, tuple[str, str | None, tuple[str, ...]]]) -> bool:
    """Return whether an order is one that must be refused, word by word."""
    pairs = {(one, cover) for one, (_, _, within) in units.items() for cover in within}
    direct = set(pairs)
    if any(cover not in units for _, cover in pairs):
        return True
    for _ in units:
        pairs |= {
            (a, d) for (a, b), (c, d) in itertools.product(pairs, pairs) if b == c
        }
    for one, cover in pairs:
        own_id, period, _ = units[one]
        other_id, other_period, _ = units[cover]
        if one == cover:
            return True
        if other_period is None:
            continue
        if own_id == other_id and (period is None or not nests(period, other_period)):  # type: ignore[arg-type]
            return True
        if own_id != other_id and period is not None and (one, cover) in direct:
            return True
    return False


@settings(max_examples=examples(300), deadline=None)
@given(drawn_units)
def test_exactly_the_false_orders_are_refused(
    units: dict[str, tuple[str, str | None, tuple[str, ...]]],
) -> None:
    written = {
        name: {
            "id": own_id,
            "within": list(within),
            **({"time": {"column": "at", "period": period}} if period else {}),
        }
        for name, (own_id, period, within) in units.items()
    }
    if is_false(units):
        codes = {Code.UNIT_CYCLE, Code.FALSE_UNIT_ORDER, Code.UNKNOWN_UNIT}
        assert {problem.code for problem in problems(written)} <= codes
    else:
        found = read(written)
        assert set(larger(found)) == set(units)


@settings(max_examples=examples(200), deadline=None)
@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(
                st.sampled_from(
                    ["a", "b", "id", "time", "column", "period", "within", "groups"]
                ),
                inner,
                max_size=4,
            ),
        ),
        max_leaves=12,
    )
)
def test_anything_is_units_or_a_coded_error(units: object) -> None:
    try:
        read(units)
    except InputError as error:
        assert error.render().startswith("error[MOD")  # noqa: PT017
