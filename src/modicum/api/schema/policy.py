"""Rules and policies."""

from __future__ import annotations

from typing import Literal

from modicum.api.schema.common import ApproxDp, Head, NamedPolicy, Problem, Spender
from modicum.api.schema.shape import Amount, Digest, Shape


class RuleStanding(Shape, frozen=True, kw_only=True):
    """Where a rule stands."""

    rule: str
    unit: str
    stage: Literal["release", "history"]
    cell: str | None
    cells_denying: int
    allowed: bool
    cause: str | None
    measure: str
    spent: Amount
    limit: Amount
    budget: str
    approx_dp: ApproxDp | None
    when: str
    source: tuple[str, ...]
    state: str


class ActivePolicy(Shape, frozen=True, kw_only=True):
    """The policy that holds."""

    name: str
    digest: Digest
    entry: int


class RulePage(Shape, frozen=True, kw_only=True):
    """Where rules stand."""

    policy: NamedPolicy
    active: ActivePolicy | None
    ledger: Head
    releases: int
    denials: int
    rules: tuple[RuleStanding, ...]
    next: str | None


class RuleBalance(Shape, frozen=True, kw_only=True):
    """What the fullest cell of a rule was charged, and by whom.

    Attributes:
        rule: The id of the rule.
        unit: Its privacy unit.
        cell: The cell; None if the rule has one cell only.
        cells: How many cells there are.
        allowed: Whether the rule is within its limit there.
        cause: Why it is over, if that is because `periods` are missing; else None.
        measure: What is compared.
        spent: What was charged.
        limit: What is admitted.
        rho_left: How much rho a Gaussian mechanism may still cost there; None if
            nothing is enforced.
        releases: How many releases were charged there.
        spenders: The largest of them, the largest first.
        nearby: What was charged for others, if segments are too many to separate.
        ledger: The entry that it was computed on.
    """

    rule: str
    unit: str
    cell: str | None
    cells: int
    allowed: bool
    cause: str | None
    measure: str
    spent: Amount
    limit: Amount
    rho_left: Amount | None
    releases: int
    spenders: tuple[Spender, ...]
    nearby: Amount
    ledger: Head


class PolicyItem(Shape, frozen=True, kw_only=True):
    """A policy that is or was active."""

    name: str
    digest: Digest
    entry: int
    active: bool
    reason: str
    accepted: tuple[str, ...]


class PolicyList(Shape, frozen=True, kw_only=True):
    """The policies that were active, oldest first."""

    policies: tuple[PolicyItem, ...]


class PolicyText(PolicyItem, frozen=True, kw_only=True):
    """A policy with its text."""

    text: str


class Lint(Shape, frozen=True, kw_only=True):
    """What a policy is, as far as it can be told from its text."""

    ok: bool
    name: str
    digest: Digest
    rules: int
    release_rules: int
    warnings: tuple[Problem, ...]


class UnitCounts(Shape, frozen=True, kw_only=True):
    """How many rules of a unit can be the only one to deny."""

    constraining: int
    implied: int


class CompiledRule(Shape, frozen=True, kw_only=True):
    """A rule, and whether it can ever matter."""

    id: str
    stage: Literal["release", "history"]
    scope: str
    context: tuple[str, ...]
    predicate: str
    unit: str
    budget: str
    status: Literal["constraining", "implied"]
    witness: str | None
    about_nothing: bool
    source: tuple[str, ...]
    line: int | None


class CompiledPolicy(Shape, frozen=True, kw_only=True):
    """What a policy compiles to."""

    name: str
    digest: Digest
    filter: str
    base_rules: int
    extensions: dict[str, tuple[str, ...]]
    rules: int
    release_rules: int
    constraining: int
    implied: int
    release_constraining: int
    release_implied: int
    units: dict[str, UnitCounts]
    warnings: tuple[Problem, ...]
    list: tuple[CompiledRule, ...]
    next: str | None


class Rule(CompiledRule, frozen=True, kw_only=True):
    """A rule of the active policy; `standing` is for those over history."""

    standing: RuleStanding | None
    ledger: Head


class PolicyName(Shape, frozen=True, kw_only=True):
    """A policy."""

    name: str
    digest: Digest


class RuleChange(Shape, frozen=True, kw_only=True):
    """How a rule changes."""

    verdict: str
    stage: Literal["release", "history"]
    scope: str
    context: tuple[str, ...]
    unit: str
    old: str | None
    new: str | None
    old_budget: str | None
    new_budget: str | None
    predicate: str | None
    budget: str | None
    covered_by: str | None
    across: tuple[str, ...]


class DeclaredChange(Shape, frozen=True, kw_only=True):
    """How something beside the rules changes."""

    verdict: str
    subject: str
    text: str


class Conflict(Shape, frozen=True, kw_only=True):
    """A rule of the new policy that history exceeds."""

    rule: str
    unit: str
    measure: str
    spent: Amount
    limit: Amount
    budget: str
    fits: str | None
    contributors: tuple[Spender, ...]
    made: bool


class Differences(Shape, frozen=True, kw_only=True):
    """What a new policy tightens and loosens.

    `conflicts` and `problems` are told where the old policy is the active one, to
    whoever may read all releases; else null.
    """

    old: PolicyName
    new: PolicyName
    same_document: bool
    loosens: bool
    counts: dict[str, int]
    rules: tuple[RuleChange, ...]
    declared: tuple[DeclaredChange, ...]
    conflicts: tuple[Conflict, ...] | None
    problems: tuple[Problem, ...] | None
