"""JSON Schemas of the part of the data that a release reads, and of its worth."""

from __future__ import annotations

from collections.abc import Iterable

from modicum.policy.json_schema.parts import (
    Schema,
    closed,
    name,
    named,
    probability,
    whole,
    words,
)
from modicum.release import Partition, Vocabulary
from modicum.release.part_parser import GROUP_MAX, LISTED_MAX
from modicum.release.read_part import BOXES_MAX
from modicum.release.utility import UTILITY_MAX

_PERIOD = r"^[0-9]{4}(-[0-9]{2}(-[0-9]{2})?|-W[0-9]{2}|-Q[1-4])?$"


def utility() -> Schema:
    """Return the schema of `utility`."""
    return {
        "type": "number",
        "minimum": 0,
        "maximum": UTILITY_MAX,
        "description": "what it is worth, for planning rounds; 1 if left out",
    }


def sampling(units: Iterable[str] | None) -> Schema:
    """Return the schema of `sampling`.

    Args:
        units: The privacy units of a policy; None if there is none.
    """
    unit = name("a privacy unit") if units is None else words(units, "a privacy unit")
    properties: dict[str, Schema] = {
        "unit": unit,
        "rate": probability("the probability of each instance"),
        "by": {"const": "poisson", "description": "how it is drawn"},
    }
    return closed(properties, ["unit", "rate"], "the secret sample that it runs on")


def part_properties(vocabulary: Vocabulary | None) -> dict[str, Schema]:
    """Return the schemas of `where`, `periods` and `groups`.

    Args:
        vocabulary: The words of a policy. Without one, every name may be an attribute
            that divides the population.
    """
    labels = () if vocabulary is None else vocabulary.labels
    period: Schema = {
        "anyOf": [{"type": "string", "pattern": _PERIOD}, whole(1, 9999, "a year")]
    }
    group = whole(0, GROUP_MAX, "a user group")
    found = {
        "where": _several(_box(vocabulary), BOXES_MAX, "whose rows it reads"),
        "periods": _spans(period, "when these rows happened"),
        "groups": _spans(group, "which user groups they belong to"),
    }
    return {key: schema for key, schema in found.items() if key not in labels}


def _box(vocabulary: Vocabulary | None) -> Schema:
    if vocabulary is None:
        number: Schema = {"type": "integer"}
        value = _spans({"anyOf": [name("a value"), number]}, "values")
        return {**named(value, "what holds together"), "minProperties": 1}
    partitions = vocabulary.population.partitions.values()
    values = {one.name: _values(one) for one in partitions}
    return {**closed(values, [], "what holds together"), "minProperties": 1}


def _values(partition: Partition) -> Schema:
    if partition.values is not None:
        one = words(partition.values, "a value")
        return _several(one, LISTED_MAX, f"values of {partition.name}")
    number = whole(partition.low, partition.high, "a number")
    return _spans(number, f"numbers of {partition.name}")


def _spans(each: Schema, description: str) -> Schema:
    span = closed({"from": each, "to": each}, [], "from one to another")
    one: Schema = {"anyOf": [each, {**span, "minProperties": 1}]}
    return _several(one, LISTED_MAX, description)


def _several(each: Schema, most: int, description: str) -> Schema:
    many: Schema = {"type": "array", "items": each, "minItems": 1, "maxItems": most}
    return {"anyOf": [each, many], "description": description}
