"""A policy as written: the input of the compiler."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from fractions import Fraction
from operator import itemgetter
from typing import Final, TypeAlias

from msgspec import Struct, field

from modicum.accounting import Budget
from modicum.accounting.filters.unlock_schedule import Unlocking
from modicum.core.errors import Mark
from modicum.policy.budget_maps import BudgetMap
from modicum.policy.predicates import Predicate
from modicum.release import Vocabulary

#: What may happen to a mechanism that matches no rule with a limit.
UNMATCHED: Final = ("deny", "allow")
DAY_SECONDS: Final = 24 * 60 * 60
#: A longer reservation would block others for no reason.
RESERVATION_DAYS_MAX: Final = 90
#: What one identity requested is compared within memory.
REQUESTER_DAYS_MAX: Final = 31


class Level(Enum):
    """The degree of membership in a category; levels are cumulative."""

    MEMBER = "member"
    STRONG = "strong"
    WEAK = "weak"

    def includes(self) -> tuple[Level, ...]:
        """Return the memberships that a rule at this level covers."""
        order = (Level.MEMBER, Level.STRONG, Level.WEAK)
        return order[: order.index(self) + 1]


class Attribute(Struct, frozen=True):
    """An attribute of the data: its risk level and its categories.

    Attributes:
        name: Its name.
        risk: Its risk level.
        memberships: How closely it belongs to categories; None if undeclared, empty if
            declared to belong to none.
        static: Whether its values have no meaningful time, so that reading it concerns
            every period.
        mark: Its position.
    """

    name: str
    risk: str
    memberships: Mapping[str, Level] | None
    static: bool
    mark: Mark | None

    def level(self, category: str) -> Level | None:
        """Return how closely it belongs to a category; None if not at all."""
        return (self.memberships or {}).get(category)


class _BasePolicy(Struct, frozen=True, kw_only=True):
    """What all base policies have.

    Attributes:
        name: Its name.
        unit: The privacy unit of its budgets.
        mark: Its position.
        requester_days: For rules about each release, the number of days in which they
            also limit all that one identity reserves together; None for no such limit.
    """

    name: str
    unit: str
    mark: Mark | None
    requester_days: int | None = None


class CustomPolicy(_BasePolicy, frozen=True, kw_only=True):
    """One rule, with its own predicate."""

    predicate: Predicate
    budget: Budget


class _RiskPolicy(_BasePolicy, frozen=True, kw_only=True):
    """Rules with a budget for each risk level."""

    budgets: Mapping[str, Budget]
    budget_mark: Mark | None


class AttributePolicy(_RiskPolicy, frozen=True, kw_only=True):
    """One rule for each attribute, by its risk level."""

    override: Mapping[str, Budget]


class CategoryPolicy(_RiskPolicy, frozen=True, kw_only=True):
    """One rule for each category and membership level, by the category's risk."""

    levels: Mapping[Level, BudgetMap]


BasePolicy: TypeAlias = CustomPolicy | AttributePolicy | CategoryPolicy


class Setting(Struct, frozen=True):
    """One context of an extension: a predicate and its effect on a budget."""

    name: str
    predicate: Predicate
    budget_map: BudgetMap
    mark: Mark | None


class Extension(Struct, frozen=True):
    """A set of contexts; multiplies every rule by its settings."""

    name: str
    settings: tuple[Setting, ...]
    mark: Mark | None


class Guard(Struct, frozen=True):
    """A condition on every mechanism's description; it is refused otherwise."""

    name: str
    unless: Predicate
    message: str
    mark: Mark | None


class Approval(Struct, frozen=True):
    """The approval that a release needs before reservation, or the next policy.

    Attributes:
        when: The releases that need it; refers only to the release. Always true for a
            policy's.
        need: How many people, at least 1.
        roles: The roles that they may have; at least one.
        requester_may_approve: Whether the requester counts as an approver.
        mark: Its position.
    """

    when: Predicate
    need: int
    roles: tuple[str, ...]
    requester_may_approve: bool
    mark: Mark | None


class Retired(Enum):
    """What happens to the budget of retired user groups."""

    FIRST_COME = "first-come"
    CLOSED = "closed"


@dataclasses.dataclass(frozen=True, slots=True)
class RotationRule:
    """The rotation of user groups: the fraction of its budget unlocked for each.

    It applies to the rules over history of every unit whose instances stay in one user
    group for life.

    Attributes:
        schedule: The unlocked fraction at each age of an active group.
        retired: What happens to the remainder when a group retires.
        opened_by: The roles that may open rounds; None if everybody may.
        mark: Its position.
    """

    schedule: Unlocking
    retired: Retired
    opened_by: tuple[str, ...] | None = None
    mark: Mark | None = dataclasses.field(default=None, compare=False)


class ReservationBound(Struct, frozen=True):
    """The limits on reservations that are not started.

    Attributes:
        share: The part of each limit for one actor; None for all of it. A single
            release may take more, for a day at most.
        days: The maximum lifetime of a reservation.
        role: The role that the share is for; empty if it is for everybody.
        data_sets: By data set, the part of each limit for the reservations of all
            actors together, likewise.
    """

    share: Fraction | None = None
    days: int = RESERVATION_DAYS_MAX
    role: str = ""
    data_sets: Mapping[str, Fraction] = field(default_factory=dict)

    def seconds(self, *, is_large: bool) -> int:
        """Return the maximum lifetime of a reservation."""
        return DAY_SECONDS * (1 if is_large else self.days)


def stricter(
    one: ReservationBound | None, other: ReservationBound | None
) -> ReservationBound | None:
    """Return the combination of two limits; None if there is none.

    Args:
        one: A bound.
        other: Another.
    """
    if one is None or other is None:
        return one or other
    limited = [
        (each.share, each.role) for each in (one, other) if each.share is not None
    ]
    share, role = min(limited, key=itemgetter(0), default=(None, ""))
    data_sets = {
        name: min(one.data_sets.get(name, part), part)
        for name, part in (*one.data_sets.items(), *other.data_sets.items())
    }
    return ReservationBound(share, min(one.days, other.days), role, data_sets)


class Declared(Struct, frozen=True):
    """The declarations of a policy, which everything else refers to.

    Attributes:
        name: Its name.
        vocabulary: The words that a release may use.
        attributes: Attributes by name, in file order.
        categories: Risk level of each category, in file order.
        label_marks: The positions of the labels.
    """

    name: str
    vocabulary: Vocabulary
    attributes: Mapping[str, Attribute]
    categories: Mapping[str, str]
    label_marks: Mapping[str, Mark | None]


class Policy(Declared, frozen=True):
    """A policy file, read and checked.

    Attributes:
        digest: SHA-256 of its contents; comments and layout do not count.
        text: The file's text, kept verbatim by the ledger.
        filter_name: The privacy filter of its (eps, delta) budgets.
        report_delta: The delta at which losses are shown when a budget has none.
        base_policies: Limits on everything released, in file order.
        extensions: Multiply the base policies, in file order.
        per_release: Limits on each release alone.
        guards: The conditions on descriptions.
        roles: The people with each role; None if the policy does not declare roles.
        keys: By person, the raw Ed25519 public keys, in hexadecimal, one of which must
            sign their approvals; other people need not sign.
        owners: By actor, usually a program, the people who answer for it: what it
            requests counts as requested by them, too.
        approvals: The approvals that releases need.
        activation: The approval needed for replacing this policy; None if there is
            none.
        rotation: The rotation of user groups; None if there is none.
        reservations: The limits on reservations; None if there are none.
        disclosed_invariants: Facts that are published outside differential privacy.
        allows_unmatched: Whether a mechanism that matches no rule with a limit is
            allowed.
        roles_mark: The position of the roles.
    """

    digest: str
    text: str
    filter_name: str
    report_delta: str | None
    base_policies: tuple[BasePolicy, ...]
    extensions: tuple[Extension, ...]
    per_release: tuple[BasePolicy, ...]
    guards: tuple[Guard, ...] = ()
    roles: Mapping[str, tuple[str, ...]] | None = None
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    owners: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    approvals: tuple[Approval, ...] = ()
    activation: Approval | None = None
    rotation: RotationRule | None = None
    reservations: ReservationBound | None = None
    disclosed_invariants: tuple[str, ...] = ()
    allows_unmatched: bool = False
    roles_mark: Mark | None = None
