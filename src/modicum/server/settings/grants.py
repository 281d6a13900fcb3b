"""Reading the grants of groups, people and programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import structs

from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import ALL, Grants, refuse_joined
from modicum.core.confusables import confusable
from modicum.core.document import Kind, Node, Scalar
from modicum.core.errors import AccessError, Code, InputError
from modicum.core.reader import (
    Fields,
    Problems,
    choice,
    fail,
    items,
    line,
    name,
    release_id,
)
from modicum.policy.declarations.roles import person_key
from modicum.server.lookalikes import lookalike_problem
from modicum.server.settings.model import GrantsByName

_EXAMPLE: Final = "write  analyst: [visits]  or  analyst: all"


def read_grants(
    node: Node | None, section: str, one: str, named: Iterable[str] = ()
) -> GrantsByName:
    """Return the grants of each name in a section.

    Args:
        node: The section; None if there is none.
        section: Its key.
        one: What it names, as `a person`.
        named: Names of the same kind in other sections.
    """
    if node is None:
        return {}
    found = Problems()
    by_name: dict[str, Grants] = {}
    for key, value in Fields(node, f"`{section}`").rest():
        with found.guard():
            who = _name(key, one)
            if who in by_name:
                raise fail(Code.DUPLICATE_NAME, f"`{key.text}` is given twice", key)
            if one != "a group":
                _refuse_lookalike(key, who, (*named, *by_name))
            by_name[who] = _grants(key, value)
    found.raise_any()
    return by_name


def _refuse_lookalike(key: Scalar, name: str, others: Iterable[str]) -> None:
    other = next((one for one in others if confusable(one, name)), None)
    if other is not None:
        problem = lookalike_problem(name, other, "which is in the settings, too")
        raise InputError(structs.replace(problem, mark=key.mark))


def _name(key: Scalar, one: str) -> str:
    key = structs.replace(key, kind=Kind.TEXT)  # Providers number groups, too.
    if one == "a group":
        return line(key, one)
    return person_key(release_id(key, one))


def _grants(key: Scalar, node: Node) -> Grants:
    found = Problems()
    grants: dict[Role, frozenset[str]] = {}
    for role_key, value in Fields(node, f"`{key.text}`", help=_EXAMPLE).rest():
        with found.guard():
            known = [role.value for role in Role]
            role = Role(choice(role_key, "role", known, Code.UNKNOWN_CHOICE))
            grants[role] = _data_sets(role, value)
    found.raise_any()
    try:
        refuse_joined(key.text, grants)
    except AccessError as error:
        raise InputError(
            *(structs.replace(problem, mark=key.mark) for problem in error.problems)
        ) from error
    return grants


def _data_sets(role: Role, node: Node) -> frozenset[str]:
    if isinstance(node, Scalar):
        if node.text != "all" or node.kind is not Kind.TEXT:
            raise fail(
                Code.WRONG_TYPE,
                f"`{role.value}` needs a list of data sets, or `all`",
                node,
                help=_EXAMPLE,
            )
        return frozenset({ALL})
    sets = frozenset(name(one, "a data set") for one in items(node, f"`{role.value}`"))
    if not sets:
        raise fail(Code.MISSING_KEY, f"`{role.value}` has no data set", node)
    return sets
