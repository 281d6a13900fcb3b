"""How many rules a policy has, counted before any of them is made."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Final, assert_never

from modicum.core.errors import Code, InputError, Problem
from modicum.policy.model import (
    AttributePolicy,
    BasePolicy,
    CategoryPolicy,
    CustomPolicy,
    Policy,
)

#: A policy that compiles to more rules than this is refused.
RULES_MAX: Final = 250_000
# A number may have more digits than Python writes.
_COUNTABLE: Final = 10**12


def refuse_too_many(policy: Policy) -> None:
    """Refuse a policy with too many rules, over history or on each release alone.

    Args:
        policy: The policy.

    Raises:
        InputError: If it has more than `RULES_MAX` of either.
    """
    contexts = prod(max(1, len(one.settings)) for one in policy.extensions)
    over_history = _number(policy.base_policies, policy) * contexts
    rules = max(over_history, _number(policy.per_release, policy))
    if rules > RULES_MAX:
        shown = str(rules) if rules < _COUNTABLE else f"over {_COUNTABLE}"
        raise InputError(
            Problem(
                Code.TOO_LARGE,
                f"the policy compiles to {shown} rules, more than {RULES_MAX}",
                help="have fewer attributes, categories, levels, or settings of"
                " extensions",
            )
        )


def _number(bases: Iterable[BasePolicy], policy: Policy) -> int:
    """Return how many rules base policies have before the extensions."""
    return sum(_rules_of(base, policy) for base in bases)


def _rules_of(base: BasePolicy, policy: Policy) -> int:
    match base:
        case CustomPolicy():
            return 1
        case AttributePolicy():
            return len(policy.attributes)
        case CategoryPolicy():
            return len(policy.categories) * len(base.levels)
        case _:
            assert_never(base)
