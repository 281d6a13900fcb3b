"""Bringing releases into the ledger: each is decided after the ones before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from datetime import date
from fractions import Fraction
from functools import partial
from itertools import islice

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from modicum.accounting import INFINITE
from modicum.api.local.balances import Entry, Reader
from modicum.api.local.batch import attempt, each
from modicum.api.local.decision import Decision
from modicum.api.local.evaluation import (
    Description,
    Evaluation,
    answer_to,
    first_answer,
    place_of,
    price_release,
    refuse_other,
    refuse_requested,
    repeated_answer,
)
from modicum.api.ports.storage import Clock
from modicum.core.document import from_python
from modicum.core.errors import (
    Code,
    ConflictError,
    InputError,
    Mark,
    ModicumError,
    Problem,
)
from modicum.core.rationals import brief
from modicum.core.reader import text
from modicum.ledger import RecordedRelease, RuleLoss, Standing, State, decide
from modicum.ledger.decision.approvals import approved_by, release_approvals
from modicum.ledger.log.days import day_of
from modicum.ledger.log.events import (
    PastRecorded,
    ReleaseDenied,
    ReleasePosted,
    ReleaseReserved,
    ReleaseStarted,
    ReleaseVoided,
    day_of_release,
)
from modicum.ledger.replay.actor_balances import Quota
from modicum.ledger.replay.fold import Followed
from modicum.ledger.state.lifecycle import next_status, unknown_release
from modicum.policy import CompiledPolicy
from modicum.policy.model import (
    DAY_SECONDS,
    RESERVATION_DAYS_MAX,
    ReservationBound,
    stricter,
)

#: A reservation that is not started by then expires: one day.
RESERVATION_SECONDS = DAY_SECONDS
#: Maximum number of reservations listed in a message.
HELD_SHOWN = 5
#: The number of reservations that may be looked through for these.
HELD_NAMED = 50
#: A longer reservation would block others for no reason: ninety days.
RESERVATION_SECONDS_MAX = RESERVATION_DAYS_MAX * DAY_SECONDS


class Submission(msgspec.Struct, frozen=True):
    """A release that was read and priced, ready to be decided.

    Attributes:
        release: The release.
        compiled: The policy that it was read and priced under.
        publish: Whether it is already published, so that it is also started and
            published.
        reserve_seconds: The lifetime of its reservation if it is not started.
        mark: The position of its id in a file, for messages.
        bound: The limits on reservations, besides the policy's.
        assumptions: The assumptions about a past release, as text.
    """

    release: RecordedRelease
    compiled: CompiledPolicy
    publish: bool = False
    reserve_seconds: int = RESERVATION_SECONDS
    mark: Mark | None = None
    bound: ReservationBound | None = None
    assumptions: tuple[str, ...] = ()


def prepared(
    release: Description,
    compiled: CompiledPolicy,
    *,
    publish: bool = False,
    reserve_seconds: int = RESERVATION_SECONDS,
    guarded: bool = True,
    bound: ReservationBound | None = None,
) -> Submission:
    """Return a release, read and priced. This is most of the work, and needs no turn.

    Args:
        release: The release.
        compiled: The policy to read and price it under.
        publish: Whether it is already published.
        reserve_seconds: The lifetime of its reservation; 1 second to 90 days.
        guarded: Whether the guards of the policy look at it.
        bound: The limits on reservations, besides the policy's.

    Raises:
        InputError: With every mistake found.
    """
    refuse_odd_length(reserve_seconds)
    recorded = price_release(release, compiled, guarded=guarded)
    mark = place_of(release)
    return Submission(recorded, compiled, publish, reserve_seconds, mark, bound)


def refuse_odd_length(reserve_seconds: int) -> None:
    """Refuse a reservation with too short or too long a lifetime.

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


def prepared_backfill(release: Description, compiled: CompiledPolicy) -> Submission:
    """Return a past release, read and priced, with assumptions.

    Args:
        release: The release.
        compiled: The policy that it is counted under.

    Raises:
        InputError: With every mistake found.
    """
    from modicum.api.local.backfill import price_past

    recorded, assumptions = price_past(release, compiled.policy.vocabulary)
    return Submission(
        recorded,
        compiled,
        publish=True,
        mark=place_of(release),
        assumptions=assumptions,
    )


class Submitter(Struct, frozen=True):
    """Adds releases to a ledger, within a turn.

    Attributes:
        ledger: The display name of the ledger.
        clock: Determines when reservations expire.
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
            Its decision, or an error that occurred after the policy was activated.

        Raises:
            StaleError: If another policy is active than the one it was priced under.
        """
        entry.activate(one.compiled)
        bring_in = partial(self._admit, one, self._decide, is_out=one.publish)
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
        bring_in = partial(self._admit, one, self._record, is_out=True)
        return attempt(entry, bring_in)

    def _admit(
        self,
        one: Submission,
        work: Callable[[Entry, Followed, Submission], Decision],
        entry: Entry,
        *,
        is_out: bool,
    ) -> Decision:
        """Add a release, unless it is already accepted.

        If the caller states that it is published, an existing reservation is started
        and published: it must not expire and be released.
        """
        followed = entry.followed(one.compiled)
        known = entry.book.state.releases.get(one.release.id)
        if known is None:
            refuse_requested(entry.book, one.release, entry.actor, one.mark)
            return work(entry, followed, one)
        refuse_other(known, one.release, one.mark)
        charged = followed.migrated(
            entry.book.release_of(known, entry.record), known.seq
        )
        answer = repeated_answer(
            self._evaluation(entry), followed.balances, known, charged
        )
        return _carried_out(entry, answer) if is_out else answer

    def _decide(self, entry: Entry, followed: Followed, one: Submission) -> Decision:
        balances = followed.balances
        release, compiled = one.release, balances.compiled
        digest, day = compiled.policy.digest, entry.day
        verdict = decide(balances, release, day)
        answer = partial(answer_to, self._evaluation(entry), compiled, release, verdict)
        if not verdict.allowed:
            denied = answer("denied")
            denied = _not_counted(denied) if one.publish else denied
            why = verdict.blocking, verdict.unmatched
            before = entry.deny(ReleaseDenied(release, digest, *why))
            return denied if before is None else _denied_before(denied, before)
        states = release_approvals(
            release, compiled.policy, entry.book.state, entry.actor
        )
        if not all(one.given for one in states):
            from modicum.api.local.governance.approval_cases import (
                missing_approvals,
                needs_approval,
            )

            called, missing = f"release `{release.id}`", missing_approvals(states)
            raise needs_approval(called, missing, "modicum release approve")
        state, actor = entry.book.state, entry.actor
        split = split_refusal(release, followed, state, entry.read, actor, entry.now)
        if split is not None:
            raise ConflictError(split)
        seconds = seconds_held(one, followed, state, actor, entry.now)
        expires_at = self.clock.after(entry.now, seconds)
        reserved = answer("reserved", expires_at)
        if seconds < one.reserve_seconds:
            reserved = _shortened(reserved)
        entry.add(ReleaseReserved(release, digest, expires_at, approved_by(states)))
        return _carried_out(entry, reserved) if one.publish else reserved

    def _record(self, entry: Entry, followed: Followed, one: Submission) -> Decision:
        from modicum.api.local.backfill import refuse_future

        refuse_future(one.release, entry.now, one.mark)
        digest = one.compiled.policy.digest
        body = PastRecorded(one.release, digest, one.assumptions)
        day = day_of_release(body, entry.now)
        decision = first_answer(
            self._evaluation(entry), followed.balances, one.release, day
        )
        entry.add(body)
        assumed = tuple(f"assumed: {each}" for each in one.assumptions)
        notices = (*decision.notices, *assumed)
        return replace(decision, status="recorded", notices=notices, approvals=())

    def _evaluation(self, entry: Entry) -> Evaluation:
        return Evaluation(self.ledger, entry.book, entry.actor)


def split_refusal(
    release: RecordedRelease,
    followed: Followed,
    state: State,
    read: Reader,
    actor: str,
    now: str,
) -> Problem | None:
    """Return why a release takes an identity over a limit within some days, if it does.

    Args:
        release: The release.
        followed: The balances of the policy that it is decided by.
        state: The state at the head.
        read: Reads the log.
        actor: Who submits it.
        now: The time.
    """
    day, due = day_of(now), state.due(now)
    for window in followed.windows(state, read):
        beyond = window.refuses(actor, release, day, due).beyond
        if beyond is not None:
            holds, more, most = _amounts_held(beyond)
            first = date.fromordinal(window.first_day(actor, release, day))
            where = f" in {beyond.cell}" if beyond.cell else ""
            return Problem(
                Code.SPLIT_TOO_FAR,
                f"`{actor}` reserved {holds} within {window.days} days under rule"
                f" `{beyond.rule.id}`{where}, and this release adds {more}: one"
                f" identity may reserve {most} in that time",
                notes=(
                    f"it fits on {first}, if nothing else is reserved until then",
                    "nothing was written",
                ),
                help="submit it then, or add more noise; if it is already published,"
                " record it with  release backfill",
            )
    return None


def seconds_held(
    one: Submission, followed: Followed, state: State, actor: str, now: str
) -> int:
    """Return the permitted lifetime of a reservation, in seconds.

    The reservations of an actor, and those of a data set, that are not started may take
    a fraction of each limit. A single release may take more if there is no other one,
    and for a day at most.

    Args:
        one: The release.
        followed: The balances of the policy that it is decided by.
        state: The state at the head.
        actor: The holder.
        now: The time.

    Raises:
        HeldTooMuchError: If too much is reserved already.
    """
    bound = stricter(one.compiled.policy.reservations, one.bound)
    if bound is None:
        return one.reserve_seconds
    is_large, day, due = False, day_of(now), state.due(now)
    is_long = one.reserve_seconds > bound.seconds(is_large=True)
    if not one.publish:
        for quota in followed.quotas(bound, actor, one.release, due):
            if quota.held or is_long:
                found = quota.judged(one.release, day)
                if found.beyond is not None:
                    raise _held_too_much(
                        quota, found.beyond, bound.role, state.holders.by, one.release
                    )
                is_large |= found.is_large
    return min(one.reserve_seconds, bound.seconds(is_large=is_large))


class HeldTooMuchError(ConflictError):
    """Too much is reserved and not started.

    Args:
        problem: The problem; its notes do not name what is reserved.
        held: By reservation, its holder, or nothing if it is the only holder. Of many,
            the oldest.
        others: The number of the others.
    """

    def __init__(self, problem: Problem, held: Mapping[str, str], others: int) -> None:
        self._problem, self.held, self._others = problem, held, others
        shown = [
            f"`{one[:60]}`" + (f" of `{by}`" if by else "")
            for one, by in islice(held.items(), HELD_SHOWN)
        ]
        others += len(held) - len(shown)
        parts = [", ".join(shown)] if shown else []
        if others:
            parts.append(f"{others} {'others' if others > 1 else 'other'}")
        note = f"reserved and not started: {' and '.join(parts)}"
        first, *rest = problem.notes
        super().__init__(replace(problem, notes=(first, note, *rest)))

    def without(self, hidden: Set[str]) -> HeldTooMuchError:
        """Return the error with some releases counted, and not named."""
        seen = {one: by for one, by in self.held.items() if one not in hidden}
        others = self._others + len(self.held) - len(seen)
        return HeldTooMuchError(self._problem, seen, others)


def _held_too_much(
    quota: Quota,
    loss: RuleLoss,
    role: str,
    holders: Mapping[str, str],
    release: RecordedRelease,
) -> HeldTooMuchError:
    holds, more, most = _amounts_held(loss)
    where = f" in {loss.cell}" if loss.cell else ""
    whose = f", the quota of the role `{role}`" if role else ""
    who, each_one = f"`{quota.holder}`", "one identity"
    unnamed: tuple[str, ...] = ()
    if quota.is_of_data_set:
        from modicum.ledger.log.data_sets import data_sets_recorded

        who, each_one = f"data set {who}", "all identities together"
        whose = f", the quota of {who}"
        if None in data_sets_recorded(release):
            unnamed = ("it names no `dataset`, so it counts for each data set",)
    else:
        holders = {}
    problem = Problem(
        Code.HELD_TOO_MUCH,
        f"{who} already holds {holds} reserved and not started under rule"
        f" `{loss.rule.id}`{where}, and this release adds {more}: {each_one} may hold"
        f" {most}",
        notes=(
            f"that is {brief(100 * loss.share)} % of the limit{whose}",
            "nothing was written",
            *unnamed,
        ),
        help="start or cancel one of these, and submit it again; or ask a privacy"
        " officer or data steward",
    )
    named = {one: holders.get(one, "") for one in islice(quota.held, HELD_NAMED)}
    return HeldTooMuchError(problem, named, len(quota.held) - len(named))


def _amounts_held(loss: RuleLoss) -> tuple[str, str, str]:
    """Return what an identity has, what a release adds, and the limit, as text."""
    from modicum.ledger.decision.amounts import amounts

    found = amounts(loss)
    has, more, most = (
        f"{found.measure} = {brief(Fraction(units, found.scale))}"
        if units < INFINITE
        else "an infinite loss"
        for units in (found.before, found.alone, found.limit)
    )
    return has, more, most


def _shortened(decision: Decision) -> Decision:
    """Return a reservation with a note that its lifetime was shortened."""
    notice = f"it is reserved until {decision.expires_at}: one may not hold it longer"
    return replace(decision, notices=(*decision.notices, notice))


def _not_counted(decision: Decision) -> Decision:
    """Return a denial with a note on what to do if the release is already published."""
    notice = "not charged; if already published, record it with  release backfill"
    return replace(decision, notices=(*decision.notices, notice))


def _denied_before(decision: Decision, seq: int) -> Decision:
    """Return a denial with the entry that already records it."""
    notice = (
        f"denied before, with entry {seq}; nothing changed, and no entry was written"
    )
    return replace(decision, notices=(*decision.notices, notice))


def _carried_out(entry: Entry, decision: Decision) -> Decision:
    """Start and publish a release that is already published, as far as needed."""
    if decision.status == "reserved":
        entry.add(ReleaseStarted(decision.release))
    if decision.status in ("reserved", "started"):
        entry.add(ReleasePosted(decision.release))
        return replace(decision, status="published", expires_at="")
    return decision


def step(
    body: ReleaseStarted | ReleasePosted | ReleaseVoided, entry: Entry
) -> Standing:
    """Return the status of a release after a transition.

    Args:
        body: The step.
        entry: The turn.

    Raises:
        InputError: If the ledger knows no such release.
        ConflictError: If it is not where the step begins, or lost entries may have
            taken it.
    """
    releases = entry.book.state.releases
    standing = releases.get(body.release)
    if standing is None:
        raise unknown_release(body.release)
    entry.book.state.planning.gaps.refuse(body)
    next_status(standing, body, entry.now)
    entry.add(body)
    return releases[body.release]


def giving_up(release: str, reason: str) -> ReleaseVoided:
    """Return the cancellation of a release.

    Args:
        release: The id.
        reason: Why, for the record; 1 to 2000 characters.

    Raises:
        InputError: If the reason is missing or too long.
    """
    why = text(from_python(reason), "the reason").strip()
    if not why:
        raise InputError(
            Problem(Code.MISSING_KEY, "canceling a release needs a reason")
        )
    return ReleaseVoided(release, why)
