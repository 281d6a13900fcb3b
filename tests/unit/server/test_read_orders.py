"""Lists in other orders: the same items, on pages that fit together, and no others."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from samples.served import Served, served
from samples.small import POLICY, compiled

from modicum.api.local.handlers import pagination, releases
from modicum.server.service import ledgers

DATA_SETS = ("visits", "labs")


def release(name: str, attribute: str, sigma: float, data_set: str) -> dict[str, Any]:
    return {
        "release": name,
        "dataset": data_set,
        "mechanisms": [
            {
                "name": "counts",
                "mechanism": "gaussian",
                "attributes": [attribute],
                "sensitivity": {"user": {"l2": 1}},
                "sigma": sigma,
            }
        ],
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve a ledger of both data sets, with full rules, one over, and a denial."""
    folder = tmp_path_factory.mktemp("orders")
    (folder / "policy.yaml").write_text(POLICY)
    with served(folder / "ledger.db", policy=folder / "policy.yaml") as found:
        dice = random.Random(7)
        for number in range(40):
            attribute = dice.choice(("age", "diagnosis", "steps"))
            name = f"{dice.choice(('Study', 'count'))}-{number}"
            sigma = dice.randrange(60, 300)
            one = release(name, attribute, sigma, dice.choice(DATA_SETS))
            assert found.post("amir", "/releases", one).json()["decision"] == "allow"
            if number % 3 == 0:
                assert found.post("amir", f"/releases/{name}:start").status_code == 200
        past = release("old", "age", 2, "visits")
        assert found.post("dara", "/releases:record-past", past).status_code == 200
        much = release("much", "age", 0.5, "visits")
        assert found.post("ann", "/releases", much).json()["decision"] == "deny"
        yield found


def pages(server: Served, who: str, path: str, **query: object) -> list[dict[str, Any]]:
    """Return all pages of a list."""
    found: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        answered = server.get(who, path, params={**query, "cursor": cursor})
        assert answered.status_code == 200, answered.text
        found.append(answered.json())
        cursor = found[-1]["next"]
        assert len(found) < 200
    return found


def listed(server: Served, who: str, path: str, **query: object) -> list[Any]:
    """Return the items of all pages of a list."""
    key = {"/rules": "rules", "/releases": "releases"}.get(path, "entries")
    return [one for page in pages(server, who, path, **query) for one in page[key]]


# --- rules ----------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 3, 500])
def test_the_tightest_rules_are_first(server: Served, limit: int) -> None:
    every = listed(server, "ann", "/rules", limit=limit)
    assert [one["rule"] for one in every] == [one.id for one in compiled().rules]
    expected = sorted(every, key=lambda one: -one["share"])  # A stable sort.
    assert listed(server, "ann", "/rules", limit=limit, order="tightest") == expected
    assert expected[0]["state"] == "OVER"
    assert len({one["share"] for one in every}) > 3


def test_the_share_is_what_is_spent_of_the_limit(server: Served) -> None:
    for one in listed(server, "ann", "/rules"):
        if one["state"] == "OVER":
            assert (one["share"], one["allowed"]) == (2.0, False)
        else:
            assert one["share"] == pytest.approx(one["spent"] / one["limit"])
            assert (one["share"] >= 0.8) is (one["state"] == "near")


def test_a_rule_without_a_limit_has_no_share_and_is_last(tmp_path: Path) -> None:
    text = POLICY.replace("unit: user, budget: 2.0}", "unit: user, budget: unlimited}")
    assert text != POLICY
    (tmp_path / "policy.yaml").write_text(text)
    with served(tmp_path / "ledger.db", policy=tmp_path / "policy.yaml") as server:
        found = listed(server, "ann", "/rules", order="tightest", limit=2)
    limited = [one["share"] is not None for one in found]
    assert [one["state"] == "not limited" for one in found] == [not x for x in limited]
    assert limited == sorted(limited, reverse=True)
    assert {True, False} == {*limited}


@pytest.mark.parametrize("order", ["policy", "tightest"])
def test_a_search_finds_rules_by_a_part_of_their_id(server: Served, order: str) -> None:
    every = listed(server, "ann", "/rules", order=order)
    for sought in ("AGE", "cat:health", "@black", "nothing", " "):
        found = listed(server, "ann", "/rules", order=order, search=sought, limit=2)
        assert found == [one for one in every if sought.lower() in one["rule"]]
    assert listed(server, "ann", "/rules", search="age")


def test_a_page_of_rules_counts_all_that_match(server: Served) -> None:
    for query in ({}, {"context": "standard"}, {"search": "age"}, {"scope": "global"}):
        every = listed(server, "ann", "/rules", **query)
        for page in pages(server, "ann", "/rules", limit=2, **query):
            assert page["states"] == Counter(one["state"] for one in every)
            assert page["full"] == sum(0.99 <= one["share"] <= 1 for one in every)
            rules = list(compiled().rules)
            assert page["units"] == ["user"]
            assert page["scopes"] == list(dict.fromkeys(one.scope for one in rules))
            assert page["contexts"] == ["standard", "black-box"]


# --- releases -------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["amir", "ann", "lee"])
@pytest.mark.parametrize("query", [{}, {"status": "started"}, {"search": "STUDY"}])
def test_the_newest_releases_are_the_oldest_backward(
    server: Served, who: str, query: dict[str, str]
) -> None:
    oldest = listed(server, who, "/releases", **query)
    for limit in (1, 4, 500):
        newest = listed(server, who, "/releases", order="newest", limit=limit, **query)
        assert newest == oldest[::-1]
    assert oldest


def test_a_search_finds_releases_that_may_be_seen(server: Served) -> None:
    every = {one["release"] for one in listed(server, "amir", "/releases")}
    seen = {
        who: {o["release"] for o in listed(server, who, "/releases")}
        for who in ("ann", "lee")
    }
    assert seen["ann"] | seen["lee"] == every
    assert not seen["ann"] & seen["lee"]
    for sought in ("study", "COUNT-1", "-3", "old", "nothing"):
        for who, own in seen.items():
            for order in ("oldest", "newest"):
                found = listed(server, who, "/releases", search=sought, order=order)
                assert {one["release"] for one in found} == {
                    one for one in own if sought.lower() in one.lower()
                }


@pytest.mark.parametrize("order", ["oldest", "newest"])
@pytest.mark.parametrize("sought", ["", "-1"])
def test_a_page_ends_when_enough_was_looked_at(
    server: Served, monkeypatch: pytest.MonkeyPatch, order: str, sought: str
) -> None:
    expected = listed(server, "lee", "/releases", order=order, search=sought)
    monkeypatch.setattr(releases, "LOOKED_AT", 3)
    monkeypatch.setattr(releases, "SEARCHED", 7)
    found = pages(server, "lee", "/releases", order=order, search=sought)
    assert [one for page in found for one in page["releases"]] == expected
    assert len(found) >= (41 / 3 if not sought else 41 / 7)
    assert all(len(page["releases"]) <= 3 for page in found)


def test_a_cursor_goes_on_where_it_ended_though_more_came(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    with served(tmp_path / "ledger.db", policy=tmp_path / "policy.yaml") as server:
        for number in range(4):
            one = release(f"r-{number}", "age", 5000, "visits")
            assert server.post("ann", "/releases", one).status_code == 200
        query = {"order": "newest", "limit": 2}
        first = server.get("ann", "/releases", params=query).json()
        later = release("later", "age", 5000, "visits")
        assert server.post("ann", "/releases", later).status_code == 200
        query["cursor"] = first["next"]
        second = server.get("ann", "/releases", params=query).json()
    names = [one["release"] for page in (first, second) for one in page["releases"]]
    assert names == ["r-3", "r-2", "r-1", "r-0"]


# --- entries --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"after": 17},
        {"kind": "release-started"},
        {"kind": "release-denied"},
        {"actor": "dara"},
        {"actor": "amir", "kind": "release-reserved"},
        {"actor": "nobody"},
    ],
)
def test_entries_are_chosen_in_both_orders(
    server: Served, query: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    every = listed(server, "audra", "/ledger/entries")
    assert [one["seq"] for one in every] == list(range(1, len(every) + 1))
    expected = [
        one
        for one in every
        if one["seq"] > query.get("after", 0)
        and query.get("kind", one["kind"]) == one["kind"]
        and query.get("actor", one["actor"]) == one["actor"]
    ]
    assert bool(expected) is (query.get("actor") != "nobody")
    for most, at_once in ((5000, 500), (4, 3)):
        monkeypatch.setattr(ledgers, "LOOKED_AT", most)
        monkeypatch.setattr(ledgers, "_AT_ONCE", at_once)
        for limit in (1, 5, 500):
            asked = {"limit": limit, **query}
            newest = listed(server, "audra", "/ledger/entries", order="newest", **asked)
            assert newest == expected[::-1]
            assert listed(server, "audra", "/ledger/entries", **asked) == expected


def test_a_kind_that_does_not_exist_is_refused(server: Served) -> None:
    answered = server.get("audra", "/ledger/entries", params={"kind": "release-lost"})
    assert (answered.status_code, answered.json()["code"]) == (400, "MOD840")
    assert "release-denied" in answered.json()["help"]
    hidden = server.get("ann", "/ledger/entries", params={"kind": "release-denied"})
    assert hidden.status_code == 403


def test_lines_are_all_entries(server: Served) -> None:
    lines = {"Accept": "application/x-ndjson", "X-Who": "audra"}
    for query in ({"order": "newest"}, {"kind": "release-denied"}, {"actor": "amir"}):
        answered = server.client.get(
            "/api/v1/ledger/entries", params=query, headers=lines
        )
        assert (answered.status_code, answered.json()["code"]) == (400, "MOD840")


# --- cursors --------------------------------------------------------------------------


def test_a_cursor_of_another_order_is_refused(server: Served) -> None:
    assert pagination.PAGE_MAX == 500
    orders = {
        "/rules": ("policy", "tightest"),
        "/releases": ("oldest", "newest"),
        "/ledger/entries": ("oldest", "newest"),
    }
    cursors = {
        (path, order): server.get(
            "olga", path, params={"order": order, "limit": 1}
        ).json()["next"]
        for path, each in orders.items()
        for order in each
    }
    for path, order in cursors:
        for own, cursor in cursors.items():
            asked = {"order": order, "limit": 1, "cursor": cursor}
            answered = server.get("olga", path, params=asked)
            if own == (path, order):
                assert answered.status_code == 200
            else:
                assert (answered.status_code, answered.json()["code"]) == (
                    400,
                    "MOD840",
                )
                assert "another order" in answered.json()["detail"]
    assert server.get("olga", "/rules", params={"order": "x"}).status_code == 400
