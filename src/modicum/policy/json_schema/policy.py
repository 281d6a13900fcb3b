"""The JSON Schema of policy files, for completion and first checks in editors.

The compiler is authoritative: the schema accepts whatever it accepts.
"""

from __future__ import annotations

from modicum.accounting import FILTERS
from modicum.accounting.filters.unlock_schedule import ROUNDS_MAX
from modicum.policy.declarations.population import DETAIL_MAX, DOMAIN_MAX
from modicum.policy.declarations.roles import APPROVERS_MAX
from modicum.policy.declarations.units import GROUP_MAX, UNITS_MAX
from modicum.policy.json_schema.parts import (
    DIALECT,
    LEVELS,
    Schema,
    choices,
    closed,
    definitions,
    identifiers,
    limit_delta,
    line,
    listed,
    name,
    named,
    person,
    ref,
    whole,
)
from modicum.policy.model import RESERVATION_DAYS_MAX, UNMATCHED, Retired
from modicum.policy.parser import FORMAT
from modicum.release.units import PERIODS, RELATIONS

_ACCOUNTANTS = ("rdp", "zcdp", "basic")


def policy_schema(*, part: bool = False) -> Schema:
    """Return the JSON Schema of policy files.

    Args:
        part: Whether it is for files that a policy includes: these need no key.
    """
    schema: Schema = {
        "$schema": DIALECT,
        "title": "A part of a modicum policy" if part else "A modicum policy",
        "type": "object",
        "properties": _sections(),
        "additionalProperties": False,
        "$defs": definitions(),
    }
    return schema if part else {**schema, **_requirements()}


def _requirements() -> Schema:
    """Return the required parts of a policy, here or in its includes."""
    return {
        "required": ["modicum", "name"],
        "anyOf": [
            {"required": ["include"]},
            {
                "required": ["units", "schema"],
                "anyOf": [{"required": ["policies"]}, {"required": ["per_release"]}],
            },
        ],
    }


def _sections() -> dict[str, Schema]:
    return {
        "modicum": {"const": FORMAT, "description": "the version of the format"},
        "include": {
            "description": "files that are included first; paths relative to this one",
            "anyOf": [line("one path"), listed(line("a path"), "paths")],
        },
        "name": name("the name of the policy"),
        "dp": _dp(),
        "units": {
            **named(_unit(), "privacy units, whose loss is limited"),
            "minProperties": 1,
            "maxProperties": UNITS_MAX,
        },
        "labels": identifiers(_label(), "closed vocabularies for contexts"),
        "schema": closed(
            {
                "categories": named(
                    name("a risk level"), "categories, each with its risk level"
                ),
                "attributes": named(_attribute(), "attributes of the data"),
                "was": named(
                    {
                        "anyOf": [
                            name("an attribute"),
                            listed(name("an attribute"), "attributes", at_least=1),
                        ]
                    },
                    "by former attribute, the current ones that it may be",
                ),
            },
            [],
            "the contents of the data",
        ),
        "population": _population(),
        "rotation": _rotation(),
        "reservations": _reservations(),
        "unmatched": choices(
            UNMATCHED, "what happens to a mechanism that no rule of `policies` limits"
        ),
        "policies": listed(ref("base_policy"), "limits on everything released"),
        "extensions": listed(_extension(), "contexts that multiply the policies"),
        "per_release": listed(ref("release_policy"), "limits on each release alone"),
        "guards": listed(_guard(), "what descriptions of releases must contain"),
        "roles": named(_people_list(), "the people of each role"),
        "keys": named(
            _signing_keys(), "the people who must sign, and their keys", key=person()
        ),
        "owners": named(
            _people_list(), "the people who answer for each program", key=person()
        ),
        "approvals": listed(_approval(), "approvals of releases"),
        "activation": closed(
            _people(), ["need", "from"], "approvals of the next policy"
        ),
        "disclosed_invariants": listed(
            name("an invariant"), "facts published outside DP"
        ),
    }


def _dp() -> Schema:
    kinds = ("pure-dp", "zcdp", "gdp")
    delta = limit_delta("the delta of a bare number")
    approximate = closed(
        {"type": {"const": "approx-dp"}, "delta": delta}, ["type", "delta"]
    )
    others = closed({"type": choices(kinds, "its measure")}, ["type"])
    schema = closed(
        {
            "neighbors": choices(RELATIONS, "the neighboring relation"),
            "filter": choices(FILTERS, "the privacy filter"),
            "accountant": choices(_ACCOUNTANTS, "the former name of `filter`"),
            "bare_budget": {
                "description": "the measure of a budget that is only a number",
                "oneOf": [approximate, others],
            },
        },
        [],
        "the accounting of losses",
    )
    return {**schema, "not": {"required": ["filter", "accountant"]}}


def _people_list() -> Schema:
    return {**listed(person(), "its people", at_least=1), "uniqueItems": True}


def _signing_keys() -> Schema:
    key: Schema = {
        "type": "string",
        "pattern": "^[0-9a-f]{64}$",
        "description": "a raw Ed25519 public key, in hexadecimal",
    }
    several = {**listed(key, "one of these", at_least=1), "uniqueItems": True}
    return {"description": "the keys of a person", "anyOf": [key, several]}


def _unit() -> Schema:
    time = closed(
        {
            "column": line("the time column"),
            "period": choices(PERIODS, "the period of one instance"),
        },
        ["column", "period"],
        "the period of time of one instance; without it, all of time",
    )
    count = whole(1, GROUP_MAX, "how many")
    return closed(
        {
            "id": line("the id column"),
            "time": time,
            "within": {
                "description": "units that cover this one",
                "anyOf": [name("a unit"), listed(name("a unit"), "units")],
            },
            "groups": named(
                count, "by larger unit: how many of this one it has at most"
            ),
            "neighbors": choices(RELATIONS, "the neighboring relation"),
        },
        ["id"],
        "a privacy unit",
    )


def _label() -> Schema:
    return closed(
        {
            "values": {
                **listed(name("a value"), "all values", at_least=1),
                "uniqueItems": True,
            },
            "default": name("the value of a mechanism that gives none"),
            "was": named(name("its present value"), "by value under the policy before"),
            "former_name": name("its name under the policy before"),
        },
        ["values", "default"],
        "a closed label",
    )


def _attribute() -> Schema:
    risk = name("a risk level")
    memberships = named(choices(LEVELS, "the membership level"), "by category")
    return {
        "description": "a risk level, or [risk level, {category: membership}, static]",
        "anyOf": [
            risk,
            {
                "type": "array",
                "prefixItems": [
                    risk,
                    memberships,
                    {"const": "static", "description": "its values have no time"},
                ],
                "minItems": 1,
                "maxItems": 3,
            },
        ],
    }


def _population() -> Schema:
    end = whole(-DOMAIN_MAX, DOMAIN_MAX, "an end of the range")
    immutable = listed(name("a unit"), "units whose instances never change it")
    values = listed(name("a value"), "all values", at_least=1)
    ends: Schema = {"type": "array", "items": end, "minItems": 2, "maxItems": 2}
    partition: Schema = {
        "description": "a count of values, or the values themselves",
        "oneOf": [
            whole(1, DOMAIN_MAX, "how many values"),
            closed(
                {"values": values, "immutable": immutable, "was": _was_of_values()},
                ["values"],
            ),
            closed(
                {"range": ends, "immutable": immutable, "was": _was_of_range(end)},
                ["range"],
            ),
        ],
    }
    count = whole(1, DETAIL_MAX, "how many periods")
    return closed(
        {
            "partition_by": named(partition, "public attributes"),
            "groups": closed(
                {"immutable": listed(name("a unit"), "units with a fixed group")},
                ["immutable"],
                "user groups",
            ),
            "time_detail": named(count, "recent periods kept separate, by unit"),
        },
        [],
        "how the population is divided",
    )


def _rotation() -> Schema:
    slack: Schema = {
        "type": "number",
        "minimum": 0,
        "maximum": 1,
        "description": "how much larger early steps are than late ones",
    }
    fates = [one.value for one in Retired]
    return closed(
        {
            "active": whole(
                1, ROUNDS_MAX, "the number of rounds that a group is active"
            ),
            "slack": slack,
            "retired": choices(fates, "the use of the budget left in retired groups"),
            "opened_by": listed(
                name("a role"), "the roles whose people may open rounds", at_least=1
            ),
        },
        ["active"],
        "rotation of user groups, and the unlocked share of their budgets",
    )


def _reservations() -> Schema:
    share: Schema = {
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": 1,
        "description": "the part of each limit",
    }
    return closed(
        {
            "share": share,
            "days": whole(1, RESERVATION_DAYS_MAX, "the longest reservation"),
            "data_sets": named(
                closed({"share": share}, ["share"]),
                "the limits for all identities together, by data set",
            ),
        },
        [],
        "the limits of unstarted reservations",
    )


def _was_of_values() -> Schema:
    value = name("a present value")
    several = listed(value, "present values", at_least=1)
    return named(
        {"anyOf": [value, several], "description": "its possible current values"},
        "by value under the policy before",
    )


def _was_of_range(end: Schema) -> Schema:
    span = closed({"from": end, "to": end}, [], "numbers, both included")
    one: Schema = {"anyOf": [end, span]}
    several: Schema = {
        "anyOf": [end, span, listed(one, "numbers and spans", at_least=1)]
    }
    entry = closed({"old": several, "now": several}, ["old", "now"], "one step")
    return listed(entry, "the possible current values of old ones")


def _extension() -> Schema:
    setting = closed(
        {
            "when": ref("predicate"),
            "budget": ref("budget_map"),
            "within": name("a setting that covers this one"),
        },
        ["when", "budget"],
        "one context",
    )
    settings = {**named(setting, "the contexts, in order"), "minProperties": 1}
    return closed(
        {"name": name("its name"), "settings": settings},
        ["name", "settings"],
        "contexts",
    )


def _guard() -> Schema:
    return closed(
        {
            "name": name("its name"),
            "unless": ref("predicate"),
            "message": line("the message to the author of the description"),
        },
        ["name", "unless", "message"],
        "refuses mechanisms for which `unless` does not hold",
    )


def _approval() -> Schema:
    return closed(
        {"when": ref("predicate"), **_people()},
        ["when", "need", "from"],
        "the approvers",
    )


def _people() -> dict[str, Schema]:
    return {
        "need": whole(1, APPROVERS_MAX, "the number of people"),
        "from": listed(name("a role"), "their possible roles", at_least=1),
        "requester_may_approve": {
            "type": "boolean",
            "description": "whether the requester may be one of them",
        },
    }
