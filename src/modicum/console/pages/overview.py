"""The overview: every budget, and what waits for a person."""

from __future__ import annotations

from typing import Any

from modicum.api import operations
from modicum.api.schema.policy import RuleStanding
from modicum.console.registry import page
from modicum.console.relay import Relay
from modicum.console.unlocked import unlocked

#: The most rules in the table; the list of rules has all.
SHOWN = 200


@page("/", "overview.html", "Overview")
async def overview(relay: Relay) -> dict[str, Any]:
    """Return the fullest rules as a table of scopes and contexts, and what waits."""
    unit = relay.query.get("unit", "")
    rules = await relay.get(
        operations.RULES, order="tightest", unit=unit, binding=True, limit=SHOWN
    )
    requests = proposals = None
    if not relay.as_of:
        requests = await relay.try_get(operations.REQUESTS)
        proposals = await relay.try_get(operations.PROPOSALS)
    return {
        "rules": rules,
        "unit": unit,
        "rows": _by_scope(rules.rules),
        "contexts": sorted({_split(one.rule)[1] for one in rules.rules}),
        "requests": requests.requests if requests else (),
        "proposals": proposals.proposals if proposals else (),
        "unlocked": await unlocked(relay),
        "tight": [one for one in rules.rules if one.state in ("near", "OVER")],
    }


def _by_scope(
    rules: tuple[RuleStanding, ...],
) -> dict[tuple[str, str], dict[str, RuleStanding]]:
    """Return the rules by scope and unit, then by context; the fullest scope first."""
    found: dict[tuple[str, str], dict[str, RuleStanding]] = {}
    for one in rules:
        scope, context = _split(one.rule)
        found.setdefault((scope, one.unit), {})[context] = one
    return found


def _split(rule: str) -> tuple[str, str]:
    """Return the scope and the context of a rule's id: `attr:age @standard`."""
    scope, at, context = rule.partition(" @")
    return scope, at.strip() + context
