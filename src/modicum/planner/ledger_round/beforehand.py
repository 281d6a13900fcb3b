"""Requests that cannot be accepted, or need not be planned, whatever else is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from modicum.ledger import Balances, RecordedRelease, Verdict, decide
from modicum.ledger.decision.single_release import allows_alone


class Reason(Enum):
    """Why a request is not planned."""

    SINGLE = "a rule for single releases denies it"
    FULL = "it does not fit, even if no other request is accepted"
    UNCOVERED = "no rule is about it, so that there is nothing to plan"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A request that is not planned.

    Attributes:
        request: Its number among the requests.
        reason: Why.
        verdict: What the rules say to it as the balances are. They allow it if it is
            not covered: the ledger takes it at any time.
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
        balances: What was charged so far.
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
    if not verdict.allowed:
        return Reason.FULL
    if len(verdict.uncovered) == len(request.mechanisms):
        return Reason.UNCOVERED
    return None
