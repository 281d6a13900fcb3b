"""Decisions and releases."""

from __future__ import annotations

from typing import Literal

from modicum.api.schema.common import Approval, Head, NamedPolicy
from modicum.api.schema.shape import Amount, Digest, Plain, Shape

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


class Sums(Shape, frozen=True, kw_only=True):
    """The sum that is nearest to its cap."""

    coordinate: str
    before: Amount
    alone: Amount
    together: Amount
    cap: Amount


class ApproxDp(Shape, frozen=True, kw_only=True):
    """The tightest known epsilon, for information."""

    delta: float
    before: Amount
    alone: Amount
    together: Amount
    method: str


class Loss(Shape, frozen=True, kw_only=True):
    """What a rule says to a release."""

    rule: str
    unit: str
    stage: Literal["release", "history"]
    cell: str | None
    cells_denying: int
    allowed: bool
    undated: tuple[str, ...]
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
    source: tuple[str, ...]


class RuleLines(Shape, frozen=True, kw_only=True):
    """What is said about a rule; about none, if it is not named."""

    rule: str
    lines: tuple[str, ...]


class DenialDetails(Shape, frozen=True, kw_only=True):
    """What the log tells about a denial, in words."""

    rules: tuple[RuleLines, ...]
    closest: tuple[str, ...]


class DecisionText(Shape, frozen=True, kw_only=True):
    """A decision in words, line by line; `added` belongs among them."""

    headline: str
    reasons: tuple[RuleLines, ...]
    rest: tuple[str, ...]
    added: DenialDetails | None


class Decision(Shape, frozen=True, kw_only=True):
    """The answer to a release."""

    decision: Literal["allow", "deny"]
    release: str
    status: Status
    retry: bool
    blocking: tuple[str, ...]
    over_limit: tuple[str, ...]
    losses: tuple[Loss, ...] | None
    uncovered: tuple[str, ...]
    rounded: tuple[str, ...]
    policy: NamedPolicy
    ledger: Head
    expires_at: str | None
    approvals: tuple[Approval, ...]
    notices: tuple[str, ...]
    explanation: Plain | None
    words: DecisionText | None = None


class ListedRelease(Shape, frozen=True, kw_only=True):
    """Where a release stands."""

    release: str
    status: Status
    entry: int
    day: str
    expires_at: str | None


class ReleasePage(Shape, frozen=True, kw_only=True):
    """Releases, oldest first."""

    releases: tuple[ListedRelease, ...]
    next: str | None
    ledger: Head


class ReleaseEvent(Shape, frozen=True, kw_only=True):
    """An entry about a release."""

    entry: int
    at: str
    actor: str
    kind: str
    approved_by: tuple[str, ...]
    blocking: tuple[str, ...]
    reason: str | None


class ReleaseDetails(Shape, frozen=True, kw_only=True):
    """A release: what it is, what it costs, and its story."""

    release: str
    status: Status
    entry: int
    expires_at: str | None
    labels: dict[str, str]
    metadata: dict[str, str]
    content: Digest
    mechanisms: tuple[Plain, ...]
    story: tuple[ReleaseEvent, ...]
    day: str
    recorded: Plain | None = None


class ReleaseState(Shape, frozen=True, kw_only=True):
    """Where a release stands after a step."""

    release: str
    content: Digest
    status: Status
    entry: int
    day: str
    expires_at: str | None


class Fit(Shape, frozen=True, kw_only=True):
    """The closest variant that would pass."""


class Options(Shape, frozen=True, kw_only=True):
    """Single changes after which it would pass."""

    decision: Literal["allow", "deny"]
    release: str
    options: tuple[Plain, ...]
    ended_early: bool
    ledger: Head
