"""Rules: how full each is, who spent it, and which rules count more than others."""

from __future__ import annotations

from math import inf, nextafter, sqrt
from typing import Any, Final
from urllib.parse import quote, urlencode

from modicum.api import operations
from modicum.api.schema.policy import RuleBalance, RuleDiagram
from modicum.console.registry import page
from modicum.console.relay import AS_OF, RefusedError, Relay
from modicum.console.unlocked import unlocked
from modicum.policy.hasse.diagram import Hasse, HasseNode, HasseRule
from modicum.reports.charts import Chart, cell_history, hasse_chart

#: Rules on one page of the list.
ROWS: Final = 100
#: Releases that are named beside a rule.
SPENDERS: Final = 50
#: A count is off by more than so many sigma once in twenty times.
SIGMAS: Final = 1.96
#: The filters of the list and of the drawing.
FILTERS: Final = ("unit", "scope", "context", "binding")


@page("/rules", "rules.html", "Rules")
async def rules(relay: Relay) -> dict[str, Any]:
    """Return one page of the rules that match the filters."""
    given = {name: relay.query.get(name) for name in (*FILTERS, "search", "cursor")}
    order = relay.query.get("order")
    found = await relay.get(
        operations.RULES,
        **given,
        order=order if order == "tightest" else None,
        limit=ROWS,
    )
    return {"rules": found, "filters": given, "order": order}


@page("/rules/{rule:path}", "rule.html", "Rules")
async def rule(relay: Relay) -> dict[str, Any]:
    """Return a rule, and the charge of its fullest cell by release."""
    found = await relay.get(operations.RULE, rule=relay.named("rule"))
    balance = None
    if found.standing is not None:
        balance = await relay.get(operations.RULE_BALANCE, rule=found.id, most=SPENDERS)
    return {
        "rule": found,
        "balance": balance,
        "left": None if balance is None else _left(balance.rho_left),
        "unlocked": await unlocked(relay),
        "chart": None if balance is None else _growth(balance),
    }


def _left(rho: float | None) -> dict[str, float] | None:
    """Return what a count may still have: the least noise, and its 95 % error.

    Its sensitivity is 1. Neither is rounded down.
    """
    if rho is None or rho == inf:
        return None
    sigma = inf if rho <= 0 else nextafter(sqrt(nextafter(0.5 / rho, inf)), inf)
    return {"rho": rho, "sigma": sigma, "error": nextafter(SIGMAS * sigma, inf)}


def _growth(balance: RuleBalance) -> Chart | None:
    """Return the drawing of how the charge of a cell grew."""
    if not balance.history:
        return None
    return cell_history(
        [(one.entry, one.spent) for one in balance.history],
        balance.limit,
        until=balance.ledger.seq,
        title="Charge of the fullest cell",
        unit=balance.measure,
    )


@page("/rule-drawing", "rule-drawing.html", "Rules")
async def drawing(relay: Relay) -> dict[str, Any]:
    """Return which rules count all that others count, near one rule or of all."""
    given = {
        name: relay.query.get(name)
        for name in ("rule", "unit", "context", "binding", "steps")
    }
    shown: dict[str, Any] = {"chart": None, "refused": None, "filters": given}
    try:
        found = await relay.get(operations.RULE_DIAGRAM, **given)
    except RefusedError as refused:
        if refused.status not in (404, 413):
            raise
        return {**shown, "refused": refused.problem}
    if found.nodes:
        point = relay.query.get(AS_OF)
        query = f"?{urlencode({AS_OF: point})}" if point else ""
        shown["chart"] = _chart(found, given["rule"] or "", query)
    return shown


def _chart(found: RuleDiagram, selected: str, query: str) -> Chart:
    """Return the drawing of a diagram, whose rules are links."""
    nodes = tuple(
        HasseNode(
            tuple(
                HasseRule(0, one.rule, (), one.budget, one.witness or "")
                for one in node.rules
            ),
            node.unit,
        )
        for node in found.nodes
    )
    near = f" near {selected}" if selected else ""
    title = f"Rules of {found.policy.name}{near}"
    diagram = Hasse(title, nodes, found.edges, frozenset(found.witness_edges))
    return hasse_chart(
        diagram,
        link=lambda rule: f"/rules/{quote(rule, safe='')}{query}",
        selected=[selected],
    )
