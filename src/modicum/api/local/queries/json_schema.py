"""The JSON Schemas of query files and tables files, for completion in editors.

A schema accepts everything that the reader accepts; the reader checks the rest.
"""

from __future__ import annotations

from modicum.policy.json_schema.parts import (
    DIALECT,
    Schema,
    choices,
    closed,
    line,
    listed,
    name,
    named,
    positive,
    probability,
    ref,
    whole,
)
from modicum.policy.json_schema.release import release_schema
from modicum.query.column_format import STEP_LEAST, STEP_MOST
from modicum.query.parser import TEXT_MAX
from modicum.query.request_format import MEASURES, ROWS_MAX
from modicum.query.table_format import FORMAT
from modicum.query.tables import TYPES
from modicum.release import Vocabulary


def query_schema(vocabulary: Vocabulary | None = None) -> Schema:
    """Return the JSON Schema of query files."""
    release = _of(_of(release_schema(vocabulary), "$defs"), "release")
    kept = {
        key: schema
        for key, schema in _of(release, "properties").items()
        if key not in ("query", "mechanisms")
    }
    return {
        **release,
        "$schema": DIALECT,
        "title": "modicum query",
        "description": "a release that is a private query",
        "properties": {**kept, "query": _query(vocabulary)},
        "required": ["release", "query"],
    }


def _query(vocabulary: Vocabulary | None) -> Schema:
    units: Schema | None = None
    if vocabulary is not None:
        units = {"enum": list(vocabulary.units)}
    amounts = [
        closed({measure: positive(measure)}, [measure], f"with {noise} noise")
        for noise, measure in MEASURES.items()
    ]
    loss = named({"oneOf": amounts}, "the loss limit, for one unit", key=units)
    bins = [2**power for power in range(1, 17)]
    share = {
        "share": probability("its share of the loss"),
        "delta": probability("of revealing a key that only one instance has"),
    }
    rows = whole(1, ROWS_MAX, "the maximum number of rows per instance")
    properties: dict[str, Schema] = {
        "tables": line("the path of the tables file, from here"),
        "sql": {"type": "string", "maxLength": TEXT_MAX, "description": "one SELECT"},
        "bounds": named(rows, "the bound on rows, by unit", key=units),
        "noise": choices(MEASURES, "laplace is priced in eps, gaussian in rho"),
        "loss": {**loss, "minProperties": 1, "maxProperties": 1},
        "weights": named(positive("a weight"), "shares of the loss, by aggregate"),
        "discover": closed(
            share, ["delta"], "how keys that are not public are released"
        ),
        "bins": {"enum": bins, "description": "of a quantile"},
        "confidence": probability("the confidence of each interval; 0.95"),
        "salt": line("a secret text"),
    }
    needed = ["tables", "sql", "noise", "loss"]
    return closed(properties, needed, "the query")


def tables_schema(vocabulary: Vocabulary | None = None) -> Schema:
    """Return the JSON Schema of tables files."""
    tables = named(ref("table"), "the tables that may be queried")
    columns = {**named(ref("column"), "the names that may be used"), "minProperties": 1}
    one = name("a column")
    table: dict[str, Schema] = {
        "row_id": {
            "anyOf": [one, listed(one, "several columns", at_least=1)],
            "description": "the permanent id of a row; optional",
        },
        "columns": columns,
        "one_per": name("the id with at most one row for each value"),
        "group": name("the column with the user group"),
        "public": {"type": "boolean", "description": "whether no row is of a person"},
        "key": name("the column that identifies a row of a public table"),
    }
    properties: dict[str, Schema] = {
        "modicum": {"const": FORMAT, "description": "the version of the format"},
        "tables": {**tables, "minProperties": 1},
    }
    return {
        **closed(properties, ["modicum", "tables"]),
        "$schema": DIALECT,
        "title": "modicum tables",
        "$defs": {
            "table": closed(table, ["columns"], "one table"),
            "column": _column(vocabulary),
        },
    }


def _column(vocabulary: Vocabulary | None) -> Schema:
    attribute, partition = name("an attribute"), name("a partitioning attribute")
    if vocabulary is not None:
        known = sorted(vocabulary.attributes)
        attribute = choices([*known, "none"], "the attribute in it")
        partition = choices(
            vocabulary.population.partitions, "the partitioning attribute in it"
        )
    value: Schema = {"type": ["string", "integer", "boolean"]}
    step = positive("what values are rounded to")
    properties: dict[str, Schema] = {
        "type": choices(TYPES, "its type"),
        "attribute": attribute,
        "partition": partition,
        "step": {**step, "minimum": float(STEP_LEAST), "maximum": float(STEP_MOST)},
        "bounds": {
            **listed({"type": "number"}, "values outside are clamped to the bounds"),
            "minItems": 2,
            "maxItems": 2,
        },
        "values": {
            "anyOf": [value, listed(value, "values", at_least=1)],
            "description": "all values that can be groups of an answer",
        },
    }
    return closed(properties, ["type"], "one column")


def _of(schema: Schema, key: str) -> Schema:
    """Return a part of a schema that is one itself."""
    found = schema[key]
    assert isinstance(found, dict)  # Schemas of ours are mappings of mappings.
    return found
