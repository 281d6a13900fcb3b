"""The hash chain: each record names the hash of the one before it."""

from __future__ import annotations

import msgspec

from modicum.core.canonical import Plain, decode, digest, join
from modicum.core.errors import Code, Problem, VerificationError
from modicum.ledger.log import codec
from modicum.ledger.log.events import Event

#: The predecessor of the first record.
GENESIS = "0" * 64

_FIELDS = frozenset({"seq", "prev", "event"})


class Record(msgspec.Struct, frozen=True, gc=False):
    """One stored row.

    Attributes:
        seq: Its number, from 1, without gaps.
        payload: Canonical bytes: the event and the hash of the record before.
        hash: SHA-256 of the payload, in hexadecimal.
    """

    seq: int
    payload: bytes
    hash: str


class ChainBreakError(VerificationError):
    """A stored record contradicts the chain.

    Attributes:
        seq: The number of the first record that does not fit.
    """

    def __init__(self, seq: int, why: str) -> None:
        self.seq = seq
        problem = Problem(
            Code.LEDGER_BROKEN,
            f"the ledger is broken at entry {seq}: {why}",
            help="it cannot be used; restore a backup and compare its head",
        )
        super().__init__(problem)


class LaterEntryError(ChainBreakError):
    """A stored record is of a later version: it is not broken, it cannot be read."""

    def __init__(self, seq: int, why: str) -> None:
        super().__init__(seq, why)
        problem = Problem(
            Code.NOT_A_LEDGER,
            f"entry {seq} was written by a later version of modicum: {why}",
            notes=(
                "the ledger is not broken; restoring a backup would lose recorded"
                " losses",
            ),
            help="use the version that wrote it, or a newer one",
        )
        self.problems = (problem,)


def seal(event: Event, seq: int, previous: str) -> Record:
    """Return the record that chains an event to the one before it."""
    payload = join({"seq": seq, "prev": previous, "event": codec.to_joined(event)})
    return Record(seq, payload, digest(payload))


def read_record(record: Record, seq: int, previous: str) -> Event:
    """Return the event of a record that fits the chain.

    Raises:
        ChainBreakError: If its number, hash, predecessor or form is not as it must be.
    """
    return _read(record, seq, previous)


def event_of(record: Record, seq: int) -> Event:
    """Return the event of one record, without checking its predecessor.

    Raises:
        ChainBreakError: If its number, hash or form is not as it must be.
    """
    return _read(record, seq, None)


def _read(record: Record, seq: int, previous: str | None) -> Event:
    if record.seq != seq:
        raise ChainBreakError(seq, f"its number is {record.seq}")
    if digest(record.payload) != record.hash:
        raise ChainBreakError(seq, "its contents do not match its hash")
    found = codec.read_entry(record.payload)
    if found is not None and found.seq == seq and previous in (None, found.prev):
        return found.event
    plain = _contents(record.payload, seq)
    if previous is not None and plain["prev"] != previous:
        raise ChainBreakError(seq, "it does not follow the entry before it")
    return _event(plain, seq)


def _contents(payload: bytes, seq: int) -> dict[str, Plain]:
    try:
        plain = decode(payload)
    except ValueError as error:
        raise ChainBreakError(seq, f"it cannot be read ({error})") from error
    if not isinstance(plain, dict) or plain.keys() != _FIELDS:
        raise ChainBreakError(seq, "it is not a record")
    if plain["seq"] != seq or isinstance(plain["seq"], bool):
        raise ChainBreakError(seq, "its number is different")
    return plain


def _event(plain: dict[str, Plain], seq: int) -> Event:
    try:
        return codec.from_plain(plain["event"])
    except codec.LaterVersionError as error:
        raise LaterEntryError(seq, str(error)) from error
    except ValueError as error:
        raise ChainBreakError(seq, f"it cannot be read ({error})") from error
