"""The JSON Schema of release files, in general or with the vocabulary of one policy."""

from __future__ import annotations

from collections.abc import Iterable

from modicum.accounting.mechanisms import RELEASE_KINDS
from modicum.accounting.mechanisms.kind import WHOLE_MAX, Kind, Parameter
from modicum.policy.json_schema.parts import (
    DIALECT,
    Schema,
    choices,
    closed,
    line,
    listed,
    measured,
    name,
    named,
    positive,
    probability,
    ref,
    release_id,
    whole,
)
from modicum.release import Partition, Vocabulary
from modicum.release.parser import (
    CONTRIBUTIONS_MAX,
    MECHANISMS_MAX,
)
from modicum.release.part_parser import BOXES_MAX, GROUP_MAX, LISTED_MAX
from modicum.release.selection import DISTRIBUTIONS
from modicum.release.utility import UTILITY_MAX
from modicum.release.vocabulary import METADATA

_PERIOD = r"^[0-9]{4}(-[0-9]{2}(-[0-9]{2})?|-W[0-9]{2}|-Q[1-4])?$"


def utility() -> Schema:
    """Return the schema of `utility`."""
    return {
        "type": "number",
        "minimum": 0,
        "maximum": UTILITY_MAX,
        "description": "its utility, for planning rounds; by default 1",
    }


def sampling(units: Iterable[str] | None) -> Schema:
    """Return the schema of `sampling`.

    Args:
        units: The privacy units of a policy; None if there is none.
    """
    unit = name("a privacy unit") if units is None else choices(units, "a privacy unit")
    properties: dict[str, Schema] = {
        "unit": unit,
        "rate": probability("the probability of each instance"),
        "by": {"const": "poisson", "description": "how it is drawn"},
    }
    return closed(properties, ["unit", "rate"], "its secret sample")


def selection() -> Schema:
    """Return the schema of `selection`."""
    parameters: dict[str, Schema] = {
        "gamma": probability("with less, there are more runs"),
        "eta": {"type": "number", "exclusiveMinimum": -1, "description": "its shape"},
        "mean": positive("the mean number of runs"),
    }
    kinds = [
        closed(
            {
                "distribution": {"const": word, "description": "of the number of runs"},
                **{key: parameters[key] for key in needed},
            },
            ["distribution", *needed],
        )
        for word, needed in DISTRIBUTIONS.items()
    ]
    return {"oneOf": kinds, "description": "the best of a random number of runs"}


def part_properties(vocabulary: Vocabulary | None) -> dict[str, Schema]:
    """Return the schemas of `where`, `periods` and `groups`.

    Args:
        vocabulary: The vocabulary of a policy. Without one, every name may be an
            attribute that divides the population.
    """
    labels = () if vocabulary is None else vocabulary.labels
    period: Schema = {
        "anyOf": [{"type": "string", "pattern": _PERIOD}, whole(1, 9999, "a year")]
    }
    group = whole(0, GROUP_MAX, "a user group")
    found = {
        "where": _several(_box(vocabulary), BOXES_MAX, "the part of the population"),
        "periods": _spans(period, "the periods of the rows"),
        "groups": _spans(group, "the user groups of the rows"),
    }
    return {key: schema for key, schema in found.items() if key not in labels}


def _box(vocabulary: Vocabulary | None) -> Schema:
    if vocabulary is None:
        number: Schema = {"type": "integer"}
        value = _spans({"anyOf": [name("a value"), number]}, "values")
        return {**named(value, "conditions that apply together"), "minProperties": 1}
    partitions = vocabulary.population.partitions.values()
    values = {one.name: _values(one) for one in partitions}
    return {**closed(values, [], "conditions that apply together"), "minProperties": 1}


def _values(partition: Partition) -> Schema:
    if partition.values is not None:
        one = choices(partition.values, "a value")
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


_DATE = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"


def release_schema(vocabulary: Vocabulary | None = None) -> Schema:
    """Return the JSON Schema of release files.

    Args:
        vocabulary: The vocabulary of a policy. Without one, every name may be a label,
            a unit or an attribute.
    """
    labels = _labels(vocabulary)
    properties: dict[str, Schema] = {
        "release": release_id("its permanent id"),
        **{key: line("free text, for predicates and readers") for key in METADATA},
        "released_on": {
            "type": "string",
            "pattern": _DATE,
            "description": "the publication date of a past release: 2026-03-01",
        },
        "evidence": line("the URL of a past release"),
        "labeled_by": line("the author of the description of a past release"),
        "query": {
            "type": "string",
            "pattern": "^sha256:[0-9a-f]{64}$",
            "description": "its private query; written by `modicum query`",
        },
        "utility": utility(),
        **labels,
        **part_properties(vocabulary),
        "sampling": sampling(None if vocabulary is None else vocabulary.units),
        "mechanisms": {
            **listed(ref("mechanism"), "its mechanisms", at_least=1),
            "maxItems": MECHANISMS_MAX,
        },
    }
    release = _open(
        closed(properties, ["release", "mechanisms"], "one release"), vocabulary
    )
    several = listed(ref("release"), "releases")
    return {
        "$schema": DIALECT,
        "title": "modicum releases",
        "anyOf": [
            ref("release"),
            several,
            closed({"releases": {"anyOf": [several, ref("release")]}}, ["releases"]),
            closed({"requests": several}, ["requests"], "requests of a round"),
        ],
        "$defs": {
            "release": release,
            "mechanism": {
                "description": "one mechanism",
                "oneOf": [
                    _open(_mechanism(kind, vocabulary), vocabulary)
                    for kind in RELEASE_KINDS.values()
                ],
            },
            "cost": measured("a cost", probability("delta; without it, pure DP")),
            "selection": selection(),
        },
    }


def _open(schema: Schema, vocabulary: Vocabulary | None) -> Schema:
    """Allow other keys as labels where no policy defines the labels."""
    if vocabulary is not None:
        return schema
    return {**schema, "additionalProperties": name("a value of a label")}


def _labels(vocabulary: Vocabulary | None) -> dict[str, Schema]:
    if vocabulary is None:
        return {}
    return {
        label: choices(declared.values, f"by default {declared.default}")
        for label, declared in vocabulary.labels.items()
    }


def _mechanism(kind: Kind, vocabulary: Vocabulary | None) -> Schema:
    units = None if vocabulary is None else vocabulary.units
    attribute = (
        line("an attribute")
        if vocabulary is None
        else choices(sorted(vocabulary.attributes), "an attribute")
    )
    labels = _labels(vocabulary)
    bound = whole(1, CONTRIBUTIONS_MAX, "the number of rows used per instance")
    properties: dict[str, Schema] = {
        "name": name("its name within the release"),
        "mechanism": {"const": kind.name, "description": "its kind"},
        "attributes": {
            **listed(attribute, "the attributes that it reads"),
            "uniqueItems": True,
        },
        **labels,
        **part_properties(vocabulary),
        "contribution_bound": _by_unit(bound, units, "enforced bounds, by unit"),
        "cost": _by_unit(ref("cost"), units, "its loss, by unit"),
    }
    for key, parameter in kind.described.items():
        properties[key] = _parameter(parameter)
    if kind.norm is not None:
        size = closed({kind.norm: positive("its size")}, [kind.norm])
        properties["sensitivity"] = _by_unit(size, units, "sensitivities, by unit")
    if kind.samples or (kind.norm is not None and kind.open_relation):
        properties["sampling"] = sampling(units)
    if not kind.local and "selection" not in labels:
        properties["selection"] = ref("selection")
    found = "" if {"eps", "delta"} & labels.keys() else kind.target
    if found:
        properties["eps"] = positive(f"the eps for which {found} is computed")
        properties["delta"] = probability(f"the delta for which {found} is computed")
    if kind.local:
        properties["public_frame"] = {
            "type": "boolean",
            "description": "whether participation is public",
        }
    schema = closed(properties, ["mechanism", "attributes"], f"mechanism {kind.name}")
    if kind.norm is None and not kind.samples:
        return schema
    moved = "sampling" if kind.samples else "sensitivity"
    needed = {
        key: [moved, *(one for one in kind.needed if one != key)]
        for key in kind.described
    }
    if "sampling" in properties:
        needed["sampling"] = [*([] if kind.samples else [moved]), *kind.needed]
    if found:
        needed |= {"eps": ["sensitivity", "delta"], "delta": ["sensitivity", "eps"]}
    return {**schema, "dependentRequired": needed}


def _parameter(parameter: Parameter) -> Schema:
    if parameter.whole:
        return whole(int(parameter.least), WHOLE_MAX, parameter.meaning)
    return (probability if parameter.most == 1 else positive)(parameter.meaning)


def _by_unit(each: Schema, units: Iterable[str] | None, description: str) -> Schema:
    if units is None:
        return named(each, description)
    return named(each, description, key={"enum": list(units)})
