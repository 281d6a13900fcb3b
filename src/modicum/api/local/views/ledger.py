"""Public forms of the log, the status of rules, and errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

from msgspec.structs import asdict

from modicum.api.local.explanation.denial_text import loss_view
from modicum.api.local.history import counted_releases
from modicum.api.local.ledger_view import LedgerView
from modicum.api.schema import policy as policy_schema
from modicum.api.schema import problem as schema
from modicum.api.schema.ledger import AccessEntry, Entry, Head
from modicum.api.schema.policy import NamedPolicy
from modicum.core.errors import Problem
from modicum.core.rationals import rounded_up
from modicum.ledger import Event, Record, RecordedRelease, RuleLoss, State
from modicum.ledger.decision.amounts import FULL, NEAR, filled
from modicum.ledger.proof.access_trail import AccessEvent
from modicum.ledger.replay.past_names import understated
from modicum.ledger.state.past_filters import summed_deltas
from modicum.policy import CompiledPolicy


def entry_view(record: Record, event: Event) -> Entry:
    """Return an entry as an item of a list."""
    return Entry(
        seq=record.seq,
        at=event.at,
        actor=event.actor,
        kind=event.body.kind,
        what=event.body.summary,
        blocking=getattr(event.body, "blocking", ()),
        unmatched=getattr(event.body, "unmatched", ()),
        hash=record.hash,
    )


def access_entry(record: Record, event: AccessEvent) -> AccessEntry:
    """Return an event of the access trail as it is shown."""
    fields = {**asdict(event), "kind": event.kind.value}
    return AccessEntry(seq=record.seq, hash=record.hash, **fields)


def problems_view(problems: Iterable[Problem]) -> tuple[schema.Problem, ...]:
    """Return mistakes, each with its place."""
    return tuple(
        schema.Problem(
            code=one.code.value,
            message=one.message,
            file=one.mark.file if one.mark else None,
            line=one.mark.line if one.mark else None,
            column=one.mark.column if one.mark else None,
            length=one.mark.length if one.mark else None,
            label=one.label,
            notes=tuple(one.notes),
            help=one.help,
        )
        for one in problems
    )


def status_view(view: LedgerView) -> policy_schema.Status:
    """Return the status of every rule over history."""
    return policy_schema.Status(
        **asdict(policy_view(view.policy(), view.state())),
        rules=tuple(map(standing_view, view.standings())),
        problems=problems_view(understatements(view)),
    )


def understatements(view: LedgerView) -> tuple[Problem, ...]:
    """Return why rules show too little: entries are lost, names or filters changed."""
    state = view.state()

    def releases() -> Iterator[tuple[RecordedRelease, int]]:
        return counted_releases(state, lambda _: view.records(), state.at)

    counted = state.counted_seqs(state.at)
    past = state.policies, counted
    found = understated(*past, releases, view.policy())
    summed = summed_deltas(*past, view.policy())
    return (
        *state.planning.gaps.problems(),
        *(one.problem for one in found),
        *([summed] if summed else ()),
    )


def policy_view(compiled: CompiledPolicy, state: State) -> policy_schema.PolicyStatus:
    """Return the policy that rules are from, and the ledger."""
    active, policy = state.policy, compiled.policy
    return policy_schema.PolicyStatus(
        policy=NamedPolicy(
            name=policy.name,
            digest=policy.digest,
            active=active is not None and active.digest == policy.digest,
        ),
        active=None
        if active is None
        else policy_schema.ActivePolicy(
            name=active.name, digest=active.digest, entry=active.seq
        ),
        ledger=Head(seq=state.seq, head=state.head),
        releases=state.releases.counted,
        denials=state.denials,
    )


def standing_view(loss: RuleLoss) -> policy_schema.RuleStanding:
    """Return the status of a rule."""
    shown = loss_view(loss)
    state, _, rank = fullness(loss)
    return policy_schema.RuleStanding(
        rule=shown.rule,
        unit=shown.unit,
        stage="history",
        cell=shown.cell,
        cells_denying=shown.cells_denying,
        allowed=shown.allowed,
        cause=shown.cause,
        measure=shown.measure,
        spent=shown.together,
        limit=shown.limit,
        budget=shown.budget,
        approx_dp=shown.approx_dp,
        when=shown.when,
        source=shown.source,
        state=state,
        share=-rank if loss.own_filter.enforced else None,
    )


class Fullness(NamedTuple):
    """How full a rule is.

    Attributes:
        state: As a word.
        share: The spent share of its limit: 0 to 1, or 2 if it is over it.
        rank: Where it stands among others: the fullest is the least.
    """

    state: str
    share: Fraction
    rank: float

    @property
    def is_full(self) -> bool:
        """Whether it holds, with next to nothing left."""
        return self.state == "near" and self.share >= FULL


def fullness(loss: RuleLoss) -> Fullness:
    """Return how full a rule is."""
    share = filled(loss)
    if not loss.own_filter.enforced:
        return Fullness("not limited", share, 1.0)
    state = "near" if share >= NEAR else "ok"
    return Fullness(state if loss.allowed else "OVER", share, -rounded_up(share))
