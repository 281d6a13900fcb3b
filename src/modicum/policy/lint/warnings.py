"""What is allowed but probably not meant."""

from __future__ import annotations

from collections.abc import Iterator

from modicum.core.errors import Code, Mark, Problem
from modicum.core.text import shortened
from modicum.policy.budget_maps import Same
from modicum.policy.implication.search import satisfiable
from modicum.policy.lint.coverage import (
    needless_guards,
    uncovered_levels,
    without_limit,
)
from modicum.policy.lint.dead_limits import loose_levels, loose_settings
from modicum.policy.lint.divisions import idle_divisions, nobody_to_ask
from modicum.policy.lint.idle_declarations import idle_turns, open_turns
from modicum.policy.model import CategoryPolicy, CustomPolicy, Extension, Policy
from modicum.policy.predicates import All, labels_of
from modicum.policy.rules import RuleSet

#: Combinations of settings beyond this are not told to the author one by one.
SHOWN_MAX = 3
#: Of more combinations than this, nobody is told which ones exclude each other.
CONTEXTS_MAX = 500


def warnings_of(policy: Policy, rules: RuleSet) -> Iterator[Problem]:
    """Yield what is allowed but probably not meant.

    Args:
        policy: The policy.
        rules: Its rules over history.
    """
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
    yield from nobody_to_ask(policy)


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
    """Yield attributes of which nobody said whether they belong to a category."""
    asked = policy.categories and any(
        isinstance(base, CategoryPolicy)
        for base in (*policy.base_policies, *policy.per_release)
    )
    for attribute in policy.attributes.values() if asked else ():
        if attribute.memberships is None:
            yield Problem(
                Code.UNKNOWN_CATEGORY,
                f"nothing says to which categories `{attribute.name}` belongs",
                attribute.mark,
                notes=("no category rule is about it",),
                help=f"write  [{attribute.risk}, {{CATEGORY: member}}], or"
                f"  [{attribute.risk}, {{}}]  if it belongs to none",
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
            yield _never(f"no mechanism can fall under {listed}", base.mark)


def _never(message: str, mark: Mark | None) -> Problem:
    return Problem(
        Code.NEVER_TRUE,
        message,
        mark,
        notes=("what the two ask of labels excludes each other",),
        help="harmless, unless another predicate was meant",
    )
