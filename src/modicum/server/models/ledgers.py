"""Entries of the log, rules, and policies."""

from __future__ import annotations

from typing import Literal

from modicum.server.models.shared_forms import (
    Amount,
    Digest,
    Form,
    Head,
    NamedPolicy,
    OpenForm,
    Plain,
    ProblemItem,
)


class EntryForm(Form):
    """An entry of the log."""

    seq: int
    at: str
    actor: str
    kind: str
    what: str
    blocking: list[str]
    hash: Digest


class WholeEntry(EntryForm):
    """An entry as it is stored."""

    payload: str


class RemarkForm(Form):
    """A remark that was added; `about` what, or null for the ledger as a whole."""

    entry: int
    about: str | None


class DisclosureForm(Form):
    """What was disclosed outside differential privacy, as it was recorded."""

    disclosure: str
    entry: int
    attributes: list[str]


class EntryPage(Form):
    """Entries, oldest first."""

    entries: list[EntryForm]
    next: str | None
    ledger: Head


class RuleStanding(Form):
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
    approx_dp: Plain | None
    when: str
    source: list[str]
    state: str


class ActiveForm(Form):
    """The policy that holds."""

    name: str
    digest: Digest
    entry: int


class RulePage(Form):
    """Where rules stand."""

    policy: NamedPolicy
    active: ActiveForm | None
    ledger: Head
    releases: int
    denials: int
    rules: list[RuleStanding]
    next: str | None


class BalanceForm(OpenForm):
    """What a cell of a rule was charged, and by whom."""


class PolicyItem(Form):
    """A policy that is or was active."""

    name: str
    digest: Digest
    entry: int
    active: bool
    reason: str
    accepted: list[str]


class PolicyList(Form):
    """The policies that were active, oldest first."""

    policies: list[PolicyItem]


class PolicyForm(PolicyItem):
    """A policy with its text."""

    text: str


class LintForm(Form):
    """What a policy is, as far as it can be told from its text."""

    ok: bool
    name: str
    digest: Digest
    rules: int
    release_rules: int
    warnings: list[ProblemItem]
