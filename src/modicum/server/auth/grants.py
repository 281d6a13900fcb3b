"""The grants of people, programs and their tokens, by the settings.

The settings name people, programs and groups. Group membership is known only to the
provider, and only at sign-in. A token never exceeds its owner's current grants, as far
as they follow from the settings.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from modicum.api.permissions.identity import Grants, Identity, together, within
from modicum.server.auth.names import PROGRAM_PREFIX
from modicum.server.auth.problems import forbidden
from modicum.server.settings.model import GrantsByName, Settings

#: Groups beyond these are not looked at, and so give nothing.
GROUPS_MAX = 1000
_NOBODY: Grants = {}


@dataclass(frozen=True, slots=True)
class GrantTable:
    """The grants of the settings.

    Attributes:
        groups: Grants by group.
        people: Grants by person.
        programs: Grants by program.
        all_people: Whether every person must be named, or in a group.
        all_programs: Whether every program must be named.
        only_way: Whether sign-in is not configured, so that people have only tokens.
    """

    groups: GrantsByName = field(default_factory=dict)
    people: GrantsByName = field(default_factory=dict)
    programs: GrantsByName = field(default_factory=dict)
    all_people: bool = False
    all_programs: bool = False
    only_way: bool = False

    @property
    def names(self) -> frozenset[str]:
        """The people and programs that the settings name."""
        programs = (f"{PROGRAM_PREFIX}{one}" for one in self.programs)
        return frozenset((*self.people, *programs))

    def person(self, name: str, groups: Iterable[str], via: str) -> Identity:
        """Return a person with all that they and their groups may do."""
        named = tuple(sorted({*groups} & {*self.groups}))
        given = [self.people.get(name, _NOBODY), *(self.groups[one] for one in named)]
        return _with_roles(Identity(name, together(given), via=via, groups=named))

    def program(self, name: str, via: str) -> Identity:
        """Return the identity of a program with its grants."""
        grants = self.programs.get(name.removeprefix(PROGRAM_PREFIX), _NOBODY)
        return _with_roles(Identity(name, grants, is_service=True, via=via))

    def under(self, identity: Identity) -> Identity:
        """Return the identity of a token, with at most its owner's current grants.

        A person's token may have what the settings grant by name, or to any group:
        which groups the person is in is unknown here. A program's token may have what
        the settings grant it.
        """
        most = self._most(identity)
        grants = identity.grants if most is None else within(identity.grants, most)
        return _with_roles(
            replace(identity, grants=grants, only_proof=self.only_way),
            "no longer has a role here",
        )

    def is_for_good(self, name: str, grants: Grants) -> bool:
        """Return whether grants come from a person's name, and not only from groups.

        A grant by group ends with a membership, which is not reported here.
        """
        if not self.groups:
            return True
        own = within(grants, self.people.get(name, _NOBODY))
        return all(sets == own.get(role) for role, sets in grants.items() if sets)

    def _most(self, identity: Identity) -> Grants | None:
        """Return the maximum grants of an identity; None without a limit."""
        if identity.is_service:
            name = identity.name.removeprefix(PROGRAM_PREFIX)
            return self.programs.get(name, _NOBODY) if self.all_programs else None
        if not self.all_people:
            return None
        own = self.people.get(identity.name, _NOBODY)
        return together([own, *self.groups.values()])


class CurrentGrants:
    """The grants in force: those of the settings as they were last read.

    Attributes:
        table: The grants. Another table replaces them for all requests that follow.
    """

    def __init__(self, table: GrantTable) -> None:
        self.table = table

    def of_session(self, identity: Identity) -> Identity:
        """Return who signed in, with what they and their groups may do now."""
        return self.table.person(identity.name, identity.groups, identity.via)


def grant_table(settings: Settings) -> GrantTable:
    """Return the grants of settings.

    With sign-in, or if the settings name some people, unnamed people have no access;
    likewise programs. Otherwise only tokens define identities.
    """
    oidc = settings.oidc
    people = {**settings.people, **settings.local_people}
    return GrantTable(
        settings.grants,
        people,
        settings.programs,
        all_people=oidc is not None or bool(people or settings.grants),
        all_programs=bool(settings.programs or (oidc and oidc.programs)),
        only_way=oidc is None and not settings.is_local,
    )


def groups_in(claim: object) -> tuple[str, ...]:
    """Return the groups that a claim lists; none if it is no list of names."""
    if isinstance(claim, str):
        return (claim,)
    if not isinstance(claim, list):
        return ()
    return tuple(one for one in claim[:GROUPS_MAX] if isinstance(one, str))


def _with_roles(identity: Identity, problem: str = "has no role here") -> Identity:
    if not identity.grants:
        raise forbidden(
            f"`{identity.name}` is authenticated, and {problem}",
            "ask the operator of the server to add one in its settings",
        )
    return identity
