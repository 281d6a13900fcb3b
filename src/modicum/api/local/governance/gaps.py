"""Lost entries: going on without them, bringing them back, or accepting the loss.

See ADR 0080.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from modicum.api.local.balances import Entry
from modicum.api.local.governance.approval_cases import active_policy, reason_text
from modicum.core.errors import (
    ApprovalError,
    Code,
    ConflictError,
    InputError,
    Problem,
    VerificationError,
)
from modicum.ledger import Record, RecordedRelease, ReleaseStatus, event_of
from modicum.ledger.decision.approvals import ill_agreed
from modicum.ledger.log.events import (
    EVENT_VERSION,
    Body,
    GapClosed,
    LedgerResumed,
    LossAcceptanceRequested,
    LostEntries,
    LostEntriesFound,
    PastRecorded,
    PastRedescribed,
    ReleasePosted,
    ReleaseReserved,
    ReleaseStarted,
    ReleaseVoided,
    ResumeRequested,
)
from modicum.ledger.proof.consistency import contradiction, is_described
from modicum.ledger.proof.repricing import Repricing
from modicum.ledger.state.gaps import Gap, lost_entry
from modicum.release import Vocabulary

#: Maximum number of lost entries in one entry, and about how many bytes of them.
_ENTRIES_MAX: Final = 100
_BYTES_MAX: Final = 256 * 1024
#: The shown digits of a policy's digest.
_POLICY_DIGITS: Final = 12


class BroughtBack(Struct, frozen=True):
    """What became of lost entries.

    Attributes:
        gap: The gap.
        recorded: The releases that are recorded now.
        moved: Those whose reservation was started or canceled, as in lost entries.
        policies: The policies that must be active to record further ones, in order.
        missing: The releases that cannot be brought back under their ids, or that an
            audit would refuse.
        uncounted: What else people must judge.
        closed: Whether everything is accounted for, so that the gap is closed.
    """

    gap: Gap
    recorded: tuple[str, ...]
    moved: tuple[str, ...]
    policies: tuple[str, ...]
    missing: tuple[str, ...]
    uncounted: tuple[str, ...]
    closed: bool


def ask_to_resume(entry: Entry, lost: LostEntries, reason: str) -> int:
    """Ask to go on without lost entries; return the number of the request's entry."""
    why = reason_text(reason, "going on after a loss")
    known = entry.book.state.planning.gaps.requests.get(lost.head)
    if known is not None and (known.lost, known.by) == (lost, entry.actor):
        return entry.book.state.seq
    entry.add(ResumeRequested(lost.seq, lost.head, why))
    return entry.book.state.seq


def agree_to_resume(entry: Entry, head: str, reason: str) -> Gap:
    """Agree to go on without lost entries. From here on, every limit counts as full."""
    why = reason_text(reason, "going on after a loss")
    gaps = entry.book.state.planning.gaps
    if head not in gaps.requests:
        raise _nobody_asked("modicum ledger resume --after-loss")
    lost = gaps.requests[head].lost
    _agree(entry, LedgerResumed(lost.seq, lost.head, why))
    return gaps.open[head]


def ask_to_accept(entry: Entry, reason: str, head: str | None = None) -> Gap:
    """Ask to spend again although lost entries were not found."""
    why = reason_text(reason, "accepting a loss")
    gap = open_gap(entry, head)
    if entry.actor != gap.requested_by:
        entry.add(LossAcceptanceRequested(gap.head, why))
    return gap


def accept(
    entry: Entry,
    reason: str,
    head: str | None = None,
    without: Collection[str] = (),
) -> Gap:
    """Agree to spend again although losses may be missing.

    What lost entries may have started counts as started from then on.

    Args:
        entry: The turn.
        reason: Why, for the record; 1 to 2000 characters.
        head: Which gap, if several are open.
        without: The digests, or their first 12 digits, of lost policies whose
            releases need not be recorded first.

    Raises:
        ConflictError: If nobody asked for it, or what was found is not recorded.
    """
    why = reason_text(reason, "accepting a loss")
    gap = open_gap(entry, head)
    gaps = entry.book.state.planning.gaps
    if not gap.requested_by:
        raise _nobody_asked("modicum ledger accept-loss")
    for done in _settle(entry):  # What is known is not given up.
        given_up = {one[:_POLICY_DIGITS] for one in without}
        needed = [one for one in done.policies if one[:_POLICY_DIGITS] not in given_up]
        if done.gap.head == gap.head and needed:
            raise _not_yet(needed)
    if gap.head in gaps.open:
        for name in [*gap.unstarted(entry.book.state.releases)]:
            entry.add(ReleaseStarted(name, gap.at))
        _agree(entry, GapClosed(gap.head, accepted=True, reason=why))
        _settle(entry)  # No gap says otherwise any more.
    return gap


def bring_back(
    entry: Entry, records: Iterable[Record], head: str | None = None
) -> BroughtBack:
    """Record every loss of lost entries, and close the gap if that is all.

    So it does with all that was found for other gaps.

    Args:
        entry: The turn.
        records: The log that was lost, or its end, in order; not read if all lost
            entries were found before.
        head: Which gap, if several are open.

    Raises:
        ConflictError: If they are not all entries up to the one that the witness knows
            of, or do not follow an entry of this log; nothing is written then.
    """
    gap = open_gap(entry, head)
    if not gap.is_complete:
        for texts in _portions(_lost_part(entry, records, gap)):
            entry.add(LostEntriesFound(gap.head, texts))
        gap = entry.book.state.planning.gaps.open[gap.head]
    every = _settle(entry, last=gap.head)
    return replace(
        every[-1],
        recorded=tuple(name for one in every for name in one.recorded),
        moved=tuple(name for one in every for name in one.moved),
    )


def _settle(entry: Entry, last: str = "") -> list[BroughtBack]:
    """Record what found entries prove, of every gap; close those that have all."""
    found = [one for one in entry.book.state.planning.gaps.open.values() if one.begins]
    return [
        _settled(entry, one) for one in sorted(found, key=lambda one: one.head == last)
    ]


def _settled(entry: Entry, gap: Gap) -> BroughtBack:
    described = _described(_found(entry, gap))
    recorded, moved, unfit = [], [], []
    policies: dict[str, None] = {}
    active = active_policy(entry.book).policy
    prices = Repricing()
    standings, back = entry.book.state.releases, entry.book.state.planning.gaps.back
    for name in [*gap.missing(standings, back)]:
        one = gap.releases[name]
        if name in standings:
            if _moves(entry, name, gap):
                moved.append(name)
            continue
        release, policy, assumptions = described[name]
        if policy != active.digest:
            policies[policy] = None
        elif _is_sound(release, active.vocabulary, prices):
            entry.add(PastRecorded(release, policy, assumptions, one.at, one.by))
            recorded.append(name)
        else:
            unfit.append(name)
    missing = tuple(gap.missing(standings, back))
    closed = gap.is_complete and not missing and not gap.uncounted
    if closed:
        entry.add(GapClosed(gap.head, accepted=False, reason=""))
    return BroughtBack(
        gap,
        tuple(recorded),
        tuple(moved),
        tuple(policies),
        tuple(one for one in missing if one in standings or one in unfit),
        gap.uncounted,
        closed,
    )


def _is_sound(
    release: RecordedRelease, vocabulary: Vocabulary, prices: Repricing
) -> bool:
    """Return whether an audit accepts a release in an entry of this version.

    Lost entries of version 1 may describe what this version cannot price.
    """
    if contradiction(release, vocabulary) or not is_described(release, vocabulary):
        return False
    try:
        prices.check(release, vocabulary, 0, EVENT_VERSION)
    except VerificationError:
        return False
    return True


def open_gap(entry: Entry, head: str | None = None) -> Gap:
    """Return the gap with a hash, or with its first digits; by default the only one.

    Raises:
        InputError: If there is none, or there are several.
    """
    gaps = entry.book.state.planning.gaps.open.values()
    found = [one for one in gaps if one.head.startswith(head or "")]
    if len(found) == 1:
        return found[0]
    message = (
        "several gaps are open" if found else "no such gap is open, or it is closed"
    )
    remedy = "name one by  --gap HASH" if found else "see  modicum status"
    raise InputError(Problem(Code.OUT_OF_RANGE, message, help=remedy))


def _moves(entry: Entry, name: str, gap: Gap) -> bool:
    """Start or cancel a reservation of before, as lost entries started or ended it."""
    state, lost = entry.book.state, gap.releases[name]
    if not gap.holds(name, state.releases):
        return False
    status = lost.status
    body: ReleaseStarted | ReleaseVoided = ReleaseStarted(name, lost.moved)
    if not status.counts:
        why = f"it was {status.value} in lost entries"
        body = ReleaseVoided(name, why, lost.moved)
    if not state.planning.gaps.permit(body):
        return False
    entry.add(body)
    if status is ReleaseStatus.PUBLISHED:
        entry.add(ReleasePosted(name))
    return True


def _lost_part(entry: Entry, records: Iterable[Record], gap: Gap) -> list[Record]:
    """Return the entries of another log that this one lacks, up to its last one."""
    lost: list[Record] = []
    own = None
    before = ""
    for record in records:
        if record.seq > gap.seq:
            break
        if own is None:
            own = iter(entry.read(max(record.seq - 2, 0)))
            if record.seq > 1:
                before = getattr(next(own, None), "hash", "")
        if not lost:
            mine = next(own, None)
            if mine is not None and mine.hash == record.hash:
                before = mine.hash
                continue
            if lost_entry(_text(record))[1] != before:
                raise _not_these("its first entry follows none of this ledger")
        lost.append(record)
    if not lost or (lost[-1].seq, lost[-1].hash) != (gap.seq, gap.head):
        raise _not_these(
            f"it does not lead to entry {gap.seq} ({gap.head[:12]}), which the witness"
            " knows of"
        )
    return lost


def _portions(lost: Sequence[Record]) -> Iterator[tuple[str, ...]]:
    """Yield lost entries as they fit into one entry."""
    texts: list[str] = []
    size = 0
    for one in lost:
        if texts and (len(texts) == _ENTRIES_MAX or size > _BYTES_MAX):
            yield tuple(texts)
            texts, size = [], 0
        texts.append(_text(one))
        size += len(one.payload)
    yield tuple(texts)


def _found(entry: Entry, gap: Gap) -> Iterator[Body]:
    """Yield what is lost, from this log alone: it proves that nothing was changed."""
    for record in entry.read(gap.opened):
        body = event_of(record, record.seq).body
        if isinstance(body, LostEntriesFound) and body.gap == gap.head:
            for text in body.entries:
                lost, _ = lost_entry(text)
                yield event_of(lost, lost.seq).body


def _described(
    lost: Iterable[Body],
) -> dict[str, tuple[RecordedRelease, str, tuple[str, ...]]]:
    """Return the releases of lost entries, with their policies and assumptions."""
    found: dict[str, tuple[RecordedRelease, str, tuple[str, ...]]] = {}
    for body in lost:
        match body:
            case ReleaseReserved(release=one, policy=policy):
                found[one.id] = one, policy, ()
            case PastRecorded(release=one, policy=policy, assumptions=assumptions):
                found[one.id] = one, policy, assumptions
            case PastRedescribed(release=one) if one.id in found:
                found[one.id] = one, *found[one.id][1:]
            case _:
                pass
    return found


def _text(record: Record) -> str:
    try:
        return record.payload.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_these(f"entry {record.seq} cannot be read") from error


def _agree(entry: Entry, body: LedgerResumed | GapClosed) -> None:
    """Add an agreement; people who may not agree are refused."""
    requester = entry.book.state.planning.gaps.requester(body)
    why = ill_agreed(entry.actor, requester, active_policy(entry.book).policy)
    if why:
        help_ = "let another person run the command with  --agree"
        raise ApprovalError(Problem(Code.NEEDS_APPROVAL, why, help=help_))
    entry.add(body)


def _nobody_asked(command: str) -> ConflictError:
    return ConflictError(
        Problem(
            Code.RELEASE_CONFLICT,
            "nobody has asked for it yet",
            notes=("one person asks, and another agrees",),
            help=f"ask:  {command} --reason …",
        )
    )


def _not_yet(policies: Sequence[str]) -> ConflictError:
    return ConflictError(
        Problem(
            Code.RELEASE_CONFLICT,
            "releases that were found are not recorded yet",
            notes=(f"policies that they need: {', '.join(policies)}",),
            help="activate each policy, and each time:  modicum ledger bring-back FILE"
            "  ; or accept the loss of a policy's releases by  --without HASH",
        )
    )


def _not_these(why: str) -> ConflictError:
    return ConflictError(
        Problem(
            Code.RELEASE_CONFLICT,
            f"these are not the lost entries: {why}",
            notes=("nothing was written, and the gap is open",),
            help="find a backup, a replica or an audit bundle that has all of them",
        )
    )
