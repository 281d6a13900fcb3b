"""Requests for approval, the votes, and the outcomes. A pure fold of events.

It follows a log while it is audited: signatures were checked, and everyone whom an
entry names as an approver did approve.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from modicum.api.local.views.approvals import approvals_view
from modicum.api.schema.shape import plain
from modicum.core.yaml_reader import read_document
from modicum.ledger import RecordedRelease, ReleaseStatus, Standing, State
from modicum.ledger.decision.approvals import (
    ApprovalState,
    approved_by,
    is_approved,
    policy_approvals,
    release_approvals,
)
from modicum.ledger.log.events import (
    ApprovalGiven,
    Body,
    PastRecorded,
    PastRedescribed,
    PlanCommitted,
    PolicyActivated,
    PolicyProposed,
    ReleaseRequested,
    ReleaseReserved,
    RequestWithdrawn,
    day_of_release,
)
from modicum.ledger.state.consent import Agreement
from modicum.ledger.state.state import ActivePolicy
from modicum.policy import Policy
from modicum.policy.parser import parse_policy
from modicum.reports.log_position import Placed

#: The kinds of subjects.
Subject: TypeAlias = Literal["release", "policy", "plan", "contract", "data"]
#: The events of a case. `replaced`: its id was requested or submitted with other
#: contents. `lapsed`: another policy was activated.
Happened: TypeAlias = Literal[
    "requested",
    "withdrawn",
    "replaced",
    "lapsed",
    "activated",
    "reserved",
    "recorded",
    "corrected",
    "committed",
]
#: The state of a case: the last event, or that it is pending. `outdated`: it was
#: requested under an earlier policy, and must be requested again. `not requested`: it
#: has votes, but no request in the ledger.
CaseState: TypeAlias = Happened | Literal["pending", "outdated", "not requested"]


@dataclass(frozen=True, slots=True)
class CaseVote:
    """A recorded vote.

    Attributes:
        entry: The entry and the voter.
        body: The vote and its subject.
        key_named: Whether the active policy lists the signing key as one of the
            voter's; False if unsigned.
        countable: Whether it could count under that policy: the approval of a person
            with listed keys cannot unless one of these signed it.
    """

    entry: Placed
    body: ApprovalGiven
    key_named: bool
    countable: bool


@dataclass(frozen=True, slots=True)
class Counted:
    """A person whose approval counted.

    Attributes:
        by: The actor.
        seq: The number of the entry in which they agreed.
        key: The public key that signed it, in hexadecimal; empty if unsigned.
        key_named: Whether the policy that decided names this key as one of theirs.
    """

    by: str
    seq: int
    key: str
    key_named: bool


@dataclass(frozen=True, slots=True)
class Step:
    """An event of a case.

    Attributes:
        what: The kind of event.
        entry: The entry and the actor.
        reason: The actor's reason; empty for kinds of entries without one.
    """

    what: Happened
    entry: Placed
    reason: str = ""


@dataclass(slots=True)
class Case:
    """A subject of approval, with immutable contents.

    The same policy is another matter after another one was activated.

    Attributes:
        subject: The kind of subject.
        id: A release's id, a policy's digest, a plan's id.
        content: SHA-256 of its contents.
        name: A policy's name, if the log contains it; empty otherwise.
        steps: Its events, oldest first.
        votes: The votes on it, oldest first.
        counted: The approvals that counted when it was accepted, by name.
        missing: The state of the approvals that it still needs, while pending.
        outdated: Whether it is pending, and was requested under an earlier policy.
    """

    subject: Subject
    id: str
    content: str
    name: str = ""
    steps: list[Step] = field(default_factory=list)
    votes: list[CaseVote] = field(default_factory=list)
    counted: tuple[Counted, ...] = ()
    missing: tuple[ApprovalState, ...] = ()
    outdated: bool = False

    @property
    def state(self) -> CaseState:
        """Its state."""
        if not self.steps:
            return "not requested"
        last = self.steps[-1].what
        if last != "requested":
            return last
        return "outdated" if self.outdated else "pending"


@dataclass
class Cases:
    """All subjects of approval, up to the head.

    Attributes:
        in_order: Each case, in the order of its first entry.
        votes: All votes, oldest first.
    """

    in_order: list[Case] = field(default_factory=list)
    votes: list[CaseVote] = field(default_factory=list)
    _known: dict[tuple[str, str], Case] = field(default_factory=dict)
    # Changes of the active policy, by digest; its successor has others.
    _changes: dict[str, Case] = field(default_factory=dict)
    _requested: dict[str, tuple[Case, RecordedRelease, str]] = field(
        default_factory=dict
    )
    # Only votes and requests are updated in it, for computing approvals.
    _state: State = field(default_factory=State)
    _policy: Policy | None = None

    def add(self, entry: Placed, body: Body) -> None:
        """Add one event; most are of no concern here."""
        match body:
            case ApprovalGiven(subject="contract" | "data"):
                pass  # Owners vote independently of the policy: see `EscrowTimeline`.
            case ApprovalGiven():
                self._add_vote(entry, body)
            case ReleaseRequested():
                self._request(entry, body)
            case RequestWithdrawn():
                case, _, _ = self._requested.pop(body.release)
                corrects = body.release in self._state.releases
                self._state.waiting.withdraw(body, entry.actor, corrects=corrects)
                case.steps.append(Step("withdrawn", entry, body.reason))
            case PolicyProposed():
                self._propose(entry, body)
            case PolicyActivated():
                self._activate(entry, body)
            case ReleaseReserved() | PastRecorded() | PastRedescribed():
                self._record(entry, body)
            case PlanCommitted():
                plan = self._known.get(("plan", body.content))
                if plan is not None and plan.id == body.id:
                    plan.steps.append(Step("committed", entry))
            case _:
                pass

    def count_pending(self) -> None:
        """Compute the state of all pending approvals, as of the last event."""
        policy = self._policy
        if policy is None:
            return
        for case, release, under in self._requested.values():
            case.outdated = under != policy.digest
            if not case.outdated:
                case.missing = release_approvals(release, policy, self._state)
        for digest in self._state.waiting.proposals:
            case = self._changes[digest]
            case.missing = policy_approvals(digest, policy, self._state)

    @property
    def waiting(self) -> tuple[Case, ...]:
        """The pending cases, oldest first."""
        return tuple(
            one for one in self.in_order if one.state in ("pending", "outdated")
        )

    def _case(self, subject: Subject, id_: str, content: str) -> Case:
        if subject == "policy":
            known = self._changes.setdefault(content, Case(subject, id_, content))
        else:
            new = Case(subject, id_, content)
            known = self._known.setdefault((subject, content), new)
        if not known.steps and not known.votes:
            self.in_order.append(known)  # The caller adds a step or a vote to it.
        return known

    def _add_vote(self, entry: Placed, body: ApprovalGiven) -> None:
        agreement = Agreement(
            entry.actor, body.approves, body.roles, entry.seq, body.key
        )
        about = (body.subject, body.content)
        before = self._state.approvals.get(about, ())
        self._state.approvals[about] = (*before, agreement)
        policy = self._policy
        named = policy is not None and _is_named(agreement, policy)
        countable = policy is None or is_approved(agreement, policy)
        vote = CaseVote(entry, body, named, countable)
        self.votes.append(vote)
        self._case(body.subject, body.id, body.content).votes.append(vote)

    def _request(self, entry: Placed, body: ReleaseRequested) -> None:
        release, waiting = body.release, self._state.waiting
        waiting.request(body, entry.actor, entry.at, entry.seq)
        case = self._case("release", release.id, release.content)
        self._end(release.id, case, entry)
        self._requested[release.id] = (case, release, body.policy)
        case.steps.append(Step("requested", entry, body.reason))

    def _propose(self, entry: Placed, body: PolicyProposed) -> None:
        self._state.waiting.propose(body, entry.actor, entry.at, entry.seq)
        case = self._case("policy", body.digest, body.digest)
        case.name = body.name
        case.steps.append(Step("requested", entry, body.reason))

    def _activate(self, entry: Placed, body: PolicyActivated) -> None:
        case = self._case("policy", body.digest, body.digest)
        case.name = body.name
        if self._policy is not None:
            votes = self._state.approvals.get(("policy", body.digest), ())
            states = policy_approvals(
                body.digest, self._policy, self._state, entry.actor
            )
            counted = _counted(approved_by(states), votes, self._policy)
            case.counted = tuple(counted)
        case.steps.append(Step("activated", entry, body.reason))
        self._close_changes(entry)
        self._state.waiting.policy_changed()
        self._state.policies.append(
            ActivePolicy(body.digest, body.name, body.text, entry.seq)
        )
        node = read_document(body.text.encode("utf-8"), f"policy of entry {entry.seq}")
        self._policy = parse_policy(node, body.text)

    def _close_changes(self, entry: Placed) -> None:
        """End the proposals to replace the previous policy."""
        for case in self._changes.values():
            if case.state == "pending":
                case.steps.append(Step("lapsed", entry))
        self._changes.clear()

    def _record(
        self, entry: Placed, body: ReleaseReserved | PastRecorded | PastRedescribed
    ) -> None:
        release = body.release
        if isinstance(body, PastRecorded):  # It may be corrected.
            self._state.releases.add(
                Standing(
                    release.id,
                    release.content,
                    ReleaseStatus.RECORDED,
                    "",
                    entry.seq,
                    day_of_release(body, entry.at),
                )
            )
        case = self._known.get(("release", release.content))
        self._end(release.id, case, entry)
        if isinstance(body, PastRedescribed):
            self._state.releases.redescribe(release.id, release.content)
            self._state.waiting.corrected(release.id, release.content)
        else:
            self._state.waiting.end(release.id)
        if case is None:
            return  # No approval was requested.
        if isinstance(body, PastRecorded):
            case.steps.append(Step("recorded", entry))
            return
        votes = self._state.approvals.get(("release", release.content), ())
        if self._policy is not None:
            case.counted = tuple(_counted(body.approved_by, votes, self._policy))
        if isinstance(body, PastRedescribed):
            case.steps.append(Step("corrected", entry, body.reason))
            return
        case.steps.append(Step("reserved", entry))

    def _end(self, release: str, by: Case | None, entry: Placed) -> None:
        """End the request for an id; other contents replace it."""
        known = self._requested.pop(release, None)
        if known is not None and known[0] is not by:
            known[0].steps.append(Step("replaced", entry))


def _is_named(agreement: Agreement, policy: Policy) -> bool:
    """Return whether a policy names the key that signed as one of the speaker's."""
    return bool(agreement.key) and agreement.key in policy.keys.get(agreement.by, ())


def _counted(
    people: Iterable[str], votes: Iterable[Agreement], policy: Policy
) -> Iterator[Counted]:
    """Yield the vote by which each of some people approved: the last that counts."""
    last = {one.by: one for one in votes if is_approved(one, policy)}
    for person in people:
        vote = last[person]
        yield Counted(person, vote.seq, vote.key, _is_named(vote, policy))


def vote_to_dict(vote: CaseVote) -> dict[str, object]:
    """Return a recorded vote."""
    body = vote.body
    return {
        **vote.entry.to_dict(),
        "subject": body.subject,
        "id": body.id,
        "content": body.content,
        "approves": body.approves,
        "roles": list(body.roles),
        "reason": body.reason,
        "key": body.key or None,
        "key_named": vote.key_named,
        "countable": vote.countable,
    }


def case_to_dict(case: Case) -> dict[str, object]:
    """Return a case. Its votes are referenced by entry."""
    return {
        "subject": case.subject,
        "id": case.id,
        "content": case.content,
        "name": case.name or None,
        "state": case.state,
        "steps": [
            {**one.entry.to_dict(), "what": one.what, "reason": one.reason}
            for one in case.steps
        ],
        "votes": [one.entry.seq for one in case.votes],
        "counted": [
            {
                "by": one.by,
                "entry": one.seq,
                "key": one.key or None,
                "key_named": one.key_named,
            }
            for one in case.counted
        ],
        "needs": [plain(one) for one in approvals_view(case.missing)],
    }
