"""What a query is, in one digest: so that what was approved is what runs.

Two queries that read other rows can cost the same, and then are described by the same
mechanisms. The digest tells them apart. It has no literal in it; but who can guess all
of a query can tell by it that the guess was right, unless a salt was added to it.
"""

from __future__ import annotations

from fractions import Fraction

from modicum.core.canonical import Plain, digest, encode
from modicum.core.rationals import number_text
from modicum.query.request import QueryRequest
from modicum.query.tables import Column, Table, Value

#: What the digest of a release stands behind.
PREFIX = "sha256:"


def identity_of(asked: QueryRequest, sql: str, confidence: Fraction, salt: str) -> str:
    """Return the digest of a query, of all that is declared about what it reads.

    Args:
        asked: The query, its bounds and its noise.
        sql: Its text, as it was written.
        confidence: How sure the intervals of its answers are.
        salt: What nobody can guess; "" for none.
    """
    discovery = asked.discovery
    plain: Plain = {
        "sql": sql,
        "tables": [
            _table(asked.tables.by_name[name]) for name in sorted(asked.query.tables)
        ],
        "caps": {cap.unit: cap.rows for cap in asked.caps},
        "noise": asked.noise,
        "loss": [asked.unit, number_text(asked.loss)],
        "weights": {name: number_text(one) for name, one in asked.weights.items()},
        "discovery": None
        if discovery is None
        else [number_text(discovery.share), number_text(discovery.delta)],
        "bins": asked.bins,
        "confidence": number_text(confidence),
        "salt": salt,
    }
    return PREFIX + digest(encode(plain))


def _table(table: Table) -> Plain:
    return {
        "name": table.name,
        "row_id": list(table.row_id),
        "one_per": table.one_per,
        "group": table.group,
        "columns": {name: _column(one) for name, one in table.columns.items()},
    }


def _column(column: Column) -> Plain:
    return {
        "type": column.type,
        "attribute": column.attribute,
        "partition": column.partition,
        "step": number_text(column.step),
        "low": None if column.low is None else number_text(column.low),
        "high": None if column.high is None else number_text(column.high),
        "values": None if column.values is None else [_value(v) for v in column.values],
    }


def _value(value: Value) -> Plain:
    return number_text(value) if isinstance(value, Fraction) else value
