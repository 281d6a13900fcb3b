"""An authenticated actor and their permissions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from modicum.api.permissions.actions import (
    ALLOWED,
    APART,
    IN_WORDS,
    PEOPLE_ONLY,
    REACH,
    Action,
    Reach,
    Role,
)
from modicum.core.canonical import encode
from modicum.core.errors import AccessError, Code, Problem

#: Covers every data set, including future ones.
ALL: Final = "*"

#: By role, the data sets that it covers.
Grants: TypeAlias = Mapping[Role, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Identity:
    """An authenticated actor, passed explicitly as an argument.

    Attributes:
        name: The actor recorded in the ledger.
        grants: For each role that they have, the names of data sets, or `*` for all.
        is_service: Whether it is a program that acts by itself.
        via: The method of authentication, as text without secrets.
        by_token: Whether authenticated by an API token: such an identity creates no
            tokens, and does nothing that requires a person.
        only_proof: Whether sign-in is not configured, so that a token is the only way
            to authenticate. It then counts as the person.
        groups: The groups of a person at sign-in, as far as the settings name them.
    """

    name: str
    grants: Grants
    is_service: bool = False
    via: str = ""
    by_token: bool = False
    only_proof: bool = False
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        refuse_joined(self.name, self.grants)
        kept = {role: frozenset(sets) for role, sets in self.grants.items() if sets}
        object.__setattr__(self, "grants", MappingProxyType(kept))

    @property
    def is_present(self) -> bool:
        """Whether it is a person, not a service account or a token."""
        return not self.is_service and (self.only_proof or not self.by_token)

    def may(self, action: Action, data_set: str | None = None) -> bool:
        """Return whether they may do something."""
        if action in PEOPLE_ONLY and not self.is_present:
            return False
        return next(self.roles_for(action, data_set), None) is not None

    def roles_for(self, action: Action, data_set: str | None = None) -> Iterator[Role]:
        """Yield their roles that allow something."""
        for role, sets in self.grants.items():
            if action in ALLOWED[role] and self._reaches(action, data_set, sets):
                yield role

    def must(self, action: Action, data_set: str | None = None) -> None:
        """Refuse an action that is not allowed."""
        if not self.may(action, data_set):
            raise _forbidden(self, action, data_set)

    def must_some(self, *actions: Action) -> None:
        """Refuse an identity that may do none of some actions on any data set."""
        for sets in self.grants.values():
            for one in sets:
                if any(self.may(action, one) for action in actions):
                    return
        self.must(actions[0])

    @staticmethod
    def _reaches(action: Action, data_set: str | None, sets: frozenset[str]) -> bool:
        match REACH[action]:
            case Reach.ANY:
                return True
            case Reach.LEDGER:
                return ALL in sets
            case Reach.DATA_SET:
                return ALL in sets or data_set in sets


def within(grants: Grants, most: Grants) -> dict[Role, frozenset[str]]:
    """Return the part of some grants that other grants allow.

    Examples:
        >>> within({Role.ANALYST: frozenset({"hr", "bank"})},
        ...        {Role.ANALYST: frozenset({"hr"}), Role.ADMIN: frozenset({"*"})})
        {<Role.ANALYST: 'analyst'>: frozenset({'hr'})}
    """
    both = {role: _common(sets, most.get(role)) for role, sets in grants.items()}
    return {role: sets for role, sets in both.items() if sets}


def _common(sets: frozenset[str], most: frozenset[str] | None) -> frozenset[str]:
    """Return the data sets that two grants of a role have in common."""
    if most is None or ALL in most:
        return frozenset() if most is None else sets
    return most if ALL in sets else sets & most


def together(given: Iterable[Grants]) -> dict[Role, frozenset[str]]:
    """Return all that any of some grants allows."""
    union: dict[Role, frozenset[str]] = {}
    for grants in given:
        for role, sets in grants.items():
            union[role] = union.get(role, frozenset()) | sets
    return union


def refuse_joined(name: str, roles: Iterable[Role]) -> None:
    """Refuse roles that exclude each other."""
    held = {*roles}
    for one, other in APART:
        if one in held and other in held:
            raise AccessError(
                Problem(
                    Code.DUTIES_JOINED,
                    f"`{name}` is {one.value} and {other.value}: these roles must be"
                    " separate",
                    notes=(
                        "an auditor changes nothing, and an admin decides nothing"
                        " about budgets",
                    ),
                    help="assign one of the roles to somebody else",
                )
            )


def _forbidden(who: Identity, action: Action, data_set: str | None) -> AccessError:
    about = f" for the data set `{data_set}`" if data_set is not None else ""
    if action in PEOPLE_ONLY and not who.is_present:
        help_ = "only a person may do this, not a program"
        help_ += "" if who.is_service else " with their token: sign in"
    else:
        roles = ", ".join(role.value for role in Role if action in ALLOWED[role])
        wide = REACH[action] is Reach.LEDGER or data_set is None
        over = ", for all data sets" if wide and REACH[action] is not Reach.ANY else ""
        help_ = f"it needs one of the roles {roles}{over}"
    return AccessError(
        Problem(
            Code.FORBIDDEN,
            f"`{who.name}` is not authorized to {IN_WORDS[action]}{about}",
            help=help_,
        )
    )


def grants_text(grants: Grants) -> str:
    """Return grants as canonical JSON: for each role, the data sets in order.

    Examples:
        >>> grants_text({Role.ANALYST: frozenset({"hr", "bank"})})
        '{"analyst":["bank","hr"]}'
    """
    return _written({role.value: sorted(sets) for role, sets in grants.items() if sets})


def grants_of(text: str) -> dict[Role, frozenset[str]]:
    """Parse stored grants.

    Examples:
        >>> grants_of('{"auditor":["*"]}')
        {<Role.AUDITOR: 'auditor'>: frozenset({'*'})}
    """
    return _grants(json.loads(text))


def identity_text(identity: Identity) -> str:
    """Return an identity as canonical JSON."""
    return _written(
        {
            "name": identity.name,
            "grants": {
                role.value: sorted(own) for role, own in identity.grants.items()
            },
            "is_service": identity.is_service,
            "via": identity.via,
            "groups": sorted(identity.groups),
        }
    )


def identity_of(text: str) -> Identity:
    """Parse a stored identity."""
    match json.loads(text):
        case {
            "name": str(name),
            "grants": dict(grants),
            "is_service": bool(is_service),
            "via": str(via),
            **rest,
        }:
            groups = tuple(sorted(_names(rest.get("groups", []))))
            return Identity(name, _grants(grants), is_service, via, groups=groups)
        case _:
            raise ValueError("it is not an identity")


def _grants(found: Any) -> dict[Role, frozenset[str]]:
    """Return grants from JSON."""
    if not isinstance(found, dict):
        raise ValueError("they are not grants")  # noqa: TRY004 - it is what was stored
    return {Role(role): _names(sets) for role, sets in found.items()}


def _names(found: Any) -> frozenset[str]:
    """Return names from JSON."""
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ValueError("they are not names")
    return frozenset(found)


def _written(value: Any) -> str:
    return encode(value).decode("utf-8")
