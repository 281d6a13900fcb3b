"""The verbs of those who plan rounds on a ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Protocol, TypeVar

from modicum.api.local.balances import Entry, LedgerBalances, Reader
from modicum.api.local.governance.approval_cases import active_policy
from modicum.api.local.plans.commit import (
    Committed,
    Trees,
    accepted_releases,
    commit,
    committed_before,
    nothing_reserved,
    refuse_stale,
)
from modicum.api.local.plans.plan import Plan
from modicum.api.local.plans.requests import Request
from modicum.api.local.plans.rounds import (
    Remainder,
    Round,
    must_be_open,
    open_round,
    present_round,
    remainders,
)
from modicum.api.local.plans.solution import SOLVER, PlanInput, make_plan
from modicum.api.local.submit import RESERVATION_SECONDS
from modicum.api.ports.storage import Clock
from modicum.core.errors import Code, InputError, Problem
from modicum.ledger.log.days import day_of
from modicum.ledger.log.events import PlanCommitted
from modicum.planner.allocation.engine import EngineOf
from modicum.planner.allocation.numpy_kernel import NumpyEngine
from modicum.planner.ledger_round.cancellation import Means, OnStep, nobody

T = TypeVar("T")


class Ledger(Protocol):
    """The ledger operations that planning needs."""

    def turn(self, work: Callable[[Entry], T], *, deciding: bool = False) -> T:
        """Do some work in the turn of a ledger that exists; it is durable then."""
        ...

    def current(self, *, deciding: bool = False) -> tuple[LedgerBalances, Reader, str]:
        """Return the book of a ledger that exists, its reader, and the time."""
        ...


class Rounds:
    """Operations on rounds; opened rounds and committed plans are recorded in the log.

    Args:
        ledger: The ledger.
        clock: Determines when reservations expire.
        actor: The planner.
        trees: The releases of the plan that is committed, if they are parsed.
    """

    def __init__(
        self, ledger: Ledger, clock: Clock, actor: str, trees: Trees = None
    ) -> None:
        self._trees = trees
        self._ledger = ledger
        self._clock = clock
        self._actor = actor

    def open(
        self, identifier: str = "", *, unlocked: Mapping[str, Fraction] | None = None
    ) -> Round:
        """Open the next round: budgets are unlocked, and user groups rotate.

        Args:
            identifier: Its name; by default `round-` and its number.
            unlocked: By privacy unit, the fraction of every budget usable from here on;
                it never falls.

        Raises:
            ConflictError: If the id is in use, or a fraction falls.
            InputError: If a unit is not known, or a share is none.
            UsageError: If there is no ledger with a policy.
        """
        return self._ledger.turn(lambda entry: open_round(entry, identifier, unlocked))

    def present(self) -> Round | None:
        """Return the round that is open; None before the first. Writes nothing.

        Raises:
            UsageError: If there is no ledger with a policy.
        """
        book, _, _ = self._ledger.current()
        return present_round(book, active_policy(book))

    def committed(self) -> tuple[PlanCommitted, ...]:
        """Return the plans that were committed, oldest first. Writes nothing.

        Raises:
            UsageError: If there is no ledger.
        """
        book, _, _ = self._ledger.current()
        return tuple(book.state.planning.plans.values())

    def committed_plan(self, identifier: str) -> PlanCommitted:
        """Return a plan that was committed. Writes nothing.

        Args:
            identifier: Its id.

        Raises:
            InputError: If the ledger knows no such plan.
            UsageError: If there is no ledger.
        """
        return plan_named(identifier, self.committed())

    def plan(
        self,
        requests: Sequence[Request],
        *,
        solver: str = SOLVER,
        engine_of: EngineOf = NumpyEngine,
        on_step: OnStep = nobody,
    ) -> Plan:
        """Return a plan for the requests of the open round. Writes nothing.

        Args:
            requests: The requests, as `modicum.requests.load` returns them; their
                order breaks ties.
            solver: The solver: `fcfs`, `dpf`, `dpf-weighted`, `dpf-remaining`,
                `dpf-weighted-remaining`, `dpk`, `guided` or `ilp`.
            engine_of: Makes the engine of the solver; all give the same plan.
            on_step: Receives the progress, from 0 to 1, between steps; an exception
                from it ends planning. One step of `ilp` may take up to its solver's
                time limit.

        Raises:
            InputError: If there is no such solver, or there are too many requests.
            UsageError: If there is no ledger with a policy, or no round is open.
        """
        book, read, now = self._ledger.current(deciding=True)
        compiled = active_policy(book)
        opened = must_be_open(present_round(book, compiled))
        with book.followed_at(compiled, read, now) as followed:
            situation = PlanInput(
                opened.id, followed.balances, book.state, day_of(now), self._actor
            )
            return make_plan(situation, requests, solver, Means(engine_of, on_step))

    def commit(
        self, plan: Plan, *, reserve_seconds: int = RESERVATION_SECONDS
    ) -> Committed:
        """Reserve everything that a plan accepts, or nothing.

        A plan is committed once; repeating returns its reservations. A plan that
        accepts nothing writes nothing.

        Args:
            plan: The plan; each release is read, priced and decided again.
            reserve_seconds: The lifetime of reservations that are not started; 1 second
                to 90 days.

        Raises:
            ConflictError: If one release cannot be reserved.
            StaleError: If the ledger has entries since the plan was made.
            UsageError: If there is no ledger with a policy, or no round is open.
        """
        book, _, _ = self._ledger.current()
        done = committed_before(book, plan)
        if done is not None:
            return done
        refuse_stale(book, plan, (book.state.seq, book.state.head))
        accepted = accepted_releases(
            plan, active_policy(book), reserve_seconds, self._trees
        )
        if not accepted:
            return nothing_reserved(book, plan)
        return self._ledger.turn(
            lambda entry: commit(entry, plan, accepted, self._clock), deciding=True
        )

    def remainders(self) -> tuple[Remainder, ...]:
        """Return the unused budgets of retired user groups. Writes nothing.

        Raises:
            UsageError: If there is no ledger with a policy.
        """
        book, read, now = self._ledger.current(deciding=True)
        compiled = active_policy(book)
        with book.followed_at(compiled, read, now) as followed:
            return remainders(followed.balances, book.state.planning, day_of(now))


def plan_named(identifier: str, plans: Iterable[PlanCommitted]) -> PlanCommitted:
    """Return a plan that was committed."""
    for one in plans:
        if one.id == identifier:
            return one
    raise InputError(
        Problem(
            Code.PLAN_UNKNOWN,
            f"unknown plan `{identifier[:200]}`",
            help="list them with  modicum plan show",
        )
    )
