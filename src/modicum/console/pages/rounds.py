"""Rounds: which requests to reserve together, and why not others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from fractions import Fraction
from math import nan
from typing import Any, Final

import msgspec

from modicum.api import operations
from modicum.api.schema.policy import RuleRounds
from modicum.console.jobs import job_of, job_page
from modicum.console.registry import DONE, after, form, page
from modicum.console.relay import RefusedError, Relay
from modicum.core.rationals import number_text, parse_number
from modicum.reports.charts import Chart, budget_left

DONE["round-opened"] = "The round is open."
DONE["plan-committed"] = "The plan is committed. Its releases are reserved."

#: The most requests of a page; and the most whose text is shown with them.
REQUESTS_MAX: Final = 500
_TEXTS_MAX: Final = 20
_ROUNDS_MAX: Final = 500
#: The fullest rules, of which one can be chosen.
RULES: Final = 50
_JOB: Final = "plan-round"
_DAY: Final = int(timedelta(days=1).total_seconds())
_OUTCOMES: Final = ("accepted", "rejected", "left out")
SOLVERS: Final = {
    "dpk": "quick, and near the best",
    "ilp": "the best found in ten seconds",
    "guided": "between dpk and ilp",
    "fcfs": "in the order of arrival",
    "dpf": "many small ones first",
    "dpf-weighted": "the same, by utility",
    "dpf-remaining": "the same, by what is left",
    "dpf-weighted-remaining": "by utility and what is left",
}


@page("/rounds", "rounds.html", "Rounds")
async def rounds(relay: Relay) -> dict[str, Any]:
    """Return the rounds, newest first, and the plans that were committed."""
    found = (await relay.get(operations.ROUNDS)).rounds[::-1]
    plans = await relay.try_get(operations.PLANS)
    rules = await relay.try_get(operations.RULES, order="tightest", limit=RULES)
    fullest = rules.rules if rules else ()
    limited = [one.rule for one in fullest if one.share is not None]
    rule = relay.query.get("rule") or next(iter(limited), "")
    budgets = refused = None
    if found and rule:
        try:
            budgets = await relay.get(operations.RULE_ROUNDS, rule=rule)
        except RefusedError as error:  # The rounds are shown all the same.
            refused = error.problem
    return {
        "rounds": found[:_ROUNDS_MAX],
        "total": len(found),
        "sizes": {one.plan: len(one.releases) for one in plans.plans} if plans else {},
        "units": rules.units if rules else (),
        "rules": limited,
        "rule": budgets.rule if budgets else rule,
        "refused": refused,
        "chart": _left(budgets) if budgets and budgets.segments else None,
    }


def _left(found: RuleRounds) -> Chart:
    """Return the drawing of what each round left of the budget of a rule."""
    names = [
        "everybody" if one.group is None else f"group {one.group}"
        for one in found.segments
    ]
    left = [
        [nan if share is None else share for share in one.left]
        for one in found.segments
    ]
    return budget_left(left, names, first_round=found.first)


@form("/rounds/open", rounds)
async def open_round(relay: Relay) -> str:
    """Open the next round."""
    opened = await relay.call(operations.OPEN_ROUND, _round(relay.fields))
    return after("/rounds/{}", opened.value.round, done="round-opened")


def _round(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the round to open; a share that is no number stays, and is refused."""
    found: dict[str, Any] = {"round": fields["round"]} if fields.get("round") else {}
    lines = fields.get("unlocked", "").replace(",", "\n").splitlines()
    pairs = (one.partition("=") for one in lines if one.strip())
    shares = {unit.strip(): _share(share.strip()) for unit, _, share in pairs}
    return found | {"unlocked": shares}


def _share(text: str) -> str:
    percent = parse_number(text.removesuffix("%").strip())
    if percent is None or not text.endswith("%"):
        return text
    return number_text(percent / 100)


@page("/rounds/{round_id:path}", "round.html", "Rounds")
async def round_page(relay: Relay) -> dict[str, Any]:
    """Return a round, its committed plans, and the plan that a job has made."""
    name = relay.named("round_id")
    one = await relay.get(operations.ROUND, round_id=name)
    found = await relay.try_get(operations.PLANS)
    job = await job_of(relay, _JOB)
    plan: Any = job.result if job and job.state == "done" else None
    if plan is not None and plan["round"] != name:
        job = plan = None
    return {
        "round": one,
        "plans": [each for each in found.plans if each.round == name] if found else [],
        "job": job,
        "plan": plan,
        "view": plan_view(plan, relay.query) if plan else None,
        "solvers": SOLVERS,
    }


def plan_view(plan: Mapping[str, Any], query: Mapping[str, str]) -> dict[str, Any]:
    """Return the requests of a plan that match a filter, and their sums."""
    outcome, text = query.get("outcome", ""), query.get("text", "").strip().lower()
    matched = [
        one
        for one in plan["requests"]
        if outcome in ("", one["outcome"]) and text in one["release"].lower()
    ]
    return {
        "requests": matched[:REQUESTS_MAX],
        "matched": len(matched),
        "texts": len(matched) <= _TEXTS_MAX,
        "outcome": outcome,
        "text": query.get("text", ""),
        "sums": {one: _sum(plan, one) for one in _OUTCOMES},
        "all": (len(plan["requests"]), float(Fraction(plan["possible"]))),
    }


def _sum(plan: Mapping[str, Any], outcome: str) -> tuple[int, float]:
    found = [one for one in plan["requests"] if one["outcome"] == outcome]
    worth = sum((Fraction(one["utility"]) for one in found), Fraction(0))
    return len(found), float(worth)


@form("/rounds/{round_id:path}/plan", round_page)
async def plan_round(relay: Relay) -> str:
    """Begin to choose which requests to reserve together."""
    name, solver = relay.named("round_id"), relay.fields.get("solver", "")
    requests = requests_of(relay.fields.get("requests", ""))
    job = (
        await relay.call(
            operations.PLAN_ROUND, requests, round_id=name, solver=solver or None
        )
    ).value
    return job_page("/rounds/{}", name, job=job.job)


def requests_of(text: str) -> Any:
    """Return requests as they are sent: YAML, or JSON with a document on each line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) < 2 or not all(line[0] == "{" and line[-1] == "}" for line in lines):
        return text
    return msgspec.Raw(f"[{','.join(lines)}]".encode())


@form("/rounds/{round_id:path}/commit", round_page)
async def commit(relay: Relay) -> str:
    """Reserve everything that a plan accepts, or nothing."""
    name = relay.named("round_id")
    job = await relay.get(operations.JOB, job=relay.fields.get("job") or "none")
    days = relay.fields.get("days", "")
    seconds = int(days) * _DAY if re.fullmatch("[0-9]{1,9}", days) else days
    await relay.call(
        operations.COMMIT_PLAN, job.result, reserve_seconds=seconds or None
    )
    return after("/rounds/{}", name, done="plan-committed")
