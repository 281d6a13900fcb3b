"""Old releases in the words of the policy that counts them now."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs
from samples.life import recorded
from samples.small import POLICY, compiled

from modicum.ledger.replay.migration import Migration
from modicum.ledger.state.state import ActivePolicy
from modicum.release import Part


def by_region(written: str) -> str:
    return f"{POLICY}population: {{partition_by: {{region: {written}}}}}\n"


COARSE = by_region("{values: [EU, US], was: {DE: EU, FR: EU}}")
FINE = by_region("{values: [DE, FR, US], was: {EU: [DE, FR]}}")


def held(*texts: str) -> list[ActivePolicy]:
    """Return policies that were activated with the entries 1, 11, 21 …"""
    return [
        ActivePolicy("0" * 64, "small", text, 10 * place + 1)
        for place, text in enumerate(texts)
    ]


def words(*texts: str, present: str | None = None) -> Migration:
    now = compiled(present or texts[-1]).policy.vocabulary
    return Migration(held(*texts), now)


def in_region(*values: str) -> Part:
    return Part(((("region", values),),))


@pytest.mark.spec("POL-14")
def test_a_part_is_told_from_the_policy_that_held_then() -> None:
    result = words(COARSE, FINE)
    assert result.part(in_region("EU"), 2) == in_region("DE", "FR")
    assert result.part(in_region("EU"), 10) == in_region("DE", "FR")
    assert result.part(in_region("DE"), 12) == in_region(
        "DE"
    )  # In these words already.
    assert result.part(Part(), 2) == Part()


@pytest.mark.spec("POL-14")
def test_a_policy_that_comes_back_is_another_step() -> None:
    result = words(COARSE, FINE, COARSE)
    assert result.part(in_region("EU"), 2) == in_region("EU")
    assert result.part(in_region("FR"), 15) == in_region("EU")
    assert result.part(in_region("US"), 15) == in_region("US")


SWAPPED = by_region("{values: [EU, US], was: {EU: US, US: EU}}")
TIDIED = by_region("{values: [EU, US, JP]}")


@pytest.mark.spec("POL-14")
def test_whether_a_step_is_made_again_by_going_back_is_not_known() -> None:
    assert words(TIDIED, SWAPPED).part(in_region("EU"), 2) == in_region("US")
    result = words(SWAPPED, TIDIED, SWAPPED)
    assert result.part(in_region("EU"), 2) == in_region("EU", "US")
    assert result.part(in_region("EU"), 25) == in_region("EU")


def timed(clock: str, *, static: bool = False) -> str:
    """Return a policy whose time unit goes by a clock; a diagnosis may have no time."""
    day = f"day: {{id: user_id, time: {{column: {clock}, period: day}}}}"
    user = "user: {id: user_id}"
    text = POLICY.replace(f"{{{user}}}", f"{{{user}, {day}}}")
    plain, timeless = "{health: member}]", "{health: member}, static]"
    return text.replace(plain, timeless) if static else text


@pytest.mark.spec("POL-14")
@pytest.mark.parametrize(("policies", "kept"), [
    ([timed("at"), timed("at")], True),
    ([timed("at", static=True), timed("at")], False),  # It told of every period.
    ([timed("at"), timed("at", static=True), timed("at")], False),
    ([timed("at"), timed("uploaded_at")], False),
    ([timed("at"), timed("uploaded_at"), timed("at")], False),
    ([POLICY, timed("at")], False),
])  # fmt: skip
def test_periods_that_meant_something_else_stand_for_all_of_time(
    policies: list[str], kept: bool
) -> None:
    release = recorded()
    (one,) = release.mechanisms
    assert "diagnosis" in one.attributes
    part = Part(periods=((739000, 739001),))
    named = structs.replace(release, mechanisms=(replace(one, part=part),))
    result = words(*policies)
    assert result.release(named, 2).mechanisms[0].part == (part if kept else Part())
    # What the last policy held itself, it means as it says.
    assert result.release(named, 10 * (len(policies) - 1) + 2) == named


@pytest.mark.spec("POL-14")
def test_a_policy_that_is_only_tried_is_the_last_step() -> None:
    result = words(COARSE, present=FINE)
    assert result.part(in_region("EU"), 2) == in_region("DE", "FR")


@pytest.mark.spec("POL-14")
def test_what_an_unreadable_policy_said_stands_for_all() -> None:
    result = words(COARSE, "modicum: policy/v0", COARSE)
    assert result.part(in_region("EU"), 2) == Part()
    assert result.part(in_region("EU"), 25) == in_region("EU")


def test_only_the_parts_of_a_release_change() -> None:
    release = recorded()
    result = words(COARSE, FINE)
    assert result.release(release, 2) is release
    (one,) = release.mechanisms
    parted = structs.replace(release, mechanisms=(replace(one, part=in_region("EU")),))
    now = result.release(parted, 2)
    assert now.mechanisms[0].part == in_region("DE", "FR")
    again = structs.replace(
        now, mechanisms=(replace(now.mechanisms[0], part=in_region("EU")),)
    )
    assert again == parted
    assert result.release(parted, 12) is parted
