"""Where a mechanism is charged: parts of the data as regions of points."""

from __future__ import annotations

from datetime import date

import pytest

from modicum.ledger.cells.axes import FAR, Space, space_of
from modicum.ledger.cells.calendar import period_name, period_of
from modicum.policy.compiler import compile_text
from modicum.release import Part, Vocabulary
from modicum.release.parts import FIRST_DAY, LAST_DAY
from modicum.release.units import PERIODS, Period

POLICY = """
modicum: policy/v1
name: axes
units:
  user: {{id: user_id, neighbors: {user}}}
  month: {{id: user_id, time: {{column: at, period: month}}, within: user,
          neighbors: {month}}}
  day: {{id: user_id, time: {{column: {column}, period: day}}, within: {within}}}
  device: {{id: device_id, within: user, neighbors: {device}}}
schema: {{attributes: {{age: low, birth: [low, {{}}, static]}}}}
population:
  partition_by:
    country: {{values: [CH, DE, FR], immutable: [user]}}
    year: {{range: [1990, 1999], immutable: [month]}}
    project: 5
  time_detail: {{month: 3}}
  groups: {{immutable: [user]}}
policies: [{{name: all, unit: user, when: "true", budget: {{rho: 1}}}}]
"""


def words(**changes: str) -> Vocabulary:
    given = {
        "user": "add-remove",
        "month": "add-remove",
        "device": "add-remove",
        "column": "at",
        "within": "month",
    }
    text = POLICY.format(**{**given, **changes})
    return compile_text(text.encode(), "policy.yaml").policy.vocabulary


def axes(space: Space) -> tuple[tuple[str, ...], bool, str | None, bool]:
    names = tuple(one.name for one in space.partitions)
    return names, space.pairs, space.period, space.grouped


@pytest.mark.spec("DEC-5")
def test_what_is_fixed_for_a_unit_is_fixed_for_those_it_covers() -> None:
    known = words()
    assert axes(space_of("user", known)) == (("country",), False, None, True)
    assert axes(space_of("month", known)) == (("country", "year"), False, "month", True)
    assert axes(space_of("day", known)) == (("country", "year"), False, "day", True)
    assert axes(space_of("device", known)) == (("country",), False, None, True)


@pytest.mark.spec("DEC-7")
def test_a_change_keeps_the_key_and_what_the_key_tells() -> None:
    known = words(user="substitute", month="any-change", device="any-change")
    assert axes(space_of("user", known)) == (("country",), True, None, True)
    # A month of a user keeps the user; a device may be another user's afterward.
    assert axes(space_of("month", known)) == (("country", "year"), True, "month", True)
    assert axes(space_of("device", known)) == (("country",), True, None, False)


@pytest.mark.spec("DEC-6")
def test_periods_of_several_clocks_are_not_told_apart() -> None:
    known = words(column="received_at", within="user")
    assert space_of("month", known).period is None
    assert space_of("day", known).period is None


def day(text: str) -> int:
    return date.fromisoformat(text).toordinal()


TODAY = day("2026-11-21")
MONTH = space_of("month", words())
EVERY = ((0, 2), (1990, 1999))


def months(first: str, last: str) -> tuple[int, int]:
    return period_of(day(first), "month"), period_of(day(last), "month")


def region(part: Part, *, timeless: bool = False) -> object:
    (found,) = MONTH.regions(part, TODAY, timeless=timeless)
    return found


def test_a_part_is_projected_on_the_axes() -> None:
    box = (("country", ("CH", "FR")), ("project", ((0, 1),)), ("year", ((1995, 1999),)))
    assert region(Part(where=(box,))) == (
        ((0, 0), (1995, 1999), (-FAR, FAR), (0, FAR)),
        ((2, 2), (1995, 1999), (-FAR, FAR), (0, FAR)),
    )
    # What is not an axis is dropped: then this is everything.
    assert region(Part(where=((("project", ((0, 1),)),),))) is None
    # So is what the domain does not know, or knows only in part.
    assert region(Part(where=((("country", ("CH", "UK")),),))) is None
    assert region(Part(where=((("year", ((1995, 2005),)),),))) is None
    assert region(Part(where=((("country", ((0, 1),)),),))) is None
    assert region(Part(groups=((3, 4),))) == (((*EVERY, (-FAR, FAR), (3, 4)),))


@pytest.mark.spec("DEC-8")
@pytest.mark.parametrize(("first", "last", "expected"), [
    ("2026-11-03", "2026-11-03", [months("2026-11-01", "2026-11-01")]),
    ("2026-09-30", "2026-10-01", [months("2026-09-01", "2026-10-01")]),
    ("2026-08-31", "2026-08-31", [(-FAR, months("2026-08-01", "2026-08-01")[0])]),
    ("2020-01-01", "2026-09-01", [(-FAR, months("2026-09-01", "2026-09-01")[0])]),
    ("2027-01-31", "2027-01-31", [months("2027-01-01", "2027-01-01")]),
    ("2027-02-01", "2027-02-01", [(months("2027-02-01", "2027-02-01")[0], FAR)]),
    ("2020-01-01", "2030-01-01", [(-FAR, FAR)]),
])  # fmt: skip
def test_distant_periods_are_charged_together(
    first: str, last: str, expected: list[tuple[int, int]]
) -> None:
    found = region(Part(periods=((day(first), day(last)),)))
    boxes = [(*EVERY, span, (0, FAR)) for span in expected]
    assert found == (None if expected == [(-FAR, FAR)] else tuple(boxes))


@pytest.mark.spec("DEC-6")
def test_who_reads_what_has_no_time_reads_every_period() -> None:
    part = Part(periods=((TODAY, TODAY),))
    assert region(part) is not None
    assert region(part, timeless=True) is None


def test_open_ends_reach_beyond_the_calendar() -> None:
    space = space_of("day", words())
    (found,) = space.regions(Part(periods=((TODAY, LAST_DAY),)), TODAY, timeless=False)
    assert found == ((*EVERY, (TODAY, FAR), (0, FAR)),)
    (found,) = space.regions(Part(periods=((FIRST_DAY, TODAY),)), TODAY, timeless=False)
    assert found == ((*EVERY, (-FAR, TODAY), (0, FAR)),)


def test_a_part_of_far_too_many_boxes_is_charged_to_a_larger_one() -> None:
    space = space_of("day", words())
    days = tuple((TODAY - 2 * n, TODAY - 2 * n) for n in range(1500, -1, -1))
    (found,) = space.regions(Part(periods=days), TODAY, timeless=False)
    assert found == ((*EVERY, (TODAY - 3000, TODAY), (0, FAR)),)


def test_pairs_have_a_region_for_before_and_one_for_after() -> None:
    space = space_of("user", words(user="substitute"))
    swiss = Part(where=((("country", ("CH",)),),), groups=((2, 2),))
    before, after = space.regions(swiss, TODAY, timeless=False)
    assert before == (((0, 0), (0, 2), (2, 2)),)
    assert after == (((0, 2), (0, 0), (2, 2)),)
    assert space.text(((0, 0), (1, 2), (2, 2))) == (
        "between country CH and country DE or FR, group 2"
    )


@pytest.mark.parametrize(("box", "expected"), [
    ((*EVERY, (-FAR, FAR), (0, FAR)), ""),
    (((0, 0), (1990, 1999), (-FAR, FAR), (0, FAR)), "country CH"),
    (((0, 1), (1990, 1990), (24322, 24322), (0, 3)),
     "country CH or DE, year 1990, 2026-11, group 0 to 3"),
    ((*EVERY, (-FAR, 24322), (3, FAR)), "until 2026-11, group 3 and above"),
    ((*EVERY, (24322, FAR), (3, 3)), "from 2026-11, group 3"),
])  # fmt: skip
def test_a_cell_in_words(box: tuple[tuple[int, int], ...], expected: str) -> None:
    assert MONTH.text(box) == expected


@pytest.mark.parametrize("period", PERIODS)
def test_periods_are_numbered_in_order_and_named_as_the_calendar_does(
    period: Period,
) -> None:
    names: dict[int, str] = {}
    last = None
    for ordinal in range(day("2024-12-20"), day("2027-01-10")):
        number = period_of(ordinal, period)
        assert last is None or number - last in (0, 1)
        last = number
        then = date.fromordinal(ordinal)
        year, week, _ = then.isocalendar()
        expected = {
            "day": then.isoformat(),
            "week": f"{year}-W{week:02d}",
            "month": then.isoformat()[:7],
            "quarter": f"{then.year}-Q{(then.month + 2) // 3}",
            "year": str(then.year),
        }[period]
        assert period_name(number, period) == expected
        assert names.setdefault(number, expected) == expected
    assert len(set(names.values())) == len(names)
