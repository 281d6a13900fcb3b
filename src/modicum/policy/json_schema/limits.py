"""The JSON Schema of what limits: base policies, budgets and what changes them."""

from __future__ import annotations

from modicum.policy.json_schema.parts import (
    Schema,
    closed,
    limit_delta,
    line,
    measured,
    name,
    named,
    numbered,
    positive,
    ref,
    words,
)
from modicum.policy.model import Level

#: How closely an attribute can belong to a category.
LEVELS = tuple(level.value for level in Level)


def definitions() -> dict[str, Schema]:
    """Return the schemas that others refer to, by name."""
    return {
        "predicate": line("CEL over `m` (the mechanism) and `release`"),
        "budget": {
            "description": "a limit; the key names the measure",
            "anyOf": [
                positive("only if dp.bare_budget says what it means"),
                {"const": "unlimited", "description": "counted, never enforced"},
                measured("a budget", limit_delta("delta; without it, pure DP")),
            ],
        },
        "budget_map": _budget_map(),
        "budgets_by_risk": named(ref("budget"), "a budget for each risk level"),
        "base_policy": _base_policy(),
    }


def _budget_map() -> Schema:
    table = closed(
        {
            "map": numbered(positive("to"), "from: to"),
            "between": words(("linear", "floor", "error"), "between two keys"),
            "below": words(("proportional", "error"), "below the first key"),
            "above": words(("last", "unlimited", "error"), "above the last key"),
        },
        ["map"],
        "looked up in a table",
    )
    return {
        "description": "how a budget changes",
        "oneOf": [
            {"const": "same", "description": "not at all"},
            closed({"scale": positive("a factor")}, ["scale"], "times a factor"),
            closed({"add": ref("budget")}, ["add"], "more by a budget"),
            closed({"to": ref("budget")}, ["to"], "another budget"),
            table,
        ],
    }


def _base_policy() -> Schema:
    common: dict[str, Schema] = {
        "name": name("its rules are named after it"),
        "unit": name("the privacy unit its losses are measured for"),
    }
    by_risk = {**common, "budget": ref("budgets_by_risk")}
    levels: Schema = {
        **named(ref("budget_map"), "by level", key={"enum": list(LEVELS)}),
        "minProperties": 1,
    }
    override = named(ref("budget"), "by attribute: a budget of its own")
    return {
        "description": "a limit, or one for each attribute or category",
        "oneOf": [
            closed(
                {**common, "when": ref("predicate"), "budget": ref("budget")},
                ["name", "when", "unit", "budget"],
                "one rule",
            ),
            closed(
                {**by_risk, "for_each": {"const": "attribute"}, "override": override},
                ["name", "for_each", "unit", "budget"],
                "one rule for each attribute",
            ),
            closed(
                {**by_risk, "for_each": {"const": "category"}, "levels": levels},
                ["name", "for_each", "unit", "budget"],
                "one rule for each category and level",
            ),
        ],
    }
