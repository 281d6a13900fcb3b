"""Rounds, user groups and plans, as far as the log tells of them, and their laws."""

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


class Group(Struct, frozen=True):
    """When a user group may be read.

    Attributes:
        since: The round it began in.
        until: The round it ended in; empty while it may be read.
    """

    since: str
    until: str = ""


@dataclass
class Planning:
    """What was planned, up to the head.

    Attributes:
        rounds: The rounds by id, oldest first.
        groups: The user groups that ever might be read, by number.
        plans: The plans that were taken, by id, oldest first.
        revision: How often rounds or groups changed since this object was made.
    """

    rounds: dict[str, RoundOpened] = field(default_factory=dict)
    groups: dict[int, Group] = field(default_factory=dict)
    plans: dict[str, PlanCommitted] = field(default_factory=dict)
    revision: int = field(default=0, compare=False)

    @property
    def present_round(self) -> RoundOpened | None:
        """The round that is open; None before the first."""
        return next(reversed(self.rounds.values()), None)

    def ages(self) -> dict[int, int]:
        """Return for how many rounds each group has been active, this one included.

        Those that are active no more are left out.
        """
        number = {identifier: place for place, identifier in enumerate(self.rounds)}
        return {
            group: len(self.rounds) - number[one.since]
            for group, one in self.groups.items()
            if not one.until
        }

    def open_round(self, opened: RoundOpened) -> None:
        """Begin a round.

        Raises:
            ConflictError: If its id is taken, or a share that was unlocked falls.
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
        """Let a user group be read.

        Raises:
            ConflictError: If it ever might be before, or the round is not open.
        """
        self._must_be_open(body.round)
        if body.group in self.groups:
            raise _impossible(f"group {body.group} was already activated")
        self.groups[body.group] = Group(body.round)
        self.revision += 1

    def retire(self, body: GroupRetired) -> None:
        """Let a user group be read no more.

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
        """Take a plan.

        Raises:
            ConflictError: If its id is taken, it takes a release twice, or the round
                is not open.
        """
        self._must_be_open(body.round)
        if body.id in self.plans:
            raise _impossible(f"the plan `{body.id}` was already committed")
        if len(set(body.releases)) != len(body.releases):
            raise _impossible(f"the plan `{body.id}` lists a release twice")
        self.plans[body.id] = body

    def apply(self, body: PlanBody) -> None:
        """Take what happened; if it may not happen, nothing changes."""
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
        }

    @classmethod
    def restored(cls, plain: dict[str, Any]) -> Planning:
        """Return what `to_plain` told of; it raises what plain data of others does."""
        return cls(
            rounds={one[0]: RoundOpened(*one) for one in plain["rounds"]},
            groups={number: Group(*rest) for number, *rest in plain["groups"]},
            plans={
                name: PlanCommitted(name, round_, content, tuple(releases))
                for name, round_, content, releases in plain["plans"]
            },
        )

    def _must_be_open(self, identifier: str) -> None:
        if self.present_round is None or self.present_round.id != identifier:
            raise _impossible(f"the round `{identifier}` is not open")


def _impossible(message: str) -> ConflictError:
    return ConflictError(Problem(Code.RELEASE_CONFLICT, message))
