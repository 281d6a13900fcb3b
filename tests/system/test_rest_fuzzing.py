"""Calls that nobody would think of: nothing breaks, and all is as described.

The calls are generated from the OpenAPI description; see `samples.fuzzing`. A plain
run makes the same ones every time, `make soak` ten times as many, and others.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from budget import examples
from budget import seed as the_seed
from samples.fuzzed_escrow import EscrowScene, with_escrow
from samples.fuzzing import ByBearer, Filled, Fuzzer, Stories
from samples.heard import Heard
from samples.jobs import finished
from samples.ledger_places import LedgerPlace, postgres_place, sqlite_place
from samples.postgres import Cluster
from samples.rights import declared
from samples.served import ALL_SETS, HEADER, Served, served
from samples.small import POLICY
from samples.told import Told
from schemathesis import Case

import modicum as mo
from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import Grants
from modicum.server.auth.authentication import Recognizing
from modicum.server.rate_limits import Rates
from modicum.server.resources import Equipment
from modicum.server.settings.tables import TablesOf
from modicum.storage.proofs.signing_keys import make_key

#: So many calls are made in each round; a soak has ten rounds on each store.
CALLS = 2_500
#: So many of them are made on each ledger: some calls read it from its beginning.
CALLS_EACH = 500
#: Each operation is done at least so often in a hundred calls of it.
DONE_PERCENT = 5
#: After so many of them there is something new to be acted on.
TURN = 100

PEOPLE: dict[str, Grants] = {
    "olga": {Role.PRIVACY_OFFICER: ALL_SETS},
    "dara": {Role.DATA_STEWARD: ALL_SETS},
    "amir": {Role.ANALYST: ALL_SETS},
    "lee": {Role.ANALYST: frozenset({"labs"})},
    "root": {Role.ADMIN: ALL_SETS},
    "audra": {Role.AUDITOR: ALL_SETS},
    "petra": {Role.PLATFORM_ENGINEER: ALL_SETS},
}
#: Who asks, as often as they stand here: most those who may do most.
WHO = (*("olga",) * 6, *("dara",) * 5, *("amir",) * 3, "lee", "root", "audra", "petra")

ASKING = (
    POLICY
    + """
roles:
  privacy-officer: [olga]
  data-steward: [dara]
approvals:
  - {when: 'release.audience == "public"', need: 1,
     from: [privacy-officer, data-steward]}
activation: {need: 1, from: [privacy-officer, data-steward]}
"""
)

_numbers = count()


def a_release(rng: random.Random) -> dict[str, Any]:
    """Return a release that is well formed, and mostly fits."""
    named = rng.choice(({}, {"dataset": "visits"}, {"dataset": "labs"}))
    return {
        "release": f"r-{next(_numbers)}",
        **named,
        "audience": rng.choice(("internal", "internal", "public")),
        "mechanisms": [
            {
                "name": f"m{number}",
                "mechanism": "gaussian",
                "attributes": rng.sample(["age", "diagnosis", "steps"], 1),
                "sensitivity": {"user": {"l2": 1}},
                "sigma": rng.choice((3, 500, 5000, 50_000)),
            }
            for number in range(rng.choice((1, 1, 2)))
        ],
    }


def _cheap(rng: random.Random, audience: str) -> dict[str, Any]:
    """Return a release for which there is room, however many there were."""
    one = a_release(rng)
    one["audience"] = audience
    for mechanism in one["mechanisms"]:
        mechanism["sigma"] = 10**6
    return one


def another() -> str:
    """Return a policy that was never proposed before."""
    return ASKING.replace("name: small", f"name: small-{next(_numbers)}", 1)


def a_policy(rng: random.Random, given: Told) -> str:
    """Return a policy: a new one, or one that people were asked about."""
    known = given.value("/policies", "text", rng)
    return another() if known is None or rng.random() < 0.5 else str(known)


class Scene:
    """What there is to be acted on, made anew for each turn.

    Args:
        server: The server.
    """

    def __init__(self, server: Served) -> None:
        self._server = server
        self._rng = random.Random(the_seed())
        # What is unlocked is never locked again: there is always room.
        server.post("petra", "/rounds", {"unlocked": {"user": 1}})
        #: What brings about what a call needs.
        self.stories: Stories = {
            "Release": lambda rng, _: Filled(a_release(rng)),
            "POST /api/v1/releases": self._release,
            "POST /api/v1/releases:batch": self._releases,
            "POST /api/v1/releases:fit": self._varied,
            "POST /api/v1/queries:plan": self._query,
            "POST /api/v1/releases:record-past": self._past,
            "POST /api/v1/rounds": lambda _, __: Filled({}, who="petra"),
            "POST /api/v1/releases/{release}:start": self._reserved,
            "POST /api/v1/releases/{release}:post": self._started,
            "POST /api/v1/releases/{release}:void": self._reserved,
            "POST /api/v1/requests": self._request,
            "POST /api/v1/requests/{release}:withdraw": self._asked,
            "GET /api/v1/requests/{release}/statement": self._statement,
            "POST /api/v1/ledger/remarks": lambda _, __: Filled(
                {"remark": "x"}, who="dara"
            ),
            "POST /api/v1/ledger/disclosures": self._disclosure,
            "POST /api/v1/risk/analyses": self._analysis,
            "POST /api/v1/requests/{release}/approvals": self._word,
            "DELETE /api/v1/requests/{release}/approvals": self._word_said,
            "Policy": self._policy,
            "GET /api/v1/policies/{digest}/approvals": self._proposed,
            "POST /api/v1/policies/{digest}/approvals": self._word_on_policy,
            "DELETE /api/v1/policies/{digest}/approvals": self._word_on_policy_said,
            "DELETE /api/v1/tokens/{token}": self._token,
            "GET /api/v1/ledger/proof": self._shorter,
            "GET /api/v1/ledger/entries": self._entries,
            "GET /api/v1/jobs/{job}": self._begun,
            "DELETE /api/v1/jobs/{job}": self._begun,
            "GET /api/v1/policies/{digest}": self._active,
            "GET /api/v1/policies/proposals/{digest}": self._proposed,
            "POST /api/v1/policies:compile": self._policy,
            "POST /api/v1/policies:diff": self._against,
            "POST /api/v1/policies:simulate": self._told_to_officers,
            "POST /api/v1/policies:weigh": self._weighed,
            "POST /api/v1/policies:activate": self._agreed,
            "POST /api/v1/policies/{digest}:activate": self._agreed_digest,
            "POST /api/v1/rounds/{round_id}/plan": self._wishes,
            "POST /api/v1/plans:commit": self._plan,
            "GET /api/v1/plans/{plan}": self._committed,
            "GET /api/v1/rounds/{round_id}": self._opened,
            **EscrowScene(server).stories,
        }

    def set_up(self, fuzzer: Fuzzer) -> None:
        """Make releases at every step of their life, requests, and proposals."""
        for public, steps in ((False, 0), (False, 1), (True, 0), (True, 0)):
            one = {**a_release(self._rng), "audience": "internal"}
            if public:
                one["audience"] = "public"
            self._post("amir", "/releases", one)
            if steps:
                self._post("amir", f"/releases/{one['release']}:start")
        for _ in range(2):
            digest = self._propose(another())
            vote = {"approves": True, "reason": "x"}
            self._post("dara", f"/policies/{digest}/approvals", vote)
            fuzzer.get("olga", f"/policies/{digest}/approvals")
        for path in (
            *("/releases?status=reserved&status=started", "/requests"),
            *("/policies", "/policies/proposals", "/rules", "/ledger/entries?limit=5"),
        ):
            fuzzer.get("olga", path)

    # --- stories ---

    def _release(self, rng: random.Random, _: Told) -> Filled:
        """Return a release, mostly one that needs no approval, and who may ask."""
        one = _cheap(rng, "internal") if rng.random() < 0.7 else a_release(rng)
        return Filled(one, query={"text": "true"}, who="amir")

    def _releases(self, rng: random.Random, _: Told) -> Filled:
        many = [a_release(rng) for _ in range(rng.randint(1, 4))]
        return Filled({"releases": many}, query={"text": "true"}, who="amir")

    def _varied(self, rng: random.Random, _: Told) -> Filled:
        return Filled(a_release(rng), query={"vary": "noise"}, who="amir")

    def _query(self, _: random.Random, __: Told) -> Filled:
        text = f"""\
release: q-{next(_numbers)}
query:
  sql: "SELECT COUNT(*) AS people FROM people"
  noise: gaussian
  loss: {{user: {{rho: 0.000001}}}}
"""
        return Filled({"query": text, "tables": declared("people")}, who="amir")

    def _past(self, rng: random.Random, _: Told) -> Filled:
        """Return what leaves room for others: what happened is counted in any case."""
        return Filled(_cheap(rng, "internal"), who="dara")

    def _reserved(self, rng: random.Random, _: Told) -> Filled:
        one = _cheap(rng, "internal")
        self._post("amir", "/releases", one)
        return Filled({"reason": "x"}, path={"release": one["release"]}, who="amir")

    def _started(self, rng: random.Random, known: Told) -> Filled:
        one = self._reserved(rng, known)
        self._post("amir", f"/releases/{one.path['release']}:start")
        return one

    def _asked(self, rng: random.Random, _: Told) -> Filled:
        one = _cheap(rng, "public")
        self._post("amir", "/releases", one)
        return Filled({"reason": "x"}, path={"release": one["release"]}, who="amir")

    def _request(self, rng: random.Random, _: Told) -> Filled:
        return Filled(_cheap(rng, "public"), query={"reason": "x"}, who="amir")

    def _statement(self, rng: random.Random, known: Told) -> Filled | None:
        vote = self._word(rng, known)
        if vote is None:
            return None
        params = {"approves": "true", "reason": "x", "key": "0" * 64}
        return Filled(path=vote.path, query=params, who="dara")

    def _disclosure(self, rng: random.Random, _: Told) -> Filled:
        """Return what was told outside differential privacy, and who may say so."""
        return Filled(
            {
                "disclosure": f"d-{next(_numbers)}",
                "what": "a number",
                "attributes": rng.choice((["age"], "all")),
                "reason": "x",
                "released_on": "2018-05-04",
            },
            who="olga",
        )

    def _analysis(self, _: random.Random, __: Told) -> Filled:
        return Filled(
            {"dataset": "visits", "query": "SELECT COUNT(*) FROM rows"}, who="dara"
        )

    def _word(self, rng: random.Random, _: Told) -> Filled | None:
        """Ask for what needs approval; return what somebody says to it."""
        one = _cheap(rng, "public")
        self._post("amir", "/releases", one)
        found = self._server.get("dara", f"/requests/{one['release']}")
        if found.status_code != 200:
            return None  # It would be denied anyway.
        return Filled(
            {"approves": rng.random() < 0.5, "reason": "x"},
            path={"release": one["release"]},
            headers={"If-Match": found.headers["etag"]},
            who="dara",
        )

    def _word_said(self, rng: random.Random, known: Told) -> Filled | None:
        """Return what somebody said just then, to be taken back."""
        vote = self._word(rng, known)
        if vote is None:
            return None
        path = f"/requests/{vote.path['release']}/approvals"
        self._server.post("dara", path, vote.body, headers=vote.headers)
        return Filled(path=vote.path, headers=vote.headers, who="dara")

    def _word_on_policy(self, rng: random.Random, _: Told) -> Filled:
        return Filled(
            {"approves": rng.random() < 0.5, "reason": "x"},
            path={"digest": self._propose(another())},
            who="dara",
        )

    def _word_on_policy_said(self, rng: random.Random, known: Told) -> Filled:
        vote = self._word_on_policy(rng, known)
        self._post("dara", f"/policies/{vote.path['digest']}/approvals", vote.body)
        return vote

    def _token(self, _: random.Random, __: Told) -> Filled:
        made = self._server.post("amir", "/tokens", {}).json()
        return Filled(path={"token": made["id"]}, who="amir")

    def _begun(self, _: random.Random, __: Told) -> Filled | None:
        job = self._server.post("audra", "/ledger:verify").json().get("job")
        return None if job is None else Filled(path={"job": job}, who="audra")

    def _shorter(self, _: random.Random, __: Told) -> Filled:
        """Return a part of the ledger that is known by its end."""
        head = self._server.get("audra", "/ledger/head").json()
        return Filled(query={"seq": head["seq"], "head": head["head"]}, who="audra")

    @staticmethod
    def _entries(rng: random.Random, _: Told) -> Filled:
        """Return a page of the log."""
        query = {
            "limit": rng.choice([1, 5, 100]),
            "after": rng.choice([0, 3, 2**53]),
            "order": rng.choice(["oldest", "newest"]),
        }
        return Filled(query=query, who="audra")

    def _opened(self, _: random.Random, __: Told) -> Filled:
        return Filled(path={"round_id": self._round()}, who="petra")

    def _policy(self, rng: random.Random, known: Told) -> Filled:
        text = a_policy(rng, known)
        return Filled(text.encode(), "application/yaml")

    def _against(self, rng: random.Random, known: Told) -> Filled:
        return replace(self._told_to_officers(rng, known), query={"against": "active"})

    def _weighed(self, rng: random.Random, known: Told) -> Filled:
        return replace(self._told_to_officers(rng, known), query={"accept": []})

    def _told_to_officers(self, rng: random.Random, known: Told) -> Filled:
        return replace(self._policy(rng, known), who="olga")

    def _active(self, _: random.Random, __: Told) -> Filled:
        known = self._server.get("olga", "/policies").json()["policies"]
        return Filled(path={"digest": known[-1]["digest"]}, who="olga")

    def _proposed(self, _: random.Random, __: Told) -> Filled:
        return Filled(path={"digest": self._propose(another())}, who="olga")

    def _agreed(self, _: random.Random, __: Told) -> Filled:
        """Return a policy that all had agreed to, just then."""
        text = another()
        digest = self._propose(text)
        self._approve(digest)
        return Filled(
            text.encode(),
            "application/yaml",
            query={"reason": "x"},
            headers={"If-Match": self._tag("/policies")},
            who="olga",
        )

    def _agreed_digest(self, _: random.Random, __: Told) -> Filled:
        digest = self._propose(another())
        self._approve(digest)
        return Filled(
            {"reason": "x"},
            path={"digest": digest},
            headers={"If-Match": self._tag("/policies")},
            who="olga",
        )

    def _wishes(self, rng: random.Random, _: Told) -> Filled:
        """Return wishes for a round that is open."""
        return Filled(
            [
                {**_cheap(rng, "internal"), "utility": rng.randint(1, 5)}
                for _ in range(3)
            ],
            path={"round_id": self._round()},
        )

    def _plan(self, rng: random.Random, known: Told) -> Filled | None:
        """Return a plan that was made just then."""
        requests = self._wishes(rng, known)
        began = self._server.post(
            "petra", f"/rounds/{requests.path['round_id']}/plan", requests.body
        )
        plan = finished(self._server, "petra", began)["result"]
        tag = f'"{plan["ledger"]["head"]}"'
        return Filled(plan, headers={"If-Match": tag}, who="petra")

    def _committed(self, rng: random.Random, known: Told) -> Filled | None:
        found = self._server.get("olga", "/plans").json()["plans"]
        if not found:
            plan = self._plan(rng, known)
            assert plan is not None
            self._server.post("petra", "/plans:commit", plan.body, headers=plan.headers)
            return None
        return Filled(path={"plan": rng.choice(found)["plan"]})

    # --- steps ---

    def _round(self) -> str:
        """Return the round that is open; open one if there is none."""
        rounds = self._server.get("petra", "/rounds").json()["rounds"]
        if not rounds:
            self._server.post("petra", "/rounds", {})
            return self._round()
        return str(rounds[-1]["round"])

    def _tag(self, path: str) -> str:
        return str(self._server.get("olga", path).headers["etag"])

    def _approve(self, digest: str) -> None:
        vote = {"approves": True, "reason": "x"}
        self._post("dara", f"/policies/{digest}/approvals", vote)

    def _post(self, who: str, path: str, document: object = None) -> None:
        query = {"reason": "x"} if path == "/releases" else {}
        self._server.post(who, path, document, params=query)

    def _propose(self, text: str) -> str:
        answered = self._server.client.post(
            "/api/v1/policies?reason=x",
            content=text,
            headers={
                HEADER: "olga",
                "Idempotency-Key": f"scene-{next(_numbers)}",
                "Content-Type": "application/yaml",
            },
        )
        return str(answered.json()["digest"])


@pytest.fixture(params=["sqlite", "postgresql"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LedgerPlace]:
    """Return places of new ledgers, one after another."""
    if request.param == "sqlite":
        return (sqlite_place(tmp_path / f"ledger-{number}.db") for number in count())
    cluster: Cluster = request.getfixturevalue("postgres")
    return (postgres_place(cluster) for _ in count())


@pytest.mark.soak
def test_generated_calls_break_nothing(
    places: Iterator[LedgerPlace], tmp_path: Path
) -> None:
    (tmp_path / "policy.yaml").write_text(ASKING)
    (tmp_path / "rows.csv").write_text("age\n30\n40\n")
    received = Heard()
    for turn in range(examples(1)):
        start = int(the_seed()) + 10**6 * turn
        cases: list[Case[Any]] = []
        for started in range(0, CALLS, CALLS_EACH):
            place = next(places)
            with fuzzed(place, tmp_path, received) as (scene, fuzzer):
                cases = cases or fuzzer.cases(CALLS, start)
                for done in range(started, started + CALLS_EACH, TURN):
                    scene.set_up(fuzzer)
                    fuzzer.run(cases[done : done + TURN], start + done)
            assert mo.open(place.address).verify().entries > 0
        # A soak tells what it found as it goes on: it may take an hour.
        print(received.news(), flush=True)
    print(f"\n{received.calls} calls\n{received.table()}")
    assert not received.failures, "\n".join(
        f"{' '.join(kind)}\n{result}" for kind, result in received.failures.items()
    )
    assert received.calls >= examples(CALLS)
    # Who hears nothing but refusals learns little.
    assert received.seldom_done(DONE_PERCENT) == []


@contextmanager
def fuzzed(
    place: LedgerPlace, folder: Path, received: Heard
) -> Iterator[tuple[Scene, Fuzzer]]:
    """Serve a new ledger, and yield what calls are about and who makes them."""
    with served(
        place.address,
        policy=folder / "policy.yaml",
        people=PEOPLE,
        rates=Rates(10**9),
        own=with_escrow(
            Equipment(
                {"visits": TablesOf({"": str(folder / "rows.csv")})},
                signing_key=make_key(folder / f"key-{next(_numbers)}"),
            )
        ),
    ) as server:
        both = [ByBearer(PEOPLE), *server.parts.recognizing._authenticators]
        server.parts.recognizing = Recognizing(both)
        scene = Scene(server)
        yield scene, Fuzzer(server.url, WHO, scene.stories, received)
