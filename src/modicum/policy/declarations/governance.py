"""Reading what is checked beside budgets: guards, approvals, invariants."""

from __future__ import annotations

from modicum.core.document import Node
from modicum.core.errors import Code, Mark
from modicum.core.reading import (
    Fields,
    Problems,
    boolean,
    count,
    fail,
    items,
    line,
    name,
    optional_items,
    place,
)
from modicum.policy.cel.lowering import parse_predicate
from modicum.policy.model import Approval, Guard
from modicum.policy.predicates import Constant, Predicate, Scope, atoms
from modicum.release import Vocabulary

#: More people than this are never needed at once.
APPROVERS_MAX = 100


def read_guards(node: Node | None, vocabulary: Vocabulary) -> tuple[Guard, ...]:
    """Return the guards of a list.

    Raises:
        InputError: With every mistake found.
    """
    found = Problems()
    guards: dict[str, Guard] = {}
    for item in optional_items(node, "`guards`"):
        with found.guard():
            fields = Fields(item, "a guard")
            name_node = fields.take("name")
            own_name = name(name_node, "the guard's name")
            unless = parse_predicate(fields.take("unless"), "`unless`", vocabulary)
            message = line(fields.take("message"), "`message`")
            fields.finish()
            _refuse_second(guards.get(own_name), name_node)
            guards[own_name] = Guard(own_name, unless, message, item.mark)
    found.raise_any()
    return tuple(guards.values())


def _refuse_second(first: Guard | None, node: Node) -> None:
    if first is not None:
        raise fail(
            Code.DUPLICATE_NAME,
            f"two guards are named `{first.name}`",
            node,
            notes=(f"first at {place(first.mark)}",),
        )


def read_approvals(node: Node | None, vocabulary: Vocabulary) -> tuple[Approval, ...]:
    """Return the approvals of a list.

    Raises:
        InputError: With every mistake found.
    """
    found = Problems()
    approvals: list[Approval] = []
    for item in optional_items(node, "`approvals`"):
        with found.guard():
            approvals.append(_approval(item, vocabulary))
    found.raise_any()
    return tuple(approvals)


def _approval(node: Node, vocabulary: Vocabulary) -> Approval:
    fields = Fields(node, "an approval")
    when_node = fields.take("when")
    when = parse_predicate(when_node, "`when`", vocabulary)
    if not _looks_only_at_the_release(when):
        raise fail(
            Code.CEL_SUBSET,
            "an approval may look only at the release, not at its mechanisms",
            when_node,
            notes=("people approve a release as a whole",),
            help="write release.audience, release.purpose and the like",
        )
    need = count(fields.take("need"), "`need`", at_least=1, at_most=APPROVERS_MAX)
    roles = _roles(fields.take("from"))
    own = fields.take_optional("requester_may_approve")
    allowed = own is not None and boolean(own, "`requester_may_approve`")
    fields.finish()
    return Approval(when, need, roles, allowed, node.mark)


def _looks_only_at_the_release(predicate: Predicate) -> bool:
    return all(
        isinstance(atom, Constant) or getattr(atom, "scope", None) is Scope.RELEASE
        for atom in atoms(predicate)
    )


def _roles(node: Node) -> tuple[str, ...]:
    roles: dict[str, Mark | None] = {}
    for item in items(node, "`from`"):
        role = name(item, "a role")
        if role in roles:
            raise fail(Code.DUPLICATE_NAME, f"role `{role}` stands twice", item)
        roles[role] = item.mark
    if not roles:
        raise fail(Code.MISSING_KEY, "an approval needs at least one role", node)
    return tuple(roles)


def read_invariants(node: Node | None) -> tuple[str, ...]:
    """Return the facts that are published outside differential privacy.

    Raises:
        InputError: If it is not a list of different names.
    """
    found: dict[str, Node] = {}
    for item in optional_items(node, "`disclosed_invariants`"):
        invariant = name(item, "an invariant")
        if invariant in found:
            raise fail(
                Code.DUPLICATE_NAME, f"invariant `{invariant}` stands twice", item
            )
        found[invariant] = item
    return tuple(found)
