"""The history of a ledger, in a form that can be decided again under any policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias, assert_never

from msgspec import Struct

from modicum.ledger import GENESIS, Record, RecordedRelease, State
from modicum.ledger.decision.balances import ReservedRelease
from modicum.ledger.log.days import day_of
from modicum.ledger.log.events import (
    ChargeBody,
    Event,
    GroupActivated,
    GroupRetired,
    PastRecorded,
    PastRedescribed,
    ReleaseDenied,
    ReleaseExpired,
    ReleaseReserved,
    ReleaseVoided,
    RoundOpened,
    day_of_release,
)
from modicum.ledger.replay.fold import fold
from modicum.ledger.replay.migration import Migration
from modicum.ledger.state.state import ActivePolicy
from modicum.policy import CompiledPolicy

#: The outcome of a denied attempt; the others have a `ReleaseStatus`.
DENIED = "denied"
#: The outcomes whose loss was released.
GIVEN_UP = ("canceled", "expired")


class Attempt(Struct, frozen=True):
    """A release that was submitted or recorded.

    Attributes:
        seq: The number of the entry.
        release: Its description and loss; if it was corrected, the corrected ones.
        outcome: `denied`, or the present status: `reserved`, `started`, `published`,
            `canceled`, `expired` or `recorded`.
        blocking: The rules that denied it then.
        day: The day that it was made on, as an ordinal.
    """

    seq: int
    release: RecordedRelease
    outcome: str
    blocking: tuple[str, ...] = ()
    day: int = 0


class TakenBack(Struct, frozen=True):
    """A canceled or expired reservation; its loss no longer counts."""

    release: str


#: Events that change which user groups may be read, and since when.
Turn: TypeAlias = RoundOpened | GroupActivated | GroupRetired
Step: TypeAlias = Attempt | TakenBack | Turn


class History(Struct, frozen=True):
    """The history up to one moment.

    Attributes:
        steps: The attempts, the released reservations, and the rounds and user groups
            in between, oldest first.
        counted: The releases whose loss counts now, in log order.
        policies: The policies that were activated, oldest first.
        seq: The number of the last entry.
        head: The hash of that entry.
    """

    steps: tuple[Step, ...]
    counted: tuple[RecordedRelease, ...]
    policies: tuple[ActivePolicy, ...] = ()
    seq: int = 0
    head: str = GENESIS

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The rounds and user group changes."""
        return tuple(step for step in self.steps if isinstance(step, Turn))

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The attempts, oldest first."""
        return tuple(step for step in self.steps if isinstance(step, Attempt))

    @property
    def recorded(self) -> Iterator[tuple[RecordedRelease, int]]:
        """The releases whose loss counts, each with the number of its entry."""
        for one in self.attempts:
            if one.outcome not in (DENIED, *GIVEN_UP):
                yield one.release, one.seq

    def reserved(
        self, compiled: CompiledPolicy, *, entails: bool | None = None
    ) -> tuple[ReservedRelease, ...]:
        """Return every accepted release, in log order."""
        migration = self.migration(compiled, entails=entails)
        return tuple(
            ReservedRelease(
                migration.release(one.release, one.seq),
                one.day,
                one.outcome not in GIVEN_UP,
            )
            for one in self.attempts
            if one.outcome != DENIED
        )

    def migration(
        self, compiled: CompiledPolicy, *, entails: bool | None = None
    ) -> Migration:
        """Return the mapping of releases to the vocabulary of a policy.

        Args:
            compiled: The policy.
            entails: Whether it charges what losses prove; by default, if it does or
                would.
        """
        policy = compiled.policy
        return Migration(self.policies, policy.vocabulary, policy.text, entails=entails)


def history_of(records: Iterable[Record], now: str) -> History:
    """Return the history of a log as of `now`."""
    state = State()
    events: list[Event] = []
    for record in records:
        event, _ = fold(state, record)
        events.append(event)
    due = state.due(now)
    steps = (*_steps(events, state, set(due)), *map(TakenBack, due))
    return History(
        steps=steps,
        counted=tuple(
            step.release
            for step in steps
            if isinstance(step, Attempt) and step.outcome not in (DENIED, *GIVEN_UP)
        ),
        policies=tuple(state.policies),
        seq=state.seq,
        head=state.head,
    )


def _steps(events: Sequence[Event], state: State, due: set[str]) -> Iterator[Step]:
    corrected = {
        event.body.release.id: event.body.release
        for event in events
        if isinstance(event.body, PastRedescribed)
    }
    for seq, event in enumerate(events, 1):
        body = event.body
        match body:
            case ReleaseReserved(release=release) | PastRecorded(release=release):
                status = state.releases[release.id].status.value
                outcome = "expired" if release.id in due else status
                day = day_of_release(body, event.at)
                now = corrected.get(release.id, release)
                yield Attempt(seq, now, outcome, day=day)
            case ReleaseDenied(release=release, blocking=blocking):
                yield Attempt(seq, release, DENIED, blocking, day_of(event.at))
            case ReleaseVoided(release=identifier) | ReleaseExpired(release=identifier):
                yield TakenBack(identifier)
            case RoundOpened() | GroupActivated() | GroupRetired():
                yield body
            case PastRedescribed():
                pass  # The corrected release is used in its present form.
            case _:
                if isinstance(body, ChargeBody):
                    assert_never(body)
