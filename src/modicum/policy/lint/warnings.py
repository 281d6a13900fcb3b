"""Warnings: what is allowed but probably not meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from modicum.core.diagnostics import shortened
from modicum.core.errors import Code, Mark, Problem
from modicum.policy.budget_maps import Same
from modicum.policy.coverage import limited
from modicum.policy.implication.search import (
    UndecidedError,
    counterexample,
    implies,
    satisfiable,
)
from modicum.policy.lint.dead_limits import loose_levels, loose_settings
from modicum.policy.lint.idle_declarations import (
    idle_divisions,
    idle_turns,
    open_turns,
    unassigned_approvals,
)
from modicum.policy.model import (
    AttributePolicy,
    CategoryPolicy,
    CustomPolicy,
    Extension,
    Policy,
)
from modicum.policy.predicates import All, Any, Constant, Predicate, labels_of
from modicum.policy.rules import RuleSet

#: Maximum number of facts shown of an example.
FACTS_SHOWN = 4


def without_limit(policy: Policy, rules: RuleSet) -> Iterator[Problem]:
    """Yield what no rule over history limits.

    A unit that another one covers is limited with it; for each of the others, every
    mechanism that can be allowed must match a rule with a limit.
    """
    yield from _ruleless(policy)
    some = limited(rules)
    if not (policy.allows_unmatched or satisfiable(some, policy.vocabulary)):
        yield _everything_denied(policy)
        return
    if not rules:
        yield from _nothing_adds_up(policy)
        return
    can_pass = All(tuple(guard.unless for guard in policy.guards))
    if not policy.allows_unmatched:
        can_pass = All((can_pass, some))
    vocabulary = policy.vocabulary
    for unit in vocabulary.units:
        if vocabulary.covers.get(unit, frozenset({unit})) == {unit}:
            yield from _uncovered(policy, rules, unit, can_pass)


def _everything_denied(policy: Policy) -> Problem:
    """Return that no release can be allowed, since no rule over history has a limit."""
    first = next(iter((*policy.base_policies, *policy.per_release)), None)
    return Problem(
        Code.NO_CATCH_ALL,
        "every release is denied: no rule over history has a limit",
        None if first is None else first.mark,
        notes=("a mechanism that no such rule limits is denied",),
        help='add to `policies` one with  when: "true", or  unmatched: allow  to the'
        " policy",
    )


def _nothing_adds_up(policy: Policy) -> Iterator[Problem]:
    """Yield that history has no limit, unless every release needs approval."""
    conditions = Any(tuple(approval.when for approval in policy.approvals))
    if implies(All(()), conditions, policy.vocabulary):
        return
    first = next(iter(policy.per_release), None)
    yield Problem(
        Code.NO_CATCH_ALL,
        "nothing limits the total loss of all releases",
        None if first is None else first.mark,
        notes=("a rule of `per_release` checks one release at a time",),
        help='add to `policies`, or to `approvals`, one with  when: "true"',
    )


def _ruleless(policy: Policy) -> Iterator[Problem]:
    """Yield policies about each of something that there is nothing of."""
    for base in (*policy.base_policies, *policy.per_release):
        match base:
            case CategoryPolicy() if not policy.categories:
                of_what = "categories"
            case AttributePolicy() if not policy.attributes:
                of_what = "attributes"
            case _:
                continue
        yield Problem(
            Code.NO_CATCH_ALL,
            f"policy `{base.name}` has no rules: the schema has no {of_what}",
            base.mark,
            help=f"declare {of_what} in the schema, or remove the policy",
        )


def _uncovered(
    policy: Policy, rules: RuleSet, unit: str, can_pass: Predicate
) -> Iterator[Problem]:
    of_unit = limited(rules, unit)
    example: Mapping[str, str] | None
    try:
        example = counterexample(can_pass, of_unit, policy.vocabulary)
    except UndecidedError:
        example = {}  # Unproven claims are not relied on.
    if example is None:
        return
    facts = [f"{path} = {value}" for path, value in example.items()][:FACTS_SHOWN]
    some = of_unit != Constant(value=False)
    yield Problem(
        Code.NO_CATCH_ALL,
        f"for unit `{unit}`, no limit matches every mechanism"
        if some
        else f"for unit `{unit}`, there is no limit at all",
        _place_of_rules(policy, unit),
        notes=(f"nothing limits a mechanism with {', '.join(facts)}",) if facts else (),
        help=f'add to `policies` one with  when: "true", unit: {unit}',
    )


def _place_of_rules(policy: Policy, unit: str) -> Mark | None:
    """Return the position of the first policy for a unit, or the first of all."""
    own = [base.mark for base in policy.base_policies if base.unit == unit]
    return (own or [base.mark for base in policy.base_policies])[0]


def uncovered_levels(policy: Policy) -> Iterator[Problem]:
    """Yield levels that a category policy lacks though attributes belong so closely."""
    for base in (*policy.base_policies, *policy.per_release):
        if not isinstance(base, CategoryPolicy):
            continue
        covered = {level for rule in base.levels for level in rule.includes()}
        escaping: dict[str, list[str]] = {}
        for attribute in policy.attributes.values():
            for category, level in (attribute.memberships or {}).items():
                if level not in covered:
                    who = f"`{attribute.name}` in `{category}`"
                    escaping.setdefault(level.value, []).append(who)
        for missing, them in escaping.items():
            more = f" and {len(them) - 1} more" if len(them) > 1 else ""
            yield Problem(
                Code.NO_CATCH_ALL,
                f"policy `{base.name}` has no {missing} rule:"
                f" {them[0]}{more} {'escape' if more else 'escapes'} it",
                base.mark,
                help=f"add  levels: {{{missing}: …}}",
            )


def needless_guards(policy: Policy) -> Iterator[Problem]:
    """Yield guards that no mechanism can fail."""
    for guard in policy.guards:
        if implies(All(()), guard.unless, policy.vocabulary):
            yield Problem(
                Code.NEVER_TRUE,
                f"the guard `{guard.name}` refuses nothing: its `unless` is always"
                " true",
                guard.mark,
                help="correct the predicate, or remove the guard",
            )


#: Maximum number of combinations of settings listed individually.
SHOWN_MAX = 3
#: Maximum number of combinations checked for mutual exclusion.
CONTEXTS_MAX = 500


def warnings_of(policy: Policy, rules: RuleSet) -> Iterator[Problem]:
    """Yield what is allowed but probably not meant."""
    yield from _lonely_categories(policy)
    yield from _untold_attributes(policy)
    yield from uncovered_levels(policy)
    yield from _unchanged_nowhere(policy)
    yield from _unreachable(policy, rules)
    yield from loose_levels(policy)
    yield from loose_settings(policy, rules)
    yield from needless_guards(policy)
    yield from without_limit(policy, rules)
    yield from idle_divisions(policy)
    yield from idle_turns(policy, rules)
    yield from open_turns(policy)
    yield from unassigned_approvals(policy)


def _lonely_categories(policy: Policy) -> Iterator[Problem]:
    joined = {
        category
        for attribute in policy.attributes.values()
        for category in attribute.memberships or {}
    }
    for category in policy.categories:
        if category not in joined:
            yield Problem(
                Code.UNKNOWN_CATEGORY,
                f"no attribute joins the category `{category}`",
                help="its rules can never match",
            )


def _untold_attributes(policy: Policy) -> Iterator[Problem]:
    """Yield attributes without a category assignment."""
    conditions = policy.categories and any(
        isinstance(base, CategoryPolicy)
        for base in (*policy.base_policies, *policy.per_release)
    )
    for attribute in policy.attributes.values() if conditions else ():
        if attribute.memberships is None:
            yield Problem(
                Code.UNKNOWN_CATEGORY,
                f"`{attribute.name}` has no category assignment",
                attribute.mark,
                notes=("no category rule matches it",),
                help=f"write  [{attribute.risk}, {{CATEGORY: member}}], or"
                f"  [{attribute.risk}, {{}}]  if it has no category",
            )


def _unchanged_nowhere(policy: Policy) -> Iterator[Problem]:
    for extension in policy.extensions:
        if not _has_same(extension):
            yield Problem(
                Code.NO_CATCH_ALL,
                f"extension `{extension.name}` changes the budget in every setting",
                extension.mark,
                help="one setting usually keeps it:  budget: same",
            )


def _has_same(extension: Extension) -> bool:
    return any(
        isinstance(setting.budget_map.form, Same) for setting in extension.settings
    )


def _unreachable(policy: Policy, rules: RuleSet) -> Iterator[Problem]:
    """Yield contexts, and custom rules in contexts, that no mechanism reaches."""
    if len(rules.contexts) > CONTEXTS_MAX:
        return
    vocabulary = policy.vocabulary
    possible = []
    for context in rules.contexts:
        if satisfiable(All(context.predicates), vocabulary):
            possible.append(context)
        else:
            last = context.settings[-1].mark
            yield _never(f"no rule @{' @'.join(context.names)} can match", last)
    for base in policy.base_policies:
        if not isinstance(base, CustomPolicy) or not labels_of(base.predicate):
            continue
        never = [
            context.suffix
            for context in possible
            if not satisfiable(All((base.predicate, *context.predicates)), vocabulary)
        ]
        if never:
            listed = shortened([f"`{base.name}{one}`" for one in never], SHOWN_MAX)
            yield _never(f"no mechanism can match {listed}", base.mark)


def _never(message: str, mark: Mark | None) -> Problem:
    return Problem(
        Code.NEVER_TRUE,
        message,
        mark,
        notes=("their conditions on labels exclude each other",),
        help="harmless, unless you intended another predicate",
    )
