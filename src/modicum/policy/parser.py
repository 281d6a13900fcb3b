"""From a marked tree to a policy: every key known, every claim checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from modicum.core.canonical import digest
from modicum.core.document import Kind, Node, Scalar
from modicum.core.errors import Code, InputError, Mark
from modicum.core.rationals import number_text
from modicum.core.reader import Fields, Problems, fail, place, text
from modicum.policy.declarations.base_policies import (
    PER_RELEASE,
    USUAL_RISK_LEVELS,
    Budgets,
    read_base_policies,
)
from modicum.policy.declarations.extensions import read_extensions
from modicum.policy.declarations.governance import (
    read_guards,
    read_invariants,
    read_reservations,
    read_unmatched,
)
from modicum.policy.declarations.header import Declarations, read_declarations
from modicum.policy.declarations.population import read_population
from modicum.policy.declarations.roles import (
    Roles,
    read_activation,
    read_approvals,
    read_keys,
    read_owners,
    read_roles,
)
from modicum.policy.document.canonical_form import formatted
from modicum.policy.document.include import refuse_include
from modicum.policy.model import BasePolicy, Policy, RotationRule
from modicum.release import Vocabulary

__all__ = ["FORMAT", "USUAL_RISK_LEVELS", "parse_policy"]

#: The version of the format that this module reads.
FORMAT = "policy/v1"

_Read = TypeVar("_Read")
#: Sections that refer to the declarations, and are read after them.
_SECTIONS = (
    "population",
    "rotation",
    "reservations",
    "unmatched",
    "policies",
    "extensions",
    "per_release",
    "guards",
    "roles",
    "keys",
    "owners",
    "approvals",
    "activation",
    "disclosed_invariants",
)


def parse_policy(node: Node, source: str) -> Policy:
    """Return the policy of a marked tree.

    Raises:
        InputError: With every mistake found, each with its position.
    """
    refuse_include(node)
    fields = Fields(node, "the policy")
    _version(fields)
    declared, sections = _declared(fields)
    vocabulary, budgets = declared.vocabulary, Budgets(declared)
    found = _Sections(sections)
    base = found.read("policies", _base_policies("`policies`", vocabulary, budgets))
    extensions = found.read(
        "extensions", lambda given: read_extensions(given, vocabulary, budgets)
    )
    per_release = found.read(
        "per_release", _base_policies(PER_RELEASE, vocabulary, budgets)
    )
    population = found.read(
        "population",
        lambda given: read_population(
            given, declared.attributes, vocabulary.unit_facts
        ),
    )
    guards = found.read("guards", lambda given: read_guards(given, vocabulary))
    roles = found.read("roles", read_roles)
    keys = found.read("keys", lambda given: read_keys(given, roles))
    owners = found.read("owners", lambda given: read_owners(given, roles))
    rotation = found.read("rotation", lambda given: _rotation(given, roles))
    reservations = found.read("reservations", read_reservations)
    allows_unmatched = found.read("unmatched", read_unmatched)
    approvals = found.read(
        "approvals", lambda given: read_approvals(given, vocabulary, roles)
    )
    activation = found.read("activation", lambda given: read_activation(given, roles))
    invariants = found.read("disclosed_invariants", read_invariants)
    with found.problems.guard():
        fields.finish()
    found.problems.raise_any()
    delta = declared.header.bare_delta
    policy = Policy(
        name=declared.name,
        digest=digest(formatted(node).encode()),
        text=source,
        filter_name=declared.header.filter_name,
        report_delta=number_text(delta) if delta else None,
        vocabulary=replace(vocabulary, population=population),
        attributes=declared.attributes,
        categories=declared.categories,
        base_policies=base,
        extensions=extensions,
        per_release=per_release,
        guards=guards,
        roles=roles,
        keys=keys,
        owners=owners,
        approvals=approvals,
        activation=activation,
        rotation=rotation,
        reservations=reservations,
        disclosed_invariants=invariants,
        allows_unmatched=allows_unmatched,
        label_marks=declared.label_marks,
        roles_mark=found.mark_of("roles"),
    )
    _refuse_contradictions(policy, node)
    return policy


def _declared(fields: Fields) -> tuple[Declarations, dict[str, Node | None]]:
    """Return the declarations, and every other section unread.

    A misspelt key is reported before a missing reference to it.
    """
    fields.take_optional("include")  # It is known; here it is no longer there.
    found = Problems()
    declared: Declarations | None = None
    sections: dict[str, Node | None] = {}
    with found.guard():
        declared = read_declarations(fields)
    sections = {key: fields.take_optional(key) for key in _SECTIONS}
    with found.guard():
        fields.refuse_misspelt()
    found.raise_any()
    assert declared is not None
    return declared, sections


class _Sections:
    """Reads sections one after the other, and collects their mistakes."""

    def __init__(self, nodes: dict[str, Node | None]) -> None:
        self._nodes = nodes
        self.problems = Problems()

    def mark_of(self, key: str) -> Mark | None:
        """Return the position of a section; None if there is none."""
        node = self._nodes[key]
        return None if node is None else node.mark

    def read(self, key: str, read: Callable[[Node | None], _Read]) -> _Read:
        """Return the contents of a section; as if omitted if it has mistakes."""
        try:
            return read(self._nodes[key])
        except InputError as error:
            for problem in error.problems:
                self.problems.add(problem)
            return read(None)


def _base_policies(
    what: str, vocabulary: Vocabulary, budgets: Budgets
) -> Callable[[Node | None], tuple[BasePolicy, ...]]:
    return lambda node: read_base_policies(node, what, vocabulary, budgets)


# Few policies have these sections; their readers are imported on demand.


def _rotation(node: Node | None, roles: Roles) -> RotationRule | None:
    if node is None:
        return None
    from modicum.policy.declarations.rotation import read_rotation

    return read_rotation(node, roles)


def _version(fields: Fields) -> None:
    node = fields.take(
        "modicum",
        help=f"start with  modicum: {FORMAT}  ; for a part of a policy, lint the"
        " file that includes it",
    )
    version = text(node, "`modicum`")
    if version != FORMAT:
        raise fail(
            Code.UNKNOWN_VERSION,
            f'unknown format "{version[:40]}"',
            node,
            help=f"this version reads {FORMAT}",
        )


def _refuse_contradictions(policy: Policy, node: Node) -> None:
    """Refuse contradictions between sections."""
    base, per_release = policy.base_policies, policy.per_release
    _refuse_no_rules((*base, *per_release), node)
    _refuse_same_names((*base, *per_release))
    if policy.rotation is not None:
        from modicum.policy.declarations.rotation import refuse_turns_of_nobody

        refuse_turns_of_nobody(policy.rotation, base, policy.vocabulary)


def _refuse_no_rules(policies: tuple[BasePolicy, ...], node: Node) -> None:
    if not policies:
        raise fail(
            Code.MISSING_KEY,
            "the policy limits nothing: it has neither `policies` nor `per_release`",
            node,
        )


def _refuse_same_names(policies: tuple[BasePolicy, ...]) -> None:
    seen: dict[str, BasePolicy] = {}
    for policy in policies:
        if policy.name in seen:
            first = seen[policy.name].mark
            node = Scalar(Kind.TEXT, policy.name, quoted=False, mark=policy.mark)
            raise fail(
                Code.DUPLICATE_NAME,
                f"two policies are named `{policy.name}`",
                node,
                notes=(f"first at {place(first)}; rules are named after policies",),
            )
        seen[policy.name] = policy
