"""What a recorded loss proves for another unit, compared with all small tables."""

from __future__ import annotations

from collections import Counter
from datetime import date
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.entailment import Row, Search, Table

from modicum.accounting import INFINITE, Loss
from modicum.accounting.curves import pure_curve
from modicum.accounting.grid import EPS
from modicum.core.rationals import LOSS_UNIT
from modicum.ledger.decision.charges import charged, entailed
from modicum.ledger.log.recorded_release import RecordedMechanism
from modicum.release import Unit, Vocabulary
from modicum.release.entailment import entailment
from modicum.release.periods import overlaps
from modicum.release.units import RELATIONS, all_steps, clocks_of, kinds

#: Two people who may share or change a household, on two days of a month and one of
#: another; the row may be seen in another month than it happened in.
ROWS: tuple[Row, ...] = tuple(
    tuple(zip(("uid", "hh", "at", "seen"), one, strict=True))
    for one in (
        ("u1", "h1", "2026-01-01", "2026-01-01"),
        ("u1", "h1", "2026-01-02", "2026-02-01"),
        ("u1", "h2", "2026-02-01", "2026-02-01"),
        ("u2", "h1", "2026-01-01", "2026-02-01"),
        ("u2", "h2", "2026-01-01", "2026-01-01"),
    )
)
DEFINITIONS: tuple[dict[str, Any], ...] = (
    {"id": "uid"},
    {"id": "hh"},
    {"id": "uid", "period": "day", "column": "at"},
    {"id": "uid", "period": "month", "column": "at"},
    {"id": "uid", "period": "month", "column": "seen"},
    {"id": "hh", "period": "month", "column": "at"},
)
NAMES = ("a", "b", "c")


@cache
def search() -> Search:
    return Search(ROWS)


@st.composite
def policies(draw: st.DrawFn) -> dict[str, Unit]:
    """Units with true orders only: a person within a household, maybe with a size."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    found: dict[str, Unit] = {}
    for name in names:
        facts = draw(st.sampled_from(DEFINITIONS))
        found[name] = Unit(name, neighbors=draw(st.sampled_from(RELATIONS)), **facts)
    for name, unit in found.items():
        wider = [
            wide.name
            for wide in found.values()
            if wide.period is None
            and wide.name != name
            and (wide.id, unit.id) in (("hh", "uid"), ("uid", "uid"), ("hh", "hh"))
            and (unit.period is not None or wide.id != unit.id)
        ]
        within = tuple(one for one in wider if draw(st.booleans()))
        sizes = {
            one: draw(st.integers(1, 3))
            for one in within
            if unit.period is None and draw(st.booleans())
        }
        found[name] = Unit(
            name,
            unit.id,
            unit.period,
            unit.column,
            within,
            sizes,
            unit.neighbors,
        )
    return found


seen: Counter[str] = Counter()


@pytest.mark.spec("REL-14")
@settings(max_examples=examples(200), deadline=None)
@given(old=policies(), new=policies())
def test_a_recorded_loss_is_never_used_for_more_than_it_proves(
    old: dict[str, Unit], new: dict[str, Unit]
) -> None:
    found = entailment(old, new)
    for unit, facts in new.items():
        if unit in found.same:
            own = old[found.same[unit]]
            assert (own.id, own.period, own.column) == (
                facts.id,
                facts.period,
                facts.column,
            )
            seen["same"] += 1
            continue
        for source in found.sources[unit]:
            recorded = old[source.unit].neighbors
            count = source.steps(facts.neighbors, recorded)
            true = search().steps(facts, new, old[source.unit])
            if count is None:
                seen["unknown" if true == float("inf") else "needlessly unknown"] += 1
                continue
            assert true <= count, (facts, old[source.unit], true, count)
            seen["exact" if true == count else "more"] += 1


charges: Counter[str] = Counter()


@pytest.mark.spec("REL-14")
@settings(max_examples=examples(200), deadline=None)
@given(old=policies(), new=policies(), data=st.data())
def test_no_rule_is_charged_less_than_was_released(
    old: dict[str, Unit], new: dict[str, Unit], data: st.DataObject
) -> None:
    """One unit's loss is stated: eps 1 for each change. The others follow from it."""
    stated = data.draw(st.sampled_from([*old]))
    days = data.draw(st.sampled_from([None, "2026-01-01", "2026-02-01"]))
    is_timed = clocks_of(old) == {"at"}
    within = None
    if days is not None and is_timed:
        within = overlaps(kinds(old), ((date.fromisoformat(days).toordinal(),) * 2,))
    steps = all_steps(old, within)
    losses = {
        unit: loss_of(steps[unit, stated]) for unit in old if (unit, stated) in steps
    }
    neighbors = {
        unit: old[unit].neighbors
        for unit in losses
        if old[unit].neighbors != "add-remove"
    }
    derived = None
    if data.draw(st.booleans()):  # As it is recorded since version 6.
        derived = tuple(sorted({*losses} - {stated}))
    recorded = RecordedMechanism(
        {}, (), {}, losses, neighbors=neighbors, derived=derived
    )
    now = vocabulary_of(new)
    # Days that another clock tells are not known any more.
    same_days = within is None or clocks_of(new) == {"at"}
    recorded = entailed(
        recorded, entailment(old, new), now, is_derived_proven=same_days
    )

    def is_read(row: Row) -> bool:
        return within is None or dict(row)["at"] == days

    for unit, facts in new.items():
        charge = charged(recorded, unit, now).coordinates[EPS]
        if charge >= INFINITE:
            charges["infinite"] += 1
            continue
        true = search().steps(facts, new, old[stated], is_read)
        assert true * LOSS_UNIT <= charge, (facts, old[stated], true, charge)
        charges["exact" if true * LOSS_UNIT == charge else "more"] += 1


def loss_of(eps: int) -> Loss:
    return pure_curve(Fraction(eps)).loss()


def vocabulary_of(units: dict[str, Unit]) -> Vocabulary:
    return Vocabulary(frozenset(), {}, tuple(units), "add-remove", units)


def test_all_kinds_of_answers_were_compared() -> None:
    assert seen["exact"] > seen["more"] / 20 > 0
    assert seen["unknown"] > 0
    assert seen["same"] > 0
    assert charges["infinite"] > 0
    assert charges["exact"] > charges["more"] / 20 > 0


def test_the_oracle_knows_the_obvious() -> None:
    day = Unit("d", "uid", "day", "at")
    month = Unit("m", "uid", "month", "at")
    assert search().steps(month, {"m": month}, day) == 2  # Two days of January.
    assert search().steps(day, {"d": day}, month) == 2  # Remove all, add the rest.


@pytest.mark.spec("REL-17")
def test_steps_lead_through_tables_that_no_declared_fact_allows() -> None:
    """A user of two days moves: two changes of a day, or three where nobody may."""
    rows: tuple[Row, ...] = tuple(
        (("uid", "u"), ("at", day), ("country", country))
        for day in ("2026-01-01", "2026-01-02")
        for country in ("CH", "DE")
    )
    user = Unit("user", "uid", neighbors="any-change")
    day = Unit("day", "uid", "day", "at", ("user",), neighbors="any-change")
    moved = [
        frozenset(row for row in rows if dict(row)["country"] == country)
        for country in ("CH", "DE")
    ]

    def is_immutable(table: Table) -> bool:
        return len({dict(row)["country"] for row in table}) <= 1

    free, bound = Search(rows), Search(rows, through=is_immutable)
    assert free.way(moved[0], moved[1], day) == 2
    assert bound.way(moved[0], moved[1], day) == 3
    # What is charged for the two days that are read, with the loss of one.
    days = overlaps(kinds({"user": user, "day": day}), ((ordinal(1), ordinal(2)),))
    assert all_steps({"user": user, "day": day}, days)["user", "day"] == 2


def ordinal(day: int) -> int:
    return date(2026, 1, day).toordinal()
