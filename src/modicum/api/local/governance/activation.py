"""Activation of a policy: its effect on past releases, and required approvals."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from modicum.api.local.balances import Entry, LedgerBalances, Reader
from modicum.api.local.explanation.conflicts import (
    Conflict,
    Past,
    conflicts,
    questions,
)
from modicum.api.local.governance.approval_cases import (
    active_policy,
    missing_approvals,
    needs_approval,
    reason_text,
)
from modicum.api.local.history import RekeyedHistory, counted_releases
from modicum.core.errors import Code, InputError, Problem, StaleError
from modicum.core.reader import nearest
from modicum.ledger import RecordedRelease
from modicum.ledger.decision.approvals import ApprovalState, policy_approvals
from modicum.ledger.log.events import PolicyActivated
from modicum.ledger.replay.past_names import understated
from modicum.policy import CompiledPolicy
from modicum.policy.changes.differences import Differences, Verdict, differences
from modicum.policy.lint.confusable_names import confusable_between

#: Displayed length of a digest, and the minimum length for lookups.
_DIGEST_SHOWN = 12


@dataclass(frozen=True, slots=True)
class ActivationPreview:
    """The effect of replacing the active policy, as of now.

    Attributes:
        replaced: The active policy.
        successor: The policy that is to hold.
        conflicts: The rules of the successor that history exceeds, in its order.
        made: The ids of those that the change makes: rules that are new or tighter,
            or that history did not exceed before.
        accepted: Those of them that are accepted, in the successor's order; after them
            `attribute:NAME` of dropped attributes that none of the new ones is,
            `unit:NAME` of redefined units, `departed:SCOPE` of rules that past
            releases leave, and `filter:NAME` of a further filter.
        approval_states: The state of the approval that the active policy requires.
        problems: Other obstacles: redefined units, dropped attributes, departed
            releases and a further filter that are not accepted, and new names that
            look like old ones.
        holds_already: Whether the successor is the active policy, and shows all that
            was released.
    """

    replaced: CompiledPolicy
    successor: CompiledPolicy
    conflicts: tuple[Conflict, ...]
    made: frozenset[str]
    accepted: tuple[str, ...]
    approval_states: tuple[ApprovalState, ...]
    problems: tuple[Problem, ...] = ()
    holds_already: bool = False

    @property
    def open_conflicts(self) -> tuple[Conflict, ...]:
        """The conflicts that the change creates and that are not accepted."""
        left = self.made - {*self.accepted}
        return tuple(one for one in self.conflicts if one.rule.id in left)


@dataclass(frozen=True, slots=True)
class Activation:
    """A policy that was activated, or was already active.

    Attributes:
        preview: The effect.
        changed: Whether it was activated just now.
        seq: The number of the last entry.
        head: The hash of that entry.
    """

    preview: ActivationPreview
    changed: bool
    seq: int
    head: str


def preview_activation(
    book: LedgerBalances,
    read: Reader,
    now: str,
    successor: CompiledPolicy,
    *,
    accept: Sequence[str] = (),
    actor: str,
) -> ActivationPreview:
    """Return the effect of replacing the active policy."""
    replaced = book.active()
    assert replaced is not None
    state = book.state
    counted_seqs = state.counted_seqs(now)

    def recorded() -> Iterator[tuple[RecordedRelease, int]]:
        return counted_releases(state, read, now)

    if replaced.policy.digest == successor.policy.digest and not understated(
        state.policies, counted_seqs, recorded, replaced
    ):
        return ActivationPreview(
            replaced, successor, (), frozenset(), (), (), holds_already=True
        )

    def before() -> RekeyedHistory:
        return RekeyedHistory(state, read, now, replaced)

    def after() -> RekeyedHistory:
        return RekeyedHistory(state, read, now, successor, entails=True)

    past = Past(state.policies, counted_seqs, recorded())
    asked = questions(past, (replaced, before), (successor, after), accept)
    found = conflicts(after(), successor)
    known = {one.rule.id for one in conflicts(before(), replaced)} if found else set()
    exceeded = [one.rule.id for one in found]
    made = {one for one in exceeded if one not in known}
    if made != {*exceeded}:
        made |= may_deny_more(differences(replaced, successor)) & {*exceeded}
    return ActivationPreview(
        replaced,
        successor,
        found,
        frozenset(made),
        tuple(_accepted(found, made, asked.names, accept)),
        policy_approvals(successor.policy.digest, replaced.policy, state, actor),
        (*asked.problems, *confusable_between(replaced.policy, successor.policy)),
    )


def may_deny_more(found: Differences) -> frozenset[str]:
    """Return the rules of a new policy that are new, tighter or incomparable."""
    return frozenset(
        change.new
        for change in found.rules
        if change.new and change.verdict is not Verdict.LOOSER
    )


def _accepted(
    found: Sequence[Conflict],
    made: set[str],
    asked: Collection[str],
    accept: Sequence[str],
) -> Iterator[str]:
    """Yield the accepted items: rules by id, questions by name."""
    names = {
        *(one.rule.id for one in found),
        *(one.rule.scope for one in found),
        *asked,
    }
    for given in accept:
        if given not in names:
            raise InputError(
                Problem(
                    Code.UNKNOWN_CHOICE,
                    f"no conflict is named `{given[:200]}`",
                    label=nearest(given, names),
                    help="accept only what is in conflict",
                )
            )
    for one in found:
        if one.rule.id in made and {one.rule.id, one.rule.scope} & {*accept}:
            yield one.rule.id
    yield from (one for one in asked if one in accept)


def refuse_unready(preview: ActivationPreview) -> None:
    """Refuse to activate a policy with missing approvals or open conflicts."""
    problems = (*preview.problems, *map(_to_accept, preview.open_conflicts))
    if problems:
        raise InputError(*problems)
    missing = missing_approvals(preview.approval_states)
    if missing:
        policy = preview.successor.policy
        raise needs_approval(
            f"policy `{policy.name}` ({policy.digest[:12]})",
            missing,
            "modicum policy approve",
        )


def _to_accept(conflict: Conflict) -> Problem:
    problem = conflict.problem
    note = (
        "or accept that it stays over its limit; it then denies what it matches"
        f"{_where(conflict)}:"
        f"  --accept-conflict '{conflict.rule.id}'"
    )
    return replace(problem, notes=(*problem.notes, note))


def _where(conflict: Conflict) -> str:
    return ", in the cells over the limit" if conflict.loss.cell else ""


def activate(
    entry: Entry,
    successor: CompiledPolicy,
    *,
    reason: str,
    accept: Sequence[str] = (),
    replaces: str | None = None,
) -> Activation:
    """Replace the active policy; if it holds already, do nothing."""
    why = reason_text(reason, "activating a policy")
    successor.refuse_mistakes()
    refuse_replaced(active_policy(entry.book), replaces)
    preview = preview_activation(
        entry.book,
        entry.read,
        entry.now,
        successor,
        accept=accept,
        actor=entry.actor,
    )
    state = entry.book.state
    if preview.holds_already:
        return Activation(preview, changed=False, seq=state.seq, head=state.head)
    refuse_unready(preview)
    policy = successor.policy
    entry.add(
        PolicyActivated(policy.digest, policy.name, policy.text, why, preview.accepted)
    )
    return Activation(preview, changed=True, seq=state.seq, head=state.head)


def refuse_replaced(active: CompiledPolicy, replaces: str | None) -> None:
    """Refuse to replace another policy than the one that a change was reviewed for."""
    if replaces is None:
        return
    digest, given = active.policy.digest, replaces.strip().lower()
    if len(given) < _DIGEST_SHOWN or not digest.startswith(given):
        raise StaleError(
            Problem(
                Code.POLICY_STALE,
                f"the ledger's active policy is `{active.policy.name}`"
                f" ({digest[:_DIGEST_SHOWN]}), not {given[:64]}",
                notes=("the review was of a change to another policy",),
                help="review it again:  modicum policy diff active FILE --ledger FILE",
            )
        )
