"""Making a plan: on the ledger as it is now, writing nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from modicum.api.local.plans.admission import obstacles_of
from modicum.api.local.plans.plan import (
    Outcome,
    Plan,
    RequestOutcome,
    left_out_lines,
    rejected_lines,
)
from modicum.api.local.plans.requests import Request
from modicum.core.errors import Code, InputError, Problem
from modicum.ledger import Balances, RecordedRelease, State
from modicum.planner.allocation.optimum import BestEachRound
from modicum.planner.ledger_round.cancellation import Means
from modicum.planner.ledger_round.plan import ON_LEDGER, RoundPlan, plan_round

#: The default solver.
SOLVER = "dpk"
#: Solvers receive utilities as integers up to this bound.
_WORTH_MAX = 2**40


@dataclass(frozen=True, slots=True)
class PlanInput:
    """The input of a plan.

    Attributes:
        round: The id of the round.
        balances: The balances; they are not changed.
        state: The ledger's state at the same head.
        day: The day, as an ordinal.
        actor: The planner, who is also the requester.
    """

    round: str
    balances: Balances
    state: State
    day: int
    actor: str


def make_plan(
    situation: PlanInput,
    requests: Sequence[Request],
    solver: str = SOLVER,
    means: Means | None = None,
) -> Plan:
    """Return a plan for the requests of a round."""
    refuse_unknown_solver(solver)
    barred = {
        number: why
        for number, one in enumerate(requests)
        if (why := tuple(_in_the_way(situation, one.release)))
    }
    tried = [number for number in range(len(requests)) if number not in barred]
    allocate = ON_LEDGER[solver]()
    planned = plan_round(
        situation.balances,
        [requests[number].release for number in tried],
        _weights([requests[number].utility for number in tried]),
        allocate,
        situation.day,
        means or Means(),
    )
    verdicts = {number: (Outcome.LEFT_OUT, why) for number, why in barred.items()}
    verdicts |= zip(tried, _outcomes(planned, len(tried)), strict=True)
    outcomes = (_outcome(one, *verdicts[number]) for number, one in enumerate(requests))
    state = situation.state
    return Plan(
        round=situation.round,
        policy=situation.balances.compiled.policy.digest,
        seq=state.seq,
        head=state.head,
        solver=solver,
        remark=allocate.remark if isinstance(allocate, BestEachRound) else "",
        accepted=tuple(planned.requests[place].id for place in planned.accepted),
        outcomes=tuple(outcomes),
    )


def _outcome(
    request: Request, outcome: Outcome, why: tuple[str, ...]
) -> RequestOutcome:
    accepted = outcome is Outcome.ACCEPTED
    return RequestOutcome(
        release=request.release.id,
        content=request.release.content,
        utility=request.utility,
        outcome=outcome,
        why=why,
        text=request.text() if accepted else "",
    )


def _outcomes(
    planned: RoundPlan, requests: int
) -> Iterator[tuple[Outcome, tuple[str, ...]]]:
    accepted = set(planned.accepted)
    left_out = {one.request: one for one in planned.left_out}
    for number in range(requests):
        if number in accepted:
            yield Outcome.ACCEPTED, ()
        elif number in left_out:
            yield Outcome.LEFT_OUT, tuple(left_out_lines(left_out[number]))
        else:
            yield Outcome.REJECTED, tuple(rejected_lines(planned, number))


def _in_the_way(situation: PlanInput, release: RecordedRelease) -> Iterator[str]:
    """Return why a release cannot be planned, whatever remains."""
    policy = situation.balances.compiled.policy
    return obstacles_of(release, policy, situation.state, situation.actor)


def _weights(worth: Sequence[Fraction]) -> list[int]:
    """Return utilities as integers, exactly if these are not large.

    Solvers only compare them.
    """
    scale = Fraction(lcm(1, *(one.denominator for one in worth)))
    most = max(worth, default=Fraction(0)) * scale
    if most > _WORTH_MAX:
        scale *= _WORTH_MAX / most
    return [one * scale.numerator // scale.denominator for one in worth]


def refuse_unknown_solver(solver: str) -> None:
    """Refuse a solver that there is not."""
    if solver in ON_LEDGER:
        return
    raise InputError(
        Problem(
            Code.UNKNOWN_CHOICE,
            f"unknown solver `{solver[:60]}` for rounds on a ledger",
            help="choose one of " + ", ".join(ON_LEDGER),
        )
    )
