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
        method: How `together` was computed: `pure`, `zcdp`, `rdp(16)`, or `pld`.
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
        share: The spent share of the limit, rounded up; 2 if it is over it; None if
            nothing is limited.
    """

    stage: Literal["history"]
    spent: Annotated[Amount, Column("SPENT", 3)]
    state: Annotated[str, Column("STATE", 6)]
    share: float | None = None


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
        problems: Why rules show less than was released, or limits hold with a larger
            delta; empty if neither is so.
    """

    rules: tuple[RuleStanding, ...]
    problems: tuple[Problem, ...]


class RulePage(PolicyStatus, frozen=True, kw_only=True):
    """Some of the rules over history.

    Attributes:
        rules: The rules.
        next: The cursor of the next page; None at the end.
        states: The number of rules that match the filters, on all pages, by state.
        full: How many of those that are `near` have spent 99 % of their limit or more.
        units: The units of the policy's rules over history.
        scopes: Their scopes; 500 at most.
        contexts: The settings of their contexts.
    """

    rules: tuple[RuleStanding, ...]
    next: str | None
    states: dict[str, int] = msgspec.field(default_factory=dict)
    full: int = 0
    units: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()


class CellCharge(Shape, frozen=True, kw_only=True):
    """The charge of a cell from an entry on.

    Attributes:
        entry: The number of the entry that recorded a release.
        spent: The charge of the releases up to it that count now.
    """

    entry: int
    spent: Amount


class SegmentBudget(Shape, frozen=True, kw_only=True):
    """What each round left of the budget of a segment.

    Attributes:
        group: The user group; None for everybody, if groups have no budgets of their
            own.
        left: By round, the unspent part of what was unlocked by its end, from 0 to 1;
            None where the group was not active.
    """

    group: int | None
    left: tuple[float | None, ...]


class RuleRounds(Shape, frozen=True, kw_only=True):
    """What each round left of the budget of a rule, by segment.

    Attributes:
        rule: Its id.
        rounds: The ids of the latest 26 rounds, oldest first.
        first: The number of the first of these.
        segments: The latest 60 of those that were active in one of them; of each the
            cell that is the fullest now. Empty if the rule enforces nothing.
        ledger: The entry that it was computed on.
    """

    rule: str
    rounds: tuple[str, ...]
    first: int
    segments: tuple[SegmentBudget, ...]
    ledger: Head


class RuleBalance(RuleSpent, frozen=True, kw_only=True):
    """The charge of the fullest cell of a rule, by release.

    Attributes:
        cell: The cell; None if the rule has one cell only.
        cells: The number of cells.
        allowed: Whether the rule is within its limit there.
        cause: Why it is over, if that is because `periods` are missing; else None.
        rho_left: The rho left for a Gaussian mechanism once the whole budget is
            unlocked; None if nothing is enforced.
        releases: The number of releases charged there.
        spenders: The largest of them, the largest first.
        nearby: The charge for others, if segments are too many to separate.
        ledger: The entry that it was computed on.
        history: How the charge grew, on the same scale, oldest first; the latest 200
            steps. Empty if a step was on another scale, or segments are too many to
            separate.
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
    history: tuple[CellCharge, ...] = ()


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
        binding: The number of binding ones.
        redundant: The number of redundant ones.
    """

    binding: int
    redundant: int


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
        witness: The id of a binding rule that implies it; None if there is none.
        matches_nothing: Whether no mechanism can match it, so that it never denies.
        source: As `file:line:column`, the base policy and its settings.
        line: The line of the base policy.
    """

    id: str
    predicate: str
    budget: str
    status: Literal["binding", "redundant"]
    witness: str | None
    matches_nothing: bool
    source: tuple[str, ...]
    line: int | None


class RuleCounts(Shape, frozen=True, kw_only=True):
    """The numbers of rules of a policy.

    Attributes:
        rules: Rules over history.
        release_rules: Rules that judge each release alone.
        binding: Rules over history that can be the only one to deny.
        redundant: Rules over history that cannot.
        release_binding: The same of the rules that judge each release alone.
        release_redundant: The same of those.
    """

    rules: int
    release_rules: int
    binding: int
    redundant: int
    release_binding: int
    release_redundant: int


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


class DiagramRule(Shape, frozen=True, kw_only=True):
    """A rule in a diagram.

    Attributes:
        rule: Its id.
        budget: The limit.
        witness: The id of a binding rule that implies it; None if it is binding.
    """

    rule: str
    budget: str
    witness: str | None


class DiagramNode(Shape, frozen=True, kw_only=True):
    """Rules about the same mechanisms and unit; usually one.

    Attributes:
        unit: Their privacy unit.
        rules: The rules, in the policy's order.
    """

    unit: str
    rules: tuple[DiagramRule, ...]


class RuleDiagram(Shape, frozen=True, kw_only=True):
    """A Hasse diagram of rules over history: above a rule is what counts more.

    Attributes:
        policy: The policy that the rules are from.
        nodes: The nodes, in the policy's order.
        edges: The numbers, from 0, of a node and of one right above it.
        witness_edges: The edges on a path from a redundant rule to its witness.
    """

    policy: NamedPolicy
    nodes: tuple[DiagramNode, ...]
    edges: tuple[tuple[int, int], ...]
    witness_edges: tuple[tuple[int, int], ...]


class PolicyName(Shape, frozen=True, kw_only=True):
    """A policy.

    Attributes:
        name: Its name.
        digest: Its digest.
    """

    name: str
    digest: Digest
