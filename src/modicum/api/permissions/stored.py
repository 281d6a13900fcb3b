"""Identities and grants as text, for what is stored beside the log."""

from __future__ import annotations

import json
from typing import Any

from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import Grants, Identity
from modicum.core.canonical import encode


def grants_text(grants: Grants) -> str:
    """Return grants as canonical JSON: for each role, the data sets in order.

    Examples:
        >>> grants_text({Role.ANALYST: frozenset({"hr", "bank"})})
        '{"analyst":["bank","hr"]}'
    """
    return _written({role.value: sorted(sets) for role, sets in grants.items() if sets})


def grants_of(text: str) -> dict[Role, frozenset[str]]:
    """Return the grants that a text stands for.

    Raises:
        ValueError: If it stands for none: somebody else wrote it.

    Examples:
        >>> grants_of('{"auditor":["*"]}')
        {<Role.AUDITOR: 'auditor'>: frozenset({'*'})}
    """
    return _grants(json.loads(text))


def identity_text(identity: Identity) -> str:
    """Return an identity as canonical JSON.

    Args:
        identity: The identity.
    """
    return _written(
        {
            "name": identity.name,
            "grants": {
                role.value: sorted(own) for role, own in identity.grants.items()
            },
            "is_service": identity.is_service,
            "via": identity.via,
        }
    )


def identity_of(text: str) -> Identity:
    """Return the identity that a text stands for.

    Raises:
        ValueError: If it stands for none.
        AccessError: If its roles must stay apart.
    """
    match json.loads(text):
        case {
            "name": str(name),
            "grants": dict(grants),
            "is_service": bool(is_service),
            "via": str(via),
        }:
            return Identity(name, _grants(grants), is_service, via)
        case _:
            raise ValueError("it is no identity")


def _grants(found: Any) -> dict[Role, frozenset[str]]:
    """Return grants from JSON.

    Raises:
        ValueError: If they are none.
    """
    if not isinstance(found, dict):
        raise ValueError("they are no grants")  # noqa: TRY004 - it is what was stored
    return {Role(role): _data_sets(sets) for role, sets in found.items()}


def _data_sets(found: Any) -> frozenset[str]:
    """Return data sets from JSON.

    Raises:
        ValueError: If they are none.
    """
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ValueError("they are no data sets")
    return frozenset(found)


def _written(value: Any) -> str:
    return encode(value).decode("utf-8")
