"""History in the words of today: no row that a part could read ever leaves it.

The oracle follows single values through a chain of policies, one row at a time, and
knows nothing of boxes and spans.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.past_values import Value, becomes, contains, domain

from modicum.release.part_migration import Step, re_expressed
from modicum.release.parts import (
    Box,
    Part,
    Values,
    in_order,
    merged,
    part_from_plain,
    part_to_plain,
)
from modicum.release.population import Partition, Population, Was

NAMES = "abcd"
NUMBERS = range(6)

spans = st.lists(
    st.tuples(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS)).map(
        lambda ends: (min(ends), max(ends))
    ),
    min_size=1,
    max_size=3,
).map(merged)
texts = st.lists(st.sampled_from(NAMES), min_size=1, unique=True).map(
    lambda some: tuple(sorted(some))
)


@st.composite
def listed(draw: st.DrawFn, name: str) -> Partition:
    domain = draw(texts)
    entries = draw(
        st.dictionaries(
            st.sampled_from(NAMES),
            st.sets(st.sampled_from(domain), min_size=1),
            max_size=3,
        )
    )
    was = tuple(Was((old,), tuple(sorted(now))) for old, now in entries.items())
    return Partition(name, domain, 0, len(domain) - 1, (), None, was)


@st.composite
def ranged(draw: st.DrawFn, name: str) -> Partition:
    low, high = sorted((draw(st.sampled_from(NUMBERS)), draw(st.sampled_from(NUMBERS))))
    inside = spans.map(
        lambda some: merged(
            [
                (max(a, low), min(b, high))
                for a, b in some
                if max(a, low) <= min(b, high)
            ]
        )
    ).filter(bool)
    entries = draw(st.lists(st.tuples(spans, inside), max_size=2))
    was = tuple(Was(old, now) for old, now in entries)
    return Partition(name, None, low, high, (), None, was)


@st.composite
def populations(draw: st.DrawFn) -> Population:
    found = {}
    for name in ("x", "y"):
        kind = draw(st.sampled_from(["listed", "listed", "ranged", "ranged", "none"]))
        if kind != "none":
            found[name] = draw(listed(name) if kind == "listed" else ranged(name))
    return Population(found)


def steps(chain: list[Population]) -> list[Step]:
    return [Step(before, after) for before, after in pairwise(chain)]


def matches(part: Part, row: dict[str, Value]) -> bool:
    return part.where is None or any(
        all(contains(values, row[name]) for name, values in box) for box in part.where
    )


def rows(population: Population) -> Iterator[dict[str, Value]]:
    domains = [domain(population.partitions.get(name)) for name in ("x", "y")]
    for x, y in product(*domains):
        yield {"x": x, "y": y}


def later_rows(
    row: dict[str, Value], chain: list[Population]
) -> list[dict[str, Value]]:
    """Return every row that one row may have become by the end of the chain."""
    found = {(row["x"], row["y"])}
    for before, after in pairwise(chain):
        found = {
            (new_x, new_y)
            for x, y in found
            for new_x in becomes(
                x, before.partitions.get("x"), after.partitions.get("x")
            )
            for new_y in becomes(
                y, before.partitions.get("y"), after.partitions.get("y")
            )
        }
    return [{"x": x, "y": y} for x, y in found]


@st.composite
def parts(draw: st.DrawFn, population: Population) -> Part:
    boxes: list[Box] = []
    for _ in range(draw(st.integers(1, 3))):
        box: list[tuple[str, Values]] = []
        for name, partition in sorted(population.partitions.items()):
            some = draw(st.sets(st.sampled_from(domain(partition))))
            if some:
                numbers = [(one, one) for one in some if isinstance(one, int)]
                listed_names = sorted(one for one in some if isinstance(one, str))
                box.append((name, merged(numbers) or tuple(listed_names)))
        boxes.append(tuple(box))
    return Part() if () in boxes else Part(in_order(boxes))


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Population], Part]:
    chain = draw(st.lists(populations(), min_size=1, max_size=4))
    if len(chain) > 1 and draw(st.booleans()):
        chain.append(chain[-1])  # A policy that leaves the population as it was.
    return chain, draw(parts(chain[0]))


@pytest.mark.spec("POL-14")
@settings(max_examples=examples(400), deadline=None)
@given(histories())
def test_no_row_leaves_a_part(history: tuple[list[Population], Part]) -> None:
    chain, part = history
    now = re_expressed(part, steps(chain))
    plain = part_to_plain(now)
    assert part_from_plain(plain["where"], plain["periods"], plain["groups"]) == now
    for row in rows(chain[0]):
        if matches(part, row):
            for later in later_rows(row, chain):
                assert matches(now, later), (row, later)


@pytest.mark.spec("POL-14")
@settings(max_examples=examples(300), deadline=None)
@given(histories())
def test_a_part_of_one_attribute_grows_no_more_than_it_must(
    history: tuple[list[Population], Part],
) -> None:
    chain, part = history
    chain = [
        Population({k: v for k, v in one.partitions.items() if k == "x"})
        for one in chain
    ]
    if part.where is None or any(
        [name for name, _ in box] != ["x"] for box in part.where
    ):
        return
    now = re_expressed(part, steps(chain))
    reached = {
        later["x"]
        for row in rows(chain[0])
        if matches(part, row)
        for later in later_rows(row, chain)
    }
    for row in rows(chain[-1]):
        assert matches(now, row) == (row["x"] in reached)


def by_region(values: tuple[str, ...], *was: Was) -> Population:
    return Population({"region": Partition("region", values, 0, 0, (), None, was)})


def in_region(*values: str) -> Part:
    return Part(((("region", values),),))


def test_a_step_that_was_made_is_not_made_again() -> None:
    swapped = by_region(("A", "B"), Was(("A",), ("B",)), Was(("B",), ("A",)))
    more = by_region(
        ("A", "B", "C"),
        *(Was(("A",), ("B",)), Was(("B",), ("A",)), Was(("D",), ("C",))),
    )
    chain = [by_region(("A", "B")), swapped, more]
    assert re_expressed(in_region("A"), steps(chain)) == in_region("B")
    assert re_expressed(in_region("A"), steps(chain[1:])) == in_region("A")


def test_what_nobody_says_stands_for_all() -> None:
    old = by_region(("EU", "US"))
    assert re_expressed(in_region("EU"), [Step(old, by_region(("US",)))]) == Part()
    assert re_expressed(in_region("EU"), [Step(old, Population())]) == Part()
    numbered = Population({"region": Partition("region", None, 0, 9, (), None)})
    assert re_expressed(in_region("EU"), [Step(old, numbered)]) == Part()


def test_periods_and_groups_stay() -> None:
    part = Part(((("region", ("EU",)),),), ((1, 9),), ((3, 4),))
    now = re_expressed(part, [Step(by_region(("EU",)), Population())])
    assert now == Part(None, ((1, 9),), ((3, 4),))


def test_all_steps_of_a_range_are_made_and_what_is_left_stays() -> None:
    def decades(high: int, *was: Was) -> Population:
        return Population({"x": Partition("x", None, 0, high, (), None, was)})

    old = decades(99)
    new = decades(30, Was(((0, 9),), ((0, 0),)), Was(((10, 19),), ((11, 12), (30, 30))))
    part = Part(((("x", ((5, 12), (25, 26))),),))
    spans = ((0, 0), (11, 12), (25, 26), (30, 30))
    assert re_expressed(part, [Step(old, new)]) == Part(((("x", spans),),))
    beyond = Part(((("x", ((5, 12), (25, 31))),),))
    assert re_expressed(beyond, [Step(old, new)]) == Part()
