"""What a policy changes: rules, history under it, conflicts."""

from __future__ import annotations

from typing import Literal

from modicum.api.schema.ledger import Head, Spender
from modicum.api.schema.policy import PolicyName, RuleScope, RuleSpent
from modicum.api.schema.problem import Problem
from modicum.api.schema.shape import Shape


class RuleChange(RuleScope, frozen=True, kw_only=True):
    """The change of a rule.

    Attributes:
        verdict: `tighter`, `looser`, `changed` (neither, or both), `new` or `removed`.
        old: Its id in the old policy; None if it is new.
        new: Its id in the new policy; None if it is removed.
        old_budget: The old limit.
        new_budget: The new limit.
        predicate: The change of its predicate; a wider one is `tighter`.
        budget: The change of its limit, under each policy's filter.
        covered_by: A rule of the new policy that denies all that the old rule denied.
        across: Extensions that only one of the compared policies has.
    """

    verdict: str
    old: str | None
    new: str | None
    old_budget: str | None
    new_budget: str | None
    predicate: str | None
    budget: str | None
    covered_by: str | None
    across: tuple[str, ...]


class DeclaredChange(Shape, frozen=True, kw_only=True):
    """The change of a declaration other than a rule.

    Attributes:
        verdict: `tighter` or `looser` where clear, `changed` where it may be looser,
            `same` where it has no effect by itself.
        subject: `filter`, `unit`, `label`, `category`, `attribute`, `extension`,
            `guard`, `approval`, `role`, `activation`, `invariant`, `partition`,
            `group`, `time` or `rotation`.
        text: The change.
    """

    verdict: str
    subject: str
    text: str


class Conflict(RuleSpent, frozen=True, kw_only=True):
    """A rule of another policy that history exceeds.

    Attributes:
        budget: Its budget.
        fits: The smallest budget that would fit; None if there is none.
        contributors: The releases that were charged there, the largest first.
    """

    budget: str
    fits: str | None
    contributors: tuple[Spender, ...]


class DiffConflict(Conflict, frozen=True, kw_only=True):
    """A conflict; `made` if the change of the policy makes it.

    Attributes:
        made: Whether the change makes it: the rule is new or tighter, or was not
            exceeded before.
    """

    made: bool


class PolicyDiff(Shape, frozen=True, kw_only=True):
    """What a new policy tightens and loosens.

    Attributes:
        old: The active policy.
        new: The one that would.
        same_document: Whether the two are the same but for remarks and order.
        loosens: Whether something that is denied now would be allowed.
        counts: By verdict, how many rules change so.
        rules: The changes of rules.
        declared: Changes of declarations other than rules.
    """

    old: PolicyName
    new: PolicyName
    same_document: bool
    loosens: bool
    counts: dict[str, int]
    rules: tuple[RuleChange, ...]
    declared: tuple[DeclaredChange, ...]


class Differences(PolicyDiff, frozen=True, kw_only=True):
    """What a new policy tightens and loosens, and where history exceeds it.

    Attributes:
        conflicts: The rules that history exceeds, if the old policy is the active one
            and the reader may read all releases; else None.
        problems: Why rules show less than was released; None as for `conflicts`.
    """

    conflicts: tuple[DiffConflict, ...] | None
    problems: tuple[Problem, ...] | None


class PolicyComparison(PolicyDiff, frozen=True, kw_only=True):
    """What a new policy tightens and loosens, and what history is under it.

    Attributes:
        history: History under the new policy; None without a ledger.
        exceeded_before: If there are conflicts, the rules that history exceeds under
            the old policy.
        problems: Those of `history`, and a mistake for each conflict that the change
            makes.
    """

    history: WhatIf | None
    exceeded_before: tuple[str, ...]
    problems: tuple[Problem, ...]


class Replayed(Shape, frozen=True, kw_only=True):
    """What another policy would have decided about one attempt.

    Attributes:
        entry: The entry of the attempt.
        release: The id of the release.
        then: The recorded outcome.
        blocking_then: The rules that denied it then.
        decision: The decision under the other policy.
        blocking: The rules of the other policy that deny it.
        unmatched: The mechanisms that deny it, as no rule of the other policy over
            history limits them.
        guards: The guards that refuse it.
        change: The comparison of the two decisions.
    """

    entry: int
    release: str
    then: str
    blocking_then: tuple[str, ...]
    decision: Literal["allow", "deny"]
    blocking: tuple[str, ...]
    guards: tuple[str, ...]
    change: str
    unmatched: tuple[str, ...] = ()


class Assumption(Shape, frozen=True, kw_only=True):
    """An assumption of a simulation where history lacks the data.

    Attributes:
        kind: `attribute`, `label`, `unit` or `relation`.
        subject: Which one.
        taken: The assumption.
        releases: Of which releases.
    """

    kind: str
    subject: str
    taken: str
    releases: tuple[str, ...]


class Totals(Shape, frozen=True, kw_only=True):
    """The numbers of attempts another policy would have allowed, denied, and so on.

    Attributes:
        attempts: The number of releases requested or recorded.
        allowed: The number that the policy allows.
        denied: The number that it denies.
        denied_now: The number allowed then and denied now.
        allowed_now: The number denied then and allowed now.
        recorded_over: How many recorded ones go over a limit: they count all the same.
    """

    attempts: int
    allowed: int
    denied: int
    denied_now: int
    allowed_now: int
    recorded_over: int


class WhatIf(Shape, frozen=True, kw_only=True):
    """History under another policy.

    Attributes:
        totals: How many releases it would have allowed and denied.
        releases: Each attempt, the oldest first.
        closest: The rules that are nearest to their limit in the end.
        conflicts: The rules that history exceeds.
        assumptions: The assumptions made.
        remarks: Further notes.
        problems: Mistakes.
    """

    totals: Totals
    releases: tuple[Replayed, ...]
    closest: tuple[RuleSpent, ...]
    conflicts: tuple[Conflict, ...]
    assumptions: tuple[Assumption, ...]
    remarks: tuple[str, ...]
    problems: tuple[Problem, ...]


class Simulation(WhatIf, frozen=True, kw_only=True):
    """History of a ledger under another policy.

    Attributes:
        policy: The policy that is tried.
        ledger: The history.
    """

    policy: PolicyName
    ledger: Head
