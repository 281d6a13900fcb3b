"""What a new policy changes about what is checked beside budgets, and by whom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from modicum.policy.changes.remarks import Declared, listed
from modicum.policy.changes.rule_comparison import Verdict, joined_vocabulary
from modicum.policy.implication.search import implies
from modicum.policy.model import Approval, Guard, Policy
from modicum.policy.predicates import words
from modicum.release import Vocabulary


def checked_differences(old: Policy, new: Policy) -> Iterator[Declared]:
    """Yield what changed about guards, people and invariants.

    Args:
        old: The policy that holds.
        new: The policy that is to hold.
    """
    yield from _guards(old, new)
    yield from _roles(old, new)
    yield from _keys(old, new)
    yield from _approvals(old, new)
    yield from _activation(old, new)
    yield from _invariants(old, new)


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


def _roles(old: Policy, new: Policy) -> Iterator[Declared]:
    """Yield who has a role now and had not, and the other way round."""
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
    """Yield who must sign now and need not before, with which keys, and who need not.

    With more keys, more may sign in somebody's name; with fewer, what they agreed to
    may count no more.
    """
    for person in dict.fromkeys((*new.keys, *old.keys)):
        was, now = old.keys.get(person), new.keys.get(person)
        if was is None:
            text = f"`{person}` must sign what they agree to"
            yield Declared(Verdict.TIGHTER, "key", text)
        elif now is None:
            text = f"`{person}` need not sign any more"
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


def _activation(old: Policy, new: Policy) -> Iterator[Declared]:
    """Yield what changes about who must agree to the next policy."""
    was, now = old.activation, new.activation
    vocabulary = joined_vocabulary(old.vocabulary, new.vocabulary)
    if now is not None and (was is None or not _no_looser(was, now, vocabulary)):
        text = f"needed for the next policy: {_people_words(now)}"
        yield Declared(Verdict.TIGHTER, "activation", text)
    if was is not None and (now is None or not _no_looser(now, was, vocabulary)):
        text = f"no longer needed for the next policy: {_people_words(was)}"
        yield Declared(Verdict.LOOSER, "activation", text)


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
    return f"{_people_words(approval)}, when {words(approval.when)}"


def _people_words(approval: Approval) -> str:
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
