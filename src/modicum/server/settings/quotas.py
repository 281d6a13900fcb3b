"""What may be reserved and not started, by roles and by data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from modicum.api.permissions.actions import ALLOWED, Action, Role
from modicum.api.permissions.identity import Identity
from modicum.core.document import Node
from modicum.core.errors import Code
from modicum.core.reader import Fields, Problems, choice
from modicum.ledger.log.data_sets import DataSets
from modicum.policy.declarations.governance import read_bound, read_bounds
from modicum.policy.model import ReservationBound, stricter

#: The roles that reserve something.
SUBMITTING: Final = tuple(
    role.value for role in Role if Action.SUBMIT_RELEASE in ALLOWED[role]
)


@dataclass(frozen=True, slots=True)
class Quotas:
    """The limits on reservations that are not started.

    Attributes:
        everybody: The limit on each identity, and those on data sets.
        roles: The further limit on each identity with a role.
    """

    everybody: ReservationBound
    roles: Mapping[Role, ReservationBound] = field(default_factory=dict)

    def of(self, who: Identity, sets: DataSets) -> ReservationBound | None:
        """Return the limits for an identity; those on data sets if it commits plans.

        Args:
            who: The identity.
            sets: The data sets of the release.
        """
        if any(one not in self.roles for one in who.roles_for(Action.COMMIT_PLAN)):
            of_all = self.everybody.data_sets
            return ReservationBound(data_sets=of_all) if of_all else None
        bound: ReservationBound | None = self.everybody
        for data_set in sets if self.roles else ():
            roles = who.roles_for(Action.SUBMIT_RELEASE, data_set)
            bound = stricter(bound, self._widest([*roles]))
        return bound

    def _widest(self, roles: Sequence[Role]) -> ReservationBound | None:
        """Return the limit of several roles: a token with fewer has no more."""
        if not roles or not all(one in self.roles for one in roles):
            return None
        bounds = [self.roles[one] for one in roles]
        widest = max(bounds, key=lambda one: 1 if one.share is None else one.share)
        return replace(widest, days=max(one.days for one in bounds))


def read_quotas(node: Node, usual: Quotas) -> Quotas:
    """Return the limits of a settings file.

    Args:
        node: The `reservations` block.
        usual: The values of omitted keys.

    Raises:
        InputError: With every mistake found.
    """
    found, roles = Problems(), dict[Role, ReservationBound]()
    fields = Fields(node, "`reservations`")
    given = fields.take_optional("roles")
    rows = Fields(given, "`roles`").rest() if given is not None else ()
    for key, value in rows:
        with found.guard():
            role = Role(choice(key, "role", SUBMITTING, Code.UNKNOWN_CHOICE))
            bound = read_bound(Fields(value, f"`{role.value}`"))
            roles[role] = replace(bound, role=role.value)
    everybody = usual.everybody
    with found.guard():
        everybody = read_bounds(fields, everybody)
    found.raise_any()
    return Quotas(everybody, roles)
