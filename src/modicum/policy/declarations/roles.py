"""Reading roles, approvals of releases, and of the next policy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

from modicum.core.document import Items, Node, Scalar, flow_text
from modicum.core.errors import Code, Mark
from modicum.core.reader import (
    Fields,
    Problems,
    boolean,
    count,
    fail,
    items,
    name,
    nearest,
    optional_items,
    release_id,
)
from modicum.policy.cel.compiler import parse_predicate
from modicum.policy.model import Approval
from modicum.policy.predicates import Constant, Predicate, Scope, atoms
from modicum.release import Vocabulary

#: Maximum number of required approvers.
APPROVERS_MAX = 100

#: The people with each role; None if the policy does not declare roles.
Roles: TypeAlias = "Mapping[str, tuple[str, ...]] | None"


@lru_cache(maxsize=1024)  # The ledger calls it for each decision.
def person_key(name: str) -> str:
    """Return the normalized name of a person.

    Case and blanks are ignored wherever people are compared.

    Args:
        name: The name, in a policy or given by an actor.
    """
    return name.strip().casefold()


def read_roles(node: Node | None) -> Roles:
    """Return the people with each role.

    Args:
        node: The `roles` block; None if there is none.

    Raises:
        InputError: With every mistake found.
    """
    if node is None:
        return None
    found = Problems()
    roles: dict[str, tuple[str, ...]] = {}
    for key, value in Fields(node, "`roles`").rest():
        with found.guard():
            role = name(key, "a role")
            roles[role] = _people(f"role `{role}`", value)
    found.raise_any()
    return roles


def _people(called: str, node: Node) -> tuple[str, ...]:
    if not isinstance(node, Items):
        written = flow_text(node)
        raise fail(
            Code.WRONG_TYPE,
            f"{called} must be a list of people",
            node,
            help=f"write  [{written}]  instead of  {written}",
        )
    people: dict[str, None] = {}
    for item in node.items:
        one = release_id(item, f"a person of {called}")  # Addresses fit, too.
        if one in people:
            raise fail(Code.DUPLICATE_NAME, f"`{one}` is given twice in {called}", item)
        people[one] = None
    if not people:
        raise fail(
            Code.MISSING_KEY,
            f"{called} needs at least one person",
            node,
            help="name one, or remove it",
        )
    return tuple(people)


def read_approvals(
    node: Node | None, vocabulary: Vocabulary, roles: Roles
) -> tuple[Approval, ...]:
    """Return the approvals of a list.

    Args:
        node: The `approvals` block; None if there is none.
        vocabulary: The words that its predicates may use.
        roles: The people with each role; None if the policy does not declare roles.

    Raises:
        InputError: With every mistake found.
    """
    found = Problems()
    approvals: list[Approval] = []
    for item in optional_items(node, "`approvals`"):
        with found.guard():
            approvals.append(_approval(item, vocabulary, roles))
    found.raise_any()
    return tuple(approvals)


def read_activation(node: Node | None, roles: Roles) -> Approval | None:
    """Return the approval needed for replacing this policy.

    Args:
        node: The `activation` block; None if there is none.
        roles: The people with each role; None if the policy does not declare roles.

    Raises:
        InputError: With every mistake found.
    """
    if node is None:
        return None
    return _people_needed(Fields(node, "`activation`"), Constant(value=True), roles)


def _approval(node: Node, vocabulary: Vocabulary, roles: Roles) -> Approval:
    fields = Fields(node, "an approval")
    when_node = fields.take("when")
    when = parse_predicate(when_node, "`when`", vocabulary)
    if not _looks_only_at_the_release(when):
        raise fail(
            Code.CEL_SUBSET,
            "an approval may use the release only, not its mechanisms",
            when_node,
            notes=("people approve a release as a whole",),
            help="write release.audience, release.purpose and the like",
        )
    return _people_needed(fields, when, roles)


def _people_needed(fields: Fields, when: Predicate, roles: Roles) -> Approval:
    """Take how many people of which roles must agree."""
    need_node = fields.take("need")
    need = count(need_node, "`need`", at_least=1, at_most=APPROVERS_MAX)
    wanted = read_role_names(
        fields.take("from"), "`from`", roles, "an approval needs at least one role"
    )
    own = fields.take_optional("requester_may_approve")
    allowed = own is not None and boolean(own, "`requester_may_approve`")
    fields.finish()
    if roles is not None:
        people = {one for role in wanted for one in roles[role]}
        if need > len(people):
            raise fail(
                Code.OUT_OF_RANGE,
                f"{need} people must approve, and only {len(people)} can",
                need_node,
                notes=(f"in {' and '.join(wanted)}: {', '.join(sorted(people))}",),
                help="lower `need`, or add people to `roles`",
            )
    return Approval(when, need, wanted, allowed, fields.node.mark)


def _looks_only_at_the_release(predicate: Predicate) -> bool:
    return all(
        isinstance(atom, Constant) or getattr(atom, "scope", None) is Scope.RELEASE
        for atom in atoms(predicate)
    )


def read_role_names(
    node: Node, what: str, roles: Roles, if_none: str
) -> tuple[str, ...]:
    """Return the roles in a list.

    Args:
        node: The list.
        what: The name of the list.
        roles: The people with each role; None if the policy does not declare roles.
        if_none: The error message for an empty list.

    Raises:
        InputError: At the first unknown or repeated one; if there is none.
    """
    wanted: dict[str, Mark | None] = {}
    for item in items(node, what):
        role = name(item, "a role")
        if role in wanted:
            raise fail(Code.DUPLICATE_NAME, f"role `{role}` is given twice", item)
        if roles is not None and role not in roles:
            raise fail(
                Code.UNKNOWN_CHOICE,
                f'unknown role "{role}"',
                item,
                label=nearest(role, roles),
                help="known: " + (", ".join(list(roles)[:20]) or "none"),
            )
        wanted[role] = item.mark
    if not wanted:
        raise fail(Code.MISSING_KEY, if_none, node)
    return tuple(wanted)


_KEY = re.compile(r"[0-9a-f]{64}", re.ASCII)
_HELP = "modicum ledger key show FILE  prints it"


def read_keys(node: Node | None, roles: Roles) -> Mapping[str, tuple[str, ...]]:
    """Return the public keys that people sign with, by person.

    Several people may have one key: that of a service that knows who they are.

    Args:
        node: The `keys` block; None if there is none.
        roles: The people with each role; None if the policy does not declare roles.

    Raises:
        InputError: With every mistake found. A person without a role is one: a misspelt
            name would let its owner approve without a signature.
    """
    if node is None:
        return {}
    found = Problems()
    keys: dict[str, tuple[str, ...]] = {}
    people = {person for each in (roles or {}).values() for person in each}
    for key, value in Fields(node, "`keys`").rest():
        with found.guard():
            _refuse_unknown(key, people, "keys")
            keys[key.text] = _keys(key.text, value)
    found.raise_any()
    return keys


def read_owners(node: Node | None, roles: Roles) -> Mapping[str, tuple[str, ...]]:
    """Return the people who answer for each program, or for another actor.

    Args:
        node: The `owners` block; None if there is none.
        roles: The people with each role; None if the policy does not declare roles.

    Raises:
        InputError: With every mistake found. An owner without a role is one: a misspelt
            name would let the owner approve what the program requests. So is a role of
            what is owned: its owner could approve in its name.
    """
    if node is None:
        return {}
    found = Problems()
    owners: dict[str, tuple[str, ...]] = {}
    people = {person for each in (roles or {}).values() for person in each}
    approving = {person_key(person) for person in people}
    for key, value in Fields(node, "`owners`").rest():
        with found.guard():
            actor = release_id(key, "an actor")
            if person_key(actor) in approving:
                raise fail(
                    Code.KEYS_CONFLICT,
                    f"`{actor}` has a role, and cannot have owners",
                    key,
                    notes=("an owner could approve in its name",),
                    help="take it out of `roles`, or out of `owners`",
                )
            owners[actor] = _people(f"the owners of `{actor}`", value)
            for item in items(value, "the owners"):
                _refuse_unknown(item, people, "owners")
    found.raise_any()
    return owners


def _refuse_unknown(key: Node, people: set[str], section: str) -> None:
    if isinstance(key, Scalar) and key.text not in people:
        raise fail(
            Code.UNKNOWN_CHOICE,
            f"`{section}` names `{key.text[:200]}`, who has no role",
            key,
            label=nearest(key.text, people),
            help="use the spelling in `roles`",
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
            raise fail(Code.DUPLICATE_NAME, f"a key of `{person}` is given twice", item)
        found[one] = None
    if not found:
        raise fail(
            Code.MISSING_KEY,
            f"`{person}` needs at least one key",
            node,
            help="without keys, remove the name: no signature is then required",
        )
    return tuple(found)
