"""Proofs of the log: bundles, proofs of extension, and verification."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

import anyio.to_thread
import msgspec
from anyio import CapacityLimiter

from modicum.api.local.handlers.pagination import cursor_of
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.release_datasets import may
from modicum.api.local.views.ledger import access_entry
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.api.ports.storage import Clock
from modicum.api.schema.ledger import AccessPage, Head, Link, Proof
from modicum.ledger import GENESIS, Record, RecordedRelease
from modicum.ledger.log.data_sets import data_sets_recorded
from modicum.ledger.proof.access_trail import verified
from modicum.ledger.proof.claims import Signed, signed_bytes
from modicum.reports.sources import Source, report_on
from modicum.reports.statement_html import page
from modicum.server.resources import Equipment, not_set_up
from modicum.server.service.jobs import Job, Jobs, Report
from modicum.server.service.threads import Threads
from modicum.storage.access_table import AccessTable
from modicum.storage.proofs.bundles import export_bundle
from modicum.storage.proofs.ledger_log import (
    sign_checkpoint,
    stored_checkpoints,
    verify_store,
)
from modicum.storage.proofs.receipts import AuditedAnswers
from modicum.storage.proofs.signing_keys import Signing
from modicum.storage.proofs.verification import Trust
from modicum.storage.read_only import up_to
from modicum.system.clock import SystemClock
from modicum.writer.service import Decider

#: Maximum number of concurrent bundles: each reads the whole log.
_BUNDLES_AT_ONCE: Final = 2


@dataclass(frozen=True, slots=True)
class AuditStatement:
    """A statement about the ledger, for people.

    Attributes:
        page: The HTML page.
        tag: Its ETag: equal for the same ledger and checkpoints.
        entries: The number of entries.
    """

    page: bytes
    tag: str
    entries: int


@dataclass(frozen=True, slots=True)
class Bundle:
    """A new audit bundle.

    Attributes:
        file: Its bytes; the file has no name, and is deleted once closed.
        size: How many bytes it has.
        tag: Its ETag: equal for the same ledger and checkpoints. The server's own
            checkpoint for a bundle does not count, nor does the access trail.
        entries: The number of entries.
    """

    file: BinaryIO
    size: int
    tag: str
    entries: int


class Audits:
    """The operations on proofs of the log.

    Args:
        decider: The ledger.
        threads: The thread pools.
        jobs: Where long operations run.
        own: The resources, for signing bundles.
        trail: The access trail.
    """

    def __init__(
        self,
        decider: Decider,
        threads: Threads,
        jobs: Jobs,
        own: Equipment,
        trail: AccessTable,
    ) -> None:
        self._decider = decider
        self._threads = threads
        self._jobs = jobs
        self._key = own.signing_key
        self._trail = trail
        self._clock = SystemClock()
        self._making = CapacityLimiter(_BUNDLES_AT_ONCE)
        self._stating = CapacityLimiter(1)
        self._stated: AuditStatement | None = None

    async def tag(self, who: Identity) -> str:
        """Return the ETag of a bundle of the present ledger."""
        who.must(Action.EXPORT_AUDIT)

        def read_view(view: LedgerView) -> str:
            return _tag(view.state().head, stored_checkpoints(self._decider.log()))

        return await self._threads.read_view(read_view)

    async def bundle(self, who: Identity) -> Bundle:
        """Return an audit bundle of the ledger as it is."""
        who.must(Action.EXPORT_AUDIT)
        return await anyio.to_thread.run_sync(self._bundle, limiter=self._making)

    def _bundle(self) -> Bundle:
        log = self._decider.log()
        stored = stored_checkpoints(log)
        last = self._decider.read_view(lambda view: view.state().seq)
        with tempfile.TemporaryDirectory(prefix="modicum-bundle-") as folder:
            path = Path(folder) / "audit.bundle"
            manifest = export_bundle(
                up_to(log, last),
                path,
                stored=stored,
                signing=self._signing(),
                trail=self._trail,
            )
            # Open, it needs no name; the end of the response deletes the file.
            file = path.open("rb")
            size = path.stat().st_size
        return Bundle(file, size, _tag(manifest.head, stored), manifest.entries)

    async def trail(self, who: Identity, after: int, limit: int) -> AccessPage:
        """Return the next events of the access trail, oldest first.

        Args:
            who: The caller.
            after: The number of the event before the first one.
            limit: The maximum number of events.

        Raises:
            AccessError: If they may not export audit bundles.
            VerificationError: If the trail contradicts itself.
        """
        who.must(Action.EXPORT_AUDIT)

        def read() -> AccessPage:
            before = self._trail.page(after - 1, 1) if after else []
            last = self._trail.last()
            records = self._trail.page(after, limit)
            events = [*verified(records, before[0] if before else None)]
            end = 0 if last is None else last.seq
            seq = records[-1].seq if records else end
            return AccessPage(
                events=tuple(access_entry(one, event) for one, event in events),
                next=cursor_of("trail", seq if seq < end else None),
                head=Head(seq=end, head=GENESIS if last is None else last.hash),
            )

        return await self._threads.submit(read)

    async def statement(self, who: Identity) -> AuditStatement:
        """Return a statement about the ledger as it is, after checking all of it.

        The last one is kept: the same ledger is checked once, for one caller at a time.

        Args:
            who: The caller.

        Raises:
            AccessError: If they may not export audit bundles.
            VerificationError: If the log contradicts itself.
        """
        who.must(Action.EXPORT_AUDIT)
        return await anyio.to_thread.run_sync(self._statement, limiter=self._stating)

    def _statement(self) -> AuditStatement:
        log = self._decider.log()
        stored = stored_checkpoints(log)
        last, head = self._decider.read_view(
            lambda view: (view.state().seq, view.state().head)
        )
        tag = _tag(head, stored)
        if self._stated is None or self._stated.tag != tag:
            carried = tuple((one, "the ledger") for one in stored)
            store = up_to(log, last)
            source = Source("the ledger", store.read(0), carried, store)
            text = page(report_on(source, Trust()))
            self._stated = AuditStatement(text.encode(), tag, last)
        return self._stated

    def _signing(self) -> Signing | None:
        """Return the signing of a bundle's checkpoint; None without a key."""
        key = self._key
        return None if key is None else Signing(key, self._clock.now())

    async def proof(
        self, who: Identity, seq: int, known: str, limit: int, after: int = 0
    ) -> Proof:
        """Return a proof that the current ledger extends a noted head."""
        who.must(Action.READ_LEDGER)

        def read_view(view: LedgerView) -> Proof:
            book, read, _ = view.current()
            state = book.state
            first = view.record(1)
            noted = view.record(seq) if 1 <= seq <= state.seq else None
            stands = seq == 0 or (noted is not None and noted.hash == known)
            links = _some(read(max(seq, after)), state.seq, limit) if stands else ()
            last = links[-1].seq if links else state.seq
            return Proof(
                first=first.hash if first is not None else "",
                stands=stands,
                links=tuple(map(_link, links)),
                next=cursor_of("proof", last if last < state.seq else None),
                checkpoints=tuple(
                    msgspec.json.decode(signed_bytes(one))
                    for one in stored_checkpoints(self._decider.log())
                ),
                ledger=Head(seq=state.seq, head=state.head),
            )

        return await self._threads.read_view(read_view)

    async def verify(self, who: Identity, noted: str = "") -> Job:
        """Begin to check all of the ledger: chain, signatures and every decision."""
        who.must(Action.READ_LEDGER)
        return self._jobs.begin(
            who, Action.READ_LEDGER, "verify-ledger", partial(self._verified, noted)
        )

    def _verified(self, noted: str, report: Report) -> object:
        total = max(self._decider.read_view(lambda view: view.state().seq), 1)
        found = verify_store(
            self._decider.log(),
            Trust(),
            on_entry=lambda seq: report(min(seq / total, 1.0)),
            noted_hash=noted or None,
        )
        found.report.refuse_understated()
        return found.to_dict()


def _link(record: Record) -> Link:
    payload = record.payload.decode("utf-8")
    return Link(seq=record.seq, payload=payload, hash=record.hash)


def _tag(head: str, stored: Iterable[Signed]) -> str:
    digest = hashlib.sha256(head.encode())
    for one in stored:
        digest.update(signed_bytes(one))
    return digest.hexdigest()


def _some(records: Iterable[Record], last: int, limit: int) -> tuple[Record, ...]:
    found: list[Record] = []
    for record in records:
        if record.seq > last or len(found) == limit:
            break
        found.append(record)
    return tuple(found)


#: Nothing is signed about an unchecked log, and checking takes a while.
_SIGNED_AT_ONCE: Final = 1


class Receipts:
    """Signatures with the server's own key.

    Args:
        decider: The ledger.
        own: The key.
        clock: The time of day.
    """

    def __init__(
        self,
        decider: Decider,
        own: Equipment,
        clock: Clock | None = None,
    ) -> None:
        self._decider = decider
        self._key = own.signing_key
        self._clock = clock or SystemClock()
        self._checking = CapacityLimiter(_SIGNED_AT_ONCE)
        self._answers = AuditedAnswers(decider.log())
        self._last: tuple[str, Signed] | None = None

    async def checkpoint(self, who: Identity) -> Signed:
        """Return a signed checkpoint of the head, after checking all of the log."""
        who.must(Action.READ_LEDGER)
        return await self._signed(self._checkpoint)

    async def receipt(self, who: Identity, release: str) -> Signed:
        """Return a receipt for the latest answer that the ledger gave to a release."""

        def may_see(recorded: RecordedRelease) -> bool:
            return may(who, Action.READ_RELEASES, data_sets_recorded(recorded))

        return await self._signed(
            lambda signing: self._answers.sign_receipt(release, signing, may_see)
        )

    async def _signed(self, sign: Callable[[Signing], Signed]) -> Signed:
        """Return a signed claim; one thread signs at a time."""
        if self._key is None:
            raise not_set_up("no key to sign with", "signing_key_file")
        key = self._key
        return await anyio.to_thread.run_sync(
            lambda: sign(Signing(key, self._clock.now())), limiter=self._checking
        )

    def _checkpoint(self, signing: Signing) -> Signed:
        """Return the checkpoint of the head; it is signed once."""
        head = self._decider.read_view(lambda view: view.state().head)
        if self._last is None or self._last[0] != head:
            self._last = head, sign_checkpoint(self._decider.log(), signing)
        return self._last[1]
