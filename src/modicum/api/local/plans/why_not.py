"""Why a request is not in a plan, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from modicum.api.local.explanation.denial_text import amount_text
from modicum.api.local.explanation.locked_words import locked_remedy, locked_text
from modicum.core.rationals import DELTA_UNIT, LOSS_UNIT
from modicum.core.text import shortened
from modicum.ledger import RuleLoss
from modicum.ledger.decision.amounts import amounts
from modicum.planner.ledger_round.beforehand import LeftOut, Reason
from modicum.planner.ledger_round.denial_reasons import Obstacle, obstacles
from modicum.planner.ledger_round.plan import Planned

#: So many obstacles, and so many rivals of each, are told.
_OBSTACLES = 3
_RIVALS = 5


def left_out_lines(one: LeftOut) -> Iterator[str]:
    """Yield why a request was not planned at all.

    Args:
        one: The request.
    """
    yield one.reason.value
    if one.reason is Reason.UNCOVERED:
        yield "submit it by itself:  modicum release submit"
    denying = [loss for loss in one.verdict.losses if not loss.allowed]
    yield from (_denial(loss) for loss in denying)
    locked = ((loss.locked, loss.rule.unit) for loss in denying)
    yield from dict.fromkeys(locked_remedy(why, unit) for why, unit in locked if why)


def rejected_lines(planned: Planned, request: int) -> Iterator[str]:
    """Yield why a request was planned and not accepted.

    Args:
        planned: The plan.
        request: The number of the request.
    """
    yield from map(_obstacle, obstacles(planned, request, most=_OBSTACLES))


def _denial(loss: RuleLoss) -> str:
    found = amounts(loss)
    where = f" ({loss.cell})" if loss.cell else ""
    if loss.locked is not None:
        return f"{loss.rule.id}{where}: {locked_text(loss.locked, loss.rule.unit)}"
    together = amount_text(found.together, found.scale)
    return (
        f"{loss.rule.id}{where}: {found.measure} {together} together, limit"
        f" {amount_text(found.limit, found.scale)}"
    )


def _obstacle(one: Obstacle) -> str:
    scale = DELTA_UNIT if one.coordinate == "delta" else LOSS_UNIT
    cost = "inf" if one.cost is None else amount_text(one.cost, scale)
    where = f" ({one.cell})" if one.cell else ""
    return (
        f"{one.rule}{where}: needs {one.coordinate} {cost}, of"
        f" {amount_text(one.before, scale)} {_amount_left(one.left, scale)} are left"
        f"{_taken(one.rivals)}"
    )


def _amount_left(units: int, scale: int) -> str:
    return amount_text(max(units, 0), scale)


def _taken(rivals: Sequence[str]) -> str:
    if not rivals:
        return ""
    return f"; taken by {shortened(rivals, _RIVALS)}"
