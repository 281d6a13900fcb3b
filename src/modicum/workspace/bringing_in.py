"""Bringing releases into the ledger: each is decided after the ones before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import msgspec
from msgspec.structs import replace

from modicum.core.errors import Code, InputError, Mark, ModicumError, Problem
from modicum.ledger import Balances, RecordedRelease, decide
from modicum.ledger.deciding.approvals import approved_by, hearings_of_release
from modicum.ledger.log.events import (
    PastRecorded,
    ReleaseDenied,
    ReleasePosted,
    ReleaseReserved,
    ReleaseStarted,
    day_of_release,
)
from modicum.policy import CompiledPolicy
from modicum.workspace.answers import (
    Asking,
    Description,
    answer_to,
    first_answer,
    place_of,
    price_release,
    refuse_other,
    refuse_requested,
    repeated_answer,
)
from modicum.workspace.book import Entry
from modicum.workspace.decision import Decision
from modicum.workspace.governing.governance import missing_approvals, needs_approval
from modicum.workspace.past_descriptions import price_past, refuse_future
from modicum.workspace.ports import Clock
from modicum.workspace.requests import attempt, each

#: A reservation that is not started by then expires: one day.
RESERVATION_SECONDS = 24 * 60 * 60
#: A longer reservation would block others for no reason: ninety days.
RESERVATION_SECONDS_MAX = 90 * RESERVATION_SECONDS


class Submission(msgspec.Struct, frozen=True):
    """A release that was read and priced, ready to be decided.

    Attributes:
        release: The release.
        compiled: The policy that it was read and priced under.
        post: Whether it is out already, so that it is also started and posted.
        reserve_seconds: How long its reservation stands if it is not started.
        mark: Where its id stands in a file, for messages.
        assumptions: What was assumed about a past release, in words.
    """

    release: RecordedRelease
    compiled: CompiledPolicy
    post: bool = False
    reserve_seconds: int = RESERVATION_SECONDS
    mark: Mark | None = None
    assumptions: tuple[str, ...] = ()


def prepared(
    release: Description,
    compiled: CompiledPolicy,
    *,
    post: bool = False,
    reserve_seconds: int = RESERVATION_SECONDS,
    guarded: bool = True,
) -> Submission:
    """Return a release, read and priced. This is most of the work, and needs no turn.

    Args:
        release: The release.
        compiled: The policy to read and price it under.
        post: Whether it is out already.
        reserve_seconds: How long its reservation stands; 1 second to 90 days.
        guarded: Whether the guards of the policy look at it.

    Raises:
        InputError: With every mistake found.
    """
    refuse_odd_length(reserve_seconds)
    recorded = price_release(release, compiled, guarded=guarded)
    return Submission(recorded, compiled, post, reserve_seconds, place_of(release))


def refuse_odd_length(reserve_seconds: int) -> None:
    """Refuse a reservation that would stand for too short or too long.

    Args:
        reserve_seconds: For how long.

    Raises:
        InputError: If that is not 1 second to 90 days.
    """
    if not 1 <= reserve_seconds <= RESERVATION_SECONDS_MAX:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                "a reservation lasts 1 second to 90 days, not"
                f" {reserve_seconds} seconds",
            )
        )


def prepared_past(release: Description, compiled: CompiledPolicy) -> Submission:
    """Return a release that happened before, read and priced, with assumptions.

    Args:
        release: The release.
        compiled: The policy that it is counted under.

    Raises:
        InputError: With every mistake found.
    """
    recorded, assumptions = price_past(release, compiled.policy.vocabulary)
    return Submission(
        recorded,
        compiled,
        post=True,
        mark=place_of(release),
        assumptions=assumptions,
    )


@dataclass(frozen=True, slots=True)
class BringingIn:
    """Brings releases into a ledger, within a turn.

    Attributes:
        ledger: What people call the ledger.
        clock: Tells when reservations run out.
    """

    ledger: str
    clock: Clock

    def submit(
        self, entry: Entry, submissions: Iterable[Submission]
    ) -> list[Decision | ModicumError]:
        """Decide releases one after the other, and reserve those that are allowed.

        Args:
            entry: The turn.
            submissions: The releases.

        Returns:
            For each its decision, or its own mistake.
        """
        return each(entry, (partial(self.answer, one) for one in submissions))

    def record(
        self, entry: Entry, submissions: Iterable[Submission]
    ) -> list[Decision | ModicumError]:
        """Count releases that happened before.

        Args:
            entry: The turn.
            submissions: The releases.

        Returns:
            For each its decision, or its own mistake.
        """
        return each(entry, (partial(self.count, one) for one in submissions))

    def answer(self, one: Submission, entry: Entry) -> Decision | ModicumError:
        """Decide one release, and reserve it if it is allowed.

        Args:
            one: The release.
            entry: The turn.

        Returns:
            Its decision, or a mistake that came after the policy was activated.

        Raises:
            StaleError: If another policy is active than the one it was priced under.
        """
        entry.activate(one.compiled)
        bring_in = partial(self._bring_in, one, self._decide, is_out=one.post)
        return attempt(entry, bring_in)

    def count(self, one: Submission, entry: Entry) -> Decision | ModicumError:
        """Count one release that happened before.

        Args:
            one: The release.
            entry: The turn.

        Returns:
            As `answer` does.

        Raises:
            StaleError: As `answer` does.
        """
        entry.activate(one.compiled)
        bring_in = partial(self._bring_in, one, self._record, is_out=True)
        return attempt(entry, bring_in)

    def _bring_in(
        self,
        one: Submission,
        work: Callable[[Entry, Balances, Submission], Decision],
        entry: Entry,
        *,
        is_out: bool,
    ) -> Decision:
        """Bring a release in, unless it stands already.

        If the caller says that it is out, a reservation that stands is carried out:
        it must not expire and be taken back.
        """
        followed = entry.followed(one.compiled)
        known = entry.book.state.releases.get(one.release.id)
        if known is None:
            refuse_requested(entry.book, one.release, entry.actor, one.mark)
            return work(entry, followed.balances, one)
        refuse_other(known, one.release, one.mark)
        charged = followed.told(entry.book.release_of(known, entry.record), known.seq)
        answer = repeated_answer(self._asking(entry), followed.balances, known, charged)
        return _carried_out(entry, answer) if is_out else answer

    def _decide(self, entry: Entry, balances: Balances, one: Submission) -> Decision:
        release, compiled = one.release, balances.compiled
        digest = compiled.policy.digest
        verdict = decide(balances, release, entry.day)
        answer = partial(answer_to, self._asking(entry), compiled, release, verdict)
        if not verdict.allowed:
            denied = answer("denied")
            denied = _not_counted(denied) if one.post else denied
            before = entry.deny(ReleaseDenied(release, digest, verdict.blocking))
            return denied if before is None else _denied_before(denied, before)
        heard = hearings_of_release(
            release, compiled.policy, entry.book.state, entry.actor
        )
        missing = missing_approvals(heard)
        if missing:
            called = f"release `{release.id}`"
            raise needs_approval(called, missing, "modicum release approve")
        expires_at = self.clock.after(entry.now, one.reserve_seconds)
        reserved = answer("reserved", expires_at)
        entry.add(ReleaseReserved(release, digest, expires_at, approved_by(heard)))
        return _carried_out(entry, reserved) if one.post else reserved

    def _record(self, entry: Entry, balances: Balances, one: Submission) -> Decision:
        refuse_future(one.release, entry.now, one.mark)
        digest = one.compiled.policy.digest
        body = PastRecorded(one.release, digest, one.assumptions)
        day = day_of_release(body, entry.now)
        decision = first_answer(self._asking(entry), balances, one.release, day)
        entry.add(body)
        assumed = tuple(f"assumed: {each}" for each in one.assumptions)
        notices = (*decision.notices, *assumed)
        return replace(decision, status="recorded", notices=notices, approvals=())

    def _asking(self, entry: Entry) -> Asking:
        return Asking(self.ledger, entry.book, entry.actor)


def _not_counted(decision: Decision) -> Decision:
    """Return a denial that says what is missing if the release is out all the same."""
    notice = "it is not counted: if it is out, record it with  release record-past"
    return replace(decision, notices=(*decision.notices, notice))


def _denied_before(decision: Decision, seq: int) -> Decision:
    """Return a denial that the log tells of already, and where."""
    notice = f"denied before, with entry {seq}; nothing changed, and none was added"
    return replace(decision, notices=(*decision.notices, notice))


def _carried_out(entry: Entry, decision: Decision) -> Decision:
    """Start and post a release that is out already, as far as it is not yet."""
    if decision.status == "reserved":
        entry.add(ReleaseStarted(decision.release))
    if decision.status in ("reserved", "started"):
        entry.add(ReleasePosted(decision.release))
        return replace(decision, status="posted", expires_at="")
    return decision
