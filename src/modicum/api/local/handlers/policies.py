"""The policies of a ledger, and the status of their rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import product
from typing import Annotated, Final, Literal

from msgspec import Meta
from msgspec.structs import asdict

from modicum.api import operations
from modicum.api.local.handlers.errors import not_found
from modicum.api.local.handlers.pagination import (
    PAGE_MAX,
    Cursor,
    Limit,
    after_of,
    cursor_of,
)
from modicum.api.local.handlers.registry import answers
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.views.compiled_rules import compiled_rule, compiled_rule_view
from modicum.api.local.views.ledger import fullness, policy_view, standing_view
from modicum.api.local.views.rule_diagram import diagram_view, readable
from modicum.api.local.visibility import masked
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.api.schema.ledger import Head
from modicum.api.schema.policy import (
    PolicyItem,
    PolicyList,
    PolicyText,
    Rule,
    RuleBalance,
    RuleDiagram,
    RulePage,
    RuleRounds,
)
from modicum.core.errors import InputError
from modicum.ledger.state.state import ActivePolicy
from modicum.policy.hasse.diagram import STEPS

#: Maximum number of spenders of a cell listed.
SPENDERS_MAX: Final = 100
#: The active policy, accepted in place of a digest.
ACTIVE: Final = "active"

_Filter = Annotated[str, Meta(max_length=200)]
_Order = Literal["policy", "tightest"]
#: The names of the lists that cursors belong to.
_LISTS: Final[Mapping[_Order, str]] = {"policy": "rules", "tightest": "rules-tightest"}


def policy_of(view: LedgerView, digest: str) -> ActivePolicy:
    """Return a policy that is or was active."""
    for one in reversed(view.state().policies):
        if digest in (ACTIVE, one.digest):
            return one
    raise not_found(
        f"unknown policy `{digest[:64]}`",
        "give its digest, or `active`",
    )


@answers(
    operations.POLICIES,
    Action.READ_POLICY,
    tag=lambda one: one.policies[-1].digest if one.policies else "",
)
def policies(view: LedgerView, _: Identity | None) -> PolicyList:
    """Return the policies that were active, oldest first; the last one is."""
    found = view.state().policies
    return PolicyList(
        policies=tuple(_item(one, is_active=one is found[-1]) for one in found)
    )


@answers(operations.POLICY, Action.READ_POLICY, tag=lambda one: one.digest)
def policy(
    view: LedgerView,
    _: Identity | None,
    digest: Annotated[str, Meta(max_length=64, description="a digest, or `active`")],
) -> PolicyText:
    """Return a policy that is or was active, with its text."""
    one = policy_of(view, digest)
    item = _item(one, is_active=one.seq == policy_of(view, ACTIVE).seq)
    return PolicyText(**asdict(item), text=one.text)


@answers(operations.RULES, Action.READ_RULES, slow=True)
def rules(  # noqa: PLR0913 - the parameters of a query
    view: LedgerView,
    _: Identity | None,
    *,
    unit: Annotated[_Filter, Meta(description="only of this unit")] = "",
    scope: Annotated[_Filter, Meta(description="only this scope")] = "",
    context: Annotated[_Filter, Meta(description="only those with this setting")] = "",
    binding: Annotated[
        bool | None,
        Meta(description="only binding rules, or only redundant ones"),
    ] = None,
    search: Annotated[
        _Filter, Meta(description="only those with this in their id, in any case")
    ] = "",
    order: Annotated[
        _Order,
        Meta(description="the policy's order, or the largest share of the limit first"),
    ] = "policy",
    limit: Limit = 100,
    cursor: Cursor = "",
) -> RulePage:
    """Return the status of every rule over history."""
    after = after_of(_LISTS[order], cursor)
    losses = view.standings()
    compiled, sought = view.policy(), search.casefold()
    witness = compiled.pruned.witness
    kept = [
        one
        for number, one in enumerate(losses)
        if (not unit or one.rule.unit == unit)
        and (not scope or one.rule.scope == scope)
        and (not context or context in one.rule.context)
        and (binding is None or binding is (witness[number] < 0))
        and (not sought or sought in one.rule.id.casefold())
    ]
    full = [view.computed(fullness, one) for one in kept]
    places = range(len(kept))
    if order == "tightest":
        ranked = sorted(places, key=lambda place: full[place].rank)
    else:
        ranked = list(places)
    more = after + limit if after + limit < len(kept) else None
    shown = [kept[place] for place in ranked[after : after + limit]]
    bases = compiled.rules.bases
    return RulePage(
        **asdict(policy_view(compiled, view.state())),
        rules=tuple(view.computed(standing_view, one) for one in shown),
        next=cursor_of(_LISTS[order], more),
        states=Counter(one.state for one in full),
        full=sum(one.is_full for one in full),
        units=tuple(dict.fromkeys(one.unit for one in bases)),
        scopes=tuple(dict.fromkeys(one.scope for one in bases))[:PAGE_MAX],
        contexts=tuple(one.name for each in compiled.rules.extensions for one in each),
    )


# Before the next: its address is one that an id of a rule could have.
@answers(operations.RULE_BALANCE, Action.READ_RULES, slow=True)
def rule_balance(
    view: LedgerView,
    who: Identity | None,
    rule: Annotated[str, Meta(max_length=400, description="the id of the rule")],
    most: Annotated[int, Meta(ge=1, le=SPENDERS_MAX)] = 20,
) -> RuleBalance:
    """Return the charge of the fullest cell of a rule, by release."""
    return masked(view, who, view.fullest_cell(rule).view(most))


@answers(operations.RULE_ROUNDS, Action.READ_RULES, slow=True)
def rule_rounds(
    view: LedgerView,
    _: Identity | None,
    rule: Annotated[str, Meta(max_length=400, description="the id of the rule")],
) -> RuleRounds:
    """Return what each round left of the budget of a rule, by user group."""
    return view.segment_budgets(rule)


@answers(
    operations.RULE_DIAGRAM,
    Action.READ_RULES,
    slow=True,
    tag=lambda one: one.policy.digest,
)
def rule_diagram(
    view: LedgerView,
    _: Identity | None,
    *,
    rule: Annotated[
        str, Meta(max_length=400, description="only rules above or below this one")
    ] = "",
    unit: Annotated[_Filter, Meta(description="only of this unit")] = "",
    context: Annotated[_Filter, Meta(description="only those with this setting")] = "",
    binding: Annotated[
        bool | None,
        Meta(description="only binding rules, or only redundant ones"),
    ] = None,
    steps: Annotated[
        int, Meta(ge=1, le=10, description="how far from `rule` to go")
    ] = STEPS,
) -> RuleDiagram:
    """Return which rules over history count all that others count."""
    compiled = view.policy()
    center = compiled.rules.number(rule) if rule else None
    if rule and center is None:
        raise unknown_rule(rule)
    key = unit, context, binding, center, steps
    diagram = compiled.diagrams.get(key)
    if diagram is None:
        witness, rules = compiled.pruned.witness, compiled.rules
        chosen = [
            number
            for number, (base, one) in enumerate(product(rules.bases, rules.contexts))
            if (not unit or base.unit == unit)
            and (not context or context in one.names)
            and (binding is None or binding is (witness[number] < 0))
        ]
        diagram = readable(compiled, chosen, center, steps)
        compiled.diagrams.keep(key, diagram)
    return diagram_view(policy_view(compiled, view.state()).policy, diagram)


@answers(operations.RULE, Action.READ_RULES)
def rule(
    view: LedgerView,
    _: Identity | None,
    rule: Annotated[str, Meta(min_length=1, max_length=400)],
) -> Rule:
    """Return a rule of the active policy, and its status.

    Its id must be quoted in a path: `attr:age @standard` is `attr:age%20@standard`.
    """
    compiled = view.policy()
    one = compiled_rule(compiled, rule)
    if one is None:
        raise unknown_rule(rule)
    loss = view.loss_of(one.rules[one.number]) if one.rules is compiled.rules else None
    state = view.state()
    return Rule(
        **asdict(compiled_rule_view(one)),
        standing=None if loss is None else standing_view(loss),
        ledger=Head(seq=state.seq, head=state.head),
    )


def unknown_rule(rule: str) -> InputError:
    """Return the error for the id of no rule."""
    return not_found(
        f"the active policy has no rule `{rule[:200]}`",
        "list them at /api/v1/rules; an id is scope and settings, as there",
    )


def _item(one: ActivePolicy, *, is_active: bool) -> PolicyItem:
    return PolicyItem(
        name=one.name,
        digest=one.digest,
        entry=one.seq,
        active=is_active,
        reason=one.reason,
        accepted=tuple(one.accepted),
    )
