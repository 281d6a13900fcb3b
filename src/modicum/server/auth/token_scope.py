"""The most that an API token may do now: whoever lost a role lost it in tokens, too.

What a token may do is written down when it is made. What its owner may do since then,
the settings tell, as far as they can: they name people and programs, and the groups
that there are. Who is in which group only the provider knows, and only at a sign-in.
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
    """What settings give, held against what tokens say.

    Attributes:
        groups: Grants by group.
        people: Grants by person.
        programs: Grants by program.
        all_people: Whether whoever is a person here is named, or in a group.
        all_programs: Whether whatever is a program here is named.
        only_way: Whether people can show nothing but tokens: nobody signs in.
    """

    groups: GrantsByName = field(default_factory=dict)
    people: GrantsByName = field(default_factory=dict)
    programs: GrantsByName = field(default_factory=dict)
    all_people: bool = False
    all_programs: bool = False
    only_way: bool = False

    def under(self, identity: Identity) -> Identity:
        """Return who is recognized by a token, with what they may do now at most.

        A person may by a token what the settings give them by name, or to some group:
        which groups they are in is not known here. A program may what the settings
        give it.
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
        """Return whether a person may do something by name, and not by groups only.

        What a group gives ends with a membership that nobody here hears of.
        """
        if not self.groups:
            return True
        own = within(grants, self.people.get(name, _NOBODY))
        return all(sets == own.get(role) for role, sets in grants.items() if sets)

    def _most(self, identity: Identity) -> Grants | None:
        """Return the most that somebody may do; None if the settings do not tell."""
        if identity.is_service:
            name = identity.name.removeprefix(PROGRAM_PREFIX)
            return self.programs.get(name, _NOBODY) if self.all_programs else None
        if not self.all_people:
            return None
        own = self.people.get(identity.name, _NOBODY)
        return together([own, *self.groups.values()])


def token_scope(settings: Settings) -> TokenScope:
    """Return what settings give.

    Where people sign in, or settings name some of them, whom they do not name is
    nobody; so with programs. Else tokens are all that is known.
    """
    oidc = settings.oidc
    return TokenScope(
        settings.grants,
        settings.people,
        settings.programs,
        all_people=oidc is not None or bool(settings.people or settings.grants),
        all_programs=bool(settings.programs or (oidc and oidc.programs)),
        only_way=oidc is None and not settings.is_local,
    )
