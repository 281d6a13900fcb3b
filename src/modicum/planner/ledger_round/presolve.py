"""Before a round is solved: binding rules, requests left out, and limits of size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from modicum.accounting import Filter
from modicum.core.errors import Code, InputError, Problem
from modicum.ledger import Balances, RecordedRelease, Verdict, decide
from modicum.ledger.decision.limits import budget_of
from modicum.ledger.decision.single_release import allows_alone
from modicum.planner.allocation.problem import SUM_MAX
from modicum.policy import CompiledPolicy


def filter_of(compiled: CompiledPolicy, number: int) -> Filter:
    """Return the filter of a rule over history once everything is unlocked."""
    return compiled.filter_of(budget_of(compiled, number))


class Binding:
    """Determines which rules over history are binding.

    Args:
        balances: The charges, with segments cut for all possible charges.
    """

    def __init__(self, balances: Balances) -> None:
        self._balances = balances
        self._compiled = balances.compiled
        # Rules are pruned by their final limits, not by unlocked ones.
        self._pruned = balances.unlocked.whole
        self._known: dict[int, bool] = {}

    def among(self, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """Return those of some rules that a plan has to look at."""
        return tuple(one for one in numbers if self._decides(one))

    def _decides(self, number: int) -> bool:
        found = self._known.get(number)
        if found is None:
            limited = filter_of(self._compiled, number).enforced
            found = self._known[number] = limited and not self._redundant(number)
        return found

    def _redundant(self, number: int) -> bool:
        """Return whether another rule denies whatever this one does.

        A rule is redundant cell by cell. Where its cells are coarser than
        those of the other, they may be charged for more.
        """
        if not self._pruned:
            return False
        witness = int(self._compiled.pruned.witness[number])
        if witness < 0:
            return False
        own, other = self._unit(number), self._unit(witness)
        if own == other:
            return True
        family = self._balances.family(own)
        rounded = family.rounded or family.segments.frozen
        apart = self._balances.family(other).space.period is not None
        return not rounded and not (apart and family.space.detail is not None)

    def _unit(self, number: int) -> str:
        rules = self._compiled.rules
        return rules.bases[number // len(rules.contexts)].unit


class Reason(Enum):
    """Why a request is not planned."""

    SINGLE = "a rule for single releases denies it"
    FULL = "it does not fit, even if no other request is accepted"
    UNMATCHED = "no rule limits a mechanism of it, so it is denied"
    UNCOVERED = "no rule limits it, so there is nothing to plan"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A request that is not planned.

    Attributes:
        request: Its number among the requests.
        reason: Why.
        verdict: The decision at the present balances. It is allowed if the reason
            is `UNCOVERED`: the ledger accepts such a request at any time.
    """

    request: int
    reason: Reason
    verdict: Verdict


def left_out(
    balances: Balances, requests: Sequence[RecordedRelease], day: int
) -> tuple[LeftOut, ...]:
    """Return the requests that are not planned.

    What does not fit now fits no better once others are accepted.

    Args:
        balances: The charges so far.
        requests: All of them.
        day: The day on which they are decided, as an ordinal.
    """
    found = []
    for number, request in enumerate(requests):
        verdict = decide(balances, request, day)
        alone = allows_alone(balances, request, day, pruned=False)
        reason = _reason(verdict, request) if alone else Reason.SINGLE
        if reason is not None:
            found.append(LeftOut(number, reason, verdict))
    return tuple(found)


def _reason(verdict: Verdict, request: RecordedRelease) -> Reason | None:
    if verdict.unmatched:
        return Reason.UNMATCHED
    if not verdict.allowed:
        return Reason.FULL
    if len(verdict.uncovered) == len(request.mechanisms):
        return Reason.UNCOVERED
    return None


#: Maximum amount of numbers: the demand of cells, and the remainders of rows together
#: with the runs of requests.
NUMBERS_MAX = 40_000_000


def refuse_too_many(numbers: int) -> None:
    """Refuse a round that takes too much memory.

    Args:
        numbers: How many numbers it has to hold.

    Raises:
        InputError: If they are too many.
    """
    if numbers > NUMBERS_MAX:
        raise _refused(
            f"the round takes more than {NUMBERS_MAX} numbers: its requests touch"
            " too many cells of too many rules",
            "plan fewer requests at once",
        )


def refuse_odd_weights(weights: Sequence[int], requests: int) -> None:
    """Refuse weights that cannot be added up, or are not one for each request.

    Args:
        weights: The weights.
        requests: The number of requests.

    Raises:
        InputError: If that is so.
    """
    remedy = "give each request one weight, an integer of at least 0"
    if len(weights) != requests:
        raise _refused(
            f"there are {len(weights)} weights for {requests} requests", remedy
        )
    if any(weight < 0 for weight in weights):
        raise _refused("a request has a negative weight", remedy)
    if max(weights, default=0) * (requests + 1) >= SUM_MAX:
        raise _refused(
            "weights are so large that their sums exceed 64-bit integers",
            "scale all weights down",
        )


def too_large() -> InputError:
    """Return the error for a limit too large for sums of costs up to it."""
    return _refused(
        "a limit is so large that sums of costs exceed 64-bit integers",
        "plan fewer requests at once, or lower the limit",
    )


def _refused(message: str, remedy: str) -> InputError:
    return InputError(Problem(Code.OUT_OF_RANGE, message, help=remedy))
