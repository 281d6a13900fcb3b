"""Token scope: tokens never exceed their owner's current grants.

The grants of a token are fixed when it is created. Its owner's present grants follow
from the settings, as far as possible: they name people and programs, and the existing
groups. Group membership is known only to the provider, and only at sign-in.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from modicum.api.permissions.identity import Grants, Identity, together, within
from modicum.server.auth.names import PROGRAM_PREFIX
from modicum.server.auth.problems import forbidden
from modicum.server.settings.model import GrantsByName, Settings

_NOBODY: Grants = {}


@dataclass(frozen=True, slots=True)
class TokenScope:
    """The grants of the settings, as limits of tokens.

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

    def under(self, identity: Identity) -> Identity:
        """Return the identity of a token, with at most its owner's current grants.

        A person's token may have what the settings grant by name, or to any group:
        which groups the person is in is unknown here. A program's token may have what
        the settings grant it.
        """
        most = self._most(identity)
        grants = identity.grants if most is None else within(identity.grants, most)
        if not any(grants.values()):
            raise forbidden(
                f"`{identity.name}` is authenticated, and no longer has a role here",
                "ask the operator of the server to add one in its settings",
            )
        return replace(identity, grants=grants, only_proof=self.only_way)

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


def token_scope(settings: Settings) -> TokenScope:
    """Return the token scope of settings.

    With sign-in, or if the settings name some people, unnamed people have no access;
    likewise programs. Otherwise only tokens define identities.
    """
    oidc = settings.oidc
    people = {**settings.people, **settings.local_people}
    return TokenScope(
        settings.grants,
        people,
        settings.programs,
        all_people=oidc is not None or bool(people or settings.grants),
        all_programs=bool(settings.programs or (oidc and oidc.programs)),
        only_way=oidc is None and not settings.is_local,
    )
