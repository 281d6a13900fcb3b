"""Metrics: what they say is so, wherever one asks; and who may read them."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from ruamel.yaml import YAML
from samples.served import HEADER, PEOPLE, Served, served
from samples.small import POLICY

import modicum as mo
from modicum.api.permissions.actions import ALLOWED, Action
from modicum.core.errors import (
    Code,
    Problem,
    UnavailableError,
    VerificationError,
)
from modicum.core.rationals import rounded_up
from modicum.server.app import build
from modicum.server.telemetry.ledger_metrics import (
    LedgerFacts,
    Remembered,
    SampledMetrics,
    Working,
    glance,
)
from modicum.server.telemetry.middleware import NO_ROUTE, OTHER_METHOD
from modicum.server.telemetry.prometheus import Page

ROOT = Path(__file__).parents[3]

DISCLOSED = {
    "disclosure": "extract",
    "what": "a table of counts, exactly",
    "attributes": ["steps"],
    "reason": "court order",
}

#: A metric's labels with their values, in order.
Labels = tuple[tuple[str, str], ...]


def release(name: str, sigma: float = 50) -> dict[str, Any]:
    return {
        "release": name,
        "dataset": "visits",
        "mechanisms": [
            {
                "name": "counts",
                "mechanism": "gaussian",
                "attributes": ["diagnosis"],
                "sensitivity": {"user": {"l2": 1}},
                "sigma": sigma,
            }
        ],
    }


def samples(text: str) -> dict[str, dict[Labels, float]]:
    """Return the value of each series of a page, by name and labels."""
    found: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            labels = tuple(sorted(one.labels.items()))
            assert labels not in found.setdefault(one.name, {})
            found[one.name][labels] = one.value
    return found


def page(server: Served) -> dict[str, dict[Labels, float]]:
    """Return the page once it tells of the ledger: a slow machine may be late."""
    deadline = time.monotonic() + 60
    while True:
        answered = server.client.get("/metrics", headers={HEADER: "petra"})
        assert answered.headers["content-type"] == (
            "text/plain; version=0.0.4; charset=utf-8"
        )
        found = samples(answered.text)
        if "modicum_ledger_entries" in found:
            return found
        assert time.monotonic() < deadline


def settled(server: Served, requests: int) -> dict[str, dict[Labels, float]]:
    """Return the page once so many requests are counted: that is after the answer."""
    deadline = time.monotonic() + 60
    while True:
        counted = server.parts.watch.counts.collect()
        found = samples(Page(counted, None, 0.0, 0).text().decode())
        if sum(found.get("modicum_http_requests_total", {}).values()) >= requests:
            return page(server)
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path / "ledger.db"


@pytest.fixture
def server(ledger: Path) -> Iterator[Served]:
    with served(ledger, policy=ledger.parent / "policy.yaml") as found:
        yield found


def test_the_ledger_is_told_as_it_is(server: Served, ledger: Path) -> None:
    for number in range(3):
        server.post("ann", "/releases", release(f"kept-{number}"))
    server.post("ann", "/releases", release("much", 0.5))
    server.post("ann", "/releases/kept-0:start")
    server.post("ann", "/releases/kept-1:void", {"reason": "not needed"})
    server.parts.decider.governance("olga").disclose(DISCLOSED)
    found = page(server)
    state = mo.open(ledger).state()
    rules = server.get("ann", "/rules", params={"limit": 500}).json()["rules"]
    alone: Labels = ()
    assert found["modicum_ledger_entries"][alone] == state.seq
    assert found["modicum_ledger_verify_ok"][alone] == 1
    assert found["modicum_ledger_readable"][alone] == 1
    assert found["modicum_reservations_open"][alone] == 1
    assert found["modicum_releases_counted"][alone] == 2
    assert found["modicum_denials_total"][alone] == 1
    assert found["modicum_nondp_disclosures_total"][alone] == len(state.disclosures)
    assert found["modicum_line_length"][alone] == 0
    assert found["modicum_rules"] == {
        (("state", state),): count
        for state, count in Counter(one["state"] for one in rules).items()
    }


def test_the_fullest_rules_are_told_and_no_more(server: Served) -> None:
    for number in range(4):
        server.post("ann", "/releases", release(f"r-{number}", 20 + number))
    found = page(server)["modicum_rule_utilisation_ratio"]
    every = server.get("ann", "/rules", params={"limit": 500}).json()["rules"]
    assert len(every) > 0
    losses = server.parts.decider.read_view(lambda view: tuple(view.standings()))
    expected = fullest_by_hand(losses, 20)
    assert found == expected
    assert max(found.values()) > 0
    few = Working(2).out(server.parts.decider.read_view(glance)).fullest
    assert [one.ratio for one in few] == sorted(found.values(), reverse=True)[:2]


def fullest_by_hand(losses: Any, most: int) -> dict[Labels, float]:
    """Return what is told of the fullest rules, the slow and obvious way."""
    from modicum.ledger.decision.amounts import amounts

    found = []
    for loss in losses:
        if not loss.own_filter.enforced:
            continue
        shown = amounts(loss)
        ratio = Fraction(shown.together, shown.limit) if loss.allowed else Fraction(2)
        found.append((ratio, loss.rule))
    found.sort(key=lambda pair: -pair[0])
    return {
        (
            ("context", " ".join(rule.context)),
            ("scope", rule.scope),
            ("unit", rule.unit),
        ): rounded_up(ratio)
        for ratio, rule in found[:most]
    }


def test_decisions_are_counted_once(server: Served) -> None:
    server.post("ann", "/releases", release("one"), key="k")
    server.post("ann", "/releases", release("one"), key="k")
    server.post("ann", "/releases", release("one"))
    server.post("ann", "/releases", release("much", 0.5))
    server.post("ann", "/releases:check", release("two"))
    server.post("ann", "/releases", {"release": "odd"})
    found = page(server)
    version = server.get("ann", "/policies").json()["policies"][0]["digest"][:12]
    assert found["modicum_decisions_total"] == {
        (("decision", "allow"), ("policy_version", version)): 1,
        (("decision", "deny"), ("policy_version", version)): 1,
    }
    assert found["modicum_check_seconds_count"][()] == 1


def test_a_policy_that_is_compiled_is_timed(server: Served) -> None:
    server.post("olga", "/policies:lint", {"modicum": "policy/v1"})
    assert page(server)["modicum_compile_seconds_count"][()] == 1


def test_requests_are_counted_by_their_template(server: Served) -> None:
    server.get("ann", "/releases/one")
    server.get("ann", "/releases/other")
    server.client.get("/nothing/of/the/kind")
    server.client.request("SOURCE", "/api/v1/rules", headers={HEADER: "ann"})
    server.post("ann", "/releases/one:start")
    counts = settled(server, 5)["modicum_http_requests_total"]
    assert without_scrapes(counts) == {
        key("/api/v1/releases/{release}", "GET", 404): 2,
        key(NO_ROUTE, "GET", 404): 1,
        key("/api/v1/rules", OTHER_METHOD, 405): 1,
        key("/api/v1/releases/{release}:start", "POST", 404): 1,
    }


def without_scrapes(counts: dict[Labels, float]) -> dict[Labels, float]:
    return {
        labels: value
        for labels, value in counts.items()
        if ("route", "/metrics") not in labels
    }


def key(route: str, method: str, status: int) -> Labels:
    return (("method", method), ("route", route), ("status", str(status)))


def test_each_template_is_that_of_the_description(server: Served) -> None:
    """A request to each path that OpenAPI describes is counted under that path."""
    described = server.client.get("/api/v1/openapi.json").json()["paths"]
    expected = {
        (path, method.upper())
        for path, methods in described.items()
        for method in methods
    }
    for path, method in expected:
        address = re.sub(r"\{[^}]*\}", "1", path)
        # Streams have no end that is worth waiting for.
        with server.client.stream(method, address, headers={HEADER: "ann"}):
            pass
    counts = settled(server, len(expected) + 1)["modicum_http_requests_total"]
    counts = without_scrapes(counts)
    counted = {(dict(labels)["route"], dict(labels)["method"]) for labels in counts}
    assert counted - {("/api/v1/openapi.json", "GET")} == expected


def test_who_may_read_metrics(server: Served) -> None:
    for name, grants in PEOPLE.items():
        answered = server.client.get("/metrics", headers={HEADER: name})
        allowed = any(Action.READ_METRICS in ALLOWED[role] for role in grants)
        assert answered.status_code == (200 if allowed else 403), name
    assert server.client.get("/metrics").status_code == 401


def test_two_processes_say_the_same_of_the_ledger(server: Served, ledger: Path) -> None:
    with served(ledger) as other:
        other.post("ann", "/releases", release("one"), key="another")
    server.post("ann", "/releases", release("two"))
    with served(ledger) as other:
        pages = [page(one) for one in (server, other)]
    own = re.compile("modicum_(http|check|compile|decisions|line|ledger_facts)")
    shared = [
        {
            name: series
            for name, series in one.items()
            if not own.match(name) and not name.endswith("age_seconds")
        }
        for one in pages
    ]
    assert shared[0] == shared[1]
    assert shared[0]["modicum_ledger_entries"][()] == 3


# --- what is remembered ---------------------------------------------------------------


class Watched:
    """A ledger that is looked at, on a clock of its own."""

    def __init__(self, takes: float = 0.0) -> None:
        self.now = 0.0
        self.looks = 0
        self.takes = takes
        self.error: Exception | None = None

    async def look(self) -> LedgerFacts:
        self.looks += 1
        self.now += self.takes
        if self.error is not None:
            raise self.error
        return _facts(self.looks)


def _facts(entries: int) -> LedgerFacts:
    return LedgerFacts(entries, 0, 0, 0, 0, 0, 0.0, 0, 0.0, 0, {}, {}, ())


def test_the_ledger_is_looked_at_again_only_after_a_while() -> None:
    async def scrapes() -> None:
        ledger = Watched()
        remembered = Remembered(ledger.look, lambda: ledger.now)
        for now, looks in ((0.0, 1), (4.9, 1), (5.0, 2), (9.9, 2), (10.0, 3)):
            ledger.now = now
            found = await remembered.found()
            assert ledger.looks == looks
            assert found is not None
            assert found.facts == _facts(looks)

    asyncio.run(scrapes())


def test_who_looks_long_looks_rarely() -> None:
    async def scrapes() -> None:
        ledger = Watched(takes=2.0)
        remembered = Remembered(ledger.look, lambda: ledger.now)
        await remembered.found()
        for now, looks in ((41.9, 1), (42.0, 2)):
            ledger.now = now
            await remembered.found()
            assert ledger.looks == looks

    asyncio.run(scrapes())


def test_a_scrape_does_not_wait_for_who_looks_long() -> None:
    async def scrapes() -> None:
        going = asyncio.Event()
        looks = 0

        async def look() -> LedgerFacts:
            nonlocal looks
            looks += 1
            await going.wait()
            return _facts(7)

        remembered = Remembered(look, lambda: 0.0, timeout=0.01)
        assert await remembered.found() is None
        assert await remembered.found() is None
        assert looks == 1
        going.set()
        await asyncio.sleep(0.01)
        found = await remembered.found()
        assert found is not None
        assert found.facts == _facts(7)

    asyncio.run(scrapes())


@pytest.mark.parametrize(
    ("error", "readable", "sound"),
    [
        (VerificationError(Problem(Code.LEDGER_BROKEN, "it is broken")), 1, 0),
        (UnavailableError(Problem(Code.LEDGER_BUSY, "it is away")), 0, None),
    ],
)
def test_a_ledger_that_cannot_be_read_is_told_of(
    error: Exception, readable: int, sound: int | None
) -> None:
    async def scrape() -> SampledMetrics | None:
        ledger = Watched()
        ledger.error = error
        return await Remembered(ledger.look, lambda: ledger.now).found()

    found = asyncio.run(scrape())
    values = samples(Page((), found, 1.5, 0).text().decode())
    assert values["modicum_ledger_readable"][()] == readable
    assert values.get("modicum_ledger_verify_ok", {}).get(()) == sound
    assert values["modicum_ledger_facts_age_seconds"][()] == 1.5
    assert "modicum_ledger_entries" not in values


@given(st.fractions(0, 2))
def test_a_ratio_is_never_told_too_low(ratio: Fraction) -> None:
    rounded = rounded_up(ratio)
    assert Fraction(rounded) >= ratio
    assert rounded - float(ratio) <= 2**-52


# --- alerts ---------------------------------------------------------------------------


def alert_rules() -> list[dict[str, Any]]:
    text = (ROOT / "deploy" / "alerts.yaml").read_text()
    groups = YAML(typ="safe").load(text)["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_alerts_ask_for_metrics_that_there_are(server: Served) -> None:
    server.post("ann", "/releases", release("one"))
    there = settled(server, 1)
    rules = alert_rules()
    for rule in rules:
        metrics = set(re.findall(r"\bmodicum_\w+", rule["expr"]))
        assert metrics, rule["alert"]
        assert metrics <= there.keys(), rule["alert"]
        labels = {label for name in metrics for one in there[name] for label, _ in one}
        wanted = set(re.findall(r'(\w+)\s*=~?\s*"', rule["expr"]))
        assert wanted <= labels, rule["alert"]
        assert {"summary", "description"} <= rule["annotations"].keys()
        assert rule["labels"]["severity"] in {"page", "ticket"}
    names = [rule["alert"] for rule in rules]
    assert len(names) == len(set(names))
    assert {
        "ModicumLedgerBroken",
        "ModicumLedgerUnwritable",
        "ModicumLedgerBehind",
        "ModicumLedgerFailing",
        "ModicumRuleNearlyFull",
        "ModicumReservationOld",
        "ModicumServerErrors",
        "ModicumSlow",
    } <= set(names)


def test_every_metric_is_documented(server: Served) -> None:
    server.post("ann", "/releases", release("one"))
    document = (ROOT / "docs" / "reference" / "telemetry.md").read_text()
    documented = set(re.findall(r"`(modicum_\w+)(?:\{[^}]*\})?`", document))
    page(server)
    text = server.client.get("/metrics", headers={HEADER: "petra"}).text
    there = {line.split()[2] for line in text.splitlines() if line[:6] == "# TYPE"}
    assert documented == there


def test_nothing_of_fastapi_is_told(server: Served) -> None:
    """Its own telemetry would tell paths and queries, if the environment says so."""
    app = build(server.parts)
    assert not any(app._telemetry[one] for one in ("tracing", "metrics", "logs"))
    assert not app._telemetry["auto_configure"]
    assert not app._native_telemetry.enabled()
