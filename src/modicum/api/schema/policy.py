"""Rules and policies."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from modicum.api.schema.ledger import Head, Spender
from modicum.api.schema.problem import Problem
from modicum.api.schema.shape import Amount, Column, Digest, Shape


class NamedPolicy(Shape, frozen=True, kw_only=True):
    """The policy that an answer is based on.

    Attributes:
        name: Its name.
        digest: Its digest.
        active: Whether it is the ledger's active policy.
    """

    name: str
    digest: Digest
    active: bool


class ApproxDp(Shape, frozen=True, kw_only=True):
    """The tightest known epsilon, for information only.

    Attributes:
        delta: Its δ.
        before: The loss before this release.
        alone: The loss of this release.
        together: The composed loss.
        method: How `together` was computed: `pure`, `zcdp`, `rdp(16)`.
    """

    delta: float
    before: Amount
    alone: Amount
    together: Amount
    method: str


class Approval(Shape, frozen=True, kw_only=True):
    """A required approval.

    Attributes:
        need: The number of approvers.
        roles: The roles of approvers.
        requester_may_approve: Whether the requester counts as an approver.
    """

    need: int
    roles: tuple[str, ...] = msgspec.field(name="from")
    requester_may_approve: bool


class RuleLimit(Shape, frozen=True, kw_only=True):
    """A rule and its limit.

    Attributes:
        rule: Its id.
        unit: Its privacy unit.
        measure: The scale of the amounts: `eps`, `rho`, `mu2` (μ squared), `delta`
            or, where only a part is unlocked, a Rényi order such as `rdp(8)`.
        limit: The maximum charge.
    """

    rule: Annotated[str, Column("RULE", 1)]
    unit: str
    measure: Annotated[str, Column("SCALE", 5, wraps=True, spare=True)]
    limit: Annotated[Amount, Column("LIMIT", 4)]


class RuleSpent(RuleLimit, frozen=True, kw_only=True):
    """The spent budget of a rule in its fullest cell, and its limit.

    Attributes:
        spent: The spent budget.
    """

    spent: Amount


class RuleFinding(RuleLimit, frozen=True, kw_only=True):
    """The state of a rule in its fullest cell.

    Attributes:
        cell: The cell that the amounts are about; None if the rule has one cell only.
        cells_denying: The number of its cells over their limit.
        allowed: Whether it is within its limit.
        cause: Why it is over, if that is because `periods` are missing; else None.
        budget: The budget as a policy writes it.
        approx_dp: The tightest known ε, for information; None without a delta.
        when: The predicate.
        source: The places of its definition, as `file:line:column`.
    """

    cell: Annotated[str | None, Column("FULLEST CELL", 7, wraps=True)]
    cells_denying: int
    allowed: Annotated[bool, Column("", 2, spare=True)]
    cause: str | None
    budget: str
    approx_dp: ApproxDp | None
    when: str
    source: tuple[str, ...]


class RuleStanding(RuleFinding, frozen=True, kw_only=True):
    """The budget status of a rule.

    Attributes:
        stage: Always `history`.
        spent: The spent budget.
        state: `ok`, `near` (from four fifths of the limit), `OVER` or `not limited`.
    """

    stage: Literal["history"]
    spent: Annotated[Amount, Column("SPENT", 3)]
    state: Annotated[str, Column("STATE", 6)]


class ActivePolicy(Shape, frozen=True, kw_only=True):
    """The active policy.

    Attributes:
        name: Its name.
        digest: Its digest.
        entry: The number of the entry that activated it.
    """

    name: str
    digest: Digest
    entry: int


class PolicyStatus(Shape, frozen=True, kw_only=True):
    """The policy and the ledger that an answer is based on.

    Attributes:
        policy: The policy that the rules are from.
        active: The active policy; None if there is none.
        ledger: The last entry.
        releases: The number of counted releases.
        denials: The number of denials.
    """

    policy: NamedPolicy
    active: ActivePolicy | None
    ledger: Head
    releases: int
    denials: int


class Status(PolicyStatus, frozen=True, kw_only=True):
    """The status of every rule over history.

    Attributes:
        rules: The rules, in the policy's order.
        problems: Why rules show less than was released, if they do.
    """

    rules: tuple[RuleStanding, ...]
    problems: tuple[Problem, ...]


class RulePage(PolicyStatus, frozen=True, kw_only=True):
    """Some of the rules over history, in the policy's order.

    Attributes:
        rules: The rules.
        next: The cursor of the next page; None at the end.
    """

    rules: tuple[RuleStanding, ...]
    next: str | None


class RuleBalance(RuleSpent, frozen=True, kw_only=True):
    """The charge of the fullest cell of a rule, by release.

    Attributes:
        cell: The cell; None if the rule has one cell only.
        cells: The number of cells.
        allowed: Whether the rule is within its limit there.
        cause: Why it is over, if that is because `periods` are missing; else None.
        rho_left: The rho left for a Gaussian mechanism; None if nothing is enforced.
        releases: The number of releases charged there.
        spenders: The largest of them, the largest first.
        nearby: The charge for others, if segments are too many to separate.
        ledger: The entry that it was computed on.
    """

    cell: str | None
    cells: int
    allowed: bool
    cause: str | None
    rho_left: Amount | None
    releases: int
    spenders: tuple[Spender, ...]
    nearby: Amount
    ledger: Head


class PolicyItem(Shape, frozen=True, kw_only=True):
    """A policy that is or was active.

    Attributes:
        name: Its name.
        digest: Its digest.
        entry: The number of the entry that activated it.
        active: Whether it is active now.
        reason: The reason of its activation; empty for the first.
        accepted: The rules accepted although history exceeded them.
    """

    name: str
    digest: Digest
    entry: int
    active: bool
    reason: str
    accepted: tuple[str, ...]


class PolicyList(Shape, frozen=True, kw_only=True):
    """The policies that were active, oldest first.

    Attributes:
        policies: The policies.
    """

    policies: tuple[PolicyItem, ...]


class PolicyText(PolicyItem, frozen=True, kw_only=True):
    """A policy with its text.

    Attributes:
        text: Its text, whose lines denials name.
    """

    text: str


class Lint(Shape, frozen=True, kw_only=True):
    """Static properties of a policy.

    Attributes:
        ok: True; a policy with mistakes raises an error.
        name: Its name.
        digest: Its digest.
        rules: The number of its rules over history.
        release_rules: The number of its rules about each release alone.
        warnings: Problems that do not keep it from compiling.
    """

    ok: bool
    name: str
    digest: Digest
    rules: int
    release_rules: int
    warnings: tuple[Problem, ...]


class UnitCounts(Shape, frozen=True, kw_only=True):
    """The numbers of rules of a unit that can, or cannot, be the only one to deny.

    Attributes:
        constraining: The number of constraining ones.
        implied: The number of implied ones.
    """

    constraining: int
    implied: int


class RuleScope(Shape, frozen=True, kw_only=True):
    """The scope of a rule.

    Attributes:
        stage: Its stage.
        scope: The id without the settings.
        context: Its settings.
        unit: The privacy unit.
    """

    stage: Literal["release", "history"]
    scope: str
    context: tuple[str, ...]
    unit: str


class CompiledRule(RuleScope, frozen=True, kw_only=True):
    """A rule and whether it can have an effect.

    Attributes:
        id: The id.
        predicate: The mechanisms that it matches.
        budget: The limit.
        status: Whether another rule implies it.
        witness: The id of a constraining rule that implies it; None if there is none.
        about_nothing: Whether no mechanism can match it, so that it never denies.
        source: As `file:line:column`, the base policy and its settings.
        line: The line of the base policy.
    """

    id: str
    predicate: str
    budget: str
    status: Literal["constraining", "implied"]
    witness: str | None
    about_nothing: bool
    source: tuple[str, ...]
    line: int | None


class RuleCounts(Shape, frozen=True, kw_only=True):
    """The numbers of rules of a policy.

    Attributes:
        rules: Rules over history.
        release_rules: Rules that judge each release alone.
        constraining: Rules over history that can be the only one to deny.
        implied: Rules over history that cannot.
        release_constraining: The same of the rules that judge each release alone.
        release_implied: The same of those.
    """

    rules: int
    release_rules: int
    constraining: int
    implied: int
    release_constraining: int
    release_implied: int


class PolicySummary(RuleCounts, frozen=True, kw_only=True):
    """A compiled policy without its rules.

    Attributes:
        name: The policy's name.
        digest: Its digest.
        filter: Its filter.
        base_rules: Rules before the extensions.
        extensions: By name.
        units: The rules over history, by privacy unit.
        warnings: As for a policy that was checked.
    """

    name: str
    digest: Digest
    filter: str
    base_rules: int
    extensions: dict[str, tuple[str, ...]]
    units: dict[str, UnitCounts]
    warnings: tuple[Problem, ...]


class CompiledPolicy(PolicySummary, frozen=True, kw_only=True):
    """A compiled policy.

    Attributes:
        list: All rules, those about each release alone last.
    """

    list: tuple[CompiledRule, ...]


class CompiledPage(CompiledPolicy, frozen=True, kw_only=True):
    """A compiled policy; `list` holds one page of its rules.

    Attributes:
        next: The cursor of the next page; None at the end.
    """

    next: str | None


class Rule(CompiledRule, frozen=True, kw_only=True):
    """A rule of the active policy; `standing` is present for rules over history.

    Attributes:
        standing: Its status; None for rules about each release alone.
        ledger: The history that it was computed on.
    """

    standing: RuleStanding | None
    ledger: Head


class PolicyName(Shape, frozen=True, kw_only=True):
    """A policy.

    Attributes:
        name: Its name.
        digest: Its digest.
    """

    name: str
    digest: Digest


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


class Replayed(Shape, frozen=True, kw_only=True):
    """What another policy would have decided about one attempt.

    Attributes:
        entry: The entry of the attempt.
        release: The id of the release.
        then: The recorded outcome.
        blocking_then: The rules that denied it then.
        decision: The decision under the other policy.
        blocking: The rules of the other policy that deny it.
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
