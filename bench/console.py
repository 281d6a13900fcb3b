"""How long pages take on a large ledger, beside an empty one.

Run it with `python bench/console.py`; `--dir FOLDER` keeps the ledger for the next run.
The application answers in this process, without a network. A ledger of 10,000 rules and
100,000 releases is written at once; requests, denials and rounds come from the usual
writer.

Each path is read several times, in turns, on the large ledger and on one with a small
policy and no releases. *First* is the first read of a process, *changed* the median of
first reads after the ledger has grown, and p50 and p95 are of reads in between.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import Any

import httpx2
from msgspec.structs import replace

import modicum as mo
from modicum.api.local.evaluation import price_release
from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import ALL, Grants
from modicum.console.router import Console
from modicum.ledger import GENESIS, Event, Record, seal
from modicum.ledger.log.events import (
    PolicyActivated,
    ReleasePosted,
    ReleaseReserved,
    ReleaseStarted,
)
from modicum.ledger.proof.consistency import content_of
from modicum.policy.compiler import compile_text
from modicum.server.app import build
from modicum.server.auth.authentication import Recognizing
from modicum.server.auth.registry import open_registry
from modicum.server.components import Parts
from modicum.server.rate_limits import Rates
from modicum.storage.factory import open_store

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from samples.served import HEADER, ByHeader

SEED = 20261121
AT = "2026-11-01T00:00:00.000000Z"
#: Rules of a scope: two units in five contexts of use.
EACH = 10
#: Kinds of releases; the log repeats them under other names.
KINDS = 20_000
DATA_SETS = ("visits", "labs", "claims")
COUNTRIES = ("AT", "BE", "CH", "DE", "ES", "FR", "GB", "IT", "NL", "PL")
#: What a page of the console may have at most.
ROWS_MAX, BYTES_MAX = 500, 300_000
#: Who reads: everything, or one data set.
PEOPLE: dict[str, Grants] = {
    "olga": {Role.PRIVACY_OFFICER: frozenset({ALL})},
    "ann": {Role.ANALYST: frozenset({"visits"})},
}

#: Who reads what; ids in braces are of the large ledger: `{most}` is a rule that counts
#: all releases.
PATHS: tuple[tuple[str, str], ...] = (
    ("olga", "/api/v1/me"),
    ("olga", "/api/v1/rules?order=tightest&limit=100"),
    ("olga", "/api/v1/rules?order=tightest&unit=user&limit=500"),
    ("olga", "/api/v1/rules?limit=500"),
    ("olga", "/api/v1/rules?search=attribute-77"),
    ("olga", "/api/v1/rules/history?rule={rule}"),
    ("olga", "/api/v1/releases?limit=100"),
    ("olga", "/api/v1/releases?order=newest&limit=100"),
    ("olga", "/api/v1/releases?order=newest&search=no-such-release"),
    ("ann", "/api/v1/releases?order=newest&limit=100"),
    ("olga", "/api/v1/releases/{release}"),
    ("olga", "/api/v1/requests"),
    ("olga", "/api/v1/ledger/entries?order=newest&limit=100"),
    ("olga", "/api/v1/ledger/entries?order=newest&kind=release-denied&limit=100"),
    ("olga", "/api/v1/policies"),
    ("olga", "/api/v1/rounds"),
    ("olga", "/"),
    ("olga", "/?unit=user-month"),
    ("olga", "/releases"),
    ("ann", "/releases"),
    ("olga", "/releases?search=no-such-release"),
    ("olga", "/new-release"),
    ("olga", "/releases/{release}"),
    ("olga", "/requests"),
    ("olga", "/rounds"),
    ("olga", "/policy"),
    ("olga", "/policy/edit"),
    ("olga", "/rules"),
    ("olga", "/rules?order=tightest&search=attribute-77"),
    ("olga", "/rules/{rule}"),
    ("olga", "/rules/{most}"),
    ("olga", "/rule-drawing?rule={rule}"),
    ("olga", "/risk"),
    ("olga", "/ledger"),
    ("olga", "/ledger?kind=release-denied"),
    ("olga", "/ledger/{entry}"),
    ("olga", "/audit"),
    ("olga", "/settings"),
    ("olga", "/jobs"),
)


# --- a large ledger ------------------------------------------------------------------


def policy_of(rules: int) -> str:
    """Return a policy of about so many rules over history."""
    dice = random.Random(SEED)  # noqa: S311 - a workload
    names = [f"attribute-{number}" for number in range(max(1, rules // EACH - 1))]
    attributes = "\n".join(
        f"    {name}: [{dice.choice(('low', 'high'))}]" for name in names
    )
    return f"""\
modicum: policy/v1
name: large
dp: {{bare_budget: {{type: approx-dp, delta: 1e-6}}}}
units:
  user: {{id: user_id}}
  user-month: {{id: user_id, time: {{column: at, period: month}}, within: user}}
labels:
  use: {{values: [study, product, report, model, unknown], default: unknown}}
population:
  partition_by:
    country: {{values: [{", ".join(COUNTRIES)}], immutable: [user, user-month]}}
schema:
  attributes:
{attributes}
policies:
  - {{name: all, when: "true", unit: user, budget: 90}}
  - {{name: attr, for_each: attribute, unit: user, budget: {{low: 6, high: 3}}}}
  - {{name: all-month, when: "true", unit: user-month, budget: 20}}
  - {{name: attr-month, for_each: attribute, unit: user-month,
     budget: {{low: 2, high: 1}}}}
extensions:
  - name: use
    settings:
      study: {{when: 'm.use == "study"', budget: same}}
      product: {{when: 'm.use == "product"', budget: same}}
      report: {{when: 'm.use == "report"', budget: same}}
      model: {{when: 'm.use == "model"', budget: same}}
      any: {{when: "true", budget: {{scale: 2}}}}
per_release:
  - {{name: cap, when: "true", unit: user, budget: {{eps: 1.5, delta: 1e-7}}}}
roles: {{privacy-officer: [olga, pavel]}}
approvals:
  - {{when: 'release.audience == "public"', need: 1, from: [privacy-officer]}}
"""


def released(number: int, attributes: int) -> dict[str, Any]:
    """Return a release as plain data; few attributes are read often."""
    dice = random.Random(f"{SEED} {number}")  # noqa: S311 - a workload
    read = {int(attributes * dice.random() ** 2) for _ in range(dice.choice((1, 1, 2)))}
    month = f"2026-{dice.randrange(1, 11):02d}"
    return {
        "release": f"kind-{number}",
        "dataset": DATA_SETS[number % len(DATA_SETS)],
        "audience": "internal",
        "use": dice.choice(("study", "product", "report", "model")),
        "where": {"country": dice.choice(COUNTRIES)},
        "periods": {"from": f"{month}-01", "to": f"{month}-28"},
        "mechanisms": [
            {
                "name": "counts",
                "mechanism": "gaussian",
                "attributes": [f"attribute-{one}" for one in sorted(read)],
                "sensitivity": {"user": {"l2": 1}, "user-month": {"l2": 1}},
                "sigma": dice.randrange(40, 120),
            }
        ],
    }


def records(text: str, releases: int) -> Iterator[Record]:
    """Yield the records of a log of so many releases, nearly all published."""
    compiled = compile_text(text.encode(), "large.yaml")
    policy = compiled.policy
    attributes = len(policy.vocabulary.attributes)
    kinds = [price_release(released(n, attributes), compiled) for n in range(KINDS)]
    bodies: list[Any] = [PolicyActivated(policy.digest, policy.name, text)]
    seq, head = 0, GENESIS
    for number in range(releases):
        name = f"release-{number:07d}"
        release = replace(kinds[number % KINDS], id=name)
        release = replace(release, content=content_of(release))
        until = "2036-01-01T00:00:00.000000Z"
        bodies.append(ReleaseReserved(release, policy.digest, until))
        if number % 100:
            bodies += [ReleaseStarted(name), ReleasePosted(name)]
        for body in bodies:
            record = seal(Event(AT, "bench", body), seq := seq + 1, head)
            head = record.hash
            yield record
        bodies.clear()


def write_large(ledger: Path, rules: int, releases: int) -> None:
    """Write a large ledger: a log at once, then what people add to it."""
    began = time.perf_counter()
    text = policy_of(rules)
    with closing(open_store(ledger, keep_open=True)) as store:
        page: list[Record] = []
        for record in records(text, releases):
            page.append(record)
            if len(page) == 10_000:
                with store.turn() as turn:
                    turn.append(page)
                page.clear()
        with store.turn() as turn:
            turn.append(page)
    ws = mo.open(ledger, actor="amir")
    attributes = len(ws.policy().policy.vocabulary.attributes)
    for number in range(100):
        asked = {**released(number, attributes), "release": f"asked-{number}"}
        ws.governance.request({**asked, "audience": "public"}, reason="a study")
        loud = {**released(number, attributes), "release": f"loud-{number}"}
        loud["mechanisms"][0]["sigma"] = 0.5
        assert not ws.submit(loud).allowed
    for number in range(10):
        ws.rounds.open(f"round-{number}")
    ws.standings()
    ws.save_snapshot()  # With balances: the server starts from it.
    print(f"written in {time.perf_counter() - began:.0f} s", file=sys.stderr)


SMALL = """
modicum: policy/v1
name: empty
units: {user: {id: user_id}}
schema: {attributes: {age: [low]}}
policies: [{name: all, when: "true", unit: user, budget: {rho: 1}}]
"""


# --- reading -------------------------------------------------------------------------


@dataclass
class Times:
    """How long a path took.

    Attributes:
        first: The first read, in milliseconds.
        changed: First reads after the ledger has grown.
        again: All other reads.
        empty: Reads of the same path of an empty ledger.
        size: Bytes of the answer.
        rows: Items or table rows in it.
    """

    first: float = 0.0
    changed: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    empty: list[float] = field(default_factory=list)
    size: int = 0
    rows: int = 0

    def p(self, share: float) -> float:
        """Return a percentile of the reads of an unchanged ledger."""
        ordered = sorted(self.again)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass
class Client:
    """Asks an application that answers in this process.

    Attributes:
        http: The client.
        decider: The ledger behind it.
        names: Ids to fill into paths.
    """

    http: httpx2.AsyncClient
    parts: Parts
    names: dict[str, str]

    async def read(self, who: str, path: str) -> tuple[float, bytes]:
        """Return how many milliseconds a path took, and its body."""
        where = path.format_map(self.names)
        began = time.perf_counter()
        answer = await self.http.get(where, headers={HEADER: who})
        lasted = 1000 * (time.perf_counter() - began)
        if answer.status_code != 200:
            sys.exit(f"{where}: {answer.status_code} {answer.text[:500]}")
        return lasted, answer.content


@asynccontextmanager
async def serving(ledger: Path, names: dict[str, str]) -> AsyncIterator[Client]:
    """Serve a ledger in this process."""
    with ExitStack() as open_:
        decider = open_.enter_context(mo.open_decider(ledger, actor="bench"))
        store = open_.enter_context(closing(open_store(ledger, keep_open=True)))
        rates = Rates(10**9)
        parts = Parts(
            decider,
            open_registry(store, fresh_seconds=0),
            Recognizing([ByHeader(PEOPLE)]),
            rates,
            anonymous_rates=rates,
            console=Console(),
        )
        transport = httpx2.ASGITransport(app=build(parts))
        url = "http://127.0.0.1"
        async with httpx2.AsyncClient(transport=transport, base_url=url) as http:
            yield Client(http, parts, names)
        parts.service.jobs.close()


def rows_in(body: bytes) -> int:
    """Return the rows of an answer: of its longest list, or of its tables."""
    if body.lstrip()[:1] != b"{":
        return body.count(b"<tr")
    lists = [one for one in json.loads(body).values() if isinstance(one, list)]
    # Words, such as the values of a filter, are no rows.
    items = [one for one in lists if one and isinstance(one[0], dict)]
    return max(map(len, items), default=0)


async def measure(
    client: Client, other: Client, turns: int, changes: int
) -> dict[int, Times]:
    """Return the times of each path; reads of all paths take turns.

    Args:
        client: The large ledger.
        other: The empty one.
        turns: How often each path is read.
        changes: How often each path is read after a change.
    """
    found = {place: Times() for place in range(len(PATHS))}
    for place, (who, path) in enumerate(PATHS):
        lasted, body = await client.read(who, path)
        print(f"{path}: first {lasted:.0f} ms", file=sys.stderr, flush=True)
        found[place].first = lasted
        found[place].size, found[place].rows = len(body), rows_in(body)
    for _ in range(turns):
        for place, (who, path) in enumerate(PATHS):
            found[place].again.append((await client.read(who, path))[0])
            if "{" not in path:  # Of an id there.
                found[place].empty.append((await other.read(who, path))[0])
    for _ in range(changes):
        for place, (who, path) in enumerate(PATHS):
            await asyncio.to_thread(add, client)
            found[place].changed.append((await client.read(who, path))[0])
    return found


def add(client: Client) -> None:
    """Add a release to the ledger: it is decided as usual."""
    decider = client.parts.decider
    head = decider.head()
    assert head is not None
    attributes = len(decider.policy().policy.vocabulary.attributes)
    one = {**released(head.seq, attributes), "release": f"added-{head.seq}"}
    decider.submit(one, actor="amir")


async def run(folder: Path, given: argparse.Namespace) -> None:
    """Print the table."""
    large = folder / f"large-{given.rules}-{given.releases}.db"
    small = folder / "small.db"
    if not large.exists():
        write_large(large, given.rules, given.releases)
    if not small.exists():
        (folder / "small.yaml").write_text(SMALL)
        mo.open(small, policy=folder / "small.yaml", actor="bench").init()
    names = {
        "release": f"release-{given.releases // 2:07d}",
        "rule": "attr:attribute-7 @study",
        "most": "all @any",
        "entry": str(given.releases),
    }
    async with serving(large, names) as client, serving(small, {}) as other:
        times = await measure(client, other, given.turns, given.changes)
    print(f"{given.rules:,} rules, {given.releases:,} releases, seed {SEED}\n")
    head = ("path", "p50 ms", "p95 ms", "empty", "changed", "first", "kB", "rows", "")
    print("|", " | ".join(head), "|")
    print("|---|" + "--:|" * 7 + "---|")
    for place, (who, path) in enumerate(PATHS):
        one = times[place]
        size = one.size / 1000
        over = one.rows > ROWS_MAX or one.size > BYTES_MAX
        print(
            f"| `{path}` ({who}) | {one.p(0.5):.1f} | {one.p(0.95):.1f}"
            f" | {statistics.median(one.empty or [nan]):.1f}"
            f" | {statistics.median(one.changed or [nan]):.0f} | {one.first:.0f}"
            f" | {size:.1f} | {one.rows} | {'TOO LARGE' if over else ''} |"
        )


def main() -> None:
    """Print how long pages take."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, help="where the ledger is kept")
    parser.add_argument("--rules", type=int, default=10_000)
    parser.add_argument("--releases", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--changes", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = given.dir or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        asyncio.run(run(folder, given))


if __name__ == "__main__":
    main()
