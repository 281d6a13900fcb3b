"""Reading whose approvals must be signed, and with which keys."""

from __future__ import annotations

import re
from collections.abc import Mapping

from modicum.core.document import Items, Node, Scalar
from modicum.core.errors import Code
from modicum.core.reader import Fields, Problems, fail, items, nearest
from modicum.policy.declarations.roles import Roles

_KEY = re.compile(r"[0-9a-f]{64}", re.ASCII)
_HELP = "modicum ledger key show FILE  prints it"


def read_keys(node: Node | None, roles: Roles) -> Mapping[str, tuple[str, ...]]:
    """Return the public keys that people sign with, by person.

    Several people may have one key: that of a service that knows who they are.

    Args:
        node: The `keys` block; None if there is none.
        roles: Who has which role; None if the policy does not say.

    Raises:
        InputError: With every mistake found. Whoever is in no role is one: a name that
            is misspelt would let its owner approve without a signature.
    """
    if node is None:
        return {}
    found = Problems()
    keys: dict[str, tuple[str, ...]] = {}
    people = {person for each in (roles or {}).values() for person in each}
    for key, value in Fields(node, "`keys`").rest():
        with found.guard():
            _refuse_unknown(key, people)
            keys[key.text] = _keys(key.text, value)
    found.raise_any()
    return keys


def _refuse_unknown(key: Scalar, people: set[str]) -> None:
    if key.text not in people:
        raise fail(
            Code.UNKNOWN_CHOICE,
            f"`keys` names `{key.text[:200]}`, who has no role",
            key,
            label=nearest(key.text, people),
            help="write the name as it stands in `roles`",
        )


def _keys(person: str, node: Node) -> tuple[str, ...]:
    found: dict[str, None] = {}
    listed = (
        items(node, f"the keys of `{person}`") if isinstance(node, Items) else [node]
    )
    for item in listed:
        one = item.text if isinstance(item, Scalar) else ""
        if not _KEY.fullmatch(one):
            raise fail(
                Code.WRONG_TYPE,
                f"a key of `{person}` must be 64 lower-case hexadecimal digits",
                item,
                notes=("it is the raw Ed25519 public key",),
                help=_HELP,
            )
        if one in found:
            raise fail(Code.DUPLICATE_NAME, f"a key of `{person}` stands twice", item)
        found[one] = None
    if not found:
        raise fail(
            Code.MISSING_KEY,
            f"`{person}` needs at least one key",
            node,
            help="without one, leave the name out: they need not sign then",
        )
    return tuple(found)
