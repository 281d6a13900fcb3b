"""The access trail beside the log: read, and appended to by any number of servers.

An event is appended in a turn of the ledger, in which the one before it is read. So
there is one chain, whoever writes it, and a kill leaves whole
events. Beside it are marks: which tokens were used, and what was shipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, LiteralString, TypeAlias

from modicum.core.errors import Code, Problem, UsageError, VerificationError
from modicum.ledger.log.chain import Record
from modicum.ledger.proof.access_trail import AccessEvent, sealed
from modicum.storage.service_tables import Query, ServiceTables, Statement

#: Records are read in pages of this many.
PAGE: Final = 500
#: The version of SQLite's tables that has the trail.
_SINCE: Final = 4
_SELECT: LiteralString = "SELECT seq, payload, hash FROM {s}.trail "
_LAST: Final = Statement(_SELECT + "ORDER BY seq DESC LIMIT 1", since=_SINCE)

#: Returns events to append and marks to set; its argument returns a mark.
Choose: TypeAlias = Callable[
    [Callable[[str], str | None]], tuple[Sequence[AccessEvent], Mapping[str, str]]
]


class AccessTable:
    """The access trail of a ledger; any thread may use it.

    Args:
        store: The store of the ledger; it stays open.
    """

    def __init__(self, store: object) -> None:
        if not isinstance(store, ServiceTables):
            raise UsageError(
                Problem(Code.LEDGER_MISSING, "there is no access trail beside it")
            )
        self._store: ServiceTables = store

    # --- reading ---

    def last(self) -> Record | None:
        """Return the last record; None if there is none."""
        found = self._records(_LAST)
        return found[0] if found else None

    def page(self, after: int, count: int = PAGE) -> list[Record]:
        """Return the next records after a number."""
        return self._records(
            Statement(
                _SELECT + "WHERE seq > {after} ORDER BY seq LIMIT {count}",
                {"after": after, "count": count},
                _SINCE,
            )
        )

    def read(self, after: int = 0) -> Iterator[Record]:
        """Return the records after a number, page by page."""
        if not after:  # Those before the first one no reader would see.
            after = -(2**62)
        while page := self.page(after):
            yield from page
            after = page[-1].seq

    def _records(self, statement: Statement) -> list[Record]:
        rows = self._store.rows_beside(statement)
        return [
            Record(seq, payload if isinstance(payload, bytes) else b"", str(hash_))
            for seq, payload, hash_ in rows
        ]

    # --- appending ---

    def append(
        self, choose: Choose, on_sealed: Callable[[Record], object] = lambda _: None
    ) -> None:
        """Append events and set marks in one turn, all or nothing.

        Args:
            choose: Returns the events and the marks; its argument returns a mark.
            on_sealed: Receives the last record before it is stored: if the outcome is
                unknown, `has` tells it later.
        """

        def change(query: Query) -> list[Statement]:
            events, marks = choose(lambda name: _mark_in(query, name))
            last = _last_in(query)
            statements: list[Statement] = []
            for event in events:
                last = sealed(event, last)
                statements.append(_inserting(last))
            if events and last is not None:
                on_sealed(last)
            statements.extend(map(_marking, marks, marks.values()))
            return statements

        self._store.change_read(change)

    def must_have(self, seq: int, digits: str) -> None:
        """Refuse a trail without an event that is known.

        Args:
            seq: Its number.
            digits: Its hash, or the first digits of it.
        """
        found = self.page(seq - 1, 1)
        if not found or found[0].seq != seq or not found[0].hash.startswith(digits):
            raise VerificationError(
                Problem(
                    Code.TRAIL_BROKEN,
                    f"the access trail has no event {seq} with the hash {digits[:12]}",
                    notes=("its end was cut off, or it is another trail",),
                    help="find who changed the database; compare the events that were"
                    " shipped",
                )
            )

    def has(self, record: Record) -> bool:
        """Return whether a record is in the trail."""
        return self.page(record.seq - 1, 1) == [record]

    def change(self, change: Statement, proof: Statement, event: AccessEvent) -> bool:
        """Make a change beside the log and append its event, both or neither.

        Args:
            change: The change.
            proof: A query that has a row if the change was made.
            event: The event.

        Returns:
            Whether it was made; False if its condition does not hold.
        """

        def both(query: Query) -> list[Statement]:
            record = _inserting(sealed(event, _last_in(query)))
            proven = Statement(
                record.text + " WHERE EXISTS (" + proof.text + ")",
                {**record.values, **proof.values},
            )
            return [change, proven]

        return bool(self._store.change_read(both)[1])

    # --- marks ---

    def mark(self, name: str) -> str | None:
        """Return the value of a mark; None if it is not set."""
        return _mark_in(self._store.rows_beside, name)

    def claim(self, name: str, holder: str, now: str, until: str) -> bool:
        """Hold a mark for a while, unless another holder does; return whether."""
        made, held = self._store.change_beside(
            [
                Statement(
                    "INSERT INTO {s}.trail_marks (name, value, holder, until)"
                    " VALUES ({name}, '0', '', '') ON CONFLICT (name) DO NOTHING",
                    {"name": name},
                ),
                Statement(
                    "UPDATE {s}.trail_marks SET holder = {holder}, until = {until}"
                    " WHERE name = {name} AND (holder = {holder} OR until <= {now})",
                    {"name": name, "holder": holder, "until": until, "now": now},
                ),
            ]
        )
        del made
        return bool(held)

    def advance(self, name: str, holder: str, value: str, until: str) -> bool:
        """Set a mark that is held; return whether it still is."""
        (done,) = self._store.change_beside(
            [
                Statement(
                    "UPDATE {s}.trail_marks SET value = {value}, until = {until}"
                    " WHERE name = {name} AND holder = {holder}",
                    {"name": name, "holder": holder, "value": value, "until": until},
                )
            ]
        )
        return bool(done)


def access_table(store: object) -> AccessTable | None:
    """Return the access trail of a store; None if it cannot have one."""
    return AccessTable(store) if isinstance(store, ServiceTables) else None


def _last_in(query: Query) -> Record | None:
    """Return the last record, within a turn."""
    rows = query(_LAST)
    return Record(*rows[0]) if rows else None


def _mark_in(query: Query, name: str) -> str | None:
    """Return the value of a mark, within a turn."""
    rows = query(_mark_named(name))
    return str(rows[0][0]) if rows else None


def _mark_named(name: str) -> Statement:
    return Statement(
        "SELECT value FROM {s}.trail_marks WHERE name = {name}", {"name": name}, _SINCE
    )


def _inserting(record: Record) -> Statement:
    """Return an insert of a record; a condition may follow."""
    return Statement(
        "INSERT INTO {s}.trail (seq, payload, hash)"
        " SELECT {trail_seq}, {trail_payload}, {trail_hash}",
        {
            "trail_seq": record.seq,
            "trail_payload": record.payload,
            "trail_hash": record.hash,
        },
    )


def _marking(name: str, value: str) -> Statement:
    """Return a statement that sets a mark."""
    return Statement(
        "INSERT INTO {s}.trail_marks (name, value, holder, until)"
        " VALUES ({name}, {value}, '', '') ON CONFLICT (name)"
        " DO UPDATE SET value = excluded.value",
        {"name": name, "value": value},
    )
