"""Rounds, user groups and plans of the log, and their invariants."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, assert_never

from msgspec import Struct
from msgspec.structs import replace

from modicum.core.canonical import Plain
from modicum.core.errors import Code, ConflictError, Problem
from modicum.ledger.log.events import (
    GroupActivated,
    GroupRetired,
    PlanBody,
    PlanCommitted,
    RoundOpened,
)
from modicum.ledger.state.gaps import Gaps


class Group(Struct, frozen=True):
    """The active rounds of a user group.

    Attributes:
        since: The round it began in.
        until: The round it retired in; empty while it is active.
    """

    since: str
    until: str = ""


@dataclass
class Planning:
    """The planning state, up to the head.

    Attributes:
        rounds: The rounds by id, oldest first.
        groups: The user groups that ever might be read, by number.
        plans: The committed plans, by id, oldest first.
        gaps: Lost entries: while a gap is open, nothing is unlocked.
        revision: How often rounds or groups changed since this object was made.
    """

    rounds: dict[str, RoundOpened] = field(default_factory=dict)
    groups: dict[int, Group] = field(default_factory=dict)
    plans: dict[str, PlanCommitted] = field(default_factory=dict)
    gaps: Gaps = field(default_factory=Gaps)
    revision: int = field(default=0, compare=False)

    @property
    def present_round(self) -> RoundOpened | None:
        """The round that is open; None before the first."""
        return next(reversed(self.rounds.values()), None)

    def ages(self) -> dict[int, int]:
        """Return the number of rounds each group has been active, including this one.

        Groups that are no longer active are left out.
        """
        number = {identifier: place for place, identifier in enumerate(self.rounds)}
        return {
            group: len(self.rounds) - number[one.since]
            for group, one in self.groups.items()
            if not one.until
        }

    def open_round(self, opened: RoundOpened) -> None:
        """Open a round.

        Raises:
            ConflictError: If its id is in use, or an unlocked fraction falls.
        """
        if opened.id in self.rounds:
            raise _impossible(f"the round `{opened.id}` was already opened")
        before = self.present_round.unlocked if self.present_round else {}
        for unit, share in sorted(before.items()):
            if opened.unlocked.get(unit, 0) < share:
                raise _impossible(
                    f"the round `{opened.id}` unlocks less for `{unit}` than the"
                    " previous round"
                )
        self.rounds[opened.id] = opened
        self.revision += 1

    def activate(self, body: GroupActivated) -> None:
        """Activate a user group.

        Raises:
            ConflictError: If it ever might be before, or the round is not open.
        """
        self._must_be_open(body.round)
        if body.group in self.groups:
            raise _impossible(f"group {body.group} was already activated")
        self.groups[body.group] = Group(body.round)
        self.revision += 1

    def retire(self, body: GroupRetired) -> None:
        """Retire a user group.

        Raises:
            ConflictError: If it may not be read, or the round is not open.
        """
        self._must_be_open(body.round)
        group = self.groups.get(body.group)
        if group is None or group.until:
            raise _impossible(f"group {body.group} is not active")
        self.groups[body.group] = replace(group, until=body.round)
        self.revision += 1

    def commit(self, body: PlanCommitted) -> None:
        """Commit a plan.

        Raises:
            ConflictError: If its id is in use, it names a release twice, or the round
                is not open.
        """
        self._must_be_open(body.round)
        if body.id in self.plans:
            raise _impossible(f"the plan `{body.id}` was already committed")
        if len(set(body.releases)) != len(body.releases):
            raise _impossible(f"the plan `{body.id}` lists a release twice")
        self.plans[body.id] = body

    def apply(self, body: PlanBody) -> None:
        """Apply an event; a forbidden one changes nothing."""
        match body:
            case RoundOpened():
                self.open_round(body)
            case GroupActivated():
                self.activate(body)
            case GroupRetired():
                self.retire(body)
            case PlanCommitted():
                self.commit(body)
            case _:
                assert_never(body)

    def to_plain(self) -> dict[str, Plain]:
        """Return all of it as plain data."""
        return {
            "rounds": [
                [one.id, dict(sorted(one.unlocked.items()))]
                for one in self.rounds.values()
            ],
            "groups": [
                [number, group.since, group.until]
                for number, group in self.groups.items()
            ],
            "plans": [
                [one.id, one.round, one.content, list(one.releases)]
                for one in self.plans.values()
            ],
            **self.gaps.to_plain(),
        }

    @classmethod
    def restored(cls, plain: dict[str, Any]) -> Planning:
        """Return the state that `to_plain` encoded; invalid data raises an error."""
        return cls(
            rounds={one[0]: RoundOpened(*one) for one in plain["rounds"]},
            groups={number: Group(*rest) for number, *rest in plain["groups"]},
            plans={
                name: PlanCommitted(name, round_, content, tuple(releases))
                for name, round_, content, releases in plain["plans"]
            },
            gaps=Gaps.restored(plain),
        )

    def _must_be_open(self, identifier: str) -> None:
        if self.present_round is None or self.present_round.id != identifier:
            raise _impossible(f"the round `{identifier}` is not open")


def _impossible(message: str) -> ConflictError:
    return ConflictError(Problem(Code.RELEASE_CONFLICT, message))
