"""Decisions and releases."""

from __future__ import annotations

from typing import Literal

from modicum.server.models.shared_forms import (
    Amount,
    Approval,
    Digest,
    Form,
    Head,
    NamedPolicy,
    OpenForm,
    Plain,
)

Status = Literal[
    "checked",
    "denied",
    "reserved",
    "started",
    "posted",
    "recorded",
    "voided",
    "expired",
]


class Sums(Form):
    """The sum that is nearest to its cap."""

    coordinate: str
    before: Amount
    alone: Amount
    together: Amount
    cap: Amount


class ApproxDp(Form):
    """The tightest known epsilon, for information."""

    delta: float
    before: Amount
    alone: Amount
    together: Amount
    method: str


class Loss(Form):
    """What a rule says to a release."""

    rule: str
    unit: str
    stage: Literal["release", "history"]
    cell: str | None
    cells_denying: int
    allowed: bool
    undated: list[str]
    cause: str | None
    unlocked: float
    measure: str
    before: Amount
    alone: Amount
    together: Amount
    limit: Amount
    budget: str
    filter: Sums | None
    approx_dp: ApproxDp | None
    when: str
    source: list[str]


class RuleLinesForm(Form):
    """What is said about a rule; about none, if it is not named."""

    rule: str
    lines: list[str]


class AddedForm(Form):
    """What the log tells about a denial, in words."""

    rules: list[RuleLinesForm]
    closest: list[str]


class WordsForm(Form):
    """A decision in words, line by line; `added` belongs among them."""

    headline: str
    reasons: list[RuleLinesForm]
    rest: list[str]
    added: AddedForm | None


class DecisionForm(Form):
    """The answer to a release."""

    decision: Literal["allow", "deny"]
    release: str
    status: Status
    retry: bool
    blocking: list[str]
    over_limit: list[str]
    losses: list[Loss] | None
    uncovered: list[str]
    rounded: list[str]
    policy: NamedPolicy
    ledger: Head
    expires_at: str | None
    approvals: list[Approval]
    notices: list[str]
    explanation: Plain | None
    words: WordsForm | None = None


class ListedRelease(Form):
    """Where a release stands."""

    release: str
    status: Status
    entry: int
    day: str
    expires_at: str | None


class ReleasePage(Form):
    """Releases, oldest first."""

    releases: list[ListedRelease]
    next: str | None
    ledger: Head


class HappenedForm(Form):
    """An entry about a release."""

    entry: int
    at: str
    actor: str
    kind: str
    approved_by: list[str]
    blocking: list[str]
    reason: str | None


class ReleaseForm(Form):
    """A release: what it is, what it costs, and its story."""

    release: str
    status: Status
    entry: int
    expires_at: str | None
    labels: dict[str, str]
    metadata: dict[str, str]
    content: Digest
    mechanisms: list[Plain]
    story: list[HappenedForm]
    day: str
    recorded: Plain | None = None


class StandingForm(Form):
    """Where a release stands after a step."""

    release: str
    content: Digest
    status: Status
    entry: int
    day: str
    expires_at: str | None


class FitForm(OpenForm):
    """The closest variant that would pass."""


class OptionsForm(Form):
    """Single changes after which it would pass."""

    decision: Literal["allow", "deny"]
    release: str
    options: list[Plain]
    ended_early: bool
    ledger: Head
