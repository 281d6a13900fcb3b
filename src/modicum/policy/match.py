"""Matching: which rules the mechanisms of a release fall under."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from modicum.policy.predicates import Facts, holds
from modicum.policy.rules import Rule


def matching(
    rules: Iterable[Rule], facts: Sequence[Facts]
) -> Iterator[tuple[Rule, tuple[int, ...]]]:
    """Yield each rule that any mechanism falls under, and which ones.

    Args:
        rules: The rules; their order is kept.
        facts: What is known about each mechanism of the release, in order.

    Yields:
        The rule and the positions, from 0, of the mechanisms it is about.
    """
    for rule in rules:
        about = tuple(place for place, one in enumerate(facts) if rule_holds(rule, one))
        if about:
            yield rule, about


def rule_holds(rule: Rule, facts: Facts) -> bool:
    """Return whether a mechanism falls under a rule."""
    return holds(rule.predicate, facts) and all(
        holds(setting, facts) for setting in rule.settings
    )
