"""Rounds: opened, planned, and plans that are committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from modicum.core.document import Node
from modicum.core.errors import Code, ConflictError, InputError, Problem, StaleError
from modicum.ledger.log.events import PlanCommitted, RoundOpened
from modicum.server.service.job import Job, Report
from modicum.server.service.jobs import Jobs
from modicum.server.service.refusals import not_found
from modicum.server.service.sight import found as found_release
from modicum.server.service.threads import Threads
from modicum.server.service.words import refuse_repeated
from modicum.shell.request_files import load_text
from modicum.shell.serving.decider import Decider
from modicum.shell.serving.once import Once
from modicum.workspace.book import Entry
from modicum.workspace.governing.governance import active_policy
from modicum.workspace.ledger_view import LedgerView
from modicum.workspace.permissions.actions import Action
from modicum.workspace.permissions.identity import Identity
from modicum.workspace.planning.committing import Committed
from modicum.workspace.planning.plan import Plan, read_plan
from modicum.workspace.planning.rounds import Round, open_round, present_round


@dataclass(frozen=True, slots=True)
class RoundTold:
    """A round that is or was open.

    Attributes:
        number: How many were opened up to it.
        opened: What was said when it was opened.
        plans: The ids of the plans that were committed in it.
        present: How it stands; None if another one is open by now.
    """

    number: int
    opened: RoundOpened
    plans: tuple[str, ...]
    present: Round | None


@dataclass(frozen=True, slots=True)
class PlanTold:
    """A plan that was committed, as somebody may see it.

    Attributes:
        plan: The plan; it names only the releases that they may see.
        hidden: How many others it reserved.
    """

    plan: PlanCommitted
    hidden: int


@dataclass(frozen=True, slots=True)
class RequestsSent:
    """Requests for a round, as they were sent.

    Attributes:
        text: Their bytes.
        by_line: Whether one JSON document stands on each line.
        solver: What chooses.
    """

    text: bytes
    by_line: bool
    solver: str


class RoundVerbs:
    """What can be done with rounds and plans.

    Args:
        decider: The ledger.
        threads: Where it is asked.
        jobs: Where what takes long is done.
    """

    def __init__(self, decider: Decider, threads: Threads, jobs: Jobs) -> None:
        self._decider = decider
        self._threads = threads
        self._jobs = jobs

    # --- looking ---

    async def rounds(self, who: Identity) -> tuple[RoundTold, ...]:
        """Return the rounds that were opened, oldest first; the last one is open.

        Args:
            who: Who asks.

        Raises:
            AccessError: If they may not.
        """
        who.must(Action.READ_ROUNDS)
        return await self._threads.look(_rounds)

    async def one(self, who: Identity, identifier: str) -> RoundTold:
        """Return a round.

        Args:
            who: Who asks.
            identifier: Its id.

        Raises:
            AccessError: If they may not.
            InputError: If there is no such round.
        """
        for one in await self.rounds(who):
            if one.opened.id == identifier:
                return one
        raise _unknown("round", identifier)

    async def plans(self, who: Identity) -> tuple[PlanTold, ...]:
        """Return the plans that were committed, oldest first.

        Args:
            who: Who asks.

        Raises:
            AccessError: If they may not.
        """
        who.must(Action.READ_ROUNDS)

        def look(view: LedgerView) -> tuple[PlanTold, ...]:
            plans = view.state().planning.plans.values()
            return tuple(_plan_told(view, who, one) for one in plans)

        return await self._threads.look(look)

    async def plan(self, who: Identity, identifier: str) -> PlanTold:
        """Return a plan that was committed.

        Args:
            who: Who asks.
            identifier: Its id.

        Raises:
            AccessError: If they may not.
            InputError: If there is no such plan.
        """
        for one in await self.plans(who):
            if one.plan.id == identifier:
                return one
        raise _unknown("plan", identifier)

    # --- doing ---

    async def open(
        self,
        who: Identity,
        identifier: str,
        unlocked: Mapping[str, Fraction],
        once: Once,
    ) -> Round:
        """Open the next round.

        Args:
            who: Who opens it.
            identifier: What it is called; empty for `round-` and its number.
            unlocked: By unit, what part of every budget may be used from here on.
            once: What makes it a request that is done once.

        Raises:
            AccessError: If they may not.
            ApprovalError: If the policy lets others open rounds.
            ConflictError: If the id is taken, or a share falls.
            InputError: If a unit is not known, or a share is none.
        """
        who.must(Action.PLAN_ROUND)

        def work(entry: Entry) -> Round:
            return open_round(entry, identifier, unlocked)

        return await self._threads.ask(
            self._decider.turn, work, actor=who.name, once=once
        )

    async def make_plan(
        self, who: Identity, identifier: str, requests: RequestsSent
    ) -> Job:
        """Begin to choose which requests of the open round to reserve together.

        Nothing is written, and nothing is reserved until the plan is committed.

        Args:
            who: Who asks.
            identifier: The round that is open.
            requests: The requests.

        Raises:
            AccessError: If they may not.
            ConflictError: If the round is not open any more.
            InputError: If there is no such round, or with every mistake in requests.
            UnavailableError: If too many jobs are under way.
        """
        who.must(Action.PLAN_ROUND)
        found = await self.one(who, identifier)
        if found.present is None:
            raise _not_open(identifier)
        compiled = await self._threads.look(lambda view: view.policy())
        asked = await self._threads.compile(
            who.name,
            lambda: load_text(
                requests.text, "request", compiled, by_line=requests.by_line
            ),
        )

        def work(report: Report) -> object:
            made = self._decider.rounds(who.name).plan(
                asked, solver=requests.solver, on_step=report
            )
            if made.round != identifier:
                raise _not_open(identifier)
            return made.to_dict()

        return self._jobs.begin(who, Action.PLAN_ROUND, "plan-round", work)

    async def commit(
        self, who: Identity, written: Node, tag: str, reserve_seconds: int, once: Once
    ) -> Committed:
        """Reserve everything that a plan accepts, or nothing.

        Args:
            who: Who commits it.
            written: The plan, as it is written.
            tag: The head of the ledger that they go by.
            reserve_seconds: How long the reservations stand; 1 second to 90 days.
            once: What makes it a request that is done once.

        Raises:
            AccessError: If they may not.
            ConflictError: If one release cannot be reserved.
            InputError: If it is no plan.
            StaleError: If the ledger went on since the plan was made, or they go by
                another head.
            UsageError: If no round is open.
        """
        who.must(Action.COMMIT_PLAN)
        plan = read_plan(written)

        def work() -> Committed:
            # Whoever asks again hears what was answered, though heads differ by now.
            refuse_repeated(self._decider, who, once)
            if tag != plan.head:
                raise _other_head(plan)
            rounds = self._decider.rounds(who.name, once=once)
            return rounds.commit(plan, reserve_seconds=reserve_seconds)

        return await self._threads.ask(work)


def _rounds(view: LedgerView) -> tuple[RoundTold, ...]:
    book, _, _ = view.look()
    planning = book.state.planning
    present = present_round(book, active_policy(book))
    return tuple(
        RoundTold(
            number,
            opened,
            tuple(one.id for one in planning.plans.values() if one.round == opened.id),
            present if present is not None and present.id == opened.id else None,
        )
        for number, opened in enumerate(planning.rounds.values(), 1)
    )


def _plan_told(view: LedgerView, who: Identity, plan: PlanCommitted) -> PlanTold:
    seen = tuple(one for one in plan.releases if found_release(view, who, one))
    shown = PlanCommitted(plan.id, plan.round, plan.content, seen)
    return PlanTold(shown, len(plan.releases) - len(seen))


def _unknown(what: str, identifier: str) -> InputError:
    return not_found(
        f"the ledger knows no {what} `{identifier[:200]}`",
        f"list them at /api/v1/{what}s",
    )


def _not_open(identifier: str) -> ConflictError:
    return ConflictError(
        Problem(
            Code.ROUND_MISSING,
            f"the round `{identifier[:200]}` is not open any more",
            help="plan the one that is open: the last of /api/v1/rounds",
        )
    )


def _other_head(plan: Plan) -> StaleError:
    return StaleError(
        Problem(
            Code.PRECONDITION_FAILED,
            f"the plan was made on the head {plan.head[:12]}, and not on the one that"
            " If-Match names",
            help="look at what changed since, and make it again",
        )
    )
