"""Rounds of a ledger, and plans that were committed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta
from msgspec.structs import asdict

from modicum.api import operations
from modicum.api.local.governance.approval_cases import active_policy
from modicum.api.local.handlers.errors import not_found
from modicum.api.local.handlers.registry import answers
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.plans.rounds import Round, present_round
from modicum.api.local.views.rounds import plan_view, round_view
from modicum.api.local.visibility import found
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.api.schema.plan import (
    PlanItem,
    PlanList,
    RoundDetails,
    RoundItem,
    RoundList,
)
from modicum.core.errors import InputError
from modicum.ledger.decision.unlocked_shares import MILLION
from modicum.ledger.log.events import PlanCommitted

Identifier = Annotated[str, Meta(min_length=1, max_length=200)]


@answers(operations.ROUNDS, Action.READ_ROUNDS)
def rounds(view: LedgerView, _: Identity | None) -> RoundList:
    """Return the rounds that were opened, oldest first; the last one is open."""
    return RoundList(rounds=tuple(one for one, _ in _rounds(view)))


@answers(operations.ROUND, Action.READ_ROUNDS)
def round_(view: LedgerView, _: Identity | None, round_id: Identifier) -> RoundDetails:
    """Return a round, and whose turn it is while it is open."""
    for item, present in _rounds(view):
        if item.round == round_id:
            shown = None if present is None else round_view(present)
            return RoundDetails(
                **asdict(item),
                active=None if shown is None else shown.active,
                retired=None if shown is None else shown.retired,
            )
    raise unknown("round", round_id)


@answers(operations.PLANS, Action.READ_ROUNDS)
def plans(view: LedgerView, who: Identity | None) -> PlanList:
    """Return the plans that were committed, oldest first."""
    committed = view.state().planning.plans.values()
    return PlanList(plans=tuple(_plan(view, who, one) for one in committed))


@answers(operations.PLAN, Action.READ_ROUNDS)
def plan(view: LedgerView, who: Identity | None, plan: Identifier) -> PlanItem:
    """Return a plan that was committed."""
    committed = view.state().planning.plans.get(plan)
    if committed is None:
        raise unknown("plan", plan)
    return _plan(view, who, committed)


def unknown(what: str, identifier: str) -> InputError:
    """Return the error for a round or a plan that is not there."""
    return not_found(
        f"unknown {what} `{identifier[:200]}`",
        f"list them at /api/v1/{what}s",
    )


def _rounds(view: LedgerView) -> Iterator[tuple[RoundItem, Round | None]]:
    """Yield each round, and the one that is open as it is now."""
    book, _, _ = view.current()
    planning = book.state.planning
    present = present_round(book, active_policy(book))
    for number, opened in enumerate(planning.rounds.values(), 1):
        is_open = present is not None and present.id == opened.id
        item = RoundItem(
            round=opened.id,
            number=number,
            open=is_open,
            unlocked={
                unit: share / MILLION for unit, share in sorted(opened.unlocked.items())
            },
            plans=tuple(
                one.id for one in planning.plans.values() if one.round == opened.id
            ),
        )
        yield item, present if is_open else None


def _plan(view: LedgerView, who: Identity | None, plan: PlanCommitted) -> PlanItem:
    shown = tuple(one for one in plan.releases if found(view, who, one) is not None)
    visible = PlanCommitted(plan.id, plan.round, plan.content, shown)
    return PlanItem(
        **asdict(plan_view(visible)), hidden=len(plan.releases) - len(shown)
    )
