"""Changes of a policy other than its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TypeVar

from modicum.core.rationals import number_spelled
from modicum.policy.changes.rule_comparison import Verdict, joined_vocabulary
from modicum.policy.implication.search import implies
from modicum.policy.model import (
    Approval,
    Attribute,
    Guard,
    Policy,
    ReservationBound,
    Retired,
    RotationRule,
)
from modicum.policy.predicates import predicate_text
from modicum.release import Label, Partition, Unit, Vocabulary
from modicum.release.parts import Values, merged


@dataclass(frozen=True, slots=True)
class Declared:
    """A change other than of rules.

    Attributes:
        verdict: `TIGHTER` or `LOOSER` where that is clear; `CHANGED` where it may
            loosen something; `SAME` where it cannot change a decision by itself,
            or does so only by rules, which are compared one by one.
        subject: Its subject: `filter`, `unit`, `label`, `attribute`, `category`,
            `extension`, `guard`, `role`, `key`, `approval`, `activation`, `invariant`,
            `partition`, `group`, `time`, `rotation`, `reservations`,
            `requester_days` or `unmatched`.
        text: The change, in one line.
    """

    verdict: Verdict
    subject: str
    text: str


def shown(value: object) -> str:
    """Return a value as text."""
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return listed(value)
    return str(value)


def listed(names: Iterable[object]) -> str:
    """Return names as text: a list in its order, others sorted."""
    texts = [str(one) for one in names]
    kept = texts if isinstance(names, list | tuple) else sorted(texts)
    return ", ".join(kept[:10]) + (", …" if len(kept) > 10 else "") or "nothing"


def checked_differences(old: Policy, new: Policy) -> Iterator[Declared]:
    """Yield the changes of guards, people and invariants."""
    yield from _guards(old, new)
    yield from _roles(old, new)
    yield from _keys(old, new)
    yield from _owners(old, new)
    yield from _approvals(old, new)
    yield from _activation(old, new)
    yield from _invariants(old, new)


def _guards(old: Policy, new: Policy) -> Iterator[Declared]:
    vocabulary = joined_vocabulary(old.vocabulary, new.vocabulary)
    before = {guard.name: guard for guard in old.guards}
    after = {guard.name: guard for guard in new.guards}
    for name, guard in after.items():
        if name not in before:
            text = f"`{name}` is new: requires {predicate_text(guard.unless)}"
            yield Declared(Verdict.TIGHTER, "guard", text)
        elif before[name].unless != guard.unless:
            verdict = _guard_verdict(before[name], guard, vocabulary)
            text = f"`{name}` requires {predicate_text(guard.unless)}"
            yield Declared(verdict, "guard", text)
        elif before[name].message != guard.message:
            yield Declared(Verdict.SAME, "guard", f"`{name}` has another message")
    for name in before:
        if name not in after:
            yield Declared(Verdict.LOOSER, "guard", f"`{name}` is removed")


def _guard_verdict(old: Guard, new: Guard, vocabulary: Vocabulary) -> Verdict:
    tight = implies(new.unless, old.unless, vocabulary)
    loose = implies(old.unless, new.unless, vocabulary)
    if tight:
        return Verdict.SAME if loose else Verdict.TIGHTER
    return Verdict.LOOSER if loose else Verdict.CHANGED


def _roles(old: Policy, new: Policy) -> Iterator[Declared]:
    """Yield the people who gained or lost a role."""
    before, after = old.roles or {}, new.roles or {}
    for role in dict.fromkeys((*after, *before)):
        was, now = before.get(role, ()), after.get(role, ())
        gone = [one for one in was if one not in now]
        come = [one for one in now if one not in was]
        if come:  # More people may approve.
            yield Declared(Verdict.LOOSER, "role", f"`{role}`: adds {listed(come)}")
        if gone:
            yield Declared(Verdict.TIGHTER, "role", f"`{role}`: drops {listed(gone)}")


def _keys(old: Policy, new: Policy) -> Iterator[Declared]:
    """Yield who must now sign, with which keys, and who no longer must.

    With more keys, more may sign in a person's name; with fewer, earlier approvals may
    no longer count.
    """
    for person in dict.fromkeys((*new.keys, *old.keys)):
        was, now = old.keys.get(person), new.keys.get(person)
        if was is None:
            text = f"`{person}` must sign their approvals"
            yield Declared(Verdict.TIGHTER, "key", text)
        elif now is None:
            text = f"`{person}` need no longer sign"
            yield Declared(Verdict.LOOSER, "key", text)
        else:
            come = [f"{one[:12]}…" for one in now if one not in was]
            gone = [f"{one[:12]}…" for one in was if one not in now]
            if come:
                text = f"`{person}` may also sign with {listed(come)}"
                yield Declared(Verdict.LOOSER, "key", text)
            if gone:
                text = f"`{person}` may not sign with {listed(gone)}"
                yield Declared(Verdict.TIGHTER, "key", text)


def _owners(old: Policy, new: Policy) -> Iterator[Declared]:
    """Yield who no longer may approve what a program requests, and who may again."""
    for actor in dict.fromkeys((*new.owners, *old.owners)):
        was, now = old.owners.get(actor, ()), new.owners.get(actor, ())
        come = [one for one in now if one not in was]
        gone = [one for one in was if one not in now]
        if come:
            text = f"`{actor}` is owned by {listed(come)}, who cannot approve for it"
            yield Declared(Verdict.TIGHTER, "owner", text)
        if gone:
            text = f"`{actor}` is no longer owned by {listed(gone)}"
            yield Declared(Verdict.LOOSER, "owner", text)


def _activation(old: Policy, new: Policy) -> Iterator[Declared]:
    """Yield the changes of who must approve the next policy."""
    was, now = old.activation, new.activation
    vocabulary = joined_vocabulary(old.vocabulary, new.vocabulary)
    if now is not None and (was is None or not _no_looser(was, now, vocabulary)):
        text = f"needed for the next policy: {_people_text(now)}"
        yield Declared(Verdict.TIGHTER, "activation", text)
    if was is not None and (now is None or not _no_looser(now, was, vocabulary)):
        text = f"no longer needed for the next policy: {_people_text(was)}"
        yield Declared(Verdict.LOOSER, "activation", text)


def _approvals(old: Policy, new: Policy) -> Iterator[Declared]:
    """Yield approvals that are new, and old ones that no new one includes."""
    vocabulary = joined_vocabulary(old.vocabulary, new.vocabulary)

    def included(one: Approval, others: Iterable[Approval]) -> bool:
        return any(_no_looser(other, one, vocabulary) for other in others)

    for approval in new.approvals:
        if not included(approval, old.approvals):
            text = f"needed now: {_approval_text(approval)}"
            yield Declared(Verdict.TIGHTER, "approval", text)
    for approval in old.approvals:
        if not included(approval, new.approvals):
            text = f"no longer needed: {_approval_text(approval)}"
            yield Declared(Verdict.LOOSER, "approval", text)


def _no_looser(one: Approval, other: Approval, vocabulary: Vocabulary) -> bool:
    """Return whether who satisfies `one` satisfies `other`, wherever it is needed."""
    return (
        one.need >= other.need
        and set(one.roles) <= set(other.roles)
        and one.requester_may_approve <= other.requester_may_approve
        and implies(other.when, one.when, vocabulary)
    )


def _approval_text(approval: Approval) -> str:
    return f"{_people_text(approval)}, when {predicate_text(approval.when)}"


def _people_text(approval: Approval) -> str:
    own = "" if approval.requester_may_approve else ", not the requester"
    return f"{approval.need} of {' or '.join(approval.roles)}{own}"


def _invariants(old: Policy, new: Policy) -> Iterator[Declared]:
    before, after = old.disclosed_invariants, new.disclosed_invariants
    for invariant in after:
        if invariant not in before:
            text = f"`{invariant}` is published exactly"
            yield Declared(Verdict.LOOSER, "invariant", text)
    for invariant in before:
        if invariant not in after:
            text = f"`{invariant}` is no longer listed"
            yield Declared(Verdict.SAME, "invariant", text)


_SUBJECT = "rotation"


def turn_differences(old: Policy, new: Policy) -> Iterator[Declared]:
    """Yield the changes of the unlocked fraction of user groups' budgets.

    And of who may open rounds, each of which unlocks more. More at one age and less at
    another are two changes, so that a looser one is never hidden behind a tighter one;
    likewise for roles.
    """
    was, now = old.rotation, new.rotation
    if was is None and now is not None:
        text = f"is new: {_rotation_text(now)}"
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
    """Yield who gained or lost permission to open rounds."""
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
    # Older groups are retired under both, which is a separate change.
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
        text = f"{step}: the unlocked share is the same at every age"
        yield Declared(Verdict.SAME, _SUBJECT, text)


def _unlocked(rotation: RotationRule, age: int) -> Fraction:
    """Return the unlocked fraction of a group of an age; all once it has retired."""
    if age > rotation.schedule.rounds:
        return Fraction(rotation.retired is Retired.FIRST_COME)
    return rotation.schedule.share(age)


def _ages(ages: list[int]) -> str:
    spans = [
        str(low) if low == high else f"{low} to {high}"
        for low, high in merged([(age, age) for age in ages])
    ]
    return f"age{'' if len(ages) == 1 else 's'} {', '.join(spans)}"


def _rotation_text(rotation: RotationRule) -> str:
    schedule, openers = rotation.schedule, rotation.opened_by
    by = "" if openers is None else f", rounds opened by {' or '.join(openers)}"
    return (
        f"active {schedule.rounds}, slack {number_spelled(schedule.slack)},"
        f" retired {rotation.retired.value}{by}"
    )


__all__ = ["Declared", "declared_differences"]

T = TypeVar("T")


def declared_differences(old: Policy, new: Policy) -> Iterator[Declared]:
    """Yield the changes other than of rules, in the order of a policy file."""
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
        added=Verdict.CHANGED,  # Distinct values may be charged separately.
    )
    yield from _groups(old, new)
    yield from _time(old, new)
    yield from turn_differences(old, new)
    yield from _reservations(old, new)
    yield from _requester_days(old, new)


def _requester_days(old: Policy, new: Policy) -> Iterator[Declared]:
    """Yield the changed windows of rules on each release."""
    was, now = (
        {base.name: base.requester_days or 0 for base in one.per_release}
        for one in (old, new)
    )
    for name in dict.fromkeys((*was, *now)):
        before, after = was.get(name, 0), now.get(name, 0)
        if before != after:
            verdict = Verdict.LOOSER if after < before else Verdict.TIGHTER
            text = f"`{name}`: {before or 'none'} -> {after or 'none'}"
            yield Declared(verdict, "requester_days", text)


def _reservations(old: Policy, new: Policy) -> Iterator[Declared]:
    """Yield the changes of the limits on reservations."""
    was, now = (one.reservations or ReservationBound() for one in (old, new))
    for what, before, after in (
        ("share of each limit", was.share or Fraction(1), now.share or Fraction(1)),
        ("days of a reservation", Fraction(was.days), Fraction(now.days)),
        *(
            (
                f"share of data set `{one}`",
                was.data_sets.get(one, Fraction(1)),
                now.data_sets.get(one, Fraction(1)),
            )
            for one in dict.fromkeys((*was.data_sets, *now.data_sets))
        ),
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
    """Yield new, removed and changed items."""
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
    # Even where more tables are neighbors now, other units may be charged less than
    # before: one change of this unit may imply theirs, where it took two.
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


# --- text ---------------------------------------------------------------------


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
    for value, now in new.was:
        if (value, now) not in old.was:
            yield Verdict.CHANGED, f"past {value} counts as {now}"


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
    was, now = old.vocabulary.renamed, new.vocabulary.renamed
    for name in sorted(was.keys() | now.keys()):
        before, after = was.get(name, ()), now.get(name, ())
        if before != after:
            text = f"releases that read it count as reading {listed(after)}"
            yield Declared(Verdict.CHANGED, "attribute", f"was {name}: {text}")


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
            text = f"periods of `{unit}` kept separate: {shown(was)} -> {shown(now)}"
            yield Declared(Verdict.CHANGED, "time", text)
