"""The digest of a query, which ensures that the approved query is the one that runs.

Two queries on different rows can cost the same, and then have the same mechanisms. The
digest distinguishes them. It contains no literal; but anyone who can guess a whole
query can confirm the guess by its digest, unless a salt was added.
"""

from __future__ import annotations

from fractions import Fraction

from modicum.core.canonical import Plain, digest, encode
from modicum.core.rationals import number_text
from modicum.query.request import QueryRequest
from modicum.query.tables import Column, Table, Value

#: The prefix of a release's digest.
PREFIX = "sha256:"


def identity_of(
    request: QueryRequest, sql: str, confidence: Fraction, salt: str
) -> str:
    """Return the digest of a query and of all declarations that it uses.

    Args:
        request: The query, its bounds and its noise.
        sql: Its text, as it was written.
        confidence: The confidence of its answers' intervals.
        salt: A secret salt; "" for none.
    """
    discovery = request.discovery
    plain: Plain = {
        "sql": sql,
        "tables": [
            _table(request.tables.by_name[name])
            for name in sorted(request.query.sources)
        ],
        "caps": {cap.unit: cap.rows for cap in request.caps},
        "noise": request.noise,
        "loss": [request.unit, number_text(request.loss)],
        "weights": {name: number_text(one) for name, one in request.weights.items()},
        "discovery": None
        if discovery is None
        else [number_text(discovery.share), number_text(discovery.delta)],
        "bins": request.bins,
        "confidence": number_text(confidence),
        "salt": salt,
    }
    return PREFIX + digest(encode(plain))


def _table(table: Table) -> Plain:
    public = {} if table.key is None else {"key": table.key}
    return {
        **public,
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
