"""The mechanisms that rules over history limit, as a predicate."""

from __future__ import annotations

from modicum.accounting import Unlimited
from modicum.policy.implication.search import simplified
from modicum.policy.predicates import All, Any, Predicate
from modicum.policy.rules import RuleSet


def limited(rules: RuleSet, unit: str | None = None) -> Predicate:
    """Return a predicate that holds for every mechanism under a limit, and no other.

    Args:
        rules: The rules over history.
        unit: The unit of the limit; by default, any will do.
    """
    by_contexts: dict[tuple[int, ...], list[Predicate]] = {}
    for number, base in enumerate(rules.bases):
        if unit in (None, base.unit):
            key = tuple(
                context
                for context, budget in enumerate(rules.row(number))
                if not isinstance(budget, Unlimited)
            )
            by_contexts.setdefault(key, []).append(base.predicate)
    return simplified(
        Any(
            tuple(
                All((Any(tuple(bases)), _any_context(rules, contexts)))
                for contexts, bases in by_contexts.items()
            )
        )
    )


def _any_context(rules: RuleSet, contexts: tuple[int, ...]) -> Predicate:
    if len(contexts) == len(rules.contexts):
        return All(())  # Every extension has a setting for every mechanism.
    return Any(tuple(All(rules.contexts[one].predicates) for one in contexts))
