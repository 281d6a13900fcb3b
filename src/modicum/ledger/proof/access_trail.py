"""The access trail: who came in, what was refused, and what was exported.

Its events form a hash chain of their own beside the log; no decision is in it, and no
decision depends on it. Each payload contains the hash of the one before, as in the log.
So a change, a gap or another order is found by reading. A trail that was cut at its end
is a valid one: only a head that was noted elsewhere shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum, unique
from typing import Final

import msgspec

from modicum.core.canonical import decode, digest, encode
from modicum.core.errors import Code, Problem, VerificationError, printable
from modicum.ledger.log.chain import GENESIS, Record

#: Texts are cut after this many characters.
CHARACTERS_MAX: Final = 200
_FIELDS: Final = frozenset({"seq", "prev", "event"})


@unique
class AccessKind(Enum):
    """What an event is about."""

    SERVER_STARTED = "server-started"
    SERVER_STOPPED = "server-stopped"
    SETTINGS_CHANGED = "settings-changed"
    SIGN_IN = "sign-in"
    CREDENTIAL = "credential"
    RIGHT = "right"
    TOKEN_CREATED = "token-created"  # noqa: S105 - the name of a kind
    TOKEN_USED = "token-used"  # noqa: S105 - the name of a kind
    TOKEN_REVOKED = "token-revoked"  # noqa: S105 - the name of a kind
    EXPORT = "export"
    LEFT_OUT = "left-out"


class AccessEvent(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """An event. It has names, times and outcomes; no secret, and no fact about rows.

    Attributes:
        at: When, in UTC.
        kind: What it is about.
        outcome: `done` or `refused`.
        who: The name of the identity; empty if it is not known.
        via: How it was recognized.
        action: The method and the route; without ids.
        client: The network address of an unknown client; of IPv6, its network.
        code: The code of the refusal.
        token: The id of the token, which is no secret.
        owner: The actor of the token.
        settings: The digest of the settings.
        parts: The names of the settings that changed.
        count: How many events were left out.
        of: The kind of those events.
    """

    at: str
    kind: AccessKind
    outcome: str = "done"
    who: str = ""
    via: str = ""
    action: str = ""
    client: str = ""
    code: str = ""
    token: str = ""
    owner: str = ""
    settings: str = ""
    parts: tuple[str, ...] = ()
    count: int = 0
    of: str = ""


def bounded(text: str) -> str:
    """Return a text that others chose, without control characters and not long."""
    return printable(text[:CHARACTERS_MAX])[:CHARACTERS_MAX]


def sealed(event: AccessEvent, after: Record | None) -> Record:
    """Return the record that chains an event to the one before it."""
    seq, previous = (0, GENESIS) if after is None else (after.seq, after.hash)
    fields = {"outcome": event.outcome, **msgspec.to_builtins(event)}
    payload = encode({"seq": seq + 1, "prev": previous, "event": fields})
    return Record(seq + 1, payload, digest(payload))


def verified(
    records: Iterable[Record], after: Record | None = None
) -> Iterator[tuple[Record, AccessEvent]]:
    """Yield the events of records that continue the chain.

    Raises:
        VerificationError: At the first one that was changed, moved or left out.
    """
    seq, previous = (0, GENESIS) if after is None else (after.seq, after.hash)
    for record in records:
        seq += 1
        if record.seq != seq:
            raise _broken(seq, f"its number is {record.seq}")
        if digest(record.payload) != record.hash:
            raise _broken(seq, "its contents do not match its hash")
        yield record, _read(record, previous)
        previous = record.hash


def event_in(record: Record) -> AccessEvent:
    """Return the event of one record, without looking at the one before it."""
    return _read(record, None)


def _read(record: Record, previous: str | None) -> AccessEvent:
    seq = record.seq
    try:
        plain = decode(record.payload)
        if not isinstance(plain, dict) or plain.keys() != _FIELDS:
            raise _broken(seq, "it is not an event")
        event = msgspec.convert(plain["event"], AccessEvent)
    except (ValueError, msgspec.ValidationError) as error:
        raise _broken(seq, f"it cannot be read ({error})") from error
    if plain["seq"] != seq or isinstance(plain["seq"], bool):
        raise _broken(seq, "its number is different")
    if previous is not None and plain["prev"] != previous:
        raise _broken(seq, "it does not follow the event before it")
    return event


def line_of(record: Record) -> bytes:
    """Return a record as one line of JSON: number, hashes and event."""
    plain = decode(record.payload)
    if not isinstance(plain, dict):
        raise _broken(record.seq, "it is not an event")
    return encode({**plain, "hash": record.hash})


def _broken(seq: int, why: str) -> VerificationError:
    return VerificationError(
        Problem(
            Code.TRAIL_BROKEN,
            f"the access trail is broken at event {seq}: {why}",
            notes=("the ledger and its decisions are not concerned",),
            help="find who changed the database; compare the events that were shipped",
        )
    )
