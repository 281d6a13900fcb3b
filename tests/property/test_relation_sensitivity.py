"""What one change does to answers of joins, lookups and subqueries, and its price.

Neighboring tables are drawn by their definition: an instance of a unit comes, goes, or
has other rows. Both are answered row by row, without an engine; the price is that of
the query's text. Where the documentation calls a price tight, it is reached.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any, Final

import pytest
from budget import examples, seed
from samples import asked
from samples.exact_oracle import exact_answers

from modicum.api.local.queries.execution import noisy_of
from modicum.core.document import from_python
from modicum.core.errors import InputError
from modicum.engines.factory import SystemSecrets
from modicum.query.query_file import QueryFile, read_query_file
from modicum.query.results import answers_of
from modicum.query.statistics import Exact, ExactPlan, Secrets

POLICY: Final = """\
modicum: policy/v1
name: shop
dp: {{neighbors: {relation}}}
units:
  user: {{id: user_id}}
  user-day: {{id: user_id, time: {{column: event_time, period: day}}, within: user}}
{device}
schema:
  attributes: {{page: low, amount: low, plan: low}}
policies:
  - {{name: all, when: "true", unit: user, budget: {{eps: 8, delta: 1e-5}}}}
"""
DEVICE: Final = "  device: {id: device_id, within: user}"
TABLES: Final = """\
modicum: tables/v1
tables:
  events:
    row_id: event_id
    columns:
      event_id: {type: integer}
      user_id: {type: text}
      device_id: {type: text, attribute: page}
      event_time: {type: timestamp}
      page: {type: text, attribute: page, values: [help, main]}
      amount: {type: integer, attribute: amount, bounds: [-1, 3]}
  orders:
    row_id: order_id
    columns:
      order_id: {type: integer}
      user_id: {type: text}
      amount: {type: integer, attribute: amount, bounds: [-1, 3]}
  people:
    row_id: user_id
    one_per: user_id
    columns:
      user_id: {type: text}
      plan: {type: text, attribute: plan, values: [free, plus]}
  pages:
    public: true
    key: page
    columns:
      page: {type: text}
      kind: {type: text, values: [a, b]}
      weight: {type: integer, bounds: [0, 4]}
"""


@dataclass(frozen=True)
class Asked:
    """A query, and what is known of its price.

    Attributes:
        sql: Its text.
        bounds: Its caps.
        reached: By unit, the L1 norm and the square of the L2 norm that tables reach,
            and that are priced.
    """

    sql: str
    bounds: dict[str, int]
    reached: dict[str, tuple[int, int]]


_PER_USER = "SELECT user_id, COUNT(*) AS n, SUM(amount) AS total FROM events"
ASKED: Final = {
    "people counted": Asked(
        f"SELECT COUNT(*) AS s FROM ({_PER_USER} GROUP BY user_id) AS t",
        {},
        {"user": (1, 1), "user-day": (1, 1)},
    ),
    "a histogram of people": Asked(
        "SELECT LEAST(n, 3) AS k, COUNT(*) AS s"
        f" FROM ({_PER_USER} GROUP BY user_id) AS t GROUP BY k",
        {},
        {"user": (1, 1), "user-day": (2, 2), "device": (2, 2)},
    ),
    "totals of people": Asked(
        "SELECT SUM(GREATEST(LEAST(total, 5), -2)) AS s"
        f" FROM ({_PER_USER} GROUP BY user_id) AS t",
        {},
        {"user": (5, 25), "user-day": (7, 49), "device": (7, 49)},
    ),
    "people of some pages": Asked(
        "WITH t AS (SELECT user_id, BOOL_OR(page = 'main') AS seen FROM events"
        " GROUP BY user_id HAVING COUNT(*) >= 2)"
        " SELECT COUNT(CASE WHEN seen THEN 1 END) AS s FROM t",
        {},
        {"user": (1, 1), "user-day": (1, 1), "device": (1, 1)},
    ),
    "groups of people and pages": Asked(
        "SELECT page, LEAST(n, 2) AS k, COUNT(*) AS s FROM (SELECT user_id, page,"
        " COUNT(*) AS n FROM events GROUP BY user_id, page) AS t GROUP BY page, k",
        {"user": 2},
        {},  # Rows of one person are in different groups, which no price knows.
    ),
    "by plan and visits": Asked(
        "SELECT plan, LEAST(n, 2) AS k, COUNT(*) AS s FROM people"
        f" JOIN ({_PER_USER} GROUP BY user_id) AS t USING (user_id) GROUP BY plan, k",
        {},
        {"user": (1, 1), "user-day": (2, 2)},
    ),
    "people without orders": Asked(
        "SELECT COUNT(*) AS s FROM people WHERE user_id NOT IN"
        " (SELECT user_id FROM orders WHERE amount > 1)",
        {},
        {"user": (1, 1), "user-day": (1, 1)},
    ),
    "events of buyers": Asked(
        "SELECT page, COUNT(*) AS s FROM events WHERE user_id IN"
        " (SELECT user_id FROM orders GROUP BY user_id HAVING COUNT(*) = 1)"
        " GROUP BY page",
        {"user": 3},
        {"user": (3, 9)},
    ),
    "events of those seen on two days": Asked(
        "SELECT COUNT(*) AS s FROM events e WHERE EXISTS (SELECT 1 FROM orders o WHERE"
        " o.user_id = e.user_id)",
        {"user": 3},
        {"user": (3, 9), "user-day": (3, 9)},
    ),
    "two subqueries": Asked(
        f"SELECT COUNT(*) AS s FROM ({_PER_USER} GROUP BY user_id) AS t LEFT JOIN"
        " (SELECT user_id, COUNT(*) AS m FROM orders GROUP BY user_id) AS o"
        " USING (user_id) WHERE COALESCE(m, 0) < n",
        {},
        {"user": (1, 1), "user-day": (1, 1)},
    ),
    "rows joined to their number": Asked(
        "SELECT LEAST(t.n, 4) AS k, COUNT(*) AS s FROM events JOIN (SELECT user_id,"
        " COUNT(*) AS n FROM events GROUP BY user_id) AS t USING (user_id) GROUP BY k",
        {"user": 3},
        {"user": (3, 9), "user-day": (6, 18)},
    ),
    "a lookup": Asked(
        "SELECT kind, COUNT(*) AS s FROM events JOIN pages USING (page) GROUP BY kind",
        {"user": 2},
        {"user": (2, 4), "user-day": (4, 8), "device": (4, 8)},
    ),
    "a lookup for each day": Asked(
        "SELECT kind, SUM(weight) AS s FROM events LEFT JOIN pages ON"
        " events.page = pages.page GROUP BY kind",
        {"user-day": 1},
        {"user-day": (4, 16)},
    ),
    "a lookup of a person's pages": Asked(
        "SELECT SUM(LEAST(w, 6)) AS s FROM (SELECT user_id, SUM(weight) AS w"
        " FROM events LEFT JOIN pages USING (page) GROUP BY user_id) AS t",
        {},
        {"user": (6, 36), "user-day": (6, 36), "device": (6, 36)},
    ),
    "a person looked up": Asked(
        "SELECT COALESCE(plan, 'none') AS k, COUNT(*) AS s FROM events LEFT JOIN people"
        " USING (user_id) GROUP BY k",
        {"user": 2},
        {"user": (2, 4), "user-day": (4, 8)},
    ),
    "rows of two tables": Asked(
        "SELECT kind, SUM(amount) AS s FROM (SELECT user_id, amount, 'o' AS kind FROM"
        " orders UNION ALL SELECT user_id, amount, page FROM events) AS u GROUP BY kind"
        "",
        {"user": 2},
        {"user": (6, 36), "user-day": (12, 72)},
    ),
    "rows that are there twice": Asked(
        "WITH u AS (SELECT user_id, kind, weight FROM events JOIN pages USING (page)"
        " UNION ALL SELECT user_id, page, 1 FROM events WHERE amount > 0)"
        " SELECT COUNT(*) AS s FROM u",
        {"user-day": 3},
        {"user-day": (3, 9)},
    ),
    "people by rows of two tables": Asked(
        "SELECT LEAST(n, 3) AS k, COUNT(*) AS s FROM (SELECT user_id, COUNT(*) AS n"
        " FROM (SELECT user_id FROM orders UNION ALL SELECT user_id FROM events) AS t"
        " GROUP BY user_id) AS t GROUP BY k",
        {},
        {"user": (1, 1), "user-day": (2, 2)},
    ),
    "people in one of two tables": Asked(
        "SELECT plan, COUNT(*) AS s FROM people WHERE user_id IN (SELECT user_id FROM"
        " orders WHERE amount > 0 UNION ALL SELECT user_id FROM events) GROUP BY plan",
        {},
        {"user": (1, 1)},
    ),
    "plans of rows of two tables": Asked(
        "SELECT plan, COUNT(*) AS s FROM (SELECT user_id FROM orders UNION ALL"
        " SELECT user_id FROM events) AS u JOIN people USING (user_id) GROUP BY plan",
        {"user": 3},
        {"user": (3, 9)},
    ),
}
Rows = dict[str, list[dict[str, Any]]]
_PAGES = [
    {"page": "help", "kind": "a", "weight": 0},
    {"page": "main", "kind": "b", "weight": 4},
    {"page": "main", "kind": "c", "weight": 2},
]


def query_of(
    one: Asked, relation: str, noise: str = "laplace", **heading: Any
) -> QueryFile:
    """Return the query under a policy with as many units as it has sensitivities."""
    for device in (DEVICE, ""):
        policy = asked.compiled(POLICY.format(relation=relation, device=device))
        plain = {
            "release": "r",
            **heading,
            "query": {
                "tables": "tables.yaml",
                "sql": one.sql,
                "bounds": one.bounds,
                "noise": noise,
                "loss": {
                    "user-day" if "user-day" in one.bounds else "user": {
                        "eps" if noise == "laplace" else "rho": 1
                    }
                },
            },
        }
        tables = asked.tables(policy, TABLES)
        known = policy.policy
        try:
            return read_query_file(
                from_python(plain), tables, known.vocabulary, known.digest
            )
        except InputError:
            assert device, "it is refused with no devices, too"
    raise AssertionError


# --- neighbors ------------------------------------------------------------------------


def some_rows(dice: random.Random, user: str, day: int | None = None) -> Rows:
    """Rows that a user may have: some days with events, orders, and a line."""
    some: list[list[int | None]] = [[-1], [3], [-1, 0, 3, None]]
    amounts = dice.choice(some)
    listed: list[list[str | None]] = [["help"], ["main"], ["help", "main", None]]
    pages = dice.choice(listed)
    events = [
        {
            "event_id": dice.randrange(10**9),
            "user_id": user,
            "device_id": f"{user}{dice.randrange(2)}",
            "event_time": datetime.fromisoformat("2026-10-01")
            + timedelta(days=dice.randrange(3) if day is None else day, hours=1),
            "page": dice.choice(pages),
            "amount": dice.choice(amounts),
        }
        for _ in range(dice.choice([0, 1, 2, 3, 6]))
    ]
    orders = [
        {
            "order_id": dice.randrange(10**9),
            "user_id": user,
            "amount": dice.choice([0, 3]),
        }
        for _ in range(dice.choice([0, 0, 1, 2]))
    ]
    plan = {"user_id": user, "plan": dice.choice(["free", "plus"])}
    return {
        "events": events,
        "orders": orders,
        "people": [plan] if dice.random() < 0.7 else [],
    }


def united(*all_rows: Rows) -> Rows:
    names = ("events", "orders", "people")
    found = {name: [row for rows in all_rows for row in rows[name]] for name in names}
    return {**found, "pages": _PAGES}


def neighbors(dice: random.Random, unit: str, relation: str) -> tuple[Rows, Rows]:
    """Two tables that differ in one instance of a unit."""
    others = united(some_rows(dice, "b"), some_rows(dice, "c"))
    one, two = some_rows(dice, "a"), some_rows(dice, "a")
    if relation == "add-remove":
        two = united()
    if unit == "user":
        return united(others, one), united(others, two)
    own = some_rows(dice, "a")
    if unit == "device":
        kept = [row for row in own["events"] if row["device_id"] != "a0"]
        own = {**own, "events": kept}
        for rows in (one, two):
            rows["events"] = [{**row, "device_id": "a0"} for row in rows["events"]]
            rows["orders"] = rows["people"] = []
        return united(others, own, one), united(others, own, two)
    day = datetime.fromisoformat("2026-10-02")
    own["events"] = [
        row for row in own["events"] if row["event_time"].date() != day.date()
    ]
    for rows in (one, two):
        rows["events"] = [{**row, "event_time": day} for row in rows["events"]]
    if dice.random() < 0.5:  # Rows without a time belong to other days.
        one["orders"] = one["people"] = two["orders"] = two["people"] = []
    else:  # Or to this one.
        own["orders"] = own["people"] = []
    return united(others, own, one), united(others, own, two)


def apart(query: QueryFile, pair: tuple[Rows, Rows], key: str) -> Iterator[Any]:
    """By statistic, how far exact answers on two tables are apart."""
    both = [exact_answers(query.compiled.plan, rows, key, key) for rows in pair]
    for name in both[0]:
        before, after = both[0][name], both[1][name]
        gaps = [
            after.get(group, 0) - before.get(group, 0)
            for group in before.keys() | after.keys()
        ]
        yield name, sum(map(abs, gaps)), sum(gap * gap for gap in gaps)


@pytest.mark.spec("QRY-5")
@pytest.mark.spec("QRY-6")
@pytest.mark.spec("QRY-20")
@pytest.mark.spec("QRY-21")
@pytest.mark.parametrize("relation", ["add-remove", "substitute", "any-change"])
@pytest.mark.parametrize("name", ASKED)
def test_no_change_moves_an_answer_farther_than_is_priced(
    name: str, relation: str
) -> None:
    one, dice = ASKED[name], random.Random(f"{seed()} {name} {relation}")
    query = query_of(one, relation)
    lines = {line.statistic.name: line for line in query.compiled.lines}
    bounded = {unit for line in lines.values() for unit in line.norms}
    assert bounded >= one.reached.keys()
    for unit in sorted(bounded):
        most = (0, 0)
        for _ in range(examples(150)):
            pair = neighbors(dice, unit, relation)
            key = dice.randbytes(16).hex()
            for statistic, l1, l2_squared in apart(query, pair, key):
                norms = lines[statistic].norms[unit]
                assert l1 <= norms.l1, (unit, pair)
                assert l2_squared <= norms.l2_squared, (unit, pair)
                most = max(most[0], l1), max(most[1], l2_squared)
        if relation == "add-remove" and unit in one.reached and examples(150) >= 150:
            norms = lines["s"].norms[unit]
            assert (norms.l1, norms.l2_squared) == one.reached[unit]
            assert most == one.reached[unit]


# --- queries that are drawn -----------------------------------------------------------


def some_groups(dice: random.Random, name: str, *, more: bool = False) -> str:
    """A subquery with one row for each user, or for more groups of each."""
    table = dice.choice(["events", "orders"])
    extras = [", amount", ", page"] if table == "events" else [", amount"]
    extra = dice.choice(extras) if more else ""
    where = dice.choice(["", " WHERE amount > 0", " WHERE user_id IN (SELECT user_id"
                         " FROM people WHERE plan = 'free')"])  # fmt: skip
    having = dice.choice(["", "", " HAVING COUNT(*) >= 2", " HAVING SUM(amount) > 3"])
    return (
        f"(SELECT user_id{extra}, COUNT(*) AS n, SUM(amount) AS total FROM"
        f" {table}{where} GROUP BY user_id{extra}{having}) AS {name}"
    )


def some_union(dice: random.Random) -> str:
    """Rows of two or three parts: of events, perhaps twice, and of orders."""
    parts = [
        "SELECT user_id, page AS kind, amount AS w FROM events",
        "SELECT user_id, kind, weight AS w FROM events JOIN pages USING (page)",
        "SELECT user_id, 'main' AS kind, 1 AS w FROM events WHERE page = 'help'",
        "SELECT user_id, 'order' AS kind, amount + 1 AS w FROM orders",
    ]
    some = dice.choices(parts, k=dice.choice([2, 2, 3]))
    return f"({' UNION ALL '.join(some)})"


def a_query(dice: random.Random) -> Asked:
    """A query over joins and subqueries, with a cap where rows of a user are many."""
    groups, cap = some_groups(dice, "t"), {"user": dice.choice([1, 2, 3])}
    negated = dice.choice(["", "NOT "])
    member = f" WHERE user_id {negated}IN (SELECT user_id FROM {groups})"
    source, keys, bounds = dice.choice(
        [
            (groups, ["LEAST(n, 2)", "n > 1"], {}),
            (some_groups(dice, "t", more=True), ["LEAST(n, 2)", "total > 1"], cap),
            (f"people JOIN {groups} USING (user_id)", ["plan", "total > 2"], {}),
            (f"people LEFT JOIN {groups} USING (user_id)", ["COALESCE(n, 0) > 1"], {})
            if "HAVING" not in groups
            else (f"people{member}", ["plan"], {}),
            (f"events JOIN {groups} USING (user_id)", ["page", "n > 1"], cap),
            (f"events{member}", ["page", "amount > 0"], cap),
            (f"events LEFT JOIN people USING (user_id){member}", ["plan"], cap),
            (f"events JOIN pages USING (page){member}", ["kind"], cap),
            (f"{some_union(dice)} AS u", ["kind", "w > 1"], cap),
            (f"{some_union(dice)} AS u{member}", ["kind", "w > 1"], cap),
            (f"{some_union(dice)} AS u JOIN people USING (user_id)", ["plan"], cap),
            (
                f"(SELECT user_id, COUNT(*) AS n, SUM(w) AS total FROM"
                f" {some_union(dice)} AS t GROUP BY user_id) AS t",
                ["total > 2"],
                {},
            ),
        ]
    )
    number = "w" if " AS u" in source else "n" if source[0] == "(" else "1"
    counted = dice.choice(
        ["COUNT(*)", "COUNT(DISTINCT user_id)"]
        + [f"SUM(LEAST({number}, 3) - 1)"] * (number != "1")
    )
    key = dice.choice([*keys, ""])
    if not key:
        return Asked(f"SELECT {counted} AS s FROM {source}", bounds, {})
    sql = f"SELECT {key} AS k, {counted} AS s FROM {source} GROUP BY k"
    return Asked(sql, bounds, {})


@pytest.mark.spec("QRY-21")
@pytest.mark.parametrize("relation", ["add-remove", "substitute", "any-change"])
def test_no_drawn_query_moves_farther_than_is_priced(relation: str) -> None:
    dice, reached, moved = random.Random(f"{seed()} drawn {relation}"), 0, 0
    for _ in range(examples(60)):
        one = a_query(dice)
        query = query_of(one, relation)
        (line,) = query.compiled.lines
        for unit, norms in line.norms.items():
            most = 0
            for _ in range(min(examples(30, plain=20), 30)):
                pair = neighbors(dice, unit, relation)
                ((_, l1, l2_squared),) = apart(query, pair, dice.randbytes(16).hex())
                assert l1 <= norms.l1, (one.sql, one.bounds, unit, pair)
                assert l2_squared <= norms.l2_squared, (one.sql, one.bounds, unit, pair)
                most = max(most, l1)
            moved += most > 0
            reached += most == norms.l1
    assert reached > moved // 4 > 0


# --- several sets of keys -------------------------------------------------------------


def a_query_by_sets(dice: random.Random) -> Asked:
    """A query that groups by several sets of keys of some of these sources."""
    source, keys = dice.choice(
        [
            ("events", ["page", "DATE_TRUNC('day', event_time)", "amount > 0"]),
            ("events JOIN people USING (user_id)", ["page", "plan", "amount > 1"]),
            ("events JOIN pages USING (page)", ["kind", "weight > 2", "amount > 1"]),
        ]
    )
    chosen = dice.sample(keys, dice.choice([1, 2, 2, 3]))
    names = [f"k{number}" for number in range(len(chosen))]
    listed = ", ".join(names)
    sets = ", ".join(
        f"({', '.join(name for name in names if dice.random() < 0.5)})"
        for _ in range(dice.choice([1, 2, 3]))
    )
    by = dice.choice(
        [
            f"ROLLUP ({listed})",
            f"CUBE ({listed})",
            f"GROUPING SETS (({listed}), {sets})",
        ]
    )
    counted = dice.sample(
        ["COUNT(*) AS n", "SUM(amount) AS s", "AVG(amount) AS a",
         "COUNT(DISTINCT user_id) AS d", "MEDIAN(amount) AS m"],
        dice.choice([1, 2]),
    )  # fmt: skip
    selected = [f"{key} AS {name}" for key, name in zip(chosen, names, strict=True)]
    bounds = dice.choice([{"user": 2}, {"user-day": 1}, {"user-day": 2, "user": 3}])
    if "people" in source:
        bounds = {"user": 2}
    sql = f"SELECT {', '.join([*selected, *counted])} FROM {source} GROUP BY {by}"
    return Asked(sql, bounds, {})


@dataclass(frozen=True)
class Exactly:
    """An engine that answers row by row."""

    rows: Rows
    key: str

    def run(self, plan: ExactPlan, _secrets: Secrets) -> Mapping[str, Exact]:
        return exact_answers(plan, self.rows, self.key, self.key)


class NoNoise:
    """Adds none."""

    def check(self, noise: str, scale: Fraction, sensitivity: Fraction) -> None:
        """Take any."""

    def add(self, noise: str, scale: Fraction, values: Sequence[int]) -> list[int]:
        return list(values)


@pytest.mark.spec("QRY-33")
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("relation", ["add-remove", "substitute", "any-change"])
def test_no_set_of_keys_moves_farther_than_is_priced(relation: str, noise: str) -> None:
    dice, reached = random.Random(f"{seed()} sets {relation} {noise}"), Counter[str]()
    for _ in range(examples(24)):
        one = a_query_by_sets(dice)
        days = [f"2026-10-0{day}" for day in (1, 2, 3)]
        heading = {"periods": days} if "DATE_TRUNC" in one.sql else {}
        query = query_of(one, relation, noise, **heading).compiled
        for unit in query.lines[0].norms:
            most = Counter[str]()
            for _ in range(min(examples(20, plain=12), 20)):
                pair = neighbors(dice, unit, relation)
                key = dice.randbytes(16).hex()
                before, after = (
                    noisy_of(query, Exactly(rows, key), NoNoise(), SystemSecrets())
                    for rows in pair
                )
                assert answers_of(query, after, Fraction(19, 20)).rows
                for line in query.lines:
                    gaps = [
                        number - before[line.name][group]
                        for group, number in after[line.name].items()
                    ]
                    norms = line.norms[unit]
                    found = sum(map(abs, gaps)), sum(gap * gap for gap in gaps)
                    assert found[0] <= norms.l1, (one, unit, line.name, pair)
                    assert found[1] <= norms.l2_squared, (one, unit, line.name, pair)
                    most[line.name] = max(most[line.name], found[0])
            for line in query.lines:
                reached[line.statistic.kind] += most[line.name] == line.norms[unit].l1
    assert reached["rows"] + reached["distinct"] > 0


@pytest.mark.spec("QRY-20")
def test_a_device_that_changes_hands_changes_two_people() -> None:
    query = query_of(ASKED["totals of people"], "any-change")
    (line,) = query.compiled.lines
    row = {"event_id": 1, "device_id": "x", "page": None, "amount": 3,
           "event_time": datetime.fromisoformat("2026-10-01")}  # fmt: skip
    rows = [{**row, "event_id": number} for number in range(4)]
    poor = [{**row, "event_id": 9, "device_id": user, "amount": -1, "user_id": user}
            for user in "ab" for _ in range(2)]  # fmt: skip
    pair = tuple(
        united({"events": [*poor, *({**one, "user_id": user} for one in rows)],
                "orders": [], "people": []})
        for user in "ab"
    )  # fmt: skip
    ((_, l1, l2_squared),) = apart(query, (pair[0], pair[1]), "00")
    assert (l1, l2_squared) == (0, 0)  # Both totals change, and their sum does not.
    assert line.norms["device"].l1 >= 14


def test_prices_are_numbers_that_are_charged() -> None:
    query = query_of(ASKED["totals of people"], "add-remove")
    (described,) = query.compiled.mechanisms()
    assert described["sensitivity"] == {
        "user": {"l1": 5},
        "user-day": {"l1": 7},
        "device": {"l1": 7},
    }
    assert described["scale"] == Fraction(5)
