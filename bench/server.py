"""How long a check takes over HTTP, and what HTTP costs beside decisions.

Run it with `python bench/server.py`, or with `--quick`. The server is a process of its
own, started as people start it, with sign-in by tokens; one client keeps a connection
open and asks in turns for an empty answer and for a check, so that both sides of the
ratio are of the same moments. Each check is of a release with an id that is new, and
with attributes and noise as people choose them: from not too many.

Then many clients, each with its own token, submit and check releases of a smaller
policy, such as scheduled jobs repeat them; a process without HTTP submits the same
(see `http_load`). `--clients 1000` shows how long they wait when they are many, and
`--before PATH` asks the server of another working tree in the same turns.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, cycle
from pathlib import Path
from typing import Any

from http_load import compare_load, started
from msgspec.structs import replace

from modicum.api.local.evaluation import price_release
from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import ALL
from modicum.api.permissions.tokens import TokenTerms
from modicum.ledger import GENESIS, Event, Record, seal
from modicum.ledger.log.events import PastRecorded, PolicyActivated
from modicum.ledger.proof.consistency import content_of
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text
from modicum.server.auth.registry import open_registry
from modicum.storage.factory import open_store

SEED = 20261122
CATEGORIES = 30
SIGMAS = range(60_000, 90_000, 500)
#: A check takes at most so many times as long as an empty answer, in the median.
MOST = 3.0


def policy_text(attributes: int, contexts: int) -> str:
    """Return a policy of many rules: one for each attribute, category and context.

    Args:
        attributes: How many attributes.
        contexts: How many contexts each rule has.
    """
    rng = random.Random(SEED)  # noqa: S311 - no secret
    names = [f"c{number}" for number in range(contexts)]
    categories = ", ".join(f"cat{number}: high" for number in range(CATEGORIES))
    levels = ("member", "strong", "weak")
    lines = [
        "modicum: policy/v1",
        "name: many",
        "dp: {bare_budget: {type: approx-dp, delta: 1e-7}}",
        "units: {user: {id: user_id}}",
        f"labels: {{context: {{values: [{', '.join(names)}], default: c0}}}}",
        "schema:",
        f"  categories: {{{categories}}}",
        "  attributes:",
    ]
    for number in range(attributes):
        joined = f"cat{rng.randrange(CATEGORIES)}: {rng.choice(levels)}"
        lines.append(f"    a{number}: [high, {{{joined}}}]")
    lines += [
        "policies:",
        '  - {name: global, when: "true", unit: user, budget: 8.0}',
        "  - {name: attr, for_each: attribute, unit: user, budget: {high: 4.0}}",
        "  - {name: cat, for_each: category, unit: user, budget: {high: 6.0},",
        "     levels: {member: same, strong: {scale: 1.1}, weak: {scale: 1.2}}}",
        "extensions:",
        "  - name: context",
        "    settings:",
    ]
    for number, name in enumerate(names):
        if number == contexts - 1:
            when, within = '"true"', ""
        else:
            known = ", ".join(f'"{one}"' for one in names[: number + 1])
            when = f"'m.context in [{known}]'"
            within = f", within: {names[number + 1]}"
        budget = "same" if number == 0 else f"{{scale: {1 + number / 20}}}"
        lines.append(f"      {name}: {{when: {when}, budget: {budget}{within}}}")
    return "\n".join(lines) + "\n"


class Releases:
    """Releases as plain data; no two have the same id.

    Args:
        attributes: How many attributes there are.
        contexts: How many contexts.
        seed: Tells this series from others.
    """

    def __init__(self, attributes: int, contexts: int, seed: int) -> None:
        self._rng = random.Random(seed)  # noqa: S311 - no secret
        self._attributes = [f"a{number}" for number in range(attributes)]
        self._contexts = contexts
        self._numbers = count()
        self._seed = seed

    def __next__(self) -> dict[str, Any]:
        rng = self._rng
        return {
            "release": f"s{self._seed}-{next(self._numbers)}",
            "context": f"c{rng.randrange(self._contexts)}",
            "mechanisms": [
                {
                    "name": "counts",
                    "mechanism": "gaussian",
                    "attributes": rng.sample(self._attributes, rng.choice((1, 2, 3))),
                    "sensitivity": {"user": {"l2": 1}},
                    "sigma": rng.choice(SIGMAS),
                }
            ],
        }


def log(
    text: str, compiled: CompiledPolicy, kinds: Releases, past: int
) -> Iterator[Record]:
    """Yield a log with a policy and so many past releases.

    Args:
        text: The policy.
        compiled: The same, compiled.
        kinds: Makes releases; some thousands of them are repeated.
        past: How many past releases.
    """
    at, digest = "2026-11-01T00:00:00.000000Z", compiled.policy.digest
    record = seal(Event(at, "bench", PolicyActivated(digest, "many", text)), 1, GENESIS)
    yield record
    priced = [price_release(next(kinds), compiled) for _ in range(min(past, 5_000))]
    for number in range(past):
        release = replace(priced[number % len(priced)], id=f"past-{number:06d}")
        release = replace(release, content=content_of(release))
        event = Event(at, "bench", PastRecorded(release, digest))
        record = seal(event, record.seq + 1, record.hash)
        yield record


def write_ledger(
    path: Path, text: str, kinds: Releases, past: int, clients: int = 1
) -> list[str]:
    """Write a ledger, and return a token for each client."""
    compiled = compile_text(text.encode(), "bench.yaml")
    rules = len(compiled.rules)
    print(f"{rules:,} rules, {past:,} past releases; seed {SEED}")
    store = open_store(path, keep_open=True)
    page: list[Record] = []
    for record in log(text, compiled, kinds, past):
        page.append(record)
        if len(page) == 10_000 or record.seq == past + 1:
            with store.turn() as turn:
                turn.append(page)
            page.clear()
    grants = {Role.ANALYST: frozenset({ALL})}
    registry = open_registry(store)
    issued = [
        registry.add_token(TokenTerms(f"bench-{number}", grants), created_by="bench")
        for number in range(clients)
    ]
    store.close()
    return [one.text for one in issued]


@contextmanager
def serving(ledger: Path) -> Iterator[int]:
    """Serve a ledger in a process of its own; yield the port."""
    modicum = Path(sys.executable).with_name("modicum")
    with started([modicum, "serve", "--ledger", ledger, "--port", "0"]) as (port, _):
        yield port


class Client:
    """A client that keeps its connection, and measures each request.

    Args:
        port: The port of the server.
        token: Its token.
    """

    def __init__(self, port: int, token: str) -> None:
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
        }
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)

    def ask(self, method: str, path: str, body: bytes | None = None) -> float:
        """Ask, and return how many seconds the answer took.

        Raises:
            RuntimeError: If it is no good answer.
        """
        began = time.perf_counter()
        self._connection.request(method, f"/api/v1{path}", body, self._headers)
        answer = self._connection.getresponse()
        reply = answer.read()
        lasted = time.perf_counter() - began
        if answer.status not in (200, 204):
            raise RuntimeError(reply.decode()[:500])
        return lasted


def percentile(times: list[float], percent: int) -> float:
    """Return a percentile of times, in milliseconds."""
    return sorted(times)[min(len(times) - 1, len(times) * percent // 100)] * 1e3


def compare(client: Client, wanted: Releases, count: int) -> None:
    """Ask in turns, and print both sides."""
    empty: list[float] = []
    checks: list[float] = []
    for _ in range(count):
        body = json.dumps(next(wanted)).encode()
        empty.append(client.ask("GET", "/ping"))
        checks.append(client.ask("POST", "/releases:check", body))
    print(f"\n{count:,} of each, in turns\n")
    print("| | p50 ms | p90 ms | p99 ms |")
    print("|---|--:|--:|--:|")
    for name, times in (("empty route", empty), ("releases:check", checks)):
        cells = " | ".join(f"{percentile(times, one):.2f}" for one in (50, 90, 99))
        print(f"| {name} | {cells} |")
    ratio = percentile(checks, 50) / percentile(empty, 50)
    verdict = "PASS" if ratio <= MOST else "FAIL"
    print(
        f"\n{verdict} a check takes at most {MOST:g} x an empty answer: {ratio:.2f} x"
    )


def repeated(kinds: Releases, count: int) -> Iterator[dict[str, Any]]:
    """Yield releases of not more than so many kinds, each with a new id."""
    every = [next(kinds) for _ in range(count)]
    for one in cycle(every):
        yield {**one, "release": next(kinds)["release"]}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--folder", type=Path, help="where the ledger is made")
    parser.add_argument("--clients", type=int, help="how many clients submit at once")
    parser.add_argument("--load", action="store_true", help="only the second table")
    parser.add_argument("--before", type=Path, help="a working tree to compare with")
    given = parser.parse_args()
    part = 10 if given.quick else 1
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        if not given.load:
            one_client(Path(folder, "ledger.db"), part)
        ledger, kinds = Path(folder, "load.db"), Releases(91, 10, 4)
        clients = given.clients or 200 // (4 if given.quick else 1)
        text = policy_text(91, 10)
        tokens = write_ledger(ledger, text, Releases(91, 10, 5), 1_000, clients)
        compare_load(ledger, tokens, repeated(kinds, 300), part, given.before)


def one_client(ledger: Path, part: int) -> None:
    """Compare a check of one client with an empty answer."""
    attributes, contexts, past = 910 // part, 10, 100_000 // part
    text = policy_text(attributes, contexts)
    (token,) = write_ledger(ledger, text, Releases(attributes, contexts, 1), past)
    with serving(ledger) as port:
        client = Client(port, token)
        began = time.perf_counter()
        client.ask(
            "POST",
            "/releases:check",
            json.dumps(next(Releases(attributes, contexts, 2))).encode(),
        )
        print(f"first check after {time.perf_counter() - began:.1f} s")
        wanted = Releases(attributes, contexts, 3)
        for _ in range(500 // part):
            client.ask("POST", "/releases:check", json.dumps(next(wanted)).encode())
        compare(client, wanted, 4_000 // part)


if __name__ == "__main__":
    main()
