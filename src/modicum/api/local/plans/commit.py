"""Committing a plan: everything that it accepts is reserved together, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from modicum.api.local.balances import Entry, LedgerBalances
from modicum.api.local.governance.approval_cases import active_policy
from modicum.api.local.plans.admission import obstacles_of
from modicum.api.local.plans.plan import Plan, RequestOutcome
from modicum.api.local.plans.rounds import must_be_open, present_round
from modicum.api.local.submit import (
    RESERVATION_SECONDS,
    Submission,
    prepared,
    refuse_odd_length,
    split_refusal,
)
from modicum.api.ports.storage import Clock
from modicum.core.document import Node
from modicum.core.errors import (
    Code,
    ConflictError,
    InputError,
    Problem,
    StaleError,
)
from modicum.core.yaml_reader import read_document
from modicum.ledger import RecordedRelease, decide
from modicum.ledger.decision.approvals import (
    approved_by,
    plans_freely,
    release_approvals,
)
from modicum.ledger.log.events import PlanCommitted, ReleaseReserved
from modicum.policy import CompiledPolicy
from modicum.policy.model import ReservationBound

#: By its text, a release as a tree, or why it is none; None if none is parsed.
Trees: TypeAlias = Mapping[str, Node | InputError] | None


@dataclass(frozen=True, slots=True)
class Committed:
    """The reservations of a committed plan.

    Attributes:
        plan: The id of the plan.
        round: The id of its round.
        releases: The ids of the releases.
        expires_at: When they expire if not started.
        seq: The number of the ledger's last entry.
        head: The hash of that entry.
    """

    plan: str
    round: str
    releases: tuple[str, ...]
    expires_at: str
    seq: int
    head: str


def accepted_releases(
    plan: Plan,
    compiled: CompiledPolicy,
    reserve_seconds: int = RESERVATION_SECONDS,
    trees: Trees = None,
) -> tuple[Submission, ...]:
    """Return the releases that a plan accepts, read and priced from its own texts.

    The file is not trusted: what is reserved is the present loss of the texts.
    """
    refuse_odd_length(reserve_seconds)
    name = plan.id  # It is computed on each access.
    trees = trees_of(plan) if trees is None else trees
    return tuple(
        _read_again(one, name, compiled, reserve_seconds, trees[one.text])
        for one in plan.to_reserve
    )


def trees_of(
    plan: Plan, tick: Callable[[], None] = lambda: None
) -> dict[str, Node | InputError]:
    """Return the texts of the releases that a plan accepts, parsed.

    Args:
        plan: The plan.
        tick: Called by the parser now and then; see `read_document`.
    """
    name, found = plan.id, dict[str, Node | InputError]()
    for one in plan.to_reserve:
        try:
            file = f"{name}: {one.release}"
            found[one.text] = read_document(one.text.encode(), file, tick=tick)
        except InputError as error:
            found[one.text] = error
    return found


def _read_again(
    one: RequestOutcome,
    plan: str,
    compiled: CompiledPolicy,
    reserve_seconds: int,
    tree: Node | InputError,
) -> Submission:
    try:
        if isinstance(tree, InputError):
            raise tree
        found = prepared(tree, compiled, reserve_seconds=reserve_seconds)
    except InputError as error:
        raise _refused(plan, one.release, f"it cannot be read: {error}") from error
    if (found.release.id, found.release.content) != (one.release, one.content):
        raise _refused(plan, one.release, "its loss has changed")
    return found


def committed_before(book: LedgerBalances, plan: Plan) -> Committed | None:
    """Return the reservations of a plan that was committed; None if it was not.

    So a commit with an unknown outcome may be retried.
    """
    state, content = book.state, plan.content
    for known in state.planning.plans.values():
        if known.content == content:
            ends = (state.releases[one].expires_at for one in known.releases)
            return Committed(
                known.id,
                known.round,
                known.releases,
                max(ends, default=""),
                state.seq,
                state.head,
            )
    return None


def nothing_reserved(book: LedgerBalances, plan: Plan) -> Committed:
    """Return the empty result of a plan that accepts nothing. It leaves no entry."""
    state = book.state
    return Committed(plan.id, plan.round, (), "", state.seq, state.head)


def refuse_stale(book: LedgerBalances, plan: Plan, last: tuple[int, str]) -> None:
    """Refuse a plan that was made on another ledger than the one that is there."""
    compiled = active_policy(book)
    opened = must_be_open(present_round(book, compiled))
    if compiled.policy.digest != plan.policy:
        raise _stale(plan, last[0], "the active policy has changed")
    if opened.id != plan.round:
        raise _stale(plan, last[0], f"the round `{opened.id}` is open now")
    if last != (plan.seq, plan.head):
        raise _stale(plan, last[0], "the remaining budget may have changed")


def commit(
    entry: Entry, plan: Plan, accepted: Sequence[Submission], clock: Clock
) -> Committed:
    """Reserve everything that a plan accepts; an error leaves nothing behind.

    Each is decided again, after the ones before it, independent of the plan.
    """
    done = committed_before(entry.book, plan)
    if done is not None:
        return done
    refuse_stale(entry.book, plan, entry.begun_at)
    name, named = plan.id, tuple(one.release.id for one in accepted)
    ends = [_reserve(entry, name, one, clock) for one in accepted]
    entry.add(PlanCommitted(name, plan.round, plan.content, named))
    state = entry.book.state
    return Committed(
        name, plan.round, named, max(ends, default=""), state.seq, state.head
    )


def _reserve(entry: Entry, plan: str, one: Submission, clock: Clock) -> str:
    """Reserve one release, and return when the reservation expires."""
    release, compiled = one.release, one.compiled
    why = "; ".join(_in_the_way(entry, compiled, release))
    if why:
        raise _refused(plan, release.id, why)
    states = release_approvals(release, compiled.policy, entry.book.state, entry.actor)
    bound = compiled.policy.reservations or ReservationBound()
    seconds = min(one.reserve_seconds, bound.seconds(is_large=False))
    expires_at = clock.after(entry.now, seconds)
    digest = compiled.policy.digest
    entry.add(ReleaseReserved(release, digest, expires_at, approved_by(states)))
    return expires_at


def _in_the_way(
    entry: Entry, compiled: CompiledPolicy, release: RecordedRelease
) -> Iterator[str]:
    state = entry.book.state
    yield from obstacles_of(release, compiled.policy, state, entry.actor)
    if entry.book.lookalike_of(release.id) is not None:
        yield "its id looks like that of another release"
    if release.id not in state.releases:
        verdict = decide(entry.followed(compiled).balances, release, entry.day)
        if not verdict.allowed:
            yield f"denied by {', '.join(verdict.causes)}"
        elif not plans_freely(entry.actor, compiled.policy):
            followed = entry.followed(compiled)
            split = split_refusal(
                release, followed, state, entry.read, entry.actor, entry.now
            )
            if split is not None:
                yield split.message


def _stale(plan: Plan, seq: int, why: str) -> StaleError:
    return StaleError(
        Problem(
            Code.PLAN_STALE,
            f"the plan `{plan.id}` was made at entry {plan.seq} in round"
            f" `{plan.round}`, and the ledger is now at entry {seq}",
            notes=(why,),
            help="make it again with  modicum plan run",
        )
    )


def _refused(plan: str, release: str, why: str) -> ConflictError:
    return ConflictError(
        Problem(
            Code.PLAN_REFUSED,
            f"the plan `{plan}` cannot be committed: release `{release[:200]}`: {why}",
            notes=("nothing of it was reserved",),
            help="make it again with  modicum plan run",
        )
    )
