"""Common parts of the JSON Schemas of policies and releases.

A schema accepts everything that the parser accepts. The parser also checks what no
schema can express: names that must be declared, claims, predicates, exact numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from modicum.accounting.grid import ORDERS
from modicum.core.rationals import number_text
from modicum.policy.model import REQUESTER_DAYS_MAX, Level

Schema: TypeAlias = dict[str, object]

#: The dialect of JSON Schema.
DIALECT = "https://json-schema.org/draft/2020-12/schema"

# Letters beyond ASCII cannot be distinguished in every dialect of patterns; the parser
# is stricter.
_NAME = r"^[^\x00-/:-@\[-^`{-\x7f][^\x00-*,/:-@\[-^`{-\x7f]*$"
_RELEASE_ID = r"^[^\x00-/:-@\[-^`{-\x7f][^\x00-*,;-?\[-^`{-\x7f]*$"
_IDENTIFIER = r"^[^\x00-@\[-^`{-\x7f][^\x00-/:-@\[-^`{-\x7f]*$"
# A key that is a number is a text in JSON.
_NUMBER_KEY = r"^\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"


def name(description: str) -> Schema:
    """Return the schema of a name."""
    return {
        "type": "string",
        "pattern": _NAME,
        "maxLength": 128,
        "description": description,
    }


def release_id(description: str) -> Schema:
    """Return the schema of a release id."""
    return {
        "type": "string",
        "pattern": _RELEASE_ID,
        "maxLength": 200,
        "description": description,
    }


def person() -> Schema:
    """Return the schema of a person: an actor of a ledger."""
    return release_id("a person")


def choices(known: Iterable[str], description: str) -> Schema:
    """Return the schema of one of a closed set of words."""
    return {"enum": list(known), "description": description}


def line(description: str) -> Schema:
    """Return the schema of a text."""
    return {"type": "string", "maxLength": 2000, "description": description}


def positive(description: str) -> Schema:
    """Return the schema of a number greater than 0."""
    return {"type": "number", "exclusiveMinimum": 0, "description": description}


def probability(description: str) -> Schema:
    """Return the schema of a number strictly between 0 and 1."""
    return {**positive(description), "exclusiveMaximum": 1}


def whole(at_least: int, at_most: int, description: str) -> Schema:
    """Return the schema of a whole number, both ends included."""
    return {
        "type": "integer",
        "minimum": at_least,
        "maximum": at_most,
        "description": description,
    }


def closed(
    properties: Mapping[str, Schema], required: Iterable[str], description: str = ""
) -> Schema:
    """Return the schema of a mapping with fixed keys."""
    schema: Schema = {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }
    return {**schema, "description": description} if description else schema


def named(each: Schema, description: str, *, key: Schema | None = None) -> Schema:
    """Return the schema of a mapping whose keys are names."""
    return {
        "type": "object",
        "propertyNames": {"pattern": _NAME, "maxLength": 128} if key is None else key,
        "additionalProperties": each,
        "description": description,
    }


def identifiers(each: Schema, description: str) -> Schema:
    """Return the schema of a mapping whose keys are names without `. + -`."""
    key: Schema = {"pattern": _IDENTIFIER, "maxLength": 128}
    return named(each, description, key=key)


def numbered(each: Schema, description: str) -> Schema:
    """Return the schema of a mapping whose keys are numbers, at least one."""
    return {
        **named(each, description, key={"pattern": _NUMBER_KEY}),
        "minProperties": 1,
    }


def listed(each: Schema, description: str, *, at_least: int = 0) -> Schema:
    """Return the schema of a list."""
    schema: Schema = {"type": "array", "items": each, "description": description}
    return {**schema, "minItems": at_least} if at_least else schema


def ref(definition: str) -> Schema:
    """Return a reference to one of the definitions."""
    return {"$ref": f"#/$defs/{definition}"}


def limit_delta(description: str) -> Schema:
    """Return the schema of the delta of a limit: the ledger counts in 1e-18."""
    return {**probability(description), "minimum": 1e-18}


def measured(what: str, delta: Schema) -> Schema:
    """Return the schema of a guarantee or limit: the key names the measure."""
    orders = ", ".join(number_text(order) for order in ORDERS)
    divergences = numbered(positive("a divergence"), f"by Renyi order: {orders}")
    return {
        "title": what,
        "oneOf": [
            closed(
                {"eps": positive("epsilon"), "delta": delta},
                ["eps"],
                f"{what} in epsilon and delta",
            ),
            closed({"rho": positive("rho")}, ["rho"], f"{what} in rho-zCDP"),
            closed({"mu": positive("mu")}, ["mu"], f"{what} in mu-GDP"),
            closed({"rdp": divergences}, ["rdp"], f"{what} by Renyi orders"),
        ],
    }


#: The degrees of membership in a category.
LEVELS = tuple(level.value for level in Level)


def definitions() -> dict[str, Schema]:
    """Return the schemas that others refer to, by name."""
    window = whole(
        1, REQUESTER_DAYS_MAX, "the limit also holds for one identity in these days"
    )
    return {
        "predicate": line("CEL over `m` (the mechanism) and `release`"),
        "budget": {
            "description": "a limit; the key names the measure",
            "anyOf": [
                positive("only if dp.bare_budget defines its measure"),
                {"const": "unlimited", "description": "tracked, never enforced"},
                measured("a budget", limit_delta("delta; without it, pure DP")),
            ],
        },
        "budget_map": _budget_map(),
        "budgets_by_risk": named(ref("budget"), "a budget for each risk level"),
        "base_policy": _base_policy({}),
        "release_policy": _base_policy({"requester_days": window}),
    }


def _budget_map() -> Schema:
    table = closed(
        {
            "map": numbered(positive("to"), "from: to"),
            "between": choices(("linear", "floor", "error"), "between two keys"),
            "below": choices(("proportional", "error"), "below the first key"),
            "above": choices(("last", "unlimited", "error"), "above the last key"),
        },
        ["map"],
        "looked up in a table",
    )
    return {
        "description": "how a budget changes",
        "oneOf": [
            {"const": "same", "description": "not at all"},
            closed({"scale": positive("a factor")}, ["scale"], "times a factor"),
            closed({"add": ref("budget")}, ["add"], "plus a budget"),
            closed({"to": ref("budget")}, ["to"], "another budget"),
            table,
        ],
    }


def _base_policy(more: dict[str, Schema]) -> Schema:
    common: dict[str, Schema] = {
        "name": name("its rules are named after it"),
        "unit": name("the privacy unit its losses are measured for"),
        **more,
    }
    by_risk = {**common, "budget": ref("budgets_by_risk")}
    levels: Schema = {
        **named(ref("budget_map"), "by level", key={"enum": list(LEVELS)}),
        "minProperties": 1,
    }
    override = named(ref("budget"), "by attribute: its own budget")
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
