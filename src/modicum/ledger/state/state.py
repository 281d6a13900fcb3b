"""The state: a pure fold of the log."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct, field

from modicum.core.canonical import Plain, digest, encode
from modicum.core.errors import Code, ConflictError, Problem
from modicum.ledger.log.chain import GENESIS
from modicum.ledger.log.escrow_events import EscrowBody
from modicum.ledger.log.events import (
    Annotated,
    ApprovalGiven,
    DisclosureRecorded,
    Event,
    GapBody,
    GovernanceBody,
    PastRecorded,
    PastRedescribed,
    PlanBody,
    PlanCommitted,
    PolicyActivated,
    PolicyProposed,
    PolicyText,
    ReleaseBody,
    ReleaseDenied,
    ReleaseExpired,
    ReleasePosted,
    ReleaseRequested,
    ReleaseReserved,
    ReleaseStarted,
    ReleaseVoided,
    RequestWithdrawn,
    day_of_release,
)
from modicum.ledger.log.recorded_release import RecordedRelease, difference
from modicum.ledger.state.consent import Agreement
from modicum.ledger.state.datasets import add_vote
from modicum.ledger.state.escrow import (
    Around,
    Escrow,
    escrow_from_plain,
    escrow_to_plain,
)
from modicum.ledger.state.lifecycle import (
    ReleaseStatus,
    Standing,
    id_taken,
    next_status,
    not_correctable,
    unknown_release,
)
from modicum.ledger.state.pending import Pending, Request
from modicum.ledger.state.release_table import Holders, Standings
from modicum.ledger.state.rounds import Planning
from modicum.policy.declarations.roles import person_key

#: Since this version of its activation, a policy is charged for earlier losses by the
#: definitions of units. Before, it was by their names.
ENTAILED_SINCE = 6


class ActivePolicy(PolicyText, frozen=True):
    """An active or former policy, as activated.

    Attributes:
        seq: The number of the entry that activated it.
        reason: Why it replaced the one before.
        accepted: Rules that history exceeded then, accepted all the same.
        version: The version of that entry.
    """

    seq: int
    reason: str = ""
    accepted: tuple[str, ...] = ()
    version: int = 1

    @property
    def entails(self) -> bool:
        """Whether old losses are charged to it by the definitions of units."""
        return self.version >= ENTAILED_SINCE


def active_policy(body: PolicyActivated, seq: int, version: int) -> ActivePolicy:
    """Return the policy that an entry activates."""
    return ActivePolicy(
        body.digest, body.name, body.text, seq, body.reason, body.accepted, version
    )


class JustStarted(NamedTuple):
    """The releases that were started by the last entries.

    Attributes:
        actor: The actor who started them.
        at: When.
        releases: Their ids, in the order of the entries.
    """

    actor: str = ""
    at: str = ""
    releases: tuple[str, ...] = ()

    def then(self, release: str, event: Event) -> JustStarted:
        """Return them with one more."""
        return JustStarted(event.actor, event.at, (*self.by(event), release))

    def by(self, event: Event) -> tuple[str, ...]:
        """Return those that who acts in an event started at its time."""
        same = (self.actor, self.at) == (event.actor, event.at)
        return self.releases if same else ()


class LossChange(Struct, frozen=True):
    """A loss that an event added or released.

    Attributes:
        release: The release.
        seq: The number of the entry that added it.
        day: The day that it counts as made on.
        taken_back: Whether its loss counts no more.
        instead_of: The release as counted until now, if it is corrected.
    """

    release: RecordedRelease
    seq: int
    day: int
    taken_back: bool = False
    instead_of: RecordedRelease | None = None


class State(Struct):
    """The state of the log, up to its head.

    The owner may mutate it by `apply`; a failed `apply` leaves it unchanged.

    Attributes:
        seq: Number of the last event; 0 for an empty log.
        head: Hash of the last record.
        at: Time of the last event; empty for an empty log.
        policies: The policies that were activated, oldest first.
        releases: The status of each release that was allowed or recorded, by id, oldest
            first.
        open: The reserved releases: only these can be canceled.
        holders: The holders of these.
        redescribed: By id of a past release, the numbers of the entries that correct
            it, oldest first; the last one describes it.
        denials: The number of denials.
        approvals: The votes, oldest first, by the kind of subject and the SHA-256 of
            its content.
        annotations: The number of remarks.
        disclosures: The numbers of the entries of disclosures outside differential
            privacy, by id.
        planning: Rounds, user groups and plans.
        waiting: Pending requests and proposals.
        escrow: Data sets, contracts, and the state of each flow.
        just_started: The releases that the last entries started, all by one actor at
            one time; empty if the last entry is another one.
        version: The version of the last event.
        before_expiring: The hash of the entry before the last expired reservations, all
            at one time; empty if the last entry is another one. A reviewer of the
            ledger at that entry has seen all that counts now.
    """

    seq: int = 0
    head: str = GENESIS
    at: str = ""
    version: int = 1
    before_expiring: str = ""
    just_started: JustStarted = field(default_factory=JustStarted)
    policies: list[ActivePolicy] = field(default_factory=list)
    releases: Standings = field(default_factory=Standings)
    open: dict[str, RecordedRelease] = field(default_factory=dict)
    holders: Holders = field(default_factory=Holders)
    redescribed: dict[str, tuple[int, ...]] = field(default_factory=dict)
    denials: int = 0
    approvals: dict[tuple[str, str], tuple[Agreement, ...]] = field(
        default_factory=dict
    )
    annotations: int = 0
    disclosures: dict[str, int] = field(default_factory=dict)
    planning: Planning = field(default_factory=Planning)
    waiting: Pending = field(default_factory=Pending)
    escrow: Escrow = field(default_factory=Escrow)

    @property
    def policy(self) -> ActivePolicy | None:
        """The active policy; None before the first was activated."""
        return self.policies[-1] if self.policies else None

    def apply(self, event: Event, record_hash: str) -> LossChange | None:
        """Fold one event into the state.

        Returns:
            The loss that it adds or releases, if there is one.

        Raises:
            ConflictError: If the event contradicts the state.
            InputError: If it concerns an unknown release.
        """
        seq, body = self.seq + 1, event.body
        if event.version < self.version:  # It would follow rules that hold no more.
            raise _impossible("its version is older than that of the entry before it")
        self.planning.gaps.refuse(body)
        before_expiring, just_started = "", JustStarted()
        if isinstance(body, ReleaseExpired):
            goes_on = self.before_expiring and self.at == event.at
            before_expiring = self.before_expiring if goes_on else self.head
        elif isinstance(body, ReleaseStarted):
            just_started = self.just_started.then(body.release, event)
        change: LossChange | None = None
        if isinstance(body, ReleaseBody):
            change = self._live(body, event, seq)
        elif isinstance(body, PlanBody):
            self.planning.apply(body)
            if isinstance(body, PlanCommitted):
                for release in body.releases:
                    self.holders.drop(release)
        elif isinstance(body, EscrowBody):
            self.escrow.apply(body, self._around(event, seq))
        elif isinstance(body, GapBody):
            self.planning.gaps.apply(body, event, seq, self.releases)
        else:
            self._govern(body, event, seq)
        self.seq, self.head, self.at = seq, record_hash, event.at
        self.version = event.version
        self.before_expiring, self.just_started = before_expiring, just_started
        return change

    def correction_of(self, release: str, content: str) -> Request | None:
        """Return the request to correct a past release; None if there is none.

        Args:
            release: Its id.
            content: SHA-256 of the corrected description.
        """
        known = self.waiting.requests.get(release)
        if known is None or known.content != content or release not in self.releases:
            return None
        return known

    def described_in(self, standing: Standing) -> int:
        """Return the number of the entry that describes a release."""
        return self.redescribed.get(standing.id, (standing.seq,))[-1]

    def policy_at(self, seq: int) -> ActivePolicy:
        """Return the policy that held when an entry was made."""
        return next(one for one in reversed(self.policies) if one.seq <= seq)

    def is_present(self, head: str) -> bool:
        """Return whether an entry is followed only by expired reservations."""
        return head in (self.head, self.before_expiring)

    def due(self, now: str) -> list[str]:
        """Return the reservations that are due at `now`, oldest first.

        None is while a gap is open: lost entries may have started it.
        """
        return [] if self.planning.gaps.open else self.releases.due(now)

    def counted_seqs(self, now: str) -> list[int]:
        """Return the entries of the releases that count as spent, in order.

        Args:
            now: The time; reservations due by then no longer count.
        """
        return self.releases.counted_seqs("" if self.planning.gaps.open else now)

    def digest(self) -> str:
        """Return a SHA-256 over the whole state; equal logs give equal digests."""
        plain = {**self.small_to_plain(), "releases": self.releases.digest()}
        return digest(encode(plain))

    def small_to_plain(self) -> dict[str, Plain]:
        """Return everything but the statuses as plain data.

        Open reservations follow from the statuses: each is reserved there, and its
        entry has its contents and holder.
        """
        return {
            "seq": self.seq,
            "head": self.head,
            "at": self.at,
            "version": self.version,
            "before_expiring": self.before_expiring,
            "just_started": list(self.just_started),
            "policies": [_policy_to_plain(one) for one in self.policies],
            "denials": self.denials,
            "approvals": [
                [*about, [_agreement_to_plain(one) for one in votes]]
                for about, votes in self.approvals.items()
            ],
            "annotations": self.annotations,
            "disclosures": dict(self.disclosures),
            **self.planning.to_plain(),
            **self.waiting.to_plain(),
            **escrow_to_plain(self.escrow),
            # Digests of states without corrections were signed without the key.
            **(
                {"redescribed": [[k, *v] for k, v in self.redescribed.items()]}
                if self.redescribed
                else {}
            ),
        }

    @classmethod
    def restored(cls, plain: dict[str, Any]) -> State:
        """Return the state that `small_to_plain` encoded, without the statuses.

        Raises:
            ValueError: If it is something else; so may `KeyError` and `TypeError` be.
        """
        actor, at, releases = plain["just_started"]
        return cls(
            seq=plain["seq"],
            head=plain["head"],
            at=plain["at"],
            version=plain["version"],
            before_expiring=plain["before_expiring"],
            just_started=JustStarted(actor, at, tuple(releases)),
            policies=[
                ActivePolicy(digest, name, text, seq, reason, tuple(accepted), *version)
                for digest, name, text, seq, reason, accepted, *version in plain[
                    "policies"
                ]
            ],
            denials=plain["denials"],
            approvals={
                (subject, content): tuple(
                    Agreement(by, approves, tuple(roles), seq, key)
                    for by, approves, roles, seq, key in votes
                )
                for subject, content, votes in plain["approvals"]
            },
            redescribed={
                one: tuple(seqs) for one, *seqs in plain.get("redescribed", ())
            },
            annotations=plain["annotations"],
            disclosures=plain["disclosures"],
            planning=Planning.restored(plain),
            escrow=escrow_from_plain(plain),
            waiting=Pending.restored(plain),
        )

    # --- one step ---

    def _live(self, body: ReleaseBody, event: Event, seq: int) -> LossChange | None:
        match body:
            case ReleaseReserved() | PastRecorded():
                return self._record(body, event, seq)
            case PastRedescribed():
                return self._redescribe(body, event.actor, seq)
            case ReleaseDenied():
                self.denials += 1
                return None
            case _:
                # Lost entries started or ended it in time.
                at = "" if self.planning.gaps.open else event.at
                return self._move(body, at)

    def _govern(self, body: GovernanceBody, event: Event, seq: int) -> None:
        match body:
            case PolicyActivated():
                self._activate(body, seq, event.version)
            case ApprovalGiven():
                self._add_vote(body, event, seq)
            case Annotated():
                self.annotations += 1
            case DisclosureRecorded():
                self._disclose(body, event.actor, seq)
            case _:
                self._wait(body, event, seq)

    def _record(
        self, body: ReleaseReserved | PastRecorded, event: Event, seq: int
    ) -> LossChange:
        release = body.release
        if release.id in self.releases:
            raise id_taken(self.releases[release.id])
        day = day_of_release(body, event.at)
        self.planning.gaps.note(body, day)
        if isinstance(body, ReleaseReserved):
            status, expires_at = ReleaseStatus.RESERVED, body.expires_at
        else:
            status, expires_at = ReleaseStatus.RECORDED, ""
        self.releases.add(
            Standing(release.id, release.content, status, expires_at, seq, day)
        )
        if status is ReleaseStatus.RESERVED:
            self.open[release.id] = release
            self.holders.add(release.id, event.actor)
        self.waiting.end(release.id)
        return LossChange(release, seq, day)

    def _move(
        self,
        body: ReleaseStarted | ReleasePosted | ReleaseVoided | ReleaseExpired,
        at: str,
    ) -> LossChange | None:
        standing = self.releases.get(body.release)
        if standing is None:
            raise unknown_release(body.release)
        status = next_status(standing, body, at)
        self.releases.move(standing.id, status)
        self.planning.gaps.note(body)
        release = self.open.pop(standing.id, None)
        self.holders.drop(standing.id)
        if release is None or status.counts:
            return None
        return LossChange(release, standing.seq, standing.day, taken_back=True)

    def _redescribe(self, body: PastRedescribed, actor: str, seq: int) -> LossChange:
        now, before = body.release, body.before
        standing = self.releases.get(now.id)
        if standing is None:
            raise unknown_release(now.id)
        if standing.status is not ReleaseStatus.RECORDED:
            raise not_correctable(standing)
        correction = self.correction_of(now.id, now.content)
        if correction is None or correction.policy != body.policy:
            raise _impossible(f"nobody has requested this correction of `{now.id}`")
        if (before.id, before.content) != (now.id, standing.content):
            raise _impossible(f"`{now.id}` had a different description")
        other = difference(before, now)
        if other:
            raise _impossible(f"the correction of `{now.id}` changes `{other}`")
        if person_key(actor) in map(person_key, self.waiting.requesters[now.content]):
            raise _impossible(f"`{actor}` requested the correction, and approves it")
        self.releases.redescribe(now.id, now.content)
        self.redescribed[now.id] = (*self.redescribed.get(now.id, ()), seq)
        self.waiting.corrected(now.id, now.content)
        self.planning.gaps.note(body)
        return LossChange(now, standing.seq, standing.day, instead_of=before)

    def _activate(self, body: PolicyActivated, seq: int, version: int) -> None:
        self.waiting.policy_changed()
        self.policies.append(active_policy(body, seq, version))

    def _disclose(self, body: DisclosureRecorded, by: str, seq: int) -> None:
        if body.id in self.disclosures:
            raise _disclosed_before(body.id, self.disclosures[body.id])
        self.escrow.check_disclosure(body, by)
        self.disclosures[body.id] = seq

    def _add_vote(self, body: ApprovalGiven, event: Event, seq: int) -> None:
        from modicum.ledger.log.approval_statement import is_genuine

        actor = event.actor
        if body.head and not self.is_present(body.head):
            raise _impossible("the reviewed head is not the end of the ledger")
        if not is_genuine(body, actor, self.policy.digest if self.policy else ""):
            raise _impossible("its signature does not match its contents and key")
        about = (body.subject, body.content)
        vote = Agreement(actor, body.approves, body.roles, seq, body.key)
        if body.subject == "contract":
            self.escrow.check_vote(body.content, body.id, vote, event.at)
        votes = (*self.approvals.get(about, ()), vote)
        if body.subject == "data":
            add_vote(self.escrow.data, body, votes)
        self.approvals[about] = votes

    def _around(self, event: Event, seq: int) -> Around:
        return Around(
            by=event.actor,
            at=event.at,
            seq=seq,
            version=event.version,
            votes=self.approvals,
            started=self.just_started.by(event),
            releases=self.releases,
            disclosures=self.disclosures,
        )

    def _wait(
        self,
        body: ReleaseRequested | RequestWithdrawn | PolicyProposed,
        event: Event,
        seq: int,
    ) -> None:
        match body:
            case ReleaseRequested(release=release):
                known = self.releases.get(release.id)
                if known is not None and (
                    known.status is not ReleaseStatus.RECORDED
                    or known.content == release.content
                ):
                    raise _impossible(
                        f"release `{release.id}` exists, and is requested"
                    )
                corrects = known is not None
                self.waiting.request(
                    body, event.actor, event.at, seq, corrects=corrects
                )
            case RequestWithdrawn():
                corrects = body.release in self.releases
                self.waiting.withdraw(body, event.actor, corrects=corrects)
            case PolicyProposed(digest=proposed):
                if self.policy and self.policy.digest == proposed:
                    raise _impossible(f"the policy `{body.name}` is already active")
                self.waiting.propose(body, event.actor, event.at, seq)


def _policy_to_plain(policy: ActivePolicy) -> Plain:
    return [
        policy.digest,
        policy.name,
        policy.text,
        policy.seq,
        policy.reason,
        list(policy.accepted),
        # Digests of states of earlier versions were signed without it.
        *([policy.version] if policy.entails else []),
    ]


def _agreement_to_plain(one: Agreement) -> Plain:
    return [one.by, one.approves, list(one.roles), one.seq, one.key]


def _impossible(message: str) -> ConflictError:
    return ConflictError(Problem(Code.RELEASE_CONFLICT, message))


def _disclosed_before(identifier: str, seq: int) -> ConflictError:
    return ConflictError(
        Problem(
            Code.RELEASE_CONFLICT,
            f"the disclosure `{identifier}` was already recorded (entry {seq})",
            help="give the new disclosure a different id",
        )
    )
