"""Limits that can never be the ones to deny: something wider has a smaller budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations, permutations

from modicum.accounting import Budget, Unlimited
from modicum.accounting.budgets import budget_text, measure, parameter
from modicum.core.errors import Code, Problem
from modicum.policy.budget_maps import apply_map
from modicum.policy.implication.search import implies
from modicum.policy.model import CategoryPolicy, Level, Policy
from modicum.policy.rules import RuleSet


@lru_cache(maxsize=65536)
def no_looser(first: Budget, second: Budget) -> bool:
    """Return whether a budget is at least as tight as another of its measure.

    Returns:
        True only if it is so under every filter; between measures always False.
    """
    if isinstance(second, Unlimited) or first == second:
        return True
    mine, other = parameter(first), parameter(second)
    if measure(first) != measure(second) or mine is None or other is None:
        return False
    no_larger: bool = getattr(first, "delta", 0) <= getattr(second, "delta", 0)
    return mine <= other and no_larger


_REMEDY = "the rule that matches more usually has the larger budget"


def loose_levels(policy: Policy) -> Iterator[Problem]:
    """Yield levels of category policies with a larger budget than a wider level."""
    for base in (*policy.base_policies, *policy.per_release):
        if isinstance(base, CategoryPolicy):
            written = [level for level in Level if level in base.levels]
            for narrow, wide in combinations(written, 2):
                yield from _loose_level(base, policy, narrow, wide)


def _loose_level(
    base: CategoryPolicy, policy: Policy, narrow: Level, wide: Level
) -> Iterator[Problem]:
    for category, risk in policy.categories.items():
        scope = f"{base.name}:{category}"
        own, wider = (
            apply_map(base.levels[level], base.budgets[risk], scope)
            for level in (narrow, wide)
        )
        if own != wider and no_looser(wider, own):
            yield Problem(
                Code.MAP_NOT_MONOTONE,
                f"level {narrow.value} of policy `{base.name}` never matters in"
                f" `{category}`: {wide.value} covers it with a smaller budget",
                base.levels[narrow].mark,
                notes=(
                    f"{narrow.value}: {budget_text(own)},"
                    f" {wide.value}: {budget_text(wider)}",
                ),
                help=_REMEDY,
            )
            return  # Once per pair of levels: other categories look alike.


def loose_settings(policy: Policy, rules: RuleSet) -> Iterator[Problem]:
    """Yield settings with larger budgets than a setting that covers them."""
    rows = list(
        {base.budget: rules.row(n) for n, base in enumerate(rules.bases)}.values()
    )
    for position, extension in enumerate(policy.extensions):
        numbered = enumerate(extension.settings)
        for (own, narrow), (other, wide) in permutations(numbered, 2):
            pairs = ((line[own], line[other]) for line in rules.lines(position))
            if _all_looser(rows, pairs) and implies(
                narrow.predicate, wide.predicate, policy.vocabulary
            ):
                yield Problem(
                    Code.MAP_NOT_MONOTONE,
                    f"the setting `{narrow.name}` never matters: `{wide.name}` covers"
                    " it with smaller budgets",
                    narrow.mark,
                    help=_REMEDY,
                )


def _all_looser(
    rows: Sequence[tuple[Budget, ...]], pairs: Iterable[tuple[int, int]]
) -> bool:
    """Return whether the first of two contexts is looser, and nowhere tighter."""
    looser = False
    for narrow, wide in pairs:
        for row in rows:
            if not no_looser(row[wide], row[narrow]):
                return False
            looser = looser or row[wide] != row[narrow]
    return looser
