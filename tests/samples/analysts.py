"""A small shop, what is declared about it, and queries as analysts write them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from ruamel.yaml import YAML

FOLDER: Final = Path(__file__).parent / "analyst_queries"
FIRST: Final = date(2026, 9, 1)
DAYS: Final = 91
PERIODS: Final = {"from": "2026-09-01", "to": "2026-11-30"}
_PEOPLE: Final = 80
_COUNTRIES: Final = ("AT", "CH", "DE", "FR", "IT")
_PAGES: Final = ("/", "/help", "/help/returns", "/shop/books", "/shop/toys", "/cart")
_DEVICES: Final = ("desktop", "phone", "tablet")
_TYPES: Final = ("view", "click", "add_to_cart", "checkout", "purchase")
_STATUS: Final = ("paid", "returned", "cancelled")
_PLANS: Final = ("free", "plus", "team")
_COUPONS: Final = ("SU10", "SU20", "WI10")
_REFERRERS: Final = ("ad", "friend", "newsletter", "news")
_PRODUCTS: Final = range(1, 9)

#: Nothing is cut, and noise would be nearly nothing.
DEFAULTS: Final[Mapping[str, Any]] = {
    "bounds": {"user": 1000},
    "noise": "laplace",
    "loss": {"user": {"eps": 10**9}},
}
POLICY: Final = """\
modicum: policy/v1
name: shop
units:
  user: {id: user_id}
  user-day: {id: user_id, time: {column: event_time, period: day}, within: user}
schema:
  attributes: {action: low, page: low, device: low, country: low, product: low,
               revenue: high, quantity: low, duration: low, dates: low, price: low,
               status: low, coupon: low, person: high, plan: low}
policies:
  - {name: all, when: "true", unit: user, budget: {eps: 8, delta: 1e-5}}
"""
TABLES: Final = f"""\
modicum: tables/v1
tables:
  events:
    row_id: event_id
    columns:
      event_id: {{type: integer}}
      user_id: {{type: text}}
      session_id: {{type: integer, attribute: action}}
      event_time: {{type: timestamp}}
      event_type: {{type: text, attribute: action, values: {[*_TYPES]}}}
      page: {{type: text, attribute: page, values: {[*_PAGES]}}}
      device: {{type: text, attribute: device, values: {[*_DEVICES]}}}
      country: {{type: text, attribute: country, values: {[*_COUNTRIES]}}}
      product_id: {{type: integer, attribute: product, values: {[*_PRODUCTS]}}}
      revenue: {{type: number, attribute: revenue, step: 0.01, bounds: [0, 500]}}
      quantity: {{type: integer, attribute: quantity, bounds: [0, 20]}}
      duration: {{type: integer, attribute: duration, bounds: [0, 1000]}}
  orders:
    row_id: order_id
    columns:
      order_id: {{type: integer}}
      user_id: {{type: text}}
      order_date: {{type: date, attribute: dates}}
      shipped_on: {{type: date, attribute: dates}}
      product_id: {{type: integer, attribute: product, values: {[*_PRODUCTS]}}}
      quantity: {{type: integer, attribute: quantity, bounds: [0, 20],
                  values: [1, 2, 3, 4, 5]}}
      unit_price: {{type: number, attribute: price, step: 0.01, bounds: [0, 200]}}
      paid_price: {{type: number, attribute: price, step: 0.01, bounds: [0, 200]}}
      discount: {{type: number, attribute: price, step: 0.01, bounds: [0, 1]}}
      country: {{type: text, attribute: country, values: {[*_COUNTRIES]}}}
      status: {{type: text, attribute: status, values: {[*_STATUS]}}}
      coupon: {{type: text, attribute: coupon}}
  users:
    row_id: user_id
    one_per: user_id
    columns:
      user_id: {{type: text}}
      signup_date: {{type: date, attribute: dates}}
      country: {{type: text, attribute: country, values: {[*_COUNTRIES]}}}
      plan: {{type: text, attribute: plan, values: {[*_PLANS]}}}
      age: {{type: integer, attribute: person, bounds: [0, 120]}}
      newsletter: {{type: boolean, attribute: person, values: [true, false]}}
      referrer: {{type: text, attribute: person}}
  subscriptions:
    row_id: subscription_id
    columns:
      subscription_id: {{type: integer}}
      user_id: {{type: text}}
      plan: {{type: text, attribute: plan, values: {[*_PLANS]}}}
      monthly_price: {{type: integer, attribute: price, bounds: [0, 100]}}
      started_on: {{type: date, attribute: dates}}
      ended_on: {{type: date, attribute: dates}}
  products:
    public: true
    key: product_id
    columns:
      product_id: {{type: integer}}
      category: {{type: text, values: [books, toys]}}
      brand: {{type: text, values: [Acme, Bolt]}}
      list_price: {{type: number, step: 0.01, bounds: [0, 200]}}
  countries:
    public: true
    key: country
    columns:
      country: {{type: text}}
      region: {{type: text, values: [west, south]}}
"""


@dataclass(frozen=True)
class AnalystQuery:
    """A query, and what is expected of it.

    Attributes:
        id: Its name.
        sql: Its text.
        refused: Why it is refused today: a code, and a part of the message or advice.
        never: The same of a query that no private SQL should answer.
        plain: Whether DuckDB answers the text, too.
        within: How far a number may lie from DuckDB's, where definitions differ, as
            those of quantiles do.
        dated: Whether its release names the periods that the rows are of.
        settings: What its file has in place of `DEFAULTS`.
    """

    id: str
    sql: str
    refused: str | None = None
    never: str | None = None
    plain: bool = True
    within: float = 0
    dated: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ordered(self) -> bool:
        """Whether its last clauses order the answer."""
        return "ORDER BY" in self.sql.rpartition("GROUP BY ")[2]

    def document(self) -> dict[str, Any]:
        """Return its file as plain data."""
        query = {"tables": "tables.yaml", "sql": self.sql, **DEFAULTS, **self.settings}
        heading = {"periods": PERIODS} if self.dated else {}
        return {"release": self.id, **heading, "query": query}


def analyst_queries() -> list[AnalystQuery]:
    """Return all queries, by theme."""
    reader = YAML(typ="safe")
    return [
        AnalystQuery(**entry)
        for path in sorted(FOLDER.glob("*.yaml"))
        for entry in reader.load(path)
    ]


# --- the rows -------------------------------------------------------------------------

Row = dict[str, Any]


def write_rows(folder: Path) -> dict[str, str]:
    """Return by table the Parquet file with its rows, the same ones each time.

    All values are as declared, so that nothing is clipped or left out but NULL.
    """
    dice = random.Random(7)
    rows = {
        "users": [*_users(dice)],
        "events": [*_events(dice)],
        "orders": [*_orders(dice)],
        "subscriptions": [*_subscriptions(dice)],
        "products": [*_products()],
        "countries": [
            {"country": one, "region": "south" if one == "IT" else "west"}
            for one in _COUNTRIES
        ],
    }
    found = {}
    for table, of_table in rows.items():
        path = folder / f"{table}.parquet"
        pq.write_table(pa.Table.from_pylist(of_table), path)
        found[table] = str(path)
    return found


def _maybe(dice: random.Random, value: Any, missing: float = 0.1) -> Any:
    return None if dice.random() < missing else value


def _weighted(dice: random.Random, values: Sequence[Any]) -> Any:
    """Return one of some values; earlier ones are more frequent."""
    return dice.choices(values, [1 / (n + 1) for n in range(len(values))])[0]


def _day(dice: random.Random) -> date:
    return FIRST + timedelta(days=dice.randrange(DAYS))


def _money(dice: random.Random, most: int) -> float:
    return dice.randrange(100, 100 * most) / 100


def _users(dice: random.Random) -> Iterator[Row]:
    for number in range(_PEOPLE):
        yield {
            "user_id": f"u{number}",
            "signup_date": FIRST + timedelta(days=dice.randrange(-60, 40)),
            "country": _maybe(dice, _weighted(dice, _COUNTRIES)),
            "plan": _weighted(dice, _PLANS),
            "age": _maybe(dice, dice.randrange(16, 80)),
            "newsletter": dice.random() < 0.4,
            "referrer": _maybe(dice, _weighted(dice, _REFERRERS), 0.3),
        }


def _events(dice: random.Random) -> Iterator[Row]:
    for number in range(900):
        person = int(_PEOPLE * dice.random() ** 2)
        kind = _weighted(dice, _TYPES)
        bought = kind == "purchase"
        seconds = dice.randrange(86_400)
        yield {
            "event_id": number,
            "user_id": f"u{person}",
            "session_id": 1000 * person + dice.randrange(4),
            "event_time": datetime.combine(_day(dice), datetime.min.time())
            + timedelta(seconds=seconds),
            "event_type": kind,
            "page": _maybe(dice, _weighted(dice, _PAGES), 0.05),
            "device": _maybe(dice, _weighted(dice, _DEVICES)),
            "country": _maybe(dice, _weighted(dice, _COUNTRIES)),
            "product_id": _maybe(dice, dice.choice(_PRODUCTS), 0.3),
            "revenue": _maybe(dice, _money(dice, 300)) if bought else None,
            "quantity": dice.randrange(4),
            "duration": _maybe(dice, dice.randrange(1000)),
        }


def _orders(dice: random.Random) -> Iterator[Row]:
    for number in range(300):
        ordered = _day(dice)
        price = _money(dice, 90)
        rebate = _maybe(dice, dice.choice([0.0, 0.1, 0.2]), 0.5)
        shipped = ordered + timedelta(days=dice.randrange(9))
        yield {
            "order_id": number,
            "user_id": f"u{int(60 * dice.random() ** 2)}",
            "order_date": ordered,
            "shipped_on": _maybe(dice, shipped),
            "product_id": _maybe(dice, dice.choice([*_PRODUCTS])),
            "quantity": _weighted(dice, range(1, 6)),
            "unit_price": price,
            "paid_price": round(price * (1 - (rebate or 0)), 2),
            "discount": rebate,
            "country": _maybe(dice, _weighted(dice, _COUNTRIES)),
            "status": _weighted(dice, _STATUS),
            "coupon": _maybe(dice, _weighted(dice, _COUPONS), 0.4),
        }


def _subscriptions(dice: random.Random) -> Iterator[Row]:
    for number in range(70):
        started = _day(dice)
        ended = started + timedelta(days=dice.randrange(1, 60))
        plan = dice.choice(_PLANS[1:])
        yield {
            "subscription_id": number,
            "user_id": f"u{dice.randrange(_PEOPLE)}",
            "plan": plan,
            "monthly_price": 5 if plan == "plus" else 20,
            "started_on": started,
            "ended_on": _maybe(dice, ended, 0.6),
        }


def _products() -> Iterator[Row]:
    for number in _PRODUCTS[:-1]:  # One that is ordered is not listed.
        yield {
            "product_id": number,
            "category": "books" if number % 2 else "toys",
            "brand": "Acme" if number < 4 else "Bolt",
            "list_price": 10.0 * number,
        }
