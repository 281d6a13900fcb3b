"""The auditor of the tests is not blind: what is forged well, it finds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from oracle.auditor import GENESIS, Findings, Row, audit
from samples.simulation import Simulation
from samples.small import POLICY, counts, workspace

Event: TypeAlias = dict[str, Any]


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    found = Simulation("to be forged")
    found.run(steps=80)
    return found


def events(simulation: Simulation) -> list[Event]:
    return [json.loads(payload)["event"] for _, payload, _ in simulation.rows()]


def chained(forged: list[Event]) -> list[Row]:
    """Return a log that says so, without a flaw in its chain."""
    rows, head = [], GENESIS
    for seq, event in enumerate(forged, 1):
        record = {"seq": seq, "prev": head, "event": event}
        text = json.dumps(
            record, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        head = hashlib.sha256(text.encode()).hexdigest()
        rows.append((seq, text.encode(), head))
    return rows


def audited(simulation: Simulation, forged: list[Event]) -> Findings:
    rows = chained(forged)
    return audit(lambda: rows, simulation.told)


def last(found: list[Event], kind: str) -> int:
    return max(n for n, event in enumerate(found) if event["kind"] == kind)


def let_in(found: list[Event]) -> None:
    event = found[last(found, "release-denied")]
    event["kind"] = "release-reserved"
    del event["body"]["blocking"]
    event["body"] |= {"expires_at": "2027-12-31T00:00:00.000000Z", "approved_by": []}


def keep_out(found: list[Event]) -> None:
    event = found[last(found, "release-reserved")]
    event["kind"] = "release-denied"
    event["body"]["blocking"] = ["all"]


def name_another(found: list[Event]) -> None:
    event = found[last(found, "release-denied")]
    event["body"]["blocking"] = [f"not-{event['body']['blocking'][0]}"]


def leave_out(found: list[Event]) -> None:
    found[:] = [event for event in found if event["kind"] != "release-denied"]


def post_early(found: list[Event]) -> None:
    place = last(found, "release-started")
    found[place]["kind"] = "release-posted"


def turn_back_time(found: list[Event]) -> None:
    found[-1]["at"] = found[0]["at"]


def bring_in_twice(found: list[Event]) -> None:
    found.append(found[last(found, "release-reserved")])


@pytest.mark.parametrize(
    ("forge", "kind"),
    [
        (let_in, "overdrafts"),
        (keep_out, "unjust"),
        (name_another, "misnamed"),
        (leave_out, "lost"),
        (post_early, "broken"),
        (bring_in_twice, "broken"),
        (turn_back_time, "broken"),
    ],
)
def test_what_is_forged_is_found(
    simulation: Simulation, forge: Callable[[list[Event]], None], kind: str
) -> None:
    honest = events(simulation)
    assert audited(simulation, honest).mistakes == []
    assert chained(honest) == simulation.rows()
    forge(honest)
    assert getattr(audited(simulation, honest), kind)


def test_a_chain_that_does_not_hold_is_found(simulation: Simulation) -> None:
    rows = simulation.rows()
    seq, payload, hash_ = rows[5]
    other = payload.replace(b'"actor":"', b'"actor":"x')
    changed = [*rows[:5], (seq, other, hash_), *rows[6:]]
    assert audit(lambda: changed).broken == ["6: its hash"]
    resealed = hashlib.sha256(other).hexdigest()
    changed[5] = (seq, other, resealed)
    assert audit(lambda: changed).broken == ["7: its predecessor"]
    without = rows[:5] + rows[6:]
    assert audit(lambda: without).broken[0] == "7: its number"


@pytest.mark.spec("LED-26")
def test_what_no_rule_limits_is_judged_by_the_version_of_its_entry(
    tmp_path: Path,
) -> None:
    narrow = POLICY[: POLICY.index("policies:")] + (
        "policies:\n"
        "  - {name: d, when: '\"diagnosis\" in m.attributes', unit: user, budget: 1}\n"
    )
    ws = workspace(tmp_path, policy=narrow)
    ws.submit(counts("limited"))
    ws.submit(counts("unlimited", attributes=()))
    honest = [json.loads(one.payload)["event"] for one in ws.records()]
    assert [one["kind"] for one in honest[1:]] == ["release-reserved", "release-denied"]

    def found(version: int, *, is_allowed: bool) -> Findings:
        forged = json.loads(json.dumps(honest))
        for event in forged:
            event["v"] = version
            if version < 6:
                event["body"].pop("unmatched", None)
        if is_allowed:
            forged[-1]["kind"], body = "release-reserved", forged[-1]["body"]
            del body["blocking"]
            body.pop("unmatched", None)
            body |= {"expires_at": "2026-05-02T12:00:00.000000Z", "approved_by": []}
        rows = chained(forged)
        return audit(lambda: rows)

    assert found(6, is_allowed=False).mistakes == []
    assert found(6, is_allowed=True).overdrafts == ["3: exceeds ('counts',)"]
    assert found(5, is_allowed=False).unjust
    assert found(5, is_allowed=True).mistakes == []
