"""Tables as they may be declared, for tests of queries."""

from __future__ import annotations

from fractions import Fraction

from modicum.query.tables import Column, Table, Tables

_VIEWS = (
    Column("view_id", "integer"),
    Column("user_id", "text"),
    Column("event_time", "timestamp"),
    Column("event_date", "date"),
    Column("page", "text", "page", values=("help", "main")),
    Column("country", "text", "country", partition="country", values=("CH", "DE")),
    Column(
        "amount",
        "number",
        "amount",
        step=Fraction(1, 100),
        low=Fraction(0),
        high=Fraction(500),
    ),
    Column("age", "integer", "age", low=Fraction(0), high=Fraction(120)),
    Column("clicks", "integer", "clicks"),
    Column("mobile", "boolean", "mobile"),
    Column("select", "text", "page"),
)
_USERS = (
    Column("user_id", "text"),
    Column("region", "text", "country"),
    Column("age", "integer", "age", low=Fraction(0), high=Fraction(120)),
)
_ORDERS = (
    Column("order_id", "integer"),
    Column("user_id", "text"),
    Column("event_time", "timestamp"),
    Column("page", "text", "page"),
)
_PROFILES = (
    Column("user_id", "integer"),
    Column("event_time", "timestamp"),
)


def _table(
    name: str, columns: tuple[Column, ...], row_id: str, one_per: str | None = None
) -> Table:
    by_name = {column.name: column for column in columns}
    return Table(name, by_name, (row_id,), one_per)


#: Views of pages; people; orders; profiles whose ids are of another type.
TABLES = Tables(
    {
        "views": _table("views", _VIEWS, "view_id"),
        "users": _table("users", _USERS, "user_id", "user_id"),
        "orders": _table("orders", _ORDERS, "order_id"),
        "people": _table("people", _USERS, "user_id", "user_id"),
        "profiles": _table("profiles", _PROFILES, "user_id", "user_id"),
        "sessions": _table("sessions", _ORDERS, "order_id", "user_id"),
    },
    ids=frozenset({"user_id"}),
    clocks=frozenset({"event_time", "event_date"}),
)


def with_table(tables: Tables, *names: str) -> Tables:
    """Return tables with some more, each of orders, that have other names."""
    more = {name: _table(name, _ORDERS, "order_id") for name in names}
    return Tables({**tables.by_name, **more}, tables.ids, tables.clocks)
