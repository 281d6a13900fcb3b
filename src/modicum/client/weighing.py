"""What it means to activate a policy, as a server tells it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from modicum.api.local.governance.activation import Activation, Weighed
from modicum.api.schema import approval as schema
from modicum.api.schema.ledger import Head, Spender
from modicum.client.hearings import hearings_of
from modicum.client.problems import not_understood, problem_of
from modicum.client.told import decoded
from modicum.policy import CompiledPolicy, Rule


@dataclass(frozen=True, slots=True)
class ToldConflict:
    """A rule of the new policy that history exceeds, in amounts for people.

    Attributes:
        rule: The rule.
        measure: What is compared.
        spent: What was charged in its fullest cell; infinite if no bound is proven.
        limit: What is admitted.
        budget: The budget in words.
        fits: The smallest budget that would fit, in words; None if there is none.
        contributors: The releases that were charged there, largest first.
    """

    rule: Rule
    measure: str
    spent: float
    limit: float
    budget: str
    fits: str | None
    contributors: tuple[Spender, ...]


@dataclass(frozen=True, slots=True)
class ToldWeighed(Weighed):
    """What it means to put a policy in the place of the active one.

    `conflicts` are `ToldConflict`: amounts for people, where a workspace has sums.

    Attributes:
        told: What the server told.
    """

    told: schema.Activation | None = field(default=None, repr=False)


def weighed_of(
    told: Any, active: CompiledPolicy, successor: CompiledPolicy
) -> ToldWeighed:
    """Return what it means to activate a policy.

    Args:
        told: What a server told.
        active: The active policy.
        successor: The policy that is to hold.

    Raises:
        UnavailableError: If it is not of that form, or about other policies.
    """
    one = decoded(schema.Activation, told)
    if (one.replaced.digest, one.policy.digest) != (
        active.policy.digest,
        successor.policy.digest,
    ):
        raise not_understood("it weighs other policies than were sent").alone()
    return ToldWeighed(
        replaced=active,
        successor=successor,
        conflicts=tuple(_conflict(each, successor) for each in one.conflicts),  # type: ignore[misc]
        made=frozenset(each.rule for each in one.conflicts if each.made),
        accepted=one.accepted,
        hearings=hearings_of(one.approvals),
        problems=tuple(problem_of(each) for each in one.problems),
        told=one,
    )


def activation_of(told: Any, weighed: Weighed, head: Head) -> Activation:
    """Return what became of an activation.

    Args:
        told: What a server told.
        weighed: What it means.
        head: How far the ledger goes, where nothing was changed.

    Raises:
        UnavailableError: If it is not of that form.
    """
    one = decoded(schema.Activation, told)
    last = one.ledger or head
    return Activation(weighed, one.changed, last.seq, last.head)


def _conflict(
    told: schema.ActivationConflict, successor: CompiledPolicy
) -> ToldConflict:
    number = successor.rules.number(told.rule)
    if number is None:
        raise not_understood("it names a rule that the policy does not have").alone()
    return ToldConflict(
        successor.rules[number],
        told.measure,
        told.spent,
        told.limit,
        told.budget,
        told.fits,
        told.contributors,
    )
