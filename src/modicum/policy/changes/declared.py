"""What a new policy changes beside its rules: words, units, guards, approvals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TypeVar

from modicum.policy.changes.comparison import Verdict, joined_vocabulary
from modicum.policy.implication.search import implies
from modicum.policy.model import Approval, Attribute, Guard, Policy
from modicum.policy.predicates import words
from modicum.release import Label, Partition, Unit, Vocabulary

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Declared:
    """Something that changed beside the rules.

    Attributes:
        verdict: `TIGHTER` or `LOOSER` where that is clear; `CHANGED` where it may
            loosen something; `SAME` where it cannot change a decision by itself,
            or does so only by rules, which are compared one by one.
        subject: What it is about: `filter`, `unit`, `label`, `attribute`,
            `category`, `extension`, `guard`, `approval`, `invariant`, `partition`
            or `time`.
        text: What changed, in one line.
    """

    verdict: Verdict
    subject: str
    text: str


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
    yield from _guards(old, new)
    yield from _approvals(old, new)
    yield from _invariants(old, new)
    yield from _by_name(
        "partition",
        old.vocabulary.population.partitions,
        new.vocabulary.population.partitions,
        _partition_changes,
        added=Verdict.CHANGED,  # What is told apart may be charged apart.
    )
    yield from _time(old, new)


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
            f"losses are shown at delta {_shown(new.report_delta)}, before at"
            f" {_shown(old.report_delta)}"
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
            text = f"covered by {_listed(above)}, before by {_listed(was)}"
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
            yield Verdict.CHANGED, f"{attribute} {_shown(was)} -> {_shown(now)}"
    for cover in sorted(old.groups.keys() | new.groups.keys()):
        was, now = old.groups.get(cover), new.groups.get(cover)
        if was != now:
            text = f"instances in one of `{cover}`: {_shown(was)} -> {_shown(now)}"
            yield Verdict.CHANGED, text


# --- words --------------------------------------------------------------------


def _label_changes(old: Label, new: Label) -> Iterator[tuple[Verdict, str]]:
    added = [value for value in new.values if value not in old.values]
    gone = [value for value in old.values if value not in new.values]
    if added:
        yield Verdict.SAME, f"new values {_listed(added)}"
    if gone:
        # They leave the rules that they were counted by.
        yield (
            Verdict.CHANGED,
            f"values {_listed(gone)} removed; past ones read as {new.default}",
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
                one, other = (_shown(x.value if x else None) for x in (before, after))
                yield Verdict.SAME, f"in category {category}: {one} -> {other}"

    yield from _by_name("attribute", old.attributes, new.attributes, changes)


def _extensions(old: Policy, new: Policy) -> Iterator[Declared]:
    def changes(
        was: tuple[str, ...], now: tuple[str, ...]
    ) -> Iterator[tuple[Verdict, str]]:
        if set(was) != set(now):
            yield Verdict.SAME, f"settings {_listed(was)} -> {_listed(now)}"

    olds, news = (
        {one.name: tuple(s.name for s in one.settings) for one in policy.extensions}
        for policy in (old, new)
    )
    yield from _by_name("extension", olds, news, changes)
    before, after = [x for x in olds if x in news], [x for x in news if x in olds]
    if before != after:
        text = f"order {_listed(before)} -> {_listed(after)}"
        yield Declared(Verdict.SAME, "extension", text)


# --- what is checked beside budgets -------------------------------------------


def _guards(old: Policy, new: Policy) -> Iterator[Declared]:
    vocabulary = joined_vocabulary(old.vocabulary, new.vocabulary)
    before = {guard.name: guard for guard in old.guards}
    after = {guard.name: guard for guard in new.guards}
    for name, guard in after.items():
        if name not in before:
            text = f"`{name}` is new: asks for {words(guard.unless)}"
            yield Declared(Verdict.TIGHTER, "guard", text)
        elif before[name].unless != guard.unless:
            verdict = _guard_verdict(before[name], guard, vocabulary)
            text = f"`{name}` asks for {words(guard.unless)}"
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


def _approvals(old: Policy, new: Policy) -> Iterator[Declared]:
    """Yield approvals that are new, and old ones that no new one includes."""
    vocabulary = joined_vocabulary(old.vocabulary, new.vocabulary)

    def included(one: Approval, others: Iterable[Approval]) -> bool:
        return any(_no_looser(other, one, vocabulary) for other in others)

    for approval in new.approvals:
        if not included(approval, old.approvals):
            text = f"needed now: {_approval_words(approval)}"
            yield Declared(Verdict.TIGHTER, "approval", text)
    for approval in old.approvals:
        if not included(approval, new.approvals):
            text = f"no longer needed: {_approval_words(approval)}"
            yield Declared(Verdict.LOOSER, "approval", text)


def _no_looser(one: Approval, other: Approval, vocabulary: Vocabulary) -> bool:
    """Return whether who satisfies `one` satisfies `other`, wherever it is needed."""
    return (
        one.need >= other.need
        and set(one.roles) <= set(other.roles)
        and one.requester_may_approve <= other.requester_may_approve
        and implies(other.when, one.when, vocabulary)
    )


def _approval_words(approval: Approval) -> str:
    own = "" if approval.requester_may_approve else ", not the requester"
    roles = " or ".join(approval.roles)
    return f"{approval.need} of {roles}{own}, when {words(approval.when)}"


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


def _partition_changes(old: Partition, new: Partition) -> Iterator[tuple[Verdict, str]]:
    for field in fields(Partition):
        was, now = getattr(old, field.name), getattr(new, field.name)
        if field.name != "mark" and was != now:
            yield Verdict.CHANGED, f"{field.name} {_shown(was)} -> {_shown(now)}"


def _time(old: Policy, new: Policy) -> Iterator[Declared]:
    old_detail = old.vocabulary.population.time_detail
    new_detail = new.vocabulary.population.time_detail
    for unit in dict.fromkeys((*new_detail, *old_detail)):
        was, now = old_detail.get(unit), new_detail.get(unit)
        if was != now:
            text = f"periods of `{unit}` told apart: {_shown(was)} -> {_shown(now)}"
            yield Declared(Verdict.CHANGED, "time", text)


def _shown(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return _listed(value)
    return str(value)


def _listed(names: Iterable[object]) -> str:
    shown = [str(one) for one in names]
    kept = shown if isinstance(names, list | tuple) else sorted(shown)
    return ", ".join(kept[:10]) + (", …" if len(kept) > 10 else "") or "nothing"
