"""Policies that are compiled and compared, and single rules."""

from __future__ import annotations

from typing import Literal

from modicum.server.models.ledgers import RuleStanding
from modicum.server.models.shared_forms import (
    Amount,
    Digest,
    Form,
    Head,
    Plain,
    ProblemItem,
)


class UnitCounts(Form):
    """How many rules of a unit can be the only one to deny."""

    constraining: int
    implied: int


class CompiledRuleForm(Form):
    """A rule, and whether it can ever matter."""

    id: str
    stage: Literal["release", "history"]
    scope: str
    context: list[str]
    predicate: str
    unit: str
    budget: str
    status: Literal["constraining", "implied"]
    witness: str | None
    about_nothing: bool
    source: list[str]
    line: int | None


class CompiledForm(Form):
    """What a policy compiles to."""

    name: str
    digest: Digest
    filter: str
    base_rules: int
    extensions: dict[str, list[str]]
    rules: int
    release_rules: int
    constraining: int
    implied: int
    release_constraining: int
    release_implied: int
    units: dict[str, UnitCounts]
    warnings: list[ProblemItem]
    list: list[CompiledRuleForm]
    next: str | None


class RuleForm(CompiledRuleForm):
    """A rule of the active policy; `standing` is for those over history."""

    standing: RuleStanding | None
    ledger: Head


class PolicyName(Form):
    """A policy."""

    name: str
    digest: Digest


class RuleChangeForm(Form):
    """How a rule changes."""

    verdict: str
    stage: Literal["release", "history"]
    scope: str
    context: list[str]
    unit: str
    old: str | None
    new: str | None
    old_budget: str | None
    new_budget: str | None
    predicate: str | None
    budget: str | None
    covered_by: str | None
    across: list[str]


class DeclaredChange(Form):
    """How something beside the rules changes."""

    verdict: str
    subject: str
    text: str


class ConflictForm(Form):
    """A rule of the new policy that history exceeds."""

    rule: str
    unit: str
    measure: str
    spent: Amount
    limit: Amount
    budget: str
    fits: str | None
    contributors: list[Plain]
    made: bool


class DifferencesForm(Form):
    """What a new policy tightens and loosens.

    `conflicts` and `problems` are told where the old policy is the active one, to
    whoever may read all releases; else null.
    """

    old: PolicyName
    new: PolicyName
    same_document: bool
    loosens: bool
    counts: dict[str, int]
    rules: list[RuleChangeForm]
    declared: list[DeclaredChange]
    conflicts: list[ConflictForm] | None
    problems: list[Plain] | None
