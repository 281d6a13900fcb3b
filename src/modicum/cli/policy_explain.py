"""What `modicum policy explain` prints."""

from __future__ import annotations

from collections.abc import Iterator

from modicum.accounting import Filter
from modicum.accounting.budgets import budget_text
from modicum.accounting.grid import INFINITE, coordinate_name
from modicum.api.local.explanation.contributions import contributors_text, spenders_view
from modicum.api.local.explanation.denial_text import (
    amount,
    amount_text,
    ordered,
    room_text,
)
from modicum.api.local.policies.rule_standing import RuleStanding, in_cells
from modicum.cli.policy_rules import when_text
from modicum.core.rationals import DELTA_UNIT
from modicum.policy.rule_profile import Neighbors, RuleProfile, coordinate_words

#: How many contexts of a scope are explained at once.
SHOWN = 6


def print_rule(profile: RuleProfile, standing: RuleStanding | None) -> None:
    """Print a rule in full, for people.

    Args:
        profile: What the policy says of it.
        standing: Where it stands in a ledger, if one was given.
    """
    rule = profile.rule
    _block("rule", f"{rule.id}   per {rule.unit}   {budget_text(rule.budget)}")
    _block("when", when_text(rule))
    _block("says", profile.promise)
    places = [
        f"{origin.what}  {origin.mark or ''}".rstrip() for origin in profile.origins
    ]
    _block("from", *places)
    _block("cells", *profile.cells)
    _block("filter", *_filter_lines(profile))
    if profile.unlocking:
        _block("unlocks", profile.unlocking)
    _block("status", _status(profile))
    _block("above", _neighbors(profile.above))
    _block("below", _neighbors(profile.below))
    if standing is not None:
        _block("ledger", *_standing_lines(standing))


def _block(title: str, *lines: str) -> None:
    for number, line in enumerate(lines):
        print(f"{'' if number else title:<7} {line}")


def _filter_lines(profile: RuleProfile) -> Iterator[str]:
    own = profile.own_filter
    if own is None:
        yield "none: the tightest loss of each release is held against the limit"
    elif not own.enforced:
        yield "none: it is tracked, nothing is denied"
    elif own.every:
        yield "it holds while every one of these sums is within its cap"
        yield from _cap_lines(own)
    else:
        one = len(own.caps) == 1
        which = "this sum is" if one else "one of these sums is"
        yield f"{profile.filter_name}: it holds while {which} within its cap"
        yield from _cap_lines(own)


def _cap_lines(own: Filter) -> Iterator[str]:
    named = [(coordinate_words(index), amount_text(cap)) for index, cap in own.caps]
    named.append(
        ("and the mechanisms' own deltas", amount_text(own.delta_cap, DELTA_UNIT))
    )
    width = max(len(words) for words, _ in named)
    for words, cap in named:
        yield f"  {words:<{width}}  {cap}"


def _status(profile: RuleProfile) -> str:
    if profile.about_nothing:
        return "about nothing: it can never deny"
    if profile.implied_by is None:
        return "constraining: it can be the only rule to deny"
    rule, budget = profile.implied_by
    return (
        f"implied by {rule} ({budget_text(budget)}): that denies all that this denies"
    )


def _neighbors(found: Neighbors) -> str:
    if not found.count:
        return "none"
    left = found.count - len(found.direct)
    return ", ".join(found.direct) + (f" and {left} more" if left else "")


def _standing_lines(standing: RuleStanding) -> Iterator[str]:
    spent = standing.spent
    if standing.loss.cell:
        yield f"the fullest cell: {standing.loss.cell}"
    before = amount_text(spent.together, spent.scale)
    if not standing.loss.own_filter.enforced:
        yield f"{spent.measure} {before} is spent; nothing limits it"
    else:
        limit = amount_text(spent.limit, spent.scale)
        left = room_text(standing.left, spent.scale)
        where = in_cells(standing.loss.denying) if standing.loss.cell else ""
        state = (
            f"left {left}"
            if standing.loss.allowed
            else f"OVER{where}: it denies what falls under it there"
        )
        yield f"before {before} of {spent.measure} {limit}, {state}"
    if standing.rho_left is not None:
        yield f"Gaussian noise may still cost rho {room_text(standing.rho_left)}"
    if standing.spenders:
        yield f"spent by {contributors_text(standing.spenders, standing.coordinate)}"


# --- JSON -----------------------------------------------------------------------


def rule_to_dict(
    profile: RuleProfile, standing: RuleStanding | None
) -> dict[str, object]:
    """Return the documented JSON form (docs/reference/json.md)."""
    rule = profile.rule
    implied = profile.implied_by
    return {
        "id": rule.id,
        "stage": rule.stage.value,
        "scope": rule.scope,
        "context": list(rule.context),
        "predicate": rule.when,
        "about_nothing": profile.about_nothing,
        "unit": rule.unit,
        "budget": budget_text(rule.budget),
        "promise": profile.promise,
        "origins": [
            {"what": origin.what, "source": str(origin.mark) if origin.mark else None}
            for origin in profile.origins
        ],
        "cells": list(profile.cells),
        "filter": _filter_to_dict(profile),
        "unlocking": profile.unlocking or None,
        "implied_by": None
        if implied is None
        else {"rule": implied[0], "budget": budget_text(implied[1])},
        "above": {"count": profile.above.count, "direct": list(profile.above.direct)},
        "below": {"count": profile.below.count, "direct": list(profile.below.direct)},
        "standing": None if standing is None else _standing_to_dict(standing),
    }


def _filter_to_dict(profile: RuleProfile) -> dict[str, object] | None:
    own = profile.own_filter
    if own is None or not own.enforced:
        return None
    return {
        "name": profile.filter_name,
        "every": own.every,
        "caps": [
            {"coordinate": coordinate_name(index), "cap": amount(cap)}
            for index, cap in own.caps
        ],
        "deltas": amount(own.delta_cap, DELTA_UNIT),
    }


def _standing_to_dict(standing: RuleStanding) -> dict[str, object]:
    found = standing.spent
    spent, limit = ordered(found.together, found.limit, found.scale)
    rho = standing.rho_left
    left = INFINITE if found.limit >= INFINITE else standing.left
    return {
        "cell": standing.loss.cell or None,
        "allowed": standing.loss.allowed,
        "measure": found.measure,
        "spent": spent,
        "limit": limit,
        "left": amount(left, found.scale),
        "rho_left": None if rho is None else amount(rho),
        "spenders": spenders_view(standing.spenders, standing.coordinate),
    }
