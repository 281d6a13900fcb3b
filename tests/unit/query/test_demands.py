"""What a query is told to add: what would help, and nothing that would not."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from samples import asked

from modicum.core.errors import Code, InputError, Problem

COUNT = "SELECT COUNT(*) AS n FROM views"
UNTIMED = """\
modicum: policy/v1
name: reading
dp: {filter: zcdp-v1}
units: {user: {id: user_id}}
schema: {attributes: {page: low, topic: low, amount: high}}
policies: [{name: all, when: "true", unit: user, budget: {rho: 1}}]
"""
TIMED = asked.POLICY.replace("  user: {id: user_id}\n", "").replace(
    ", within: user}", "}"
)
PEOPLE = """
  people:
    row_id: user_id
    one_per: user_id
    columns:
      user_id: {type: text}
      topic: {type: text, attribute: topic}
"""
DECLARED = asked.TABLES + PEOPLE
PERIODS = "give the `periods` of the query, with both ends"
NOISE = "use noisy discovery of keys: `discover: {delta: 1e-8}`"
UNITS = ("user", "user-month", "user-day")


def plain(
    sql: str, unit: str, bounds: Mapping[str, int], **more: Any
) -> dict[str, Any]:
    """Return a query file that names no periods."""
    loss = {unit: {"rho": Fraction("0.01")}}
    document: dict[str, Any] = asked.document(
        sql, bounds=dict(bounds), loss=loss, **more
    )
    del document["periods"]
    return document


def problem_of(
    document: Mapping[str, Any], policy: str = asked.POLICY, declared: str = DECLARED
) -> Problem:
    with pytest.raises(InputError) as caught:
        asked.read(document, policy=asked.compiled(policy), declared=declared)
    (problem,) = caught.value.problems
    return problem


def is_bounded(document: Mapping[str, Any]) -> bool:
    try:
        asked.read(document, declared=DECLARED)
    except InputError as error:
        return error.code is not Code.NOT_BOUNDED
    return True


@pytest.mark.spec("QRY-5")
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("bounds", [{}, {"user-day": 3}, {"user-month": 9}])
def test_exactly_those_bounds_are_advised_that_help(
    unit: str, bounds: dict[str, int]
) -> None:
    """The oracle: each thing that may be advised is done, and the query read again."""
    document = plain(COUNT, unit, bounds)
    if is_bounded(document):
        return
    help_ = problem_of(document).help
    for more in UNITS:
        remedied = plain(COUNT, unit, {**bounds, more: 5})
        assert (f"`{more}: …`" in help_) == is_bounded(remedied), more
    with_periods = is_bounded({**document, "periods": "2026-10"})
    assert (PERIODS in help_) == with_periods


def test_some_of_these_queries_are_not_bounded_and_some_are_by_periods() -> None:
    assert not is_bounded(plain(COUNT, "user", {}))
    days = plain(COUNT, "user", {"user-day": 3})
    assert not is_bounded(days)
    assert is_bounded({**days, "periods": "2026-10"})


def test_where_no_unit_has_a_period_nobody_is_told_to_name_periods() -> None:
    declared = asked.TABLES.replace("timestamp}", "timestamp, attribute: page}")
    unbounded = problem_of(plain(COUNT, "user", {}), UNTIMED, declared)
    assert unbounded.code is Code.NOT_BOUNDED
    assert unbounded.help == "add `user: …` to `bounds`"
    hidden = problem_of(plain(asked.BY_TOPIC, "user", {"user": 5}), UNTIMED, declared)
    assert hidden.code is Code.DOES_NOT_FIT
    assert hidden.help == f"list `values` of `topic` in the tables file, or {NOISE}"


def test_a_join_that_no_bound_helps_is_told_so() -> None:
    sql = "SELECT COUNT(*) AS n FROM views JOIN people USING (user_id)"
    problem = problem_of(plain(sql, "user-day", {}), TIMED)
    assert problem.code is Code.NOT_BOUNDED
    assert (
        problem.help
        == "give the loss for another unit than `user-day`, or read one table"
    )
    alone = plain(COUNT, "user-day", {"user-day": 3})
    asked.read(alone, policy=asked.compiled(TIMED))  # One table can be asked.


# --- keys -----------------------------------------------------------------------------

DAY = "DATE_TRUNC('day', read_at)"


@pytest.mark.parametrize(
    ("keys", "help_"),
    [
        (["topic"], f"list `values` of `topic` in the tables file, or {NOISE}"),
        ([DAY], f"{PERIODS}, or {NOISE}"),
        (
            ["topic", DAY],
            f"list `values` of `topic` in the tables file and {PERIODS}, or {NOISE}",
        ),
        (["page", "topic"], f"list `values` of `topic` in the tables file, or {NOISE}"),
        (["DATE_TRUNC('month', born)"], NOISE),
        (["DATE_TRUNC('month', born)", "topic"], NOISE),
    ],
)
def test_keys_are_told_what_would_make_them_public(keys: list[str], help_: str) -> None:
    declared = asked.TABLES + "      born: {type: date, attribute: topic}\n"
    positions = ", ".join(str(place + 1) for place in range(len(keys)))
    sql = f"SELECT {', '.join(keys)}, COUNT(*) AS n FROM views GROUP BY {positions}"
    problem = problem_of(plain(sql, "user-day", {"user-day": 3}), declared=declared)
    assert problem.code is Code.DOES_NOT_FIT
    assert problem.help == help_


def test_what_makes_keys_public_does_so() -> None:
    sql = f"SELECT {DAY} AS d, topic, COUNT(*) AS n FROM views GROUP BY 1, 2"
    document = plain(sql, "user-day", {"user-day": 3})
    listed = asked.TABLES.replace("attribute: topic}", "attribute: topic, values: [a]}")
    public = asked.read({**document, "periods": "2026-10"}, declared=listed)
    assert public.compiled.groups == 31
    document["query"] |= {"discover": {"delta": Fraction("1e-8")}}
    assert asked.read(document).compiled.selection is not None


def test_keys_are_not_told_by_noise_on_a_sample() -> None:
    sampling = {"rate": Fraction("0.5"), "unit": "user"}
    document = plain(asked.BY_TOPIC, "user-day", {"user-day": 3})
    problem = problem_of({**document, "sampling": sampling})
    assert problem.help == "list `values` of `topic` in the tables file"
