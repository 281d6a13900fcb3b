"""Rounds and plans."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

from modicum.api.schema.ledger import Head
from modicum.api.schema.shape import Digest, Input, NewId, Shape

#: A part of a budget, exactly.
Share = Annotated[Fraction, Meta(extra_json_schema={"minimum": 0, "maximum": 1})]


class UserGroup(Shape, frozen=True, kw_only=True):
    """The state of a user group in a round.

    Attributes:
        group: The group's number.
        age: For how many rounds it has been active, this one included.
        unlocked: The fraction of its budget that is unlocked so far.
    """

    group: int
    age: int
    unlocked: float


class Round(Shape, frozen=True, kw_only=True):
    """A planning round.

    Attributes:
        round: Its id.
        number: The number of opened rounds, including this one.
        unlocked: By unit, the fraction of each budget that was unlocked manually; units
            not listed have all.
        plans: The ids of the plans that were committed in this round.
    """

    round: str
    number: int
    unlocked: dict[str, float]
    plans: tuple[str, ...]


class RoundInput(Input, frozen=True, kw_only=True):
    """A round to open.

    Attributes:
        round: Its name; its number if omitted.
        unlocked: By unit, the usable fraction of each budget; all if omitted.
    """

    round: NewId | UnsetType = UNSET
    unlocked: dict[str, Share] = field(default_factory=dict)


class RoundItem(Round, frozen=True, kw_only=True):
    """A round that is or was open.

    Attributes:
        open: Whether it is open.
    """

    open: bool


class RoundList(Shape, frozen=True, kw_only=True):
    """The rounds that were opened, oldest first; the last one is open.

    Attributes:
        rounds: The rounds.
    """

    rounds: tuple[RoundItem, ...]


class RoundDetails(RoundItem, frozen=True, kw_only=True):
    """A round; user groups are listed while it is open.

    Attributes:
        active: The user groups that are active, the oldest first; None if the round is
            not open.
        retired: The groups that are active no more; None if the round is not open.
    """

    active: tuple[UserGroup, ...] | None
    retired: tuple[int, ...] | None


class OpenedRound(Round, frozen=True, kw_only=True):
    """A round that was opened.

    Attributes:
        active: The user groups that are active, the oldest first; empty if the policy
            has no `rotation`.
        retired: The groups that are active no more.
    """

    active: tuple[UserGroup, ...]
    retired: tuple[int, ...]


class Plan(Shape, frozen=True, kw_only=True):
    """A committed plan.

    Attributes:
        plan: The plan's id.
        round: Its round.
        content: SHA-256 of the complete plan.
        releases: The releases that it reserved, in this order.
    """

    plan: str
    round: str
    content: Digest
    releases: tuple[str, ...]


class PlanItem(Plan, frozen=True, kw_only=True):
    """A plan that was committed.

    Attributes:
        hidden: How many of its releases are of data sets that the reader may not see.
    """

    hidden: int


class PlanList(Shape, frozen=True, kw_only=True):
    """The plans that were committed, oldest first.

    Attributes:
        plans: The plans.
    """

    plans: tuple[PlanItem, ...]


class CommittedPlan(Shape, frozen=True, kw_only=True):
    """The reservations of a plan.

    Attributes:
        plan: The plan's id.
        round: Its round.
        releases: The releases that were reserved, in this order.
        expires_at: When the reservations expire, in UTC; None if there are none.
        ledger: The ledger afterwards.
    """

    plan: str
    round: str
    releases: tuple[str, ...]
    expires_at: str | None
    ledger: Head


class PlanStatus(Shape, frozen=True, kw_only=True):
    """The open round and the committed plans.

    Attributes:
        round: The open round; None if there is none or an id was given.
        plans: The plans that were committed, the oldest first.
    """

    round: OpenedRound | None
    plans: tuple[Plan, ...]
