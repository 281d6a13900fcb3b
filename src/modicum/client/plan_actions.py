"""Rounds of a ledger that a server keeps: opened, planned, and plans committed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import msgspec
from msgspec import UNSET

from modicum.api import operations
from modicum.api.local.plans.actions import Rounds, plan_named
from modicum.api.local.plans.commit import Committed
from modicum.api.local.plans.plan import Plan, read_plan
from modicum.api.local.plans.requests import Request as Asked
from modicum.api.local.plans.rounds import Remainder, Round, Turn, must_be_open
from modicum.api.local.plans.solution import SOLVER, refuse_unknown_solver
from modicum.api.local.submit import RESERVATION_SECONDS, refuse_odd_length
from modicum.api.schema.plan import OpenedRound, RoundInput
from modicum.client.decoding import decoded
from modicum.client.jobs import Job, cancelled_on_error
from modicum.client.problems import not_understood
from modicum.client.request_encoding import EncodedRequest, encoded, sent
from modicum.client.retry_connection import Request
from modicum.client.session import unsupported
from modicum.client.view import RemoteView
from modicum.core.document import Entries, Items, Kind, Node, Scalar
from modicum.core.rationals import number_text
from modicum.ledger.decision.unlocked_shares import MILLION
from modicum.ledger.log.events import PlanCommitted
from modicum.planner.allocation.engine import EngineOf
from modicum.planner.allocation.numpy_kernel import NumpyEngine
from modicum.planner.ledger_round.cancellation import OnStep, nobody
from modicum.policy import CompiledPolicy
from modicum.release.utility import UTILITY, UTILITY_USUAL, stated_utility
from modicum.system.clock import SystemClock


class RemoteRounds:
    """Operations on rounds; opened rounds and committed plans are recorded in the log.

    Args:
        view: The ledger.
    """

    def __init__(self, view: RemoteView) -> None:
        self._view = view
        self._connection = view.connection

    def open(
        self, identifier: str = "", *, unlocked: Mapping[str, Fraction] | None = None
    ) -> Round:
        """Open the next round: budgets are unlocked, and user groups take turns."""
        shares = {unit: _share(one) for unit, one in (unlocked or {}).items()}
        form = RoundInput(round=identifier or UNSET, unlocked=shares)
        request = Request(
            operations.OPEN_ROUND, sent=sent(form), step="opened the round"
        )
        return self._round(self._connection.call(request))

    def present(self) -> Round | None:
        """Return the round that is open; None before the first. Writes nothing."""
        for one in self._connection.call(Request(operations.ROUNDS)).rounds:
            if one.open:
                request = Request(operations.ROUND, {"round_id": one.round})
                return self._round(decoded(OpenedRound, self._connection.send(request)))
        return None

    def committed(self) -> tuple[PlanCommitted, ...]:
        """Return the committed plans, oldest first. Writes nothing.

        Each lists the releases that the caller may see.
        """
        return tuple(
            PlanCommitted(one.plan, one.round, one.content, one.releases)
            for one in self._connection.call(Request(operations.PLANS)).plans
        )

    def committed_plan(self, identifier: str) -> PlanCommitted:
        """Return a plan that was committed. Writes nothing."""
        return plan_named(identifier, self.committed())

    def plan(
        self,
        requests: Sequence[Asked],
        *,
        solver: str = SOLVER,
        engine_of: EngineOf = NumpyEngine,
        on_step: OnStep = nobody,
    ) -> Plan:
        """Return a plan for the requests of the round that is open. Writes nothing.

        The server makes it, as a job that is waited for.
        """
        job = self.start_plan(requests, solver=solver)
        with cancelled_on_error(job):
            return plan_of_job(job.wait(on_step))

    def start_plan(self, requests: Sequence[Asked], *, solver: str = SOLVER) -> Job:
        """Start making a plan, and return the job: `wait()` returns its document."""
        refuse_unknown_solver(solver)
        opened = must_be_open(self.present())
        policy = self._view.policy()
        handed = Items(tuple(_handed(one, policy) for one in requests), None)
        request = Request(
            operations.PLAN_ROUND,
            {"round_id": opened.id},
            {"solver": solver},
            encoded(handed),
        )
        return Job(self._connection, self._connection.send(request))

    def commit(
        self, plan: Plan, *, reserve_seconds: int = RESERVATION_SECONDS
    ) -> Committed:
        """Reserve everything that a plan accepts, or nothing.

        A plan is committed once; repeating returns its reservations. A plan that
        accepts nothing writes nothing.
        """
        refuse_odd_length(reserve_seconds)
        request = Request(
            operations.COMMIT_PLAN,
            query={"reserve_seconds": reserve_seconds},
            sent=EncodedRequest(msgspec.json.encode(plan.to_dict())),
            step="reserved what the plan accepts",
            if_match=plan.head,
        )
        one = self._connection.call(request)
        return Committed(
            one.plan,
            one.round,
            one.releases,
            one.expires_at or "",
            one.ledger.seq,
            one.ledger.head,
        )

    def remainders(self) -> tuple[Remainder, ...]:
        """Return the unused budgets of retired user groups. Writes nothing.

        It is computed locally, from the log.
        """
        here = Rounds(self._view.read_only, SystemClock(), self._view.actor)
        return here.remainders()

    def _round(self, one: OpenedRound) -> Round:
        rotation = self._view.policy().policy.rotation
        turns = tuple(
            Turn(
                each.group,
                each.age,
                # Exactly: a displayed number is rounded.
                rotation.schedule.share(each.age) if rotation else Fraction(1),
            )
            for each in one.active
        )
        if [float(each.unlocked) for each in turns] != [
            each.unlocked for each in one.active
        ]:
            raise not_understood("its round does not match the active policy")
        return Round(
            id=one.round,
            number=one.number,
            unlocked={
                unit: Fraction(round(share * MILLION), MILLION)
                for unit, share in one.unlocked.items()
            },
            active=turns,
            retired=one.retired,
            plans=one.plans,
        )


def plan_of_job(reply: object) -> Plan:
    """Return the plan of a job."""
    if not isinstance(reply, dict):
        raise not_understood("its plan is invalid")
    return read_plan(reply)


def _share(share: Fraction) -> Fraction:
    """Return a share as the ledger keeps it; one that is none stays as it is."""
    if not 0 <= share <= 1:
        return share
    return Fraction(share.numerator * MILLION // share.denominator, MILLION)


def _handed(request: Asked, policy: CompiledPolicy) -> Node:
    """Return a request as sent: with its utility, if that was given separately."""
    tree, vocabulary = request.tree(), policy.policy.vocabulary
    stated = stated_utility(tree, vocabulary)
    if (
        stated is not None
        or request.utility == UTILITY_USUAL
        or not isinstance(tree, Entries)
    ):
        return tree
    if UTILITY in vocabulary.labels:
        raise unsupported(
            f"a plan with utilities, where a label is named `{UTILITY}`",
            "plan where the ledger is",
        )
    key = Scalar(Kind.TEXT, UTILITY, quoted=False, mark=None)
    text = number_text(request.utility)
    worth = Scalar(Kind.NUMBER, text, quoted=False, mark=None)
    return Entries((*tree.entries, (key, worth)), tree.mark)
