"""What happened in a ledger, in a form that can be decided anew under any policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from modicum.core.errors import ModicumError
from modicum.ledger import (
    GENESIS,
    ChainBreakError,
    Record,
    RecordedRelease,
    State,
    read_record,
)
from modicum.ledger.events import (
    Body,
    PastRecorded,
    PolicyActivated,
    ReleaseDenied,
    ReleaseExpired,
    ReleaseReserved,
    ReleaseVoided,
)

#: What became of an attempt that was not let in; the others have a `ReleaseStatus`.
DENIED = "denied"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A release that was asked for, or recorded.

    Attributes:
        seq: The number of the entry.
        release: What it is and costs.
        outcome: `denied`, or where the release stands now: `reserved`, `started`,
            `posted`, `voided`, `expired` or `recorded`.
        blocking: The rules that denied it then.
    """

    seq: int
    release: RecordedRelease
    outcome: str
    blocking: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TakenBack:
    """A reservation that was given up, or ran out; its loss stopped counting."""

    release: str


Step: TypeAlias = Attempt | TakenBack


@dataclass(frozen=True, slots=True)
class History:
    """What happened, as of one moment.

    Attributes:
        steps: What was asked for and what was taken back, oldest first.
        counted: The releases whose loss counts now, in the order they came in.
        policies: The policies that were activated, oldest first.
        seq: The number of the last entry.
        head: The hash of that entry.
    """

    steps: tuple[Step, ...]
    counted: tuple[RecordedRelease, ...]
    policies: tuple[PolicyActivated, ...] = ()
    seq: int = 0
    head: str = GENESIS

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """What was asked for, oldest first."""
        return tuple(step for step in self.steps if isinstance(step, Attempt))


def history_of(records: Iterable[Record], now: str) -> History:
    """Return what a log tells, as of `now`.

    Args:
        records: The stored records, oldest first.
        now: The time; reservations that have run out by then count no more.

    Raises:
        VerificationError: If the log contradicts itself.
    """
    state = State()
    bodies: list[Body] = []
    for record in records:
        event = read_record(record, state.seq + 1, state.head)
        try:
            state.apply(event, record.hash)
        except ModicumError as error:
            raise ChainBreakError(
                state.seq + 1, f"it cannot happen here ({error})"
            ) from error
        bodies.append(event.body)
    due = state.due(now)
    return History(
        steps=(*_steps(bodies, state, set(due)), *map(TakenBack, due)),
        counted=tuple(one for one in state.counted() if one.id not in set(due)),
        policies=tuple(body for body in bodies if isinstance(body, PolicyActivated)),
        seq=state.seq,
        head=state.head,
    )


def _steps(bodies: Iterable[Body], state: State, due: set[str]) -> Iterator[Step]:
    for seq, body in enumerate(bodies, 1):
        match body:
            case ReleaseReserved(release=release) | PastRecorded(release=release):
                status = state.releases[release.id].status.value
                outcome = "expired" if release.id in due else status
                yield Attempt(seq, release, outcome)
            case ReleaseDenied(release=release, blocking=blocking):
                yield Attempt(seq, release, DENIED, blocking)
            case ReleaseVoided(release=identifier) | ReleaseExpired(release=identifier):
                yield TakenBack(identifier)
            case _:
                pass
