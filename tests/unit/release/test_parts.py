"""Parts of the data: one stored form each, and unions of boxes against single rows."""

from __future__ import annotations

import itertools
from typing import Any, TypeAlias

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.core.canonical import Plain, decode, encode
from modicum.release import EVERYTHING, Part, Partition, Span
from modicum.release.boxes import union
from modicum.release.parts import (
    FIRST_DAY,
    LAST_DAY,
    Box,
    Values,
    in_order,
    merged,
    part_from_plain,
    part_to_plain,
)

# --- the stored form ------------------------------------------------------------------


def spans(low: int, high: int) -> st.SearchStrategy[tuple[Span, ...]]:
    ends = st.tuples(st.integers(low, high), st.integers(low, high))
    one = ends.map(lambda pair: (min(pair), max(pair)))
    return st.lists(one, min_size=1, max_size=3).map(merged)


texts = st.sets(st.sampled_from(["CH", "DE", "é", "10", "9", "\U0001f600"]), min_size=1)
values: st.SearchStrategy[Values] = st.one_of(
    texts.map(lambda some: tuple(sorted(some))), spans(-20, 20)
)
boxes = st.dictionaries(
    st.sampled_from(["age", "country", "größe"]), values, min_size=1
).map(lambda box: tuple(sorted(box.items())))
days = st.one_of(spans(730000, 740000), spans(FIRST_DAY, LAST_DAY)).filter(
    lambda some: some != ((FIRST_DAY, LAST_DAY),)
)
parts = st.builds(
    Part,
    st.none() | st.lists(boxes, min_size=1, max_size=3).map(in_order),
    st.none()
    | days
    | st.sampled_from([((LAST_DAY, LAST_DAY),), ((FIRST_DAY, FIRST_DAY),)]),
    st.none() | spans(0, 50),
)


def stored(part: Part) -> dict[str, Any]:
    found: Any = decode(encode(part_to_plain(part)))
    return dict(found)


@settings(max_examples=examples(300), deadline=None)
@given(parts)
def test_a_part_comes_back_as_it_was_stored(part: Part) -> None:
    assert part_from_plain(**stored(part)) == part


@settings(max_examples=examples(300), deadline=None)
@given(parts, parts)
def test_two_parts_are_stored_alike_only_if_they_are_equal(a: Part, b: Part) -> None:
    assert (stored(a) == stored(b)) == (a == b)


def test_open_ends_and_the_last_days_there_are() -> None:
    assert stored(EVERYTHING) == {"where": None, "periods": None, "groups": None}
    assert stored(Part(periods=((FIRST_DAY, 7),)))["periods"] == [[None, "0001-01-07"]]
    assert stored(Part(periods=((7, LAST_DAY),)))["periods"] == [["0001-01-07", None]]
    last = stored(Part(periods=((LAST_DAY, LAST_DAY),)))
    assert last["periods"] == [["9999-12-31", None]]


@pytest.mark.parametrize(
    ("where", "periods", "groups"),
    [
        ([], None, None),
        (None, [], None),
        (None, None, []),
        ([{}], None, None),
        ({"country": ["CH"]}, None, None),
        ([["CH"]], None, None),
        ([{"country": []}], None, None),
        ([{"country": "CH"}], None, None),
        ([{"country": ["DE", "CH"]}], None, None),
        ([{"country": ["CH", "CH"]}], None, None),
        ([{"country": ["CH", [1, 2]]}], None, None),
        ([{"country": [[1, 2], "CH"]}], None, None),
        ([{"country": [1]}], None, None),
        ([{"country": [None]}], None, None),
        ([{"age": [[2, 1]]}], None, None),
        ([{"age": [[1, 2, 3]]}], None, None),
        ([{"age": [[True, 2]]}], None, None),
        ([{"age": [["1", 2]]}], None, None),
        ([{"age": [[1, 2], [3, 4]]}], None, None),
        ([{"age": [[1, 4], [3, 6]]}], None, None),
        ([{"age": [[5, 6], [1, 2]]}], None, None),
        ([{"b": ["x"]}, {"a": ["x"]}], None, None),
        ([{"a": ["x"]}, {"a": ["x"]}], None, None),
        (None, [["2026-11-03"]], None),
        (None, ["2026-11-03"], None),
        (None, "2026-11-03", None),
        (None, [[739921, 739921]], None),
        (None, [["20261103", "20261104"]], None),
        (None, [["2026-W45-2", "2026-11-04"]], None),
        (None, [["2026-11-31", None]], None),
        (None, [["2026-11-04", "2026-11-03"]], None),
        (None, [["0001-01-01", "2026-11-03"]], None),
        (None, [["2026-11-03", "9999-12-31"]], None),
        (None, [[None, None]], None),
        (None, [["2026-11-05", None], [None, "2026-11-03"]], None),
        (None, [["2026-11-01", "2026-11-03"], ["2026-11-04", None]], None),
        (None, None, 3),
        (None, None, [3]),
        (None, None, [[-1, 3]]),
        (None, None, [[3, 3], [4, 4]]),
        (None, None, [[3.0, 4]]),
    ],
)
def test_what_is_not_in_canonical_form_is_refused(
    where: Plain, periods: Plain, groups: Plain
) -> None:
    with pytest.raises(ValueError, match=r"."):
        part_from_plain(where, periods, groups)


# --- unions of boxes ------------------------------------------------------------------

COUNTRIES = ("CH", "DE", "FR")
PARTITIONS = {
    "country": Partition("country", COUNTRIES, 0, 2, (), None),
    "size": Partition("size", None, 1, 4, (), None),
    "year": Partition("year", None, 7, 8, (), None),
}
Row: TypeAlias = tuple[str, int, int]
ROWS: list[Row] = list(itertools.product(COUNTRIES, range(1, 5), (7, 8)))


def holds(box: Box, row: Row) -> bool:
    of_row: dict[str, Any] = dict(zip(PARTITIONS, row, strict=True))
    return all(
        any(
            of_row[name] == one
            if isinstance(one, str)
            else one[0] <= of_row[name] <= one[1]
            for one in values
        )
        for name, values in box
    )


def rows_of(where: tuple[Box, ...] | None) -> set[Row]:
    if where is None:
        return set(ROWS)
    return {row for row in ROWS if any(holds(box, row) for box in where)}


within = st.fixed_dictionaries(
    {},
    optional={
        "country": st.sets(st.sampled_from(COUNTRIES), min_size=1).map(
            lambda some: tuple(sorted(some))
        ),
        "size": spans(1, 4),
        "year": spans(7, 8),
    },
).map(lambda box: tuple(sorted(box.items())))
unions = st.lists(within.filter(bool), min_size=1, max_size=5)


@settings(max_examples=examples(400), deadline=None)
@given(unions, st.randoms(use_true_random=False))
def test_a_union_holds_the_rows_of_its_boxes(some: list[Box], rng: Any) -> None:
    found = union(some, PARTITIONS)
    assert rows_of(found) == rows_of(tuple(some))
    again = [*some, rng.choice(some)]
    rng.shuffle(again)
    assert union(again, PARTITIONS) == found
    if found is not None:
        assert union(found, PARTITIONS) == found
        where = stored(Part(found))["where"]
        assert part_from_plain(where, None, None) == Part(found)
        for box, other in itertools.permutations(found, 2):
            assert not rows_of((box,)) <= rows_of((other,))


@settings(max_examples=examples(200), deadline=None)
@given(unions)
def test_cutting_a_box_along_one_attribute_changes_nothing(some: list[Box]) -> None:
    pieces: list[Box] = []
    for box in some:
        name, values = box[0]
        single: list[Values] = [(one,) for one in values if isinstance(one, str)]
        for one in values:
            if not isinstance(one, str):
                single += [((n, n),) for n in range(one[0], one[1] + 1)]
        pieces += [((name, piece), *box[1:]) for piece in single]
    assert rows_of(union(pieces, PARTITIONS)) == rows_of(tuple(some))
    if len(some) == 1:
        assert union(pieces, PARTITIONS) == union(some, PARTITIONS)


def test_a_union_over_one_attribute_has_one_form() -> None:
    forms: dict[frozenset[Row], set[object]] = {}
    every = [
        ((("country", some),),)
        for count in (1, 2, 3)
        for some in itertools.combinations(COUNTRIES, count)
    ]
    for one, other in itertools.product(every, repeat=2):
        found = union([*one, *other], PARTITIONS)
        forms.setdefault(frozenset(rows_of(found)), set()).add(found)
    assert all(len(found) == 1 for found in forms.values())
    assert forms[frozenset(ROWS)] == {None}
