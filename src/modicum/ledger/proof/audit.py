"""Audit: read the log back from nothing and check all that it claims."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from modicum.core.canonical import digest, encode
from modicum.core.errors import ConflictError, InputError, VerificationError
from modicum.ledger.decision.approvals import plans_freely
from modicum.ledger.decision.decide import decide, verdict_over_history
from modicum.ledger.log.chain import ChainBreakError, Record, read_record
from modicum.ledger.log.codec import release_to_plain
from modicum.ledger.log.days import day_of
from modicum.ledger.log.events import (
    ApprovalGiven,
    Body,
    Event,
    LostEntriesFound,
    PastRecorded,
    PastRedescribed,
    PlanCommitted,
    PolicyActivated,
    PolicyProposed,
    ReleaseDenied,
    ReleaseRequested,
    ReleaseReserved,
)
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.ledger.proof.consistency import (
    contradiction,
    is_described,
    lasts,
    unfounded,
)
from modicum.ledger.proof.repricing import Repricing, Unpriced
from modicum.ledger.replay.actor_balances import RequesterWindow
from modicum.ledger.replay.fold import Followed, fold_event, followed_from, loss_changes
from modicum.ledger.replay.past_names import Understated, departed, understated
from modicum.ledger.state.gaps import Gaps, lost_entry
from modicum.ledger.state.past_filters import filter_change
from modicum.ledger.state.past_vocabulary import (
    dropped_attributes,
    redefined_units,
    units_redefined_by_name,
)
from modicum.ledger.state.state import ENTAILED_SINCE, LossChange, State
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text
from modicum.policy.model import DAY_SECONDS
from modicum.policy.past_units import vocabulary_of
from modicum.release import Vocabulary

#: Since this version of the events, the writer sees to it that times never fall.
_ORDERED_SINCE = 2
#: Since this version, the writer requires a decision whether a dropped attribute was
#: renamed; and refused to redefine a unit under its name, until people could accept it.
_NAMES_KEPT_SINCE = 5
#: Since this version, a mechanism that no rule over history limits denies a release,
#: unless the policy says `unmatched: allow`.
UNMATCHED_DENIED_SINCE = 6
#: The rules that deny a release, and the mechanisms that no rule limits.
_Reasons: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
_DESCRIBING = (
    ReleaseReserved,
    ReleaseDenied,
    PastRecorded,
    PastRedescribed,
    ReleaseRequested,
)


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The result of an audit; a contradiction raises an error instead.

    Attributes:
        entries: Number of records.
        head: Hash of the last record.
        state_digest: Digest of the folded state.
        decisions: The number of decisions replayed, all with the same outcome.
        noted: Number of the record with the noted hash; None if there is none.
        states: Digest of the folded state at each requested entry.
        unpriced: The releases whose descriptions could not be priced again.
        approvals: The number of votes.
        signed: How many of these are signed; each signature was checked.
        understated: Rules of the last policy that show less than was released, by the
            unit, attribute or rule whose meaning changed.
        gaps: What the log has lost, and what became of it.
    """

    entries: int
    head: str
    state_digest: str
    decisions: int
    noted: int | None
    states: Mapping[int, str] = field(default_factory=dict)
    unpriced: Unpriced = field(default_factory=Unpriced)
    approvals: int = 0
    signed: int = 0
    understated: tuple[Understated, ...] = ()
    gaps: Gaps = field(default_factory=Gaps)

    def refuse_understated(self) -> None:
        """Refuse a ledger of which rules show less than was released.

        Raises:
            VerificationError: With everything that is understated.
        """
        if self.understated:
            raise VerificationError(*(one.problem for one in self.understated))


def audit(
    records: Iterable[Record],
    on_entry: Callable[[int], None] | None = None,
    *,
    noted_hash: str | None = None,
    again: Callable[[], Iterable[Record]] | None = None,
    states_at: Collection[int] = (),
) -> AuditReport:
    """Check the chain, price every release again, and replay every decision.

    Args:
        records: All records, in order.
        on_entry: Called with the number of each entry that was checked.
        noted_hash: A hash noted elsewhere; `noted` is its entry.
        again: Returns the same records from the beginning. It is called where a policy
            replaced another; without it, charges are kept in memory.
        states_at: Numbers of entries at which the digest of the state is wanted.

    Raises:
        ChainBreakError: At the first record that contradicts the chain, the life of a
            release, itself, its price, or the decision that its policy and history
            lead to.
    """
    replay = _Replay(again)
    noted: int | None = None
    states: dict[int, str] = {}
    for record in records:
        replay.take(record)
        if record.hash == noted_hash:
            noted = record.seq
        if record.seq in states_at:
            states[record.seq] = replay.state.digest()
        if on_entry is not None:
            on_entry(replay.state.seq)
    replay.refuse_beyond()
    return AuditReport(
        replay.state.seq,
        replay.state.head,
        replay.state.digest(),
        replay.decisions,
        noted,
        states,
        replay.repricing.unpriced,
        replay.approvals,
        replay.signed,
        replay.understated,
        replay.state.planning.gaps,
    )


class RunningAudit:
    """An incremental audit of a growing log.

    A result for an entry covers all entries before it: each contains the hash of the
    last. After an error, the audit cannot continue.

    Args:
        again: As for `audit`.
    """

    def __init__(self, again: Callable[[], Iterable[Record]] | None = None) -> None:
        self._replay = _Replay(again)

    @property
    def seq(self) -> int:
        """The number of the last entry that was checked; 0 before the first."""
        return self._replay.state.seq

    def take(self, record: Record) -> Event:
        """Check the next record as `audit` does; return its event.

        Raises:
            ChainBreakError: As for `audit`.
        """
        return self._replay.take(record)


class _Replay:
    """A state, the balances and prices of the active policy, a count of decisions."""

    def __init__(self, again: Callable[[], Iterable[Record]] | None) -> None:
        self.state = State()
        self.decisions = 0
        self.approvals = self.signed = 0
        self.repricing = Repricing()
        self._version = 1
        self._turn = "", ""
        self._kept: list[Record] = []
        self._keeps = again is None
        self._again = again or self._kept.copy
        self._approved: dict[str, str] = {}
        #: Reservations beyond a quota in the current turn, and whose it is.
        self._beyond: dict[str, tuple[int, str]] = {}
        #: Those beyond what one identity may reserve within some days.
        self._split: dict[str, int] = {}
        self._past: dict[str, str] = {}
        self._followed: Followed | None = None

    def take(self, record: Record) -> Event:
        """Check the next record and fold it; return its event."""
        seq = self.state.seq + 1
        event = read_record(record, seq, self.state.head)
        if (event.at, event.actor) != self._turn:
            self.refuse_beyond()
        self._turn = event.at, event.actor
        self._check_order(event, seq)
        self._check_claims(event, seq)
        change = fold_event(self.state, event, record)
        if self._keeps:
            self._kept.append(record)
        if self._beyond:
            held = self.state.holders.by
            self._beyond = {k: v for k, v in self._beyond.items() if k in held}
        if self._split and isinstance(event.body, PlanCommitted):
            self._excuse(event.body, event.actor)
        if isinstance(event.body, PastRecorded | PastRedescribed):
            self._past[event.body.release.id] = _written(event.body.release)
        if isinstance(event.body, PolicyActivated):
            self._follow_policy(event.body, event.version, seq)
        if self._followed is not None:
            if change is not None:
                self._followed.settle(change)
            self._windows(record)
        return event

    def _excuse(self, plan: PlanCommitted, actor: str) -> None:
        """Let a plan reserve more than one identity may, if its committer may that."""
        assert self._followed is not None
        if plans_freely(actor, self._followed.compiled.policy):
            for release in plan.releases:
                self._split.pop(release, None)

    def _windows(self, last: Record) -> tuple[RequesterWindow, ...]:
        """Return what each identity reserved within some days, with the last record."""
        assert self._followed is not None
        return self._followed.windows(
            self.state,
            lambda after: [last] if after + 1 == last.seq else self._after(after),
        )

    def _after(self, seq: int) -> Iterator[Record]:
        return (one for one in self._again() if one.seq > seq)

    def _check_order(self, event: Event, seq: int) -> None:
        if event.version < self._version:
            raise ChainBreakError(
                seq, "its version is older than that of an earlier entry"
            )
        if event.version >= _ORDERED_SINCE and event.at < self.state.at:
            raise ChainBreakError(seq, "it is older than the entry before it")
        self._version = event.version

    def _check_claims(self, event: Event, seq: int) -> None:
        body = event.body
        if seq == 1 and not isinstance(body, PolicyActivated):
            raise ChainBreakError(seq, "it comes before any policy")
        if isinstance(body, _DESCRIBING):
            self._check_contents(body, seq, event.version)
        elif isinstance(body, ApprovalGiven):
            self._check_named(body, seq)
            self.approvals += 1
            self.signed += bool(body.key)
        elif isinstance(body, PolicyProposed):
            _compiled(body, seq)
        self._check_found(body, seq)
        if isinstance(body, ReleaseReserved):
            self._check_decision(body.release, ((), ()), event, seq)
            self._check_held(body, event, seq)
        elif isinstance(body, ReleaseDenied):
            if not body.causes:
                raise ChainBreakError(seq, "it denies without a reason")
            reasons = body.blocking, body.unmatched
            self._check_decision(body.release, reasons, event, seq)
        if self._followed is not None:
            policy = self._followed.compiled.policy
            found = unfounded(event, policy, self.state)
            if found:
                raise ChainBreakError(seq, found)

    def _check_contents(
        self,
        body: ReleaseReserved
        | ReleaseDenied
        | PastRecorded
        | PastRedescribed
        | ReleaseRequested,
        seq: int,
        version: int,
    ) -> None:
        vocabulary = self._under(body.policy, seq).compiled.policy.vocabulary
        release = body.release
        if isinstance(body, PastRedescribed | ReleaseRequested):
            vocabulary = self._recorded_under(release.id) or vocabulary
        found = contradiction(release, vocabulary)
        if isinstance(body, PastRedescribed) and not found:
            same = self._past.get(release.id) == _written(body.before)
            found = "" if same else "its earlier description differs from the entry"
        if not found and version > 1 and not is_described(release, vocabulary):
            found = "its content is not the digest of the description"
        if found:
            raise ChainBreakError(seq, f"release `{release.id}`: {found}")
        self.repricing.check(release, vocabulary, seq, version)
        if self._approved.get(release.content, release.id) != release.id:
            raise ChainBreakError(
                seq, f"release `{release.id}` was approved under another id"
            )

    def _check_found(self, body: Body, seq: int) -> None:
        """Check that the first lost entry follows one of this log."""
        if not isinstance(body, LostEntriesFound):
            return
        gap = self.state.planning.gaps.open.get(body.gap)
        if gap is None or gap.begins or not body.entries:
            return
        try:
            first, prev = lost_entry(body.entries[0])
        except ConflictError as error:
            raise ChainBreakError(seq, str(error)) from error
        own = self._after(first.seq - 2)
        before, same = next(own, None), next(own, None)
        if before is None or before.hash != prev:
            raise ChainBreakError(
                seq, "the lost entries do not follow an entry of this log"
            )
        if same is not None and same.hash == first.hash:
            raise ChainBreakError(seq, f"entry {first.seq} was not lost")

    def _recorded_under(self, release: str) -> Vocabulary | None:
        """Return the vocabulary that a past release was recorded in."""
        known = self.state.releases.get(release)
        if known is None:
            return None
        return vocabulary_of(self.state.policy_at(known.seq).text)

    def _check_named(self, body: ApprovalGiven, seq: int) -> None:
        """Check that an approval names the subject of its content."""
        known = body.content
        if body.subject == "release":
            known = self._approved.setdefault(body.content, body.id)
        elif body.subject != "policy":
            return
        if body.id != known:
            raise ChainBreakError(seq, "its id does not match its subject")

    def _check_decision(
        self, release: RecordedRelease, reasons: _Reasons, event: Event, seq: int
    ) -> None:
        assert self._followed is not None  # _under has been called for each release
        verdict = decide(self._followed.balances, release, day_of(event.at))
        denies = event.version >= UNMATCHED_DENIED_SINCE
        if reasons != (verdict.blocking, verdict.unmatched if denies else ()):
            raise ChainBreakError(
                seq,
                f"the decision about `{release.id}` does not follow from the policy and"
                " the entries before it",
            )
        self.decisions += 1

    def _check_held(self, body: ReleaseReserved, event: Event, seq: int) -> None:
        """Record reservations that may be held for one turn only, or a shorter time.

        A release that is started at once, or reserved by a plan, is not held.
        """
        assert self._followed is not None
        day = day_of(event.at)
        for window in self._followed.windows(self.state, self._after):
            found = window.refuses(event.actor, body.release, day)
            if found.beyond is not None and not found.is_rounded:
                self._split[body.release.id] = seq
        bound = self._followed.compiled.policy.reservations
        for quota in self._followed.quotas(bound, event.actor, body.release):
            found = quota.judged(body.release, day)
            is_long = lasts(body, event).total_seconds() > DAY_SECONDS
            is_beyond = found.beyond is not None or (found.is_large and is_long)
            if is_beyond and not found.is_rounded:
                called = f"data set `{quota.holder}`"
                whose = called if quota.is_of_data_set else "one identity"
                self._beyond[body.release.id] = seq, whose

    def refuse_beyond(self) -> None:
        """Refuse reservations beyond a quota at the end of their turn."""
        for release, (seq, whose) in self._beyond.items():
            raise ChainBreakError(
                seq,
                f"release `{release}` reserves more of a limit, or for longer, than"
                f" the policy allows {whose}",
            )
        for release, seq in self._split.items():
            raise ChainBreakError(
                seq,
                f"release `{release}` reserves more than the policy allows one identity"
                " within `requester_days`",
            )

    def _under(self, policy: str, seq: int) -> Followed:
        active = self.state.policy
        if active is None or active.digest != policy or self._followed is None:
            raise ChainBreakError(
                seq, "it was decided under a policy that was not active"
            )
        return self._followed

    def _history(self) -> Iterable[LossChange]:
        return loss_changes(self._again(), self.state)

    def _counted(self) -> Iterator[LossChange]:
        """Yield the releases that count as spent, as they count at last."""
        left = {one: len(seqs) for one, seqs in self.state.redescribed.items()}
        for one in self._history():
            if one.instead_of is not None:
                left[one.release.id] -= 1
            status = self.state.releases[one.release.id].status
            if status.counts and not one.taken_back and not left.get(one.release.id):
                yield one

    def _recorded(self) -> Iterator[tuple[RecordedRelease, int]]:
        """Yield them as recorded, each with the number of its entry."""
        return ((one.release, one.seq) for one in self._counted())

    def _counted_releases(self) -> Iterator[RecordedRelease]:
        """Yield them as they are charged to the active policy."""
        assert self._followed is not None
        for one in self._counted():
            yield self._followed.migrated(one.release, one.seq)

    def _follow_policy(self, body: PolicyActivated, version: int, seq: int) -> None:
        """Charge all that happened under a policy that was activated just now."""
        compiled = _compiled(body, seq)
        before = self._followed
        self._followed = followed_from(compiled, self.state, self._history())
        gone: tuple[str, ...] = ()
        earlier = self.state.policies[:-1]
        counted = self.state.counted_seqs(self.state.at)
        if version >= _NAMES_KEPT_SINCE:
            if version < ENTAILED_SINCE:
                for one in units_redefined_by_name(earlier, counted, compiled):
                    raise ChainBreakError(seq, one.problem().message)
            vocabulary = compiled.policy.vocabulary
            dropped = dropped_attributes(earlier, self._counted_releases(), vocabulary)
            gone = tuple(dropped)
        if version >= ENTAILED_SINCE and before is not None:
            redefined = redefined_units(
                earlier, counted, compiled, self._counted_releases()
            )
            gone += tuple(one.name for one in redefined)
            left = departed(earlier, self._recorded(), compiled)
            gone += tuple(one.name for one in left)
            changed = filter_change(earlier, counted, compiled)
            gone += (changed.name,) if changed else ()
        self._check_accepted(body.accepted, gone, before, seq)

    @property
    def understated(self) -> tuple[Understated, ...]:
        """Rules that show less than was released."""
        if self._followed is None:
            return ()
        counted = self.state.counted_seqs(self.state.at)
        compiled = self._followed.compiled
        return understated(self.state.policies, counted, self._recorded, compiled)

    def _check_accepted(
        self,
        accepted: tuple[str, ...],
        gone: tuple[str, ...],
        before: Followed | None,
        seq: int,
    ) -> None:
        """Check that a policy accepts rules that history exceeds, and all new ones.

        And all attributes that are gone, if others are new, all redefined units, all
        rules that past releases leave, and a filter that is new.
        """
        now = _exceeded(self._followed) if self.state.releases else []
        known = set(_exceeded(before)) if now else set()
        if [*(one for one in now if one in accepted), *gone] != list(accepted) or any(
            one not in accepted for one in now if one not in known
        ):
            raise ChainBreakError(
                seq, "the rules that it accepts are not those over their limit"
            )


def _written(release: RecordedRelease) -> str:
    return digest(encode(release_to_plain(release)))


def _compiled(body: PolicyActivated | PolicyProposed, seq: int) -> CompiledPolicy:
    """Return the policy of an entry, which is the one that it names."""
    try:
        compiled = compile_text(body.text.encode("utf-8"), f"policy of entry {seq}")
    except InputError as error:
        raise ChainBreakError(seq, f"its policy does not compile ({error})") from error
    if compiled.policy.digest != body.digest:
        raise ChainBreakError(seq, "its policy does not match its digest")
    if compiled.policy.name != body.name:
        raise ChainBreakError(seq, "its policy does not match its name")
    return compiled


def _exceeded(followed: Followed | None) -> list[str]:
    """Return the rules that deny every matching release, in the policy's order."""
    if followed is None:
        return []
    balances = followed.balances
    return [
        rule.id
        for rule in followed.compiled.rules
        if not verdict_over_history(balances, rule).allowed
    ]
