"""Rounds: opened, planned, and plans that are committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from modicum.api.local.balances import Entry
from modicum.api.local.handlers.rounds import round_
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.plans.commit import Committed, trees_of
from modicum.api.local.plans.plan import Plan, read_plan
from modicum.api.local.plans.rounds import Round, open_round
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.core.document import Node
from modicum.core.errors import Code, ConflictError, Problem, StaleError
from modicum.ops.files.requests import load_text
from modicum.policy import CompiledPolicy
from modicum.server.service.jobs import Job, Jobs, Report
from modicum.server.service.threads import Threads
from modicum.server.service.votes import refuse_repeated
from modicum.writer.idempotency import IdempotencyKey
from modicum.writer.service import Decider


@dataclass(frozen=True, slots=True)
class RequestsSent:
    """Requests for a round, as sent.

    Attributes:
        text: Their bytes.
        by_line: Whether each line is a JSON document.
        solver: The solver.
    """

    text: bytes
    by_line: bool
    solver: str


class RoundVerbs:
    """The operations on rounds and plans.

    Args:
        decider: The ledger.
        threads: Where they run.
        jobs: Where long operations run.
    """

    def __init__(self, decider: Decider, threads: Threads, jobs: Jobs) -> None:
        self._decider = decider
        self._threads = threads
        self._jobs = jobs

    # --- looking ---

    # --- doing ---

    async def open(
        self,
        who: Identity,
        identifier: str,
        unlocked: Mapping[str, Fraction],
        once: IdempotencyKey,
    ) -> Round:
        """Open the next round."""
        who.must(Action.PLAN_ROUND)

        def work(entry: Entry) -> Round:
            return open_round(entry, identifier, unlocked)

        return await self._threads.submit(
            self._decider.turn, work, actor=who.name, once=once
        )

    async def make_plan(
        self, who: Identity, identifier: str, requests: RequestsSent
    ) -> Job:
        """Begin to choose which requests of the open round to reserve together.

        Nothing is written, and nothing is reserved until the plan is committed.
        """
        who.must(Action.PLAN_ROUND)

        who.must(Action.READ_ROUNDS)

        def read_view(view: LedgerView) -> tuple[bool, CompiledPolicy]:
            return round_(view, who, identifier).open, view.policy()

        is_open, compiled = await self._threads.read_view(read_view)
        if not is_open:
            raise _not_open(identifier)
        round_request = await self._threads.compile(
            who.name,
            lambda: load_text(
                requests.text, "request", compiled, by_line=requests.by_line
            ),
        )

        def work(report: Report) -> object:
            made = self._decider.rounds(who.name).plan(
                round_request, solver=requests.solver, on_step=report
            )
            if made.round != identifier:
                raise _not_open(identifier)
            return made.to_dict()

        return self._jobs.begin(who, Action.PLAN_ROUND, "plan-round", work)

    async def commit(
        self,
        who: Identity,
        written: Node,
        tag: str,
        reserve_seconds: int,
        once: IdempotencyKey,
    ) -> Committed:
        """Reserve everything that a plan accepts, or nothing."""
        who.must(Action.COMMIT_PLAN)
        plan = read_plan(written)
        trees = await self._threads.read(who.name, partial(trees_of, plan))

        def work() -> Committed:
            # A repeated request gets the stored response, though the head differs by
            # now.
            refuse_repeated(self._decider, who, once)
            if tag != plan.head:
                raise _other_head(plan)
            rounds = self._decider.rounds(who.name, once=once, read=trees)
            return rounds.commit(plan, reserve_seconds=reserve_seconds)

        return await self._threads.submit(work)


def _not_open(identifier: str) -> ConflictError:
    return ConflictError(
        Problem(
            Code.ROUND_MISSING,
            f"the round `{identifier[:200]}` is no longer open",
            help="plan the open one: the last of /api/v1/rounds",
        )
    )


def _other_head(plan: Plan) -> StaleError:
    return StaleError(
        Problem(
            Code.PRECONDITION_FAILED,
            f"the plan was made on the head {plan.head[:12]}, not on the one of"
            " If-Match",
            help="check what changed since, and make it again",
        )
    )
