"""Rounds and plans."""

from __future__ import annotations

from modicum.server.models.shared_forms import Digest, Form, Head


class TurnForm(Form):
    """Where a user group stands in a round."""

    group: int
    age: int
    unlocked: float


class RoundItem(Form):
    """A round that is or was open."""

    round: str
    number: int
    open: bool
    unlocked: dict[str, float]
    plans: list[str]


class RoundList(Form):
    """The rounds that were opened, oldest first; the last one is open."""

    rounds: list[RoundItem]


class RoundForm(RoundItem):
    """A round; the user groups are told while it is open."""

    active: list[TurnForm] | None
    retired: list[int] | None


class OpenedForm(Form):
    """A round that was opened."""

    round: str
    number: int
    unlocked: dict[str, float]
    active: list[TurnForm]
    retired: list[int]
    plans: list[str]


class PlanItem(Form):
    """A plan that was committed; `hidden` releases are of other data sets."""

    plan: str
    round: str
    content: Digest
    releases: list[str]
    hidden: int


class PlanList(Form):
    """The plans that were committed, oldest first."""

    plans: list[PlanItem]


class CommittedForm(Form):
    """What a plan reserved."""

    plan: str
    round: str
    releases: list[str]
    expires_at: str | None
    ledger: Head
