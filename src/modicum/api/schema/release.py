"""Decisions, releases, and the private queries that become releases."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from modicum.api.schema.ledger import Head, LoggedEvent, Spender
from modicum.api.schema.policy import Approval, NamedPolicy, RuleFinding
from modicum.api.schema.problem import ProblemDetails
from modicum.api.schema.shape import Amount, Digest, Input, Plain, Shape

#: The indentation of a rule's details.
_INDENT: Final = " " * 9
#: Maximum number of characters of a query file or a tables file.
FILE_MAX = 2**16

_File = Annotated[str, Meta(min_length=1, max_length=FILE_MAX)]

Status = Literal[
    "checked",
    "denied",
    "reserved",
    "started",
    "published",
    "recorded",
    "canceled",
    "expired",
]


class Sums(Shape, frozen=True, kw_only=True):
    """The sum closest to its cap.

    Attributes:
        coordinate: The summed quantity: `eps`, `rho`, `mu2` or a Rényi order such as
            `rdp(8)`.
        before: The sum before.
        alone: The contribution of this release.
        together: The new sum.
        cap: The cap of the sum.
    """

    coordinate: str
    before: Amount
    alone: Amount
    together: Amount
    cap: Amount


class Loss(RuleFinding, frozen=True, kw_only=True):
    """The decision of one rule about a release.

    Attributes:
        stage: Whether it looks at this release alone, or at everything.
        cell: The fullest cell that the release touches: whose rows, of when; None if
            the rule has one cell for everybody and all time.
        cells_denying: The number of denying cells.
        allowed: Whether the rule allows the release.
        undated: If the rule denies the release, and would not deny it alone: its
            mechanisms that are charged to every period, because they name no `periods`.
        unlocked: The unlocked fraction of the budget in that cell, from 0 to 1; below
            1, the amounts are those of the sum closest to its cap.
        before: The loss charged before this release; 0 for stage `release`.
        alone: The loss of this release by itself.
        together: The composed loss of both; in ε this is not the sum.
        limit: The maximum of `together`; it is exceeded exactly if the rule denies.
        filter: The sum that is nearest to its cap; None for stage `release` and
            unlimited budgets.
    """

    stage: Literal["release", "history"]
    undated: tuple[str, ...]
    unlocked: float
    before: Amount
    alone: Amount
    together: Amount
    filter: Sums | None


class RuleLines(Shape, frozen=True, kw_only=True):
    """The part of a decision about one rule.

    Attributes:
        rule: Its id; empty if the lines are about no rule.
        lines: The lines.
    """

    rule: str
    lines: tuple[str, ...]


class DenialDetails(Shape, frozen=True, kw_only=True):
    """What the log shows about a denial, as text.

    Attributes:
        rules: The largest spenders of denying rules.
        closest: The closest allowed variants.
    """

    rules: tuple[RuleLines, ...] = ()
    closest: tuple[str, ...] = ()


class DecisionText(Shape, frozen=True, kw_only=True):
    """A decision as text, line by line.

    Attributes:
        headline: The decision in one line.
        reasons: The text of each rule, denying rules first.
        rest: Further notes.
        added: What the log shows about a denial; None if it was not looked up.
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
        rho_left: The rho left there for a Gaussian mechanism; None if the rule judges
            each release alone.
        spenders: The largest of the releases that were charged there.
    """

    rule: str
    cell: str | None
    rho_left: Amount | None
    spenders: tuple[Spender, ...]


class Fit(Shape, frozen=True, kw_only=True):
    """The closest variant of a release that every rule allows.

    Attributes:
        vary: The varied parameter: `noise`, `sigma`, `scale`, `epsilon`, `rho`, `mu`,
            `sampling_rate`, `where` or `periods`.
        found: Whether such a variant exists.
        release: The variant, as the text of a file; None if there is none.
        changes: Its differences, line by line.
        why: Why no closer one is allowed, line by line.
        ended_early: Whether the search ended before everything was tried.
        ledger: The log entry that the search was based on.
    """

    vary: str
    found: bool
    release: str | None
    changes: tuple[str, ...]
    why: tuple[str, ...]
    ended_early: bool
    ledger: Head


class Explanation(Shape, frozen=True, kw_only=True):
    """Why a release is denied: the denying cells, and allowed variants.

    Attributes:
        cells: The cells of the first three rules over history that deny.
        fit: The first single-parameter change that every rule allows.
    """

    cells: tuple[FullCell, ...]
    fit: Fit


class Decision(Shape, frozen=True, kw_only=True):
    """The decision about a release.

    Attributes:
        decision: The answer.
        release: The release's id.
        status: `checked`, `denied`, `reserved`, `started`, `published` or `recorded`.
        retry: Whether the release was already accepted, so that nothing was written.
        blocking: The rules that deny; empty if the release was already accepted.
        over_limit: The rules that are beyond their limit with this release.
        losses: The decision of each matching rule, first the rules about each release
            alone, then those over history; None if a server was not asked for them.
        uncovered: The mechanisms that no rule over history limits: they match none, or
            only unlimited ones.
        unmatched: Those of `uncovered` that deny a new release: all, unless the policy
            says `unmatched: allow`.
        rounded: The units with too many cells to distinguish, so that more cells are
            charged than the release reads.
        policy: The policy that it was decided by.
        ledger: The history that it was decided on.
        expires_at: When the reservation expires, in UTC.
        approvals: The approvals needed before reservation; `release submit` exits with
            code 5 if this is not empty.
        notices: Remarks for display.
        explanation: What the log shows about a denial at present; None if the release
            is allowed.
        text: The decision as text, on demand.
    """

    decision: Literal["allow", "deny"]
    release: str
    status: Status
    retry: bool
    blocking: tuple[str, ...]
    over_limit: tuple[str, ...]
    losses: tuple[Loss, ...] | None
    uncovered: tuple[str, ...]
    unmatched: tuple[str, ...] = ()
    rounded: tuple[str, ...]
    policy: NamedPolicy
    ledger: Head
    expires_at: str | None
    approvals: tuple[Approval, ...]
    notices: tuple[str, ...]
    explanation: Explanation | None
    text: DecisionText | UnsetType = UNSET


class BatchItem(Shape, frozen=True, kw_only=True):
    """The answer about one release of a batch: a decision or a problem.

    Attributes:
        decision: The decision; None if there is a problem.
        problem: What submitting the release alone would be refused with; None if there
            is a decision.
        replayed: Whether it was decided by an earlier request with the same key.
    """

    decision: Decision | None = None
    problem: ProblemDetails | None = None
    replayed: bool = False


class Batch(Shape, frozen=True, kw_only=True):
    """The answers about the releases of a batch.

    Attributes:
        answers: The answer about each release, in the order of the request.
    """

    answers: tuple[BatchItem, ...]


class ReleaseStanding(Shape, frozen=True, kw_only=True):
    """A release and its status.

    Attributes:
        release: Its id.
        status: `reserved`, `started`, `published`, `canceled`, `expired` or `recorded`.
        entry: The number of the entry that recorded it.
        expires_at: When its reservation expires, in UTC; None unless it is reserved.
    """

    release: str
    status: Status
    entry: int
    expires_at: str | None


class ListedRelease(ReleaseStanding, frozen=True, kw_only=True):
    """The status of a release.

    Attributes:
        day: The day that it counts as made on.
    """

    day: str


class ReleasePage(Shape, frozen=True, kw_only=True):
    """Releases, in the order that was asked for.

    Attributes:
        releases: The releases.
        next: The cursor of the next page; None at the end.
        ledger: The head of the log.
    """

    releases: tuple[ListedRelease, ...]
    next: str | None
    ledger: Head


class ReleaseEvent(LoggedEvent, frozen=True, kw_only=True):
    """An entry about a release.

    Attributes:
        entry: The number of the entry.
        approved_by: The approvers, where it was reserved.
        reason: The reason of an approval or of giving it up, or the remark.
    """

    entry: int
    approved_by: tuple[str, ...]
    reason: str | None


class PricedRelease(ReleaseStanding, frozen=True, kw_only=True):
    """A release: its description, loss and status.

    Attributes:
        labels: A value for every label.
        metadata: Its open texts.
        content: SHA-256 of the description; equal contents have equal digests.
        mechanisms: Its mechanisms.
    """

    labels: dict[str, str]
    metadata: dict[str, str]
    content: Digest
    mechanisms: tuple[Plain, ...]


class ReleaseDetails(PricedRelease, frozen=True, kw_only=True):
    """A release and its history.

    Attributes:
        day: The day that it counts as made on.
        story: The entries about it, oldest first, denials and approvals under its id
            included.
        recorded: The release exactly as stored in the ledger; over HTTP, on demand.
    """

    day: str
    story: tuple[ReleaseEvent, ...]
    recorded: Plain | UnsetType = UNSET


class ReleaseState(ListedRelease, frozen=True, kw_only=True):
    """The status of a release after a transition.

    Attributes:
        content: SHA-256 of the description; equal contents have equal digests.
    """

    content: Digest


class Option(Shape, frozen=True, kw_only=True):
    """One change of a denied release after which every rule allows it.

    Attributes:
        kind: The changed parameter: `noise`, `epsilon`, `rho`, `mu`, `where`,
            `periods`, `attribute`, `label`, `mechanism` or `wait`.
        title: The change, in brief.
        release: The changed release, as the text of a file.
        why: Its effect, line by line.
        only_if: The condition under which it is an option; None if there is none.
        not_before: The first day on which it is allowed, if that is not today.
    """

    kind: str
    title: str
    release: str
    why: tuple[str, ...]
    only_if: str | None
    not_before: str | None


class Options(Shape, frozen=True, kw_only=True):
    """The single changes after which a release is allowed.

    Attributes:
        decision: The answer to the release as it is.
        release: Its id.
        options: Changes, each of which was decided and passes; empty if it passes as it
            is.
        ended_early: Whether the search ended before everything was tried, since the
            release has many mechanisms: further changes may help.
        ledger: The history that it was decided on.
    """

    decision: Literal["allow", "deny"]
    release: str
    options: tuple[Option, ...]
    ended_early: bool
    ledger: Head


class LabelValues(Shape, frozen=True, kw_only=True):
    """A label of the policy.

    Attributes:
        values: The values that it may have.
        default: The value of a release that gives none.
    """

    values: tuple[str, ...]
    default: str


class Vocabulary(Shape, frozen=True, kw_only=True):
    """The names that a release may use under the policy.

    Attributes:
        policy: The digest of the policy.
        labels: The labels, by name.
        attributes: The attributes of the data.
        units: The privacy units.
    """

    policy: Digest
    labels: dict[str, LabelValues]
    attributes: tuple[str, ...]
    units: tuple[str, ...]


# --- private queries ------------------------------------------------------------------


class QueryInput(Input, frozen=True, kw_only=True):
    """A private query, and the declaration of its tables.

    Attributes:
        query: A query file; its `tables` is ignored.
        tables: A tables file.
    """

    query: _File
    tables: _File


class PlannedMechanism(Shape, frozen=True, kw_only=True):
    """A published statistic of a query.

    Attributes:
        name: Its name in the release.
        serves: The aggregates that need it.
        scale: The scale of its noise, in steps of the column: σ of `gaussian`, b of
            `laplace`.
        losses: By privacy unit that is bounded, what it costs without a sample: ρ of
            `gaussian`, ε of `laplace`.
    """

    name: str
    serves: tuple[str, ...]
    scale: str
    losses: dict[str, str]


class KeyLoss(Shape, frozen=True, kw_only=True):
    """What the selection of keys costs.

    Attributes:
        eps: Its ε.
        delta: Its δ.
    """

    eps: str
    delta: str


class KeySelection(Shape, frozen=True, kw_only=True):
    """The mechanism that publishes keys with noise.

    Attributes:
        name: Its name in the release.
        scale: The scale of its discrete Laplace noise.
        threshold: A key is published if its noisy number of ids is at least this.
        losses: By privacy unit that is bounded, what it costs.
    """

    name: str
    scale: str
    threshold: int
    losses: dict[str, KeyLoss]


class ExpectedError(Shape, frozen=True, kw_only=True):
    """How far an answer will stray.

    Attributes:
        aggregate: Its name.
        keys: By which keys its groups are formed; null if there is one set of keys.
        half_width: Half the width of its interval, or of its basis.
        per: The basis: the `answer`; an amount that is to be divided by the number of
            `rows`; the same, for the `variance` of a standard deviation; or a number of
            `ranks` of a quantile.
    """

    aggregate: str
    keys: tuple[str, ...] | None = None
    half_width: str
    per: Literal["answer", "rows", "variance", "ranks"]


class QueryPlan(Shape, frozen=True, kw_only=True):
    """What a query would cost, and how accurate its answers would be.

    Attributes:
        release: The release's id.
        file: The release, as the text of a file.
        allowed: Whether it would be allowed now.
        noise: The kind of noise.
        mechanisms: One for each published statistic.
        keys: The mechanism that publishes keys with noise; None if all are public.
        expected: How far each answer will stray.
        derivation: How the losses come about, line by line.
        notes: What the losses leave out; remarks on the query are among the notices of
            the decision.
        decision: The decision of the ledger.
    """

    release: str
    file: str
    allowed: bool
    noise: Literal["gaussian", "laplace"]
    mechanisms: tuple[PlannedMechanism, ...]
    keys: KeySelection | None
    expected: tuple[ExpectedError, ...]
    derivation: tuple[str, ...]
    notes: tuple[str, ...]
    decision: Decision
