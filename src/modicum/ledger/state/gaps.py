"""Gaps: entries that a ledger has lost, until their losses are known again.

The lost entries are in the log verbatim before a gap is closed, each naming the hash of
the one before it. So that none is missing follows from the log alone.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from modicum.core.canonical import Plain, decode, digest, encode
from modicum.core.errors import Code, ConflictError, Problem
from modicum.ledger.log.chain import ChainBreakError, Record, read_record
from modicum.ledger.log.codec import release_to_plain
from modicum.ledger.log.escrow_events import EscrowBody, FlowBegun, FlowReleased
from modicum.ledger.log.events import (
    ApprovalGiven,
    Body,
    DisclosureRecorded,
    Event,
    GapBody,
    GapClosed,
    GroupActivated,
    GroupRetired,
    LedgerResumed,
    LossAcceptanceRequested,
    LostEntries,
    LostEntriesFound,
    PastRecorded,
    PastRedescribed,
    PolicyActivated,
    ReleaseExpired,
    ReleasePosted,
    ReleaseReserved,
    ReleaseStarted,
    ReleaseVoided,
    RequestWithdrawn,
    ResumeRequested,
    RoundOpened,
    day_of_release,
)
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.ledger.state.lifecycle import STATUS_AFTER, ReleaseStatus, Standing
from modicum.policy.declarations.roles import person_key

Standings: TypeAlias = Mapping[str, Standing]

#: What no description of a release contains: what may have flowed or be known, and what
#: may have narrowed limits, or what may be read. Approvals here outlive a withdrawal.
_UNCOUNTED = (
    *(*get_args(EscrowBody), *get_args(GapBody), DisclosureRecorded, RequestWithdrawn),
    *(PolicyActivated, RoundOpened, GroupActivated, GroupRetired),
)


class LostRelease(Struct, frozen=True):
    """What lost entries say of a release, at their end.

    Attributes:
        content: SHA-256 of the description.
        day: The day that it counts as made on, as an ordinal.
        status: Its status.
        at: The time of the lost entry that brought it in; empty if it is older.
        by: The actor of that entry, if it reserved the release.
        under: The digest of the policy of that entry.
        mark: What an entry of this log must record (see `mark`), if lost entries
            brought the release in or corrected it; else empty.
        moved: The time of the lost entry that started or ended it; empty if none did.
    """

    content: str
    day: int
    status: ReleaseStatus
    at: str = ""
    by: str = ""
    under: str = ""
    mark: str = ""
    moved: str = ""

    @property
    def is_started(self) -> bool:
        """Whether rows may have been read."""
        return self.status in _STARTED


class Gap(LostEntries, frozen=True):
    """Lost entries whose losses are not all known again.

    Attributes:
        opened: The entry by which the ledger went on.
        at: Its time.
        begins: The number of the first lost entry; 0 before any was found.
        found: The number of the last one that was found.
        last: Its hash.
        releases: The releases that these are about, by id.
        uncounted: What no release accounts for: people must judge it.
        requested_by: Who requested to accept the loss; empty if nobody did.
    """

    opened: int
    at: str
    begins: int = 0
    found: int = 0
    last: str = ""
    releases: dict[str, LostRelease] = msgspec.field(default_factory=dict)
    uncounted: tuple[str, ...] = ()
    requested_by: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether every lost entry was found."""
        return (self.found, self.last) == (self.seq, self.head)

    def missing(self, standings: Standings, back: Mapping[str, str]) -> Iterator[str]:
        """Yield the releases that the log does not account for.

        Args:
            standings: The releases of the log.
            back: As in `Gaps`.
        """
        for name, lost in self.releases.items():
            if not self._accounts(lost, standings.get(name), back.get(name, "")):
                yield name

    def _accounts(self, lost: LostRelease, known: Standing | None, back: str) -> bool:
        if not lost.status.counts:  # A reservation may not be used any more.
            return known is None or known.status is not ReleaseStatus.RESERVED
        if known is None or (known.content, known.day) != (lost.content, lost.day):
            return False
        if lost.mark:  # It counts where it did, and for who reserved it.
            return known.status is ReleaseStatus.RECORDED and back == lost.mark
        # A release of this id that was made after the loss is another one.
        return known.seq < self.begins and (
            known.status is ReleaseStatus.RECORDED or known.status in _STARTED
        )

    def unstarted(self, standings: Standings) -> Iterator[str]:
        """Yield the reservations of before that lost entries started, or may have.

        Until all are found, nothing proves that those found are the lost ones.
        """
        for name in self.releases if self.is_complete else standings:
            if self.excludes(name) and self.holds(name, standings):
                yield name

    def holds(self, name: str, standings: Standings) -> bool:
        """Return whether a release is a reservation that both logs contain."""
        known = standings.get(name)
        return (
            known is not None
            and known.status is ReleaseStatus.RESERVED
            and known.seq < (self.begins if self.is_complete else self.opened)
        )

    def proves(self, body: ReleaseStarted | ReleaseVoided) -> bool:
        """Return whether lost entries started or ended a reservation, as it says.

        If they are not all found, they may have started it before the gap was opened.
        """
        lost, starts = self.releases.get(body.release), isinstance(body, ReleaseStarted)
        if starts and not self.is_complete and body.lost_at == self.at:
            return True
        return (
            lost is not None
            and lost.moved == body.lost_at
            and (lost.is_started if starts else not lost.status.counts)
        )

    def excludes(self, name: str) -> bool:
        """Return whether lost entries may have started a release."""
        lost = self.releases.get(name)
        return not self.is_complete or (lost is not None and lost.is_started)

    def text(self) -> str:
        """Return what is lost."""
        return f"entries up to {self.seq} ({self.head[:12]}) are lost"


class ResumeRequest(Struct, frozen=True):
    """A request to go on after a loss.

    Attributes:
        lost: What is lost.
        by: The requester.
    """

    lost: LostEntries
    by: str


@dataclass
class Gaps:
    """The gaps of a log, up to its head.

    Attributes:
        requests: The pending requests to go on, by the hash of the last lost entry.
        open: The gaps that are open, by that hash.
        closed: Of those that were closed, the last entry of which two people accepted
            that losses may be missing; 0 if none are.
        back: What this log has had again while a gap was open, by the id of the
            release: what was recorded or corrected (see `mark`), or for a start the
            time of the lost one. Later gaps may have lost the same entries.
    """

    requests: dict[str, ResumeRequest] = field(default_factory=dict)
    open: dict[str, Gap] = field(default_factory=dict)
    closed: dict[str, int] = field(default_factory=dict)
    back: dict[str, str] = field(default_factory=dict)

    @property
    def accepted(self) -> tuple[int, ...]:
        """The entries by which people accepted that losses may be missing."""
        return tuple(seq for seq in self.closed.values() if seq)

    def requester(self, body: LedgerResumed | GapClosed) -> str:
        """Return who requested what an event agrees to; empty if nobody did."""
        if isinstance(body, LedgerResumed):
            request = self.requests.get(body.head)
            return request.by if request else ""
        gap = self.open.get(body.gap)
        return gap.requested_by if gap else ""

    def permit(self, body: Body) -> bool:
        """Return whether an event spends nothing that may be lost.

        Reservations of before count already, but what was given back and spent again
        in lost entries is not known. A start that found entries prove gives nothing
        back, whatever others contain.
        """
        match body:
            case ReleaseStarted(lost_at=at) | ReleaseVoided(lost_at=at) if at:
                gaps = self.open.values()
                if not any(one.proves(body) for one in gaps):
                    return False
                starts = isinstance(body, ReleaseStarted)
                return starts or not any(one.excludes(body.release) for one in gaps)
            case ReleaseStarted() | ReleaseVoided() | ReleaseExpired():
                return not self.open
            case FlowBegun() | FlowReleased():
                return not self.open
            case _:
                return True

    def refuse(self, body: Body) -> None:
        """Refuse an event that may spend while a gap is open.

        Raises:
            ConflictError: If it may.
        """
        if self.permit(body):
            return
        if not self.open:
            raise _impossible("it stands for a lost entry, and none is lost")
        raise ConflictError(*self.problems())

    def problems(self) -> tuple[Problem, ...]:
        """Return each open gap as a problem, and its remedy."""
        return tuple(
            Problem(
                Code.GAP_OPEN,
                f"nothing may be spent: {one.text()}, and what they spent is not known",
                notes=(f"since entry {one.opened}, every limit counts as full",),
                help=GAP_REMEDY,
            )
            for one in self.open.values()
        )

    def apply(self, body: GapBody, event: Event, seq: int, known: Standings) -> None:
        """Apply an event; a forbidden one changes nothing.

        Args:
            body: Its body.
            event: The event.
            seq: Its number.
            known: The releases of the log.

        Raises:
            ConflictError: If it contradicts the entries before it.
        """
        match body:
            case ResumeRequested():
                self._ask(body, event.actor)
            case LedgerResumed():
                self._resume(body, event, seq)
            case LostEntriesFound():
                gap = self._gap(body.gap)
                self.open[gap.head] = _with(gap, body.entries, known, self.back)
            case LossAcceptanceRequested():
                gap = self._gap(body.gap)
                self.open[gap.head] = replace(gap, requested_by=event.actor)
            case GapClosed():
                self._close(body, event.actor, seq, known)

    def note(self, body: Body, day: int = 0) -> None:
        """Note what is recorded, corrected or started while a gap is open.

        Args:
            body: It, which is permitted.
            day: The day that a past release counts on.

        Raises:
            ConflictError: If it stands for a lost entry that was not found.
        """
        match body:
            case PastRecorded(release=one, lost_at=at, lost_by=by):
                if not (self.open or at or by):
                    return
                found = mark(one, body.policy, by)
                if (at or by) and not any(
                    (lost.mark, lost.day, lost.at) == (found, day, at)
                    for lost in self._of(one.id)
                ):
                    message = f"no lost entry is about `{one.id}` as it is recorded"
                    raise _impossible(message)
                self._note(one.id, found)
            case PastRedescribed(release=one) if self.open:
                self._note(one.id, mark(one))
            case ReleaseStarted(release=name, lost_at=at) if at:
                self._note(name, at)
            case _:
                pass

    def _note(self, name: str, what: str) -> None:
        if self.open:
            self.back[name] = what

    def _of(self, name: str) -> Iterator[LostRelease]:
        for gap in self.open.values():
            if name in gap.releases:
                yield gap.releases[name]

    def _ask(self, body: ResumeRequested, by: str) -> None:
        self._must_be_new(body.head)
        # Another person's replaces it: one who may not agree would prevent all others.
        self.requests[body.head] = ResumeRequest(_lost(body), by)

    def _resume(self, body: LedgerResumed, event: Event, seq: int) -> None:
        self._must_be_new(body.head)
        request = self.requests.get(body.head)
        if request is None or request.lost != _lost(body):
            raise _impossible("nobody asked to go on without these entries")
        if person_key(request.by) == person_key(event.actor):
            raise _impossible(f"`{event.actor}` asked; another person must agree")
        del self.requests[body.head]
        self.open[body.head] = Gap(body.seq, body.head, seq, event.at)

    def _close(self, body: GapClosed, by: str, seq: int, known: Standings) -> None:
        gap = self._gap(body.gap)
        if body.accepted:
            if not gap.requested_by or person_key(by) == person_key(gap.requested_by):
                raise _impossible(f"nobody but `{by}` asked to accept the loss")
            if any(gap.unstarted(known)):
                raise _impossible("lost entries may have started what is not started")
        elif not gap.is_complete or gap.uncounted or any(gap.missing(known, self.back)):
            raise _impossible("not all that was lost is accounted for")
        del self.open[gap.head]
        self.closed[gap.head] = seq if body.accepted else 0

    def _gap(self, head: str) -> Gap:
        if head not in self.open:
            raise _impossible(f"no gap up to {head[:12]} is open")
        return self.open[head]

    def _must_be_new(self, head: str) -> None:
        if head in self.open or head in self.closed:
            raise _impossible("the ledger already went on without these entries")

    def to_plain(self) -> dict[str, Plain]:
        """Return all of it as plain data; nothing if there never was a gap."""
        if not (self.requests or self.open or self.closed):
            return {}  # Digests of states without gaps were signed without the key.
        return {
            "gaps": {
                "requests": [
                    [asdict(one.lost), one.by] for one in self.requests.values()
                ],
                "open": [_gap_to_plain(one) for one in self.open.values()],
                "closed": dict(self.closed),
                "back": dict(self.back),
            }
        }

    @classmethod
    def restored(cls, plain: dict[str, Any]) -> Gaps:
        """Return the state that `to_plain` encoded; invalid data raises an error."""
        found = plain.get("gaps")
        if found is None:
            return cls()
        requests = [
            ResumeRequest(LostEntries(**lost), by) for lost, by in found["requests"]
        ]
        gaps = map(_gap_from_plain, found["open"])
        return cls(
            {one.lost.head: one for one in requests},
            {one.head: one for one in gaps},
            found["closed"],
            found["back"],
        )


#: What ends a gap.
GAP_REMEDY = (
    "bring the lost entries back:  modicum ledger bring-back FILE  ; or let two people"
    " accept the loss:  modicum ledger accept-loss --reason …"
)


def _lost(body: ResumeRequested | LedgerResumed) -> LostEntries:
    return LostEntries(body.seq, body.head)


def mark(release: RecordedRelease, policy: str = "", by: str = "") -> str:
    """Return a digest of all that determines where a past release counts.

    Args:
        release: The release, as recorded.
        policy: The policy that it is recorded under; empty in a correction of a release
            that both logs contain, since it keeps its own.
        by: Whom it counts for.
    """
    return digest(encode([release_to_plain(release), policy, by]))


def _with(
    gap: Gap, entries: tuple[str, ...], known: Standings, back: Mapping[str, str]
) -> Gap:
    """Return a gap of which further entries were found."""
    found, last, begins = gap.found, gap.last, gap.begins
    now: dict[str, LostRelease] = {}
    releases, uncounted = ChainMap(now, gap.releases), [*gap.uncounted]
    for text in entries:
        record, prev = lost_entry(text)
        if not begins:
            # An audit compares `prev` with the log; from there on, hashes prove it.
            begins, found, last = record.seq, record.seq - 1, prev
            if not 1 < begins <= gap.opened:
                raise _impossible("the lost entries do not follow an entry of this log")
        try:
            event = read_record(record, found + 1, last)
        except ChainBreakError as error:
            raise _impossible(f"they are not the lost entries ({error})") from error
        found, last = record.seq, record.hash
        if found > gap.seq or (found == gap.seq and last != gap.head):
            raise _impossible("they are not the entries that the witness knows of")
        uncounted += _take(event, releases, known, back)
    gap.releases.update(now)  # A copy for each of many entries would be quadratic.
    return replace(
        gap,
        begins=begins,
        found=found,
        last=last,
        uncounted=tuple(dict.fromkeys(uncounted)),
        requested_by="",  # People ask anew: they know more.
    )


def lost_entry(text: str) -> tuple[Record, str]:
    """Return a lost entry, and the hash that it names.

    Raises:
        ConflictError: If it is no entry.
    """
    payload = text.encode("utf-8", "surrogatepass")
    try:
        plain = decode(payload)
    except ValueError as error:
        raise _impossible("a lost entry cannot be read") from error
    match plain:
        case {"seq": int(seq), "prev": str(prev)}:
            return Record(seq, payload, digest(payload)), prev
        case _:
            raise _impossible("a lost entry cannot be read")


def _take(
    event: Event,
    releases: MutableMapping[str, LostRelease],
    known: Standings,
    back: Mapping[str, str],
) -> Iterator[str]:
    """Take a lost event into account; yield what no release accounts for."""
    body = event.body
    match body:
        case ReleaseReserved() | PastRecorded():
            status, origin = ReleaseStatus.RESERVED, (event.at, event.actor)
            if isinstance(body, PastRecorded):  # It may stand for another lost one.
                status = ReleaseStatus.RECORDED
                origin = body.lost_at or event.at, body.lost_by
            day = day_of_release(body, event.at)
            it = body.release
            releases[it.id] = LostRelease(
                it.content,
                day,
                status,
                *origin,
                body.policy,
                mark(it, body.policy, origin[1]),
            )
        case ReleasePosted():
            before, _ = _before(body.release, releases, known)
            releases[body.release] = replace(before, status=ReleaseStatus.PUBLISHED)
        case ReleaseStarted() | ReleaseVoided() | ReleaseExpired():
            before, standing = _before(body.release, releases, known)
            at = getattr(body, "lost_at", "") or event.at
            releases[body.release] = replace(
                before, status=STATUS_AFTER[type(body)], moved=at
            )
            again = standing is not None and standing.status not in _WAITING
            if (
                again
                and isinstance(body, ReleaseStarted)
                and back.get(body.release) != at
            ):
                yield f"release `{body.release}` was started in both logs"
        case PastRedescribed(release=it):
            before, _ = _before(it.id, releases, known)
            releases[it.id] = replace(
                before, content=it.content, mark=mark(it, before.under, before.by)
            )
        case ApprovalGiven(approves=False):
            yield f"refusal of {body.subject} `{body.id[:100]}`"
        case _ if isinstance(body, _UNCOUNTED):
            yield body.kind
        case _:
            pass  # It spends nothing; people decide anew.


_STARTED = (ReleaseStatus.STARTED, ReleaseStatus.PUBLISHED)
#: What was not started.
_WAITING = (ReleaseStatus.RESERVED, ReleaseStatus.CANCELED, ReleaseStatus.EXPIRED)


def _before(
    name: str, releases: Mapping[str, LostRelease], known: Standings
) -> tuple[LostRelease, Standing | None]:
    """Return a release before a lost event, and as both logs have it."""
    if name in releases:
        return releases[name], None
    standing = known.get(name)
    if standing is None:
        raise _impossible(f"lost entries name the unknown release `{name}`")
    return LostRelease(standing.content, standing.day, standing.status), standing


def _gap_to_plain(gap: Gap) -> Plain:
    releases = [
        [name, *({**asdict(one), "status": one.status.value}).values()]
        for name, one in gap.releases.items()
    ]
    lists: dict[str, Plain] = {
        "releases": list(releases),
        "uncounted": list(gap.uncounted),
    }
    return {**asdict(gap), **lists}


def _gap_from_plain(plain: dict[str, Any]) -> Gap:
    releases = {
        name: LostRelease(content, day, ReleaseStatus(status), *origin)
        for name, content, day, status, *origin in plain.pop("releases")
    }
    uncounted = tuple(plain.pop("uncounted"))
    return Gap(**plain, uncounted=uncounted, releases=releases)


def _impossible(message: str) -> ConflictError:
    return ConflictError(Problem(Code.RELEASE_CONFLICT, message))
