"""Audit: read the log back from nothing and check all that it claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from modicum.core.errors import InputError, ModicumError
from modicum.ledger.balances import Balances
from modicum.ledger.chain import ChainBreakError, Record, read_record
from modicum.ledger.decide import decide
from modicum.ledger.events import (
    Body,
    Event,
    PastRecorded,
    PolicyActivated,
    RecordedRelease,
    ReleaseDenied,
    ReleaseExpired,
    ReleaseReserved,
    ReleaseVoided,
)
from modicum.ledger.state import State
from modicum.policy.compile import compile_text


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit found; an audit that finds a contradiction raises instead.

    Attributes:
        entries: Number of records.
        head: Hash of the last record.
        state_digest: Digest of the folded state.
        decisions: How many decisions were taken again, with the same outcome.
        noted: Number of the record whose hash was asked for; None if none has it.
    """

    entries: int
    head: str
    state_digest: str
    decisions: int
    noted: int | None


def audit(
    records: Iterable[Record],
    on_entry: Callable[[int], None] | None = None,
    *,
    noted_hash: str | None = None,
) -> AuditReport:
    """Check the chain, fold the log, and take every decision again.

    Args:
        records: All records, in order.
        on_entry: Called with the number of each entry that was checked.
        noted_hash: A hash that was noted elsewhere; `noted` tells where it stands.

    Raises:
        ChainBreakError: At the first record that contradicts the chain, the life of a
            release, or the decision that its policy and history lead to.
    """
    replay = _Replay()
    noted: int | None = None
    for record in records:
        replay.take(record)
        if record.hash == noted_hash:
            noted = record.seq
        if on_entry is not None:
            on_entry(replay.state.seq)
    return AuditReport(
        replay.state.seq,
        replay.state.head,
        replay.state.digest(),
        replay.decisions,
        noted,
    )


class _Replay:
    """A state, the balances of the active policy, and a count of decisions."""

    def __init__(self) -> None:
        self.state = State()
        self.decisions = 0
        self._balances: Balances | None = None

    def take(self, record: Record) -> None:
        seq = self.state.seq + 1
        event = read_record(record, seq, self.state.head)
        self._check_decision(event, seq)
        try:
            self.state.apply(event, record.hash)
        except ModicumError as error:
            raise ChainBreakError(seq, f"it cannot happen here ({error})") from error
        self._settle(event.body, seq)

    def _check_decision(self, event: Event, seq: int) -> None:
        match event.body:
            case ReleaseReserved(release=release, policy=policy):
                blocking: tuple[str, ...] = ()
            case ReleaseDenied(release=release, policy=policy, blocking=blocking):
                if not blocking:
                    raise ChainBreakError(seq, "it denies without a reason")
            case PastRecorded(policy=policy):
                self._under(policy, seq)
                return
            case _:
                return
        verdict = decide(self._under(policy, seq), release)
        if verdict.blocking != blocking:
            raise ChainBreakError(
                seq,
                f"the decision about `{release.id}` does not follow from the policy and"
                " the entries before it",
            )
        self.decisions += 1

    def _under(self, policy: str, seq: int) -> Balances:
        active = self.state.policy
        if active is None or active.digest != policy or self._balances is None:
            raise ChainBreakError(
                seq, "it was decided under a policy that was not active"
            )
        return self._balances

    def _settle(self, body: Body, seq: int) -> None:
        match body:
            case PolicyActivated(text=text, digest=digest):
                self._activate(text, digest, seq)
            case ReleaseReserved(release=release) | PastRecorded(release=release):
                self._charged().charge(release)
            case ReleaseVoided(release=identifier) | ReleaseExpired(release=identifier):
                self._charged().take_back(self._release(identifier))
            case _:
                pass

    def _activate(self, text: str, digest: str, seq: int) -> None:
        try:
            compiled = compile_text(text.encode("utf-8"), f"policy of entry {seq}")
        except InputError as error:
            raise ChainBreakError(
                seq, f"its policy does not compile ({error})"
            ) from error
        if compiled.policy.digest != digest:
            raise ChainBreakError(seq, "its policy does not have the digest it names")
        self._balances = Balances(compiled, self.state.counted())

    def _charged(self) -> Balances:
        assert self._balances is not None  # _under has been asked for each release
        return self._balances

    def _release(self, identifier: str) -> RecordedRelease:
        return self.state.releases[identifier].release
