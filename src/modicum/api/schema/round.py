"""Rounds and plans."""

from __future__ import annotations

from modicum.api.schema.common import Head
from modicum.api.schema.shape import Digest, Shape


class UserGroup(Shape, frozen=True, kw_only=True):
    """Where a user group stands in a round."""

    group: int
    age: int
    unlocked: float


class RoundItem(Shape, frozen=True, kw_only=True):
    """A round that is or was open."""

    round: str
    number: int
    open: bool
    unlocked: dict[str, float]
    plans: tuple[str, ...]


class RoundList(Shape, frozen=True, kw_only=True):
    """The rounds that were opened, oldest first; the last one is open."""

    rounds: tuple[RoundItem, ...]


class RoundDetails(RoundItem, frozen=True, kw_only=True):
    """A round; the user groups are told while it is open."""

    active: tuple[UserGroup, ...] | None
    retired: tuple[int, ...] | None


class OpenedRound(Shape, frozen=True, kw_only=True):
    """A round that was opened."""

    round: str
    number: int
    unlocked: dict[str, float]
    active: tuple[UserGroup, ...]
    retired: tuple[int, ...]
    plans: tuple[str, ...]


class Plan(Shape, frozen=True, kw_only=True):
    """A plan that was committed."""

    plan: str
    round: str
    content: Digest
    releases: tuple[str, ...]


class PlanItem(Plan, frozen=True, kw_only=True):
    """A plan that was committed; `hidden` releases are of other data sets."""

    hidden: int


class PlanList(Shape, frozen=True, kw_only=True):
    """The plans that were committed, oldest first."""

    plans: tuple[PlanItem, ...]


class CommittedPlan(Shape, frozen=True, kw_only=True):
    """What a plan reserved."""

    plan: str
    round: str
    releases: tuple[str, ...]
    expires_at: str | None
    ledger: Head
