"""The contents of a statement: the check, the history, the status of rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from modicum.accounting.budgets import ApproxBudget, budget_text
from modicum.api.local.explanation.denial_text import amount_text, ordered
from modicum.core.rationals import brief, number_spelled
from modicum.ledger import RecordedRelease, RuleLoss
from modicum.ledger.decision.amounts import NEAR, amounts, filled
from modicum.ledger.state.past_filters import Era, promised_delta
from modicum.policy import CompiledPolicy
from modicum.release.parts import part_to_plain
from modicum.reports.approval_cases import case_to_dict, vote_to_dict
from modicum.reports.escrow_json import escrow_to_dict
from modicum.reports.timeline import Timeline
from modicum.storage.proofs.verification import Verified


@dataclass(frozen=True, slots=True)
class Accepted:
    """The excess of a rule over its limit when it was accepted.

    Past releases recorded later may add to it, so it is shown beside the present
    charge.

    Attributes:
        seq: The entry that activated the policy.
        scale: The scale that `spent` is on.
        spent: The charge of the fullest cell then, for display.
        number: The same as a JSON number.
        denying: How many cells were over the limit.
    """

    seq: int
    scale: str
    spent: str
    number: float | str
    denying: int


@dataclass(frozen=True, slots=True)
class PastLimit:
    """A limit that a rule had since the first release that counts.

    Attributes:
        seq: The entry that activated it.
        budget: The limit, as a policy writes it; empty if there was no such rule.
        filter: The filter of its delta; empty if it has none.
    """

    seq: int
    budget: str
    filter: str

    @property
    def text(self) -> str:
        """The limit and its filter, as text."""
        filtered = f" by {self.filter}" if self.filter else ""
        return f"{self.budget or 'no limit'}{filtered}"


@dataclass(frozen=True, slots=True)
class RuleLine:
    """The status of one rule.

    Attributes:
        id: Its id.
        unit: Its privacy unit.
        about: Its scope, as a predicate.
        budget: Its budget.
        scale: The scale that `spent` and `limit` are on.
        spent: The charge, for display.
        limit: The maximum charge, for display.
        numbers: The same two as JSON numbers, in the order of the exact ones.
        share: Which part of the limit is spent, 0 to 1; 2 if it is over.
        state: `over`, `near`, `ok` or `not limited`.
        accepted: The excess accepted at activation of the policy; None if there was
            none.
        cell: The part of the data with the highest charge, as text; empty if the rule
            has one sum for all.
        denying: How many such parts are over the limit.
        limits: Its limits since the first release that counts, oldest first; one if it
            never changed.
        delta: The delta that all filters of these promise together; None without one.
    """

    id: str
    unit: str
    about: str
    budget: str
    scale: str
    spent: str
    limit: str
    numbers: tuple[float | str, float | str]
    share: Fraction
    state: str
    accepted: Accepted | None
    cell: str = ""
    denying: int = 0
    limits: tuple[PastLimit, ...] = ()
    delta: Fraction | None = None

    @property
    def changes(self) -> str:
        """How its limit changed, as text; empty if it did not."""
        if len(self.limits) < 2:
            return ""
        steps = [self.limits[0].text]
        steps += (f"since entry {one.seq} {one.text}" for one in self.limits[1:])
        if self.delta is not None:
            steps.append(f"delta {number_spelled(self.delta)} in all")
        return ", ".join(steps)


@dataclass(frozen=True, slots=True)
class Statement:
    """The contents of a statement.

    Attributes:
        source: The source: a bundle or a ledger.
        verified: The result of checking it.
        story: The history.
        policy: The active policy's name, digest and disclosed invariants.
        rules: The status of every rule over history: those over their limit first, then
            by the fraction spent.
    """

    source: str
    verified: Verified
    story: Timeline
    policy: CompiledPolicy
    rules: tuple[RuleLine, ...]

    @property
    def over(self) -> tuple[RuleLine, ...]:
        """The rules that are beyond their limit."""
        return tuple(rule for rule in self.rules if rule.state == "over")

    @property
    def given_up(self) -> int:
        """The number of canceled or expired reservations."""
        kinds = self.story.kinds
        return kinds["release-voided"] + kinds["release-expired"]

    def to_dict(self) -> dict[str, object]:
        """Return the documented JSON form (docs/reference/json.md)."""
        policy, approval_cases = self.policy.policy, self.story.approval_cases
        return {
            "source": self.source,
            "verified": self.verified.to_dict(),
            "as_of": self.story.last.to_dict() if self.story.last else None,
            "policy": {"name": policy.name, "digest": policy.digest},
            "policies": _policies(self.story),
            "rules": [_rule(rule) for rule in self.rules],
            "releases": _releases(self.story),
            "denials": self.story.denials,
            "disclosures": _disclosures(self.story),
            "corrections": _corrections(self.story),
            "disclosed_invariants": list(policy.disclosed_invariants),
            "approvals": [vote_to_dict(one) for one in approval_cases.votes],
            "cases": [case_to_dict(one) for one in approval_cases.in_order],
            "escrow": escrow_to_dict(self.story.escrow),
            "annotations": [
                {**entry.to_dict(), "about": one.about, "text": one.text}
                for entry, one in self.story.remarks
            ],
            "events": dict(sorted(self.story.kinds.items())),
        }


class RuleHistory(NamedTuple):
    """The rules over history, now and before.

    Attributes:
        standings: The status of every rule.
        accepted: The same of accepted rules, at the time of their acceptance.
        past: The policies since the first release that counts, oldest first.
    """

    standings: Iterable[RuleLoss]
    accepted: Iterable[RuleLoss]
    past: Sequence[Era]


def statement_of(
    source: str,
    verified: Verified,
    story: Timeline,
    policy: CompiledPolicy,
    rules: RuleHistory,
) -> Statement:
    """Return the statement about a log."""
    seq = story.activations[-1][0].seq if story.activations else 0
    then = {loss.rule.id: _accepted(loss, seq) for loss in rules.accepted}
    lines = [
        _line(loss, then.get(loss.rule.id), rules.past) for loss in rules.standings
    ]
    lines.sort(key=lambda line: (-line.share, line.id))
    return Statement(source, verified, story, policy, tuple(lines))


def _accepted(loss: RuleLoss, seq: int) -> Accepted:
    found = amounts(loss)
    spent = amount_text(found.together, found.scale)
    number, _ = ordered(found.together, found.limit, found.scale)
    return Accepted(seq, _scale(loss, found.measure), spent, number, loss.cells_denying)


def _line(loss: RuleLoss, accepted: Accepted | None, past: Sequence[Era]) -> RuleLine:
    found, share = amounts(loss), filled(loss)
    return RuleLine(
        id=loss.rule.id,
        unit=loss.rule.unit,
        about=loss.rule.when,
        budget=budget_text(loss.rule.budget),
        scale=_scale(loss, found.measure),
        spent=amount_text(found.together, found.scale),
        limit=amount_text(found.limit, found.scale),
        numbers=ordered(found.together, found.limit, found.scale),
        share=share,
        state=_state(loss, share),
        accepted=accepted,
        cell=loss.cell,
        denying=loss.cells_denying,
        limits=tuple(_limits(loss.rule.id, past)),
        delta=_promised(loss, past),
    )


def _limits(rule: str, past: Sequence[Era]) -> Iterator[PastLimit]:
    """Yield the limits of a rule, each where it differs from the one before."""
    last: tuple[str, str] | None = None
    for era in past:
        budget = era.compiled.rules.limit(rule)
        shown = budget_text(budget) if budget else ""
        now = shown, era.filter if isinstance(budget, ApproxBudget) else ""
        if now != last:
            yield PastLimit(era.seq, *now)
        last = now


def _promised(loss: RuleLoss, past: Sequence[Era]) -> Fraction | None:
    limit = loss.rule.budget
    if not isinstance(limit, ApproxBudget):
        return None
    return promised_delta(loss.rule.id, limit, past)


def _scale(loss: RuleLoss, measure: str) -> str:
    delta = loss.report_delta
    at = f" at delta {brief(delta)}" if measure == "eps" and delta is not None else ""
    return f"{measure}{at}"


def _state(loss: RuleLoss, share: Fraction) -> str:
    if not loss.own_filter.enforced:
        return "not limited"
    if not loss.allowed:
        return "over"
    return "near" if share >= NEAR else "ok"


# --- as JSON -----------------------------------------------------------------


def _policies(story: Timeline) -> list[dict[str, object]]:
    return [
        {
            **entry.to_dict(),
            "name": one.name,
            "digest": one.digest,
            "reason": one.reason,
            "accepted": list(one.accepted),
        }
        for entry, one in story.activations
    ]


def _rule(rule: RuleLine) -> dict[str, object]:
    spent, limit = rule.numbers
    return {
        "rule": rule.id,
        "unit": rule.unit,
        "when": rule.about,
        "budget": rule.budget,
        "scale": rule.scale,
        "spent": spent,
        "limit": limit,
        "state": rule.state,
        "accepted": rule.accepted is not None,
        "accepted_at": _accepted_to_dict(rule.accepted),
        "cell": rule.cell or None,
        "cells_denying": rule.denying,
        "limits": [
            {
                "entry": one.seq,
                "budget": one.budget or None,
                "filter": one.filter or None,
            }
            for one in rule.limits
        ],
        "delta": None if rule.delta is None else number_spelled(rule.delta),
    }


def _accepted_to_dict(accepted: Accepted | None) -> dict[str, object] | None:
    if accepted is None:
        return None
    return {
        "entry": accepted.seq,
        "scale": accepted.scale,
        "spent": accepted.number,
        "cells_denying": accepted.denying,
    }


def _releases(story: Timeline) -> list[dict[str, object]]:
    return [
        {
            "release": one.id,
            "status": one.status,
            **one.recorded.to_dict(),
            "changed_at": one.changed_at,
            "mechanisms": list(one.mechanisms),
            "attributes": list(one.attributes),
            "metadata": dict(sorted(one.metadata.items())),
            "policy": one.policy,
            "approved_by": list(one.approved_by),
            "assumptions": list(one.assumptions),
            "reason": one.reason,
        }
        for one in story.releases.values()
    ]


def _corrections(story: Timeline) -> list[dict[str, object]]:
    return [
        {
            "release": one.body.release.id,
            "requested": {**one.requested.to_dict(), "reason": one.why},
            "recorded": {**one.entry.to_dict(), "reason": one.body.reason},
            "approved_by": list(one.approved_by),
            "before": _periods(one.body.before),
            "now": _periods(one.body.release),
        }
        for one in story.corrections
    ]


def _periods(release: RecordedRelease) -> list[dict[str, object]]:
    return [
        {
            "mechanism": one.description.get("name"),
            "periods": part_to_plain(one.part)["periods"],
        }
        for one in release.mechanisms
    ]


def _disclosures(story: Timeline) -> list[dict[str, object]]:
    return [
        {
            **entry.to_dict(),
            "id": one.id,
            "what": one.what,
            "attributes": list(one.attributes),
            "part": part_to_plain(one.part),
            "reason": one.reason,
            "metadata": dict(sorted(one.metadata.items())),
        }
        for entry, one in story.disclosures
    ]
