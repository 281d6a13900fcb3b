"""What a new policy changes about how user groups take turns, and who opens rounds."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from modicum.core.rationals import number_spelled
from modicum.policy.changes.remarks import Declared, listed
from modicum.policy.changes.rule_comparison import Verdict
from modicum.policy.model import Policy, Retired, RotationRule
from modicum.release.parts import merged

_SUBJECT = "rotation"


def turn_differences(old: Policy, new: Policy) -> Iterator[Declared]:
    """Yield what changed about what part of its budget a user group may have used.

    And about who may open rounds: with each, more of it is unlocked. More at one age
    and less at another is told as two changes, so that what is looser is never behind
    what is tighter; so it is with roles.

    Args:
        old: The policy that holds.
        new: The policy that is to hold.
    """
    was, now = old.rotation, new.rotation
    if was is None and now is not None:
        text = f"is new: {_words(now)}"
        yield Declared(Verdict.TIGHTER, _SUBJECT, text)
    elif was is not None and now is None:
        text = "is removed: everything is unlocked at once"
        yield Declared(Verdict.LOOSER, _SUBJECT, text)
    elif was is not None and now is not None:
        yield from _steps(was, now)
        if was.retired is not now.retired:
            looser = now.retired is Retired.FIRST_COME
            yield Declared(
                Verdict.LOOSER if looser else Verdict.TIGHTER,
                _SUBJECT,
                f"retired groups: {was.retired.value} -> {now.retired.value}",
            )
        yield from _openers(was.opened_by, now.opened_by)


def _openers(
    was: tuple[str, ...] | None, now: tuple[str, ...] | None
) -> Iterator[Declared]:
    """Yield who may open rounds now and could not, and the other way round."""
    if was is None and now is not None:
        text = f"rounds are opened by {' or '.join(now)} only, before by anybody"
        yield Declared(Verdict.TIGHTER, _SUBJECT, text)
    elif was is not None and now is None:
        text = f"rounds are opened by anybody, before by {' or '.join(was)} only"
        yield Declared(Verdict.LOOSER, _SUBJECT, text)
    elif was is not None and now is not None:
        come = [one for one in now if one not in was]
        gone = [one for one in was if one not in now]
        if come:
            text = f"who may open rounds: adds {listed(come)}"
            yield Declared(Verdict.LOOSER, _SUBJECT, text)
        if gone:
            text = f"who may open rounds: drops {listed(gone)}"
            yield Declared(Verdict.TIGHTER, _SUBJECT, text)


def _steps(old: RotationRule, new: RotationRule) -> Iterator[Declared]:
    """Yield at which ages more is unlocked than before, and at which ages less."""
    was, now = old.schedule, new.schedule
    if was == now:
        return
    step = ", ".join(
        f"{name} {before} -> {after}"
        for name, before, after in (
            ("active", str(was.rounds), str(now.rounds)),
            ("slack", number_spelled(was.slack), number_spelled(now.slack)),
        )
        if before != after
    )
    # Older groups are retired under both, which is told apart.
    ages = range(1, max(was.rounds, now.rounds) + 1)
    more = [age for age in ages if _unlocked(new, age) > _unlocked(old, age)]
    less = [age for age in ages if _unlocked(new, age) < _unlocked(old, age)]
    if more:
        text = f"{step}: more is unlocked at {_ages(more)}"
        yield Declared(Verdict.LOOSER, _SUBJECT, text)
    if less:
        text = f"{step}: less is unlocked at {_ages(less)}"
        yield Declared(Verdict.TIGHTER, _SUBJECT, text)
    if not more and not less:
        text = f"{step}: as much is unlocked at every age"
        yield Declared(Verdict.SAME, _SUBJECT, text)


def _unlocked(rotation: RotationRule, age: int) -> Fraction:
    """Return what a group of an age may have used: who had all turns has retired."""
    if age > rotation.schedule.rounds:
        return Fraction(rotation.retired is Retired.FIRST_COME)
    return rotation.schedule.share(age)


def _ages(ages: list[int]) -> str:
    spans = [
        str(low) if low == high else f"{low} to {high}"
        for low, high in merged([(age, age) for age in ages])
    ]
    return f"age{'' if len(ages) == 1 else 's'} {', '.join(spans)}"


def _words(rotation: RotationRule) -> str:
    schedule, openers = rotation.schedule, rotation.opened_by
    by = "" if openers is None else f", rounds opened by {' or '.join(openers)}"
    return (
        f"active {schedule.rounds}, slack {number_spelled(schedule.slack)},"
        f" retired {rotation.retired.value}{by}"
    )
