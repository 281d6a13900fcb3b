"""Decisions and releases."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import UNSET, UnsetType

from modicum.api.schema.common import Approval, ApproxDp, Head, NamedPolicy, Spender
from modicum.api.schema.shape import Amount, Digest, Plain, Shape

#: How far the details of a rule are indented.
_INDENT: Final = " " * 9

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
    """What a decision says about one rule.

    Attributes:
        rule: Its id; empty if the lines are about no rule.
        lines: The lines.
    """

    rule: str
    lines: tuple[str, ...]


class DenialDetails(Shape, frozen=True, kw_only=True):
    """What the log says about a denial, in words.

    Attributes:
        rules: Who filled the cells of rules that deny.
        closest: What would be allowed instead.
    """

    rules: tuple[RuleLines, ...] = ()
    closest: tuple[str, ...] = ()


class DecisionText(Shape, frozen=True, kw_only=True):
    """A decision in words, line by line.

    Attributes:
        headline: The decision in one line.
        reasons: What each rule says, those that deny first.
        rest: What else the reader should know.
        added: What the log says about a denial; None if it was not looked up.
    """

    headline: str = ""
    reasons: tuple[RuleLines, ...] = ()
    rest: tuple[str, ...] = ()
    added: DenialDetails | None = None

    def text(self) -> str:
        """Return all of it as one text."""
        added = self.added or DenialDetails()
        details = {one.rule: one.lines for one in added.rules}
        lines = [self.headline]
        for one in self.reasons:
            lines += one.lines
            lines += (f"{_INDENT}{line}" for line in details.get(one.rule, ()))
        lines += (f"  {line}" for line in added.closest)
        return "\n".join((*lines, *self.rest))


class FullCell(Shape, frozen=True, kw_only=True):
    """The cell in which a rule denies a release, and who filled it.

    Attributes:
        rule: The id of the rule.
        cell: The cell; None if the rule has one cell only.
        rho_left: How much rho a Gaussian mechanism may still cost there; None if the
            rule judges each release alone.
        spenders: The largest of the releases that were charged there.
    """

    rule: str
    cell: str | None
    rho_left: Amount | None
    spenders: tuple[Spender, ...]


class Fit(Shape, frozen=True, kw_only=True):
    """The closest variant of a release that every rule allows.

    Attributes:
        vary: What was varied.
        found: Whether there is one.
        release: The variant, as the text of a file; None if there is none.
        changes: How it differs, line by line.
        why: Why no closer one is allowed, line by line.
        ended_early: Whether the search ended before everything was tried.
        ledger: The entry that it was found on.
    """

    vary: str
    found: bool
    release: str | None
    changes: tuple[str, ...]
    why: tuple[str, ...]
    ended_early: bool
    ledger: Head


class Explanation(Shape, frozen=True, kw_only=True):
    """Why a release is denied: the cells that deny it, and what would be allowed."""

    cells: tuple[FullCell, ...]
    fit: Fit


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
    explanation: Explanation | None
    words: DecisionText | UnsetType = UNSET


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


class PricedRelease(Shape, frozen=True, kw_only=True):
    """A release: what it is, what it costs, and its status."""

    release: str
    status: Status
    entry: int
    expires_at: str | None
    labels: dict[str, str]
    metadata: dict[str, str]
    content: Digest
    mechanisms: tuple[Plain, ...]


class ReleaseDetails(PricedRelease, frozen=True, kw_only=True):
    """A release with its history.

    Attributes:
        day: The day on which it counts.
        story: Its entries, the oldest first.
        recorded: The release exactly as the ledger keeps it, if asked for.
    """

    day: str
    story: tuple[ReleaseEvent, ...]
    recorded: Plain | UnsetType = UNSET


class ReleaseState(ListedRelease, frozen=True, kw_only=True):
    """Where a release stands after a step."""

    content: Digest


class Option(Shape, frozen=True, kw_only=True):
    """One change of a denied release after which every rule allows it.

    Attributes:
        kind: What is changed: `noise`, `epsilon`, `rho`, `mu`, `where`, `periods`,
            `attribute`, `label`, `mechanism` or `wait`.
        title: The change, in a few words.
        release: The changed release, as the text of a file.
        why: What it does, line by line.
        only_if: What must be true for it to be open at all; None if nothing.
        not_before: The first day on which it is allowed, if that is not today.
    """

    kind: str
    title: str
    release: str
    why: tuple[str, ...]
    only_if: str | None
    not_before: str | None


class Options(Shape, frozen=True, kw_only=True):
    """The single changes after which a release is allowed."""

    decision: Literal["allow", "deny"]
    release: str
    options: tuple[Option, ...]
    ended_early: bool
    ledger: Head
