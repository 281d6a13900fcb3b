"""A batch is its releases submitted one after the other: same answers, same ledger."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from budget import examples
from budget import seed as the_seed
from samples.served import HEADER, Served, served
from samples.small import POLICY

import modicum as mo

ASKED = (
    POLICY
    + """
roles: {privacy-officer: [olga, pavel]}
approvals:
  - {when: 'release.audience == "public"', need: 1, from: [privacy-officer]}
"""
)
WHO = ("amir", "ann", "ann", "dara", "lee", "root")
BATCHES = 20
#: Text that no release has, or that is not even one.
ODD = (
    *(
        "5",
        '"text"',
        "[]",
        "{}",
        "null",
        '{"release": 1}',
        '{"release": "odd", "x": 1}',
    ),
    *('{"release": "a", "release": "b"}', '{"release": "a", "dataset": "visits"}'),
    '{"release": "r-1", "dataset": "visits", "mechanisms": [{"sigma": 1e999}]}',
)
#: What differs between two servers, and between one moment and another.
_TIMES = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z|[0-9a-f]{64}")


def release(rng: random.Random) -> str:
    """Return a release as text; few ids, so that they meet."""
    if rng.random() < 0.15:
        return rng.choice(ODD)
    named = rng.choice(({}, {"dataset": "visits"}, {"dataset": "visits"}))
    named = rng.choice((named, named, {"dataset": "labs"}))
    one: dict[str, Any] = {
        "release": rng.choice(("r-",) * 5 + ("R-",)) + str(rng.randrange(12)),
        **named,
        "audience": rng.choice(("internal",) * 5 + ("public",)),
        "mechanisms": [
            {
                "name": "counts",
                "mechanism": "gaussian",
                "attributes": [rng.choice(("age",) * 6 + ("diagnosis", "shoe"))],
                "sensitivity": {"user": {"l2": 1}},
                "sigma": rng.choice((*(200,) * 6, 5000, 3, 3, -1)),
            }
        ],
    }
    return json.dumps(one, indent=rng.choice((None, None, 1)))


def send(server: Served, who: str, path: str, text: str, query: dict[str, Any]) -> Any:
    return server.client.post(
        f"/api/v1{path}",
        content=text,
        params=query,
        headers={
            HEADER: who,
            "Idempotency-Key": f"k-{next(server._keys)}",
            "Content-Type": "application/json",
        },
    )


def plain(document: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without what differs between two servers."""
    document.pop("trace_id", None)
    found: dict[str, Any] = json.loads(_TIMES.sub("…", json.dumps(document)))
    return found


def one_by_one(answered: list[httpx2.Response]) -> list[tuple[str, Any]]:
    return [
        ("decision" if one.status_code == 200 else "problem", plain(one.json()))
        for one in answered
    ]


def together(answered: httpx2.Response) -> list[tuple[str, Any]]:
    assert answered.status_code == 200, answered.text
    found = []
    for one in answered.json()["answers"]:
        assert one["replayed"] is False
        kind = "problem" if one["decision"] is None else "decision"
        assert (one["problem"] is None) == (kind == "decision")
        found.append((kind, plain(one[kind])))
    return found


def events(ledger: Path) -> list[tuple[str, Any]]:
    """Return what a ledger says, without times and hashes."""
    return [
        ("event", plain(json.loads(one.payload))) for one in mo.open(ledger).records()
    ]


@pytest.mark.parametrize("seed", range(examples(1)))
def test_a_batch_is_its_releases_one_after_the_other(tmp_path: Path, seed: int) -> None:
    rng = random.Random(f"{the_seed()}-{seed}")
    policy = tmp_path / "policy.yaml"
    policy.write_text(ASKED)
    single, joint = tmp_path / "single.db", tmp_path / "joint.db"
    seen: set[str] = set()
    with served(single, policy=policy) as one, served(joint, policy=policy) as other:
        for _ in range(BATCHES):
            who, many = rng.choice(WHO), rng.randint(1, 12)
            texts = [release(rng) for _ in range(many)]
            query: dict[str, Any] = {"publish": rng.random() < 0.3}
            query["reserve_seconds"] = rng.choice((60, 86_400, 90 * 86_400))
            query["text"] = rng.random() < 0.3
            answered = [send(one, who, "/releases", text, query) for text in texts]
            body = f'{{"releases": [{", ".join(texts)}]}}'
            batch = send(other, who, "/releases:batch", body, query)
            if batch.status_code == 403:  # They may submit nothing at all.
                assert {found.status_code for found in answered} == {403}
                continue
            expected = one_by_one(answered)
            assert together(batch) == expected, (who, query)
            seen |= {
                found.get("code") or f"{found['status']}-{found['retry']}"
                for _, found in expected
            }
    assert events(single) == events(joint)
    # What was drawn is not all alike.
    assert {"reserved-False", "reserved-True", "denied-False", "published-False"} < seen
    assert {"MOD604", "MOD703", "MOD832"} < seen
