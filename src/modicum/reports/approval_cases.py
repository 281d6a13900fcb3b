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
    "asked",
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
#: requested under an earlier policy, and must be requested again. `not asked`: it has
#: votes, but no request in the ledger.
MatterState: TypeAlias = Happened | Literal["pending", "outdated", "not asked"]


@dataclass(frozen=True, slots=True)
class CaseVote:
    """A recorded vote.

    Attributes:
        told: The entry and the voter.
        body: The vote and its subject.
        key_named: Whether the active policy lists the signing key as one of the
            voter's; False if unsigned.
        heard: Whether it could count under that policy: the approval of a person with
            listed keys cannot unless one of these signed it.
    """

    told: Placed
    body: ApprovalGiven
    key_named: bool
    heard: bool


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
        told: The entry and the actor.
        reason: The actor's reason; empty for kinds of entries without one.
    """

    what: Happened
    told: Placed
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
        words: The votes on it, oldest first.
        counted: The approvals that counted when it was accepted, by name.
        hearings: The state of the approvals that it still needs, while pending.
        outdated: Whether it is pending, and was requested under an earlier policy.
    """

    subject: Subject
    id: str
    content: str
    name: str = ""
    steps: list[Step] = field(default_factory=list)
    words: list[CaseVote] = field(default_factory=list)
    counted: tuple[Counted, ...] = ()
    hearings: tuple[ApprovalState, ...] = ()
    outdated: bool = False

    @property
    def state(self) -> MatterState:
        """Its state."""
        if not self.steps:
            return "not asked"
        last = self.steps[-1].what
        if last != "asked":
            return last
        return "outdated" if self.outdated else "pending"


@dataclass
class Cases:
    """All subjects of approval, up to the head.

    Attributes:
        every: Each case, in the order of its first entry.
        words: All votes, oldest first.
    """

    every: list[Case] = field(default_factory=list)
    words: list[CaseVote] = field(default_factory=list)
    _known: dict[tuple[str, str], Case] = field(default_factory=dict)
    # Changes of the active policy, by digest; its successor has others.
    _changes: dict[str, Case] = field(default_factory=dict)
    _asked: dict[str, tuple[Case, RecordedRelease, str]] = field(default_factory=dict)
    # Only votes and requests are updated in it, for computing approvals.
    _state: State = field(default_factory=State)
    _policy: Policy | None = None

    def tell(self, told: Placed, body: Body) -> None:
        """Add one event; most are of no concern here."""
        match body:
            case ApprovalGiven(subject="contract" | "data"):
                pass  # Owners vote independent of the policy: see `EscrowStory`.
            case ApprovalGiven():
                self._hear(told, body)
            case ReleaseRequested():
                self._request(told, body)
            case RequestWithdrawn():
                matter, _, _ = self._asked.pop(body.release)
                corrects = body.release in self._state.releases
                self._state.waiting.withdraw(body, told.actor, corrects=corrects)
                matter.steps.append(Step("withdrawn", told, body.reason))
            case PolicyProposed():
                self._propose(told, body)
            case PolicyActivated():
                self._activate(told, body)
            case ReleaseReserved() | PastRecorded() | PastRedescribed():
                self._bring_in(told, body)
            case PlanCommitted():
                plan = self._known.get(("plan", body.content))
                if plan is not None and plan.id == body.id:
                    plan.steps.append(Step("committed", told))
            case _:
                pass

    def count_pending(self) -> None:
        """Compute the state of all pending approvals, as of the last event."""
        policy = self._policy
        if policy is None:
            return
        for matter, release, under in self._asked.values():
            matter.outdated = under != policy.digest
            if not matter.outdated:
                matter.hearings = release_approvals(release, policy, self._state)
        for digest in self._state.waiting.proposals:
            matter = self._changes[digest]
            matter.hearings = policy_approvals(digest, policy, self._state)

    @property
    def waiting(self) -> tuple[Case, ...]:
        """The pending cases, oldest first."""
        return tuple(one for one in self.every if one.state in ("pending", "outdated"))

    def _matter(self, subject: Subject, id_: str, content: str) -> Case:
        if subject == "policy":
            known = self._changes.setdefault(content, Case(subject, id_, content))
        else:
            new = Case(subject, id_, content)
            known = self._known.setdefault((subject, content), new)
        if not known.steps and not known.words:
            self.every.append(known)  # The caller adds a step or a vote to it.
        return known

    def _hear(self, told: Placed, body: ApprovalGiven) -> None:
        said = Agreement(told.actor, body.approves, body.roles, told.seq, body.key)
        about = (body.subject, body.content)
        before = self._state.approvals.get(about, ())
        self._state.approvals[about] = (*before, said)
        policy = self._policy
        named = policy is not None and _is_named(said, policy)
        heard = policy is None or is_approved(said, policy)
        word = CaseVote(told, body, named, heard)
        self.words.append(word)
        self._matter(body.subject, body.id, body.content).words.append(word)

    def _request(self, told: Placed, body: ReleaseRequested) -> None:
        release, waiting = body.release, self._state.waiting
        waiting.request(body, told.actor, told.at, told.seq)
        matter = self._matter("release", release.id, release.content)
        self._end(release.id, matter, told)
        self._asked[release.id] = (matter, release, body.policy)
        matter.steps.append(Step("asked", told, body.reason))

    def _propose(self, told: Placed, body: PolicyProposed) -> None:
        self._state.waiting.propose(body, told.actor, told.at, told.seq)
        matter = self._matter("policy", body.digest, body.digest)
        matter.name = body.name
        matter.steps.append(Step("asked", told, body.reason))

    def _activate(self, told: Placed, body: PolicyActivated) -> None:
        matter = self._matter("policy", body.digest, body.digest)
        matter.name = body.name
        if self._policy is not None:
            said = self._state.approvals.get(("policy", body.digest), ())
            heard = policy_approvals(body.digest, self._policy, self._state, told.actor)
            counted = _counted(approved_by(heard), said, self._policy)
            matter.counted = tuple(counted)
        matter.steps.append(Step("activated", told, body.reason))
        self._close_changes(told)
        self._state.waiting.policy_changed()
        self._state.policies.append(
            ActivePolicy(body.digest, body.name, body.text, told.seq)
        )
        node = read_document(body.text.encode("utf-8"), f"policy of entry {told.seq}")
        self._policy = parse_policy(node, body.text)

    def _close_changes(self, told: Placed) -> None:
        """End the proposals to replace the previous policy."""
        for matter in self._changes.values():
            if matter.state == "pending":
                matter.steps.append(Step("lapsed", told))
        self._changes.clear()

    def _bring_in(
        self, told: Placed, body: ReleaseReserved | PastRecorded | PastRedescribed
    ) -> None:
        release = body.release
        if isinstance(body, PastRecorded):  # It may be corrected.
            self._state.releases.bring_in(
                Standing(
                    release.id,
                    release.content,
                    ReleaseStatus.RECORDED,
                    "",
                    told.seq,
                    day_of_release(body, told.at),
                )
            )
        matter = self._known.get(("release", release.content))
        self._end(release.id, matter, told)
        if isinstance(body, PastRedescribed):
            self._state.releases.redescribe(release.id, release.content)
            self._state.waiting.corrected(release.id, release.content)
        else:
            self._state.waiting.brought_in(release.id)
        if matter is None:
            return  # No approval was requested.
        if isinstance(body, PastRecorded):
            matter.steps.append(Step("recorded", told))
            return
        said = self._state.approvals.get(("release", release.content), ())
        if self._policy is not None:
            matter.counted = tuple(_counted(body.approved_by, said, self._policy))
        if isinstance(body, PastRedescribed):
            matter.steps.append(Step("corrected", told, body.reason))
            return
        matter.steps.append(Step("reserved", told))

    def _end(self, release: str, by: Case | None, told: Placed) -> None:
        """End the request for an id; other contents replace it."""
        known = self._asked.pop(release, None)
        if known is not None and known[0] is not by:
            known[0].steps.append(Step("replaced", told))


def _is_named(said: Agreement, policy: Policy) -> bool:
    """Return whether a policy names the key that signed as one of the speaker's."""
    return bool(said.key) and said.key in policy.keys.get(said.by, ())


def _counted(
    people: Iterable[str], said: Iterable[Agreement], policy: Policy
) -> Iterator[Counted]:
    """Yield the vote by which each of some people approved: the last that counts."""
    last = {one.by: one for one in said if is_approved(one, policy)}
    for person in people:
        word = last[person]
        yield Counted(person, word.seq, word.key, _is_named(word, policy))


def vote_to_dict(word: CaseVote) -> dict[str, object]:
    """Return a recorded vote."""
    body = word.body
    return {
        **word.told.to_dict(),
        "subject": body.subject,
        "id": body.id,
        "content": body.content,
        "approves": body.approves,
        "roles": list(body.roles),
        "reason": body.reason,
        "key": body.key or None,
        "key_named": word.key_named,
        "heard": word.heard,
    }


def case_to_dict(matter: Case) -> dict[str, object]:
    """Return a case. Its votes are referenced by entry."""
    return {
        "subject": matter.subject,
        "id": matter.id,
        "content": matter.content,
        "name": matter.name or None,
        "state": matter.state,
        "steps": [
            {**one.told.to_dict(), "what": one.what, "reason": one.reason}
            for one in matter.steps
        ],
        "said": [one.told.seq for one in matter.words],
        "counted": [
            {
                "by": one.by,
                "entry": one.seq,
                "key": one.key or None,
                "key_named": one.key_named,
            }
            for one in matter.counted
        ],
        "needs": [plain(one) for one in approvals_view(matter.hearings)],
    }
