"""What a new policy changes beside its rules: words, units, guards, approvals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from fractions import Fraction
from typing import TypeVar

from modicum.core.rationals import number_spelled
from modicum.policy.changes.checked import checked_differences
from modicum.policy.changes.remarks import Declared, listed, shown
from modicum.policy.changes.rule_comparison import Verdict
from modicum.policy.changes.turns import turn_differences
from modicum.policy.model import Attribute, Policy, ReservationBound
from modicum.release import Label, Partition, Unit, Vocabulary
from modicum.release.parts import Values

__all__ = ["Declared", "declared_differences"]

T = TypeVar("T")


def declared_differences(old: Policy, new: Policy) -> Iterator[Declared]:
    """Yield what changed beside the rules, in the order of a policy file.

    Args:
        old: The policy that holds.
        new: The policy that is to hold.
    """
    yield from _filter(old, new)
    yield from _units(old.vocabulary, new.vocabulary)
    yield from _by_name(
        "label", old.vocabulary.labels, new.vocabulary.labels, _label_changes
    )
    yield from _categories(old, new)
    yield from _attributes(old, new)
    yield from _extensions(old, new)
    yield from checked_differences(old, new)
    yield from _by_name(
        "partition",
        old.vocabulary.population.partitions,
        new.vocabulary.population.partitions,
        _partition_changes,
        added=Verdict.CHANGED,  # What is told apart may be charged apart.
    )
    yield from _groups(old, new)
    yield from _time(old, new)
    yield from turn_differences(old, new)
    yield from _reservations(old, new)


def _reservations(old: Policy, new: Policy) -> Iterator[Declared]:
    """Yield what one identity may hold reserved now, if that is another part."""
    was, now = (one.reservations or ReservationBound() for one in (old, new))
    for what, before, after in (
        ("share of each limit", was.share or Fraction(1), now.share or Fraction(1)),
        ("days of a reservation", Fraction(was.days), Fraction(now.days)),
    ):
        if before != after:
            verdict = Verdict.LOOSER if after > before else Verdict.TIGHTER
            text = f"{what}: {number_spelled(before)} -> {number_spelled(after)}"
            yield Declared(verdict, "reservations", text)


def _by_name(
    subject: str,
    old: Mapping[str, T],
    new: Mapping[str, T],
    changes: Callable[[T, T], Iterable[tuple[Verdict, str]]],
    *,
    added: Verdict = Verdict.SAME,
) -> Iterator[Declared]:
    """Yield what is new, what is removed, and what changed about the others."""
    for name, one in new.items():
        if name not in old:
            yield Declared(added, subject, f"`{name}` is new")
            continue
        for verdict, text in changes(old[name], one):
            yield Declared(verdict, subject, f"`{name}`: {text}")
    for name in old:
        if name not in new:
            yield Declared(Verdict.SAME, subject, f"`{name}` is removed")


def _filter(old: Policy, new: Policy) -> Iterator[Declared]:
    if old.filter_name != new.filter_name:
        text = f"{old.filter_name} -> {new.filter_name}; rules are compared under both"
        yield Declared(Verdict.SAME, "filter", text)
    if old.report_delta != new.report_delta:
        text = (
            f"losses are shown at delta {shown(new.report_delta)}, before at"
            f" {shown(old.report_delta)}"
        )
        yield Declared(Verdict.SAME, "filter", text)


# --- units --------------------------------------------------------------------


def _units(old: Vocabulary, new: Vocabulary) -> Iterator[Declared]:
    olds = {unit: old.unit_facts.get(unit) for unit in old.units}
    news = {unit: new.unit_facts.get(unit) for unit in new.units}

    def changes(unit: str) -> Iterator[tuple[Verdict, str]]:
        yield from _relation(old.relation(unit), new.relation(unit))
        one, other = olds[unit], news[unit]
        if one is not None and other is not None:
            yield from _unit_facts(one, other)
        above, was = (v.covers.get(unit, frozenset()) - {unit} for v in (new, old))
        if above != was:
            text = f"covered by {listed(above)}, before by {listed(was)}"
            yield Verdict.CHANGED, text

    yield from _by_name(
        "unit",
        {unit: unit for unit in olds},
        {unit: unit for unit in news},
        lambda unit, _: changes(unit),
    )


def _relation(old: str, new: str) -> Iterator[tuple[Verdict, str]]:
    if old == new:
        return
    # Even where more is neighboring now, other units may be charged less than before:
    # one change of this unit can make theirs, where it took two.
    yield Verdict.CHANGED, f"neighbors {old} -> {new}"


def _unit_facts(old: Unit, new: Unit) -> Iterator[tuple[Verdict, str]]:
    for attribute in ("id", "period", "column"):
        was, now = getattr(old, attribute), getattr(new, attribute)
        if was != now:
            yield Verdict.CHANGED, f"{attribute} {shown(was)} -> {shown(now)}"
    for cover in sorted(old.groups.keys() | new.groups.keys()):
        was, now = old.groups.get(cover), new.groups.get(cover)
        if was != now:
            text = f"instances in one of `{cover}`: {shown(was)} -> {shown(now)}"
            yield Verdict.CHANGED, text


# --- words --------------------------------------------------------------------


def _label_changes(old: Label, new: Label) -> Iterator[tuple[Verdict, str]]:
    added = [value for value in new.values if value not in old.values]
    gone = [value for value in old.values if value not in new.values]
    if added:
        yield Verdict.SAME, f"new values {listed(added)}"
    if gone:
        # They leave the rules that they were counted by.
        yield (
            Verdict.CHANGED,
            f"values {listed(gone)} removed; past ones read as {new.default}",
        )
    if old.default != new.default:
        yield Verdict.CHANGED, f"default {old.default} -> {new.default}"


def _categories(old: Policy, new: Policy) -> Iterator[Declared]:
    def changes(was: str, now: str) -> Iterator[tuple[Verdict, str]]:
        if was != now:
            yield Verdict.SAME, f"risk {was} -> {now}"

    yield from _by_name("category", old.categories, new.categories, changes)


def _attributes(old: Policy, new: Policy) -> Iterator[Declared]:
    def changes(was: Attribute, now: Attribute) -> Iterator[tuple[Verdict, str]]:
        if was.risk != now.risk:
            yield Verdict.SAME, f"risk {was.risk} -> {now.risk}"
        if was.static != now.static:
            kinds = ("static", "timed") if was.static else ("timed", "static")
            yield Verdict.CHANGED, f"{kinds[0]} -> {kinds[1]}"
        memberships = {**(was.memberships or {}), **(now.memberships or {})}
        for category in memberships:
            before, after = was.level(category), now.level(category)
            if before != after:
                one, other = (shown(x.value if x else None) for x in (before, after))
                yield Verdict.SAME, f"in category {category}: {one} -> {other}"

    yield from _by_name("attribute", old.attributes, new.attributes, changes)


def _extensions(old: Policy, new: Policy) -> Iterator[Declared]:
    def changes(
        was: tuple[str, ...], now: tuple[str, ...]
    ) -> Iterator[tuple[Verdict, str]]:
        if set(was) != set(now):
            yield Verdict.SAME, f"settings {listed(was)} -> {listed(now)}"

    olds, news = (
        {one.name: tuple(s.name for s in one.settings) for one in policy.extensions}
        for policy in (old, new)
    )
    yield from _by_name("extension", olds, news, changes)
    before, after = [x for x in olds if x in news], [x for x in news if x in olds]
    if before != after:
        text = f"order {listed(before)} -> {listed(after)}"
        yield Declared(Verdict.SAME, "extension", text)


# --- the population -----------------------------------------------------------


def _partition_changes(old: Partition, new: Partition) -> Iterator[tuple[Verdict, str]]:
    for field in fields(Partition):
        was, now = getattr(old, field.name), getattr(new, field.name)
        if field.name not in ("mark", "was") and was != now:
            yield Verdict.CHANGED, f"{field.name} {shown(was)} -> {shown(now)}"
    for step in new.was:
        if step not in old.was:
            text = f"{_values_text(step.old)} may stand for {_values_text(step.now)}"
            yield Verdict.CHANGED, text


def _values_text(values: Values) -> str:
    return listed(
        [one if isinstance(one, str) else f"{one[0]} to {one[1]}" for one in values]
    )


def _groups(old: Policy, new: Policy) -> Iterator[Declared]:
    was, now = (one.vocabulary.population.grouped for one in (old, new))
    if was != now:
        text = f"units in groups: {listed(was)} -> {listed(now)}"
        yield Declared(Verdict.CHANGED, "group", text)


def _time(old: Policy, new: Policy) -> Iterator[Declared]:
    old_detail = old.vocabulary.population.time_detail
    new_detail = new.vocabulary.population.time_detail
    for unit in dict.fromkeys((*new_detail, *old_detail)):
        was, now = old_detail.get(unit), new_detail.get(unit)
        if was != now:
            text = f"periods of `{unit}` told apart: {shown(was)} -> {shown(now)}"
            yield Declared(Verdict.CHANGED, "time", text)
