"""The grants of identities in the settings."""

from __future__ import annotations

from collections.abc import Iterable

from modicum.api.permissions.identity import Identity, together
from modicum.server.auth.names import PROGRAM_PREFIX
from modicum.server.auth.problems import forbidden
from modicum.server.settings.model import GrantsByName

#: Groups beyond these are not looked at, and so give nothing.
GROUPS_MAX = 1000


class GrantTable:
    """The grants of groups, people and programs.

    Args:
        groups: Grants by group.
        people: Grants by person.
        programs: Grants by program.
    """

    def __init__(
        self, groups: GrantsByName, people: GrantsByName, programs: GrantsByName
    ) -> None:
        self._groups = groups
        self._people = people
        self._programs = programs

    def person(self, name: str, groups: Iterable[str], via: str) -> Identity:
        """Return a person with all that they and their groups may do."""
        given = [self._people[name]] if name in self._people else []
        given += [self._groups[one] for one in groups if one in self._groups]
        return _with_roles(Identity(name, together(given), via=via))

    def program(self, name: str, via: str) -> Identity:
        """Return the identity of a program with its grants."""
        grants = self._programs.get(name.removeprefix(PROGRAM_PREFIX), {})
        return _with_roles(Identity(name, grants, is_service=True, via=via))


def groups_in(claim: object) -> tuple[str, ...]:
    """Return the groups that a claim lists; none if it is no list of names."""
    if isinstance(claim, str):
        return (claim,)
    if not isinstance(claim, list):
        return ()
    return tuple(one for one in claim[:GROUPS_MAX] if isinstance(one, str))


def _with_roles(identity: Identity) -> Identity:
    if not identity.grants:
        raise forbidden(
            f"`{identity.name}` is authenticated, and has no role here",
            "ask the operator of the server to add one in its settings",
        )
    return identity
