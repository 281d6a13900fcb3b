"""The access trail of a server: stored once, in order, bounded, and without secrets."""

from __future__ import annotations

import io
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from samples.small import NOON, POLICY, compiled
from samples.stores import Place, postgres_place, sqlite_place
from starlette.testclient import TestClient

from modicum.api.local import Workspace
from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import Identity
from modicum.api.permissions.tokens import TokenTerms
from modicum.core.canonical import decode
from modicum.core.errors import Code, Problem, UnavailableError, VerificationError
from modicum.ledger.proof.access_trail import AccessEvent, AccessKind, verified
from modicum.ledger.proof.bundle import Manifest
from modicum.ledger.proof.bundle_reader import BundleReader
from modicum.ledger.proof.zip_format import unpacked
from modicum.server.access_trail.events import (
    KIND_MAX,
    SOURCE_MAX,
    WINDOW_SECONDS,
    RefusalBounds,
    event_of,
)
from modicum.server.access_trail.record import settings_digests
from modicum.server.access_trail.trail import FAILING_SECONDS, QUEUE_MAX, Trail
from modicum.server.app import build
from modicum.server.auth.registry import open_registry
from modicum.server.auth.setup import PublicAddress
from modicum.server.components import Parts
from modicum.server.factory import make_parts
from modicum.server.settings.model import Listen, Oidc, Settings
from modicum.server.telemetry.log import Served
from modicum.storage.access_table import AccessTable
from modicum.storage.proofs.bundles import open_bundle, verify_bundle
from modicum.storage.proofs.verification import Trust
from modicum.storage.service_tables import ServiceTables
from modicum.system.clock import FixedClock

CLOCK = FixedClock(NOON)
ANALYST = {Role.ANALYST: frozenset({"visits"})}
MARK = "pEnGuIn"


def event(kind: AccessKind = AccessKind.EXPORT, **more: Any) -> AccessEvent:
    return AccessEvent(NOON, kind, **more)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "postgres":
        return postgres_place(request.getfixturevalue("postgres"))
    return sqlite_place(tmp_path / "a.db", keep_open=True)


@pytest.fixture
def store(place: Place) -> Iterator[Any]:
    opened = place.open()
    Workspace(opened, CLOCK, policy=compiled(), actor="tester").init()
    yield opened
    opened.close()


def kinds(table: AccessTable) -> list[str]:
    return [found.kind.value for _, found in verified(table.read())]


# --- the chain in a store ---


def test_two_writers_make_one_chain(place: Place, store: Any) -> None:
    other = place.open()
    tables = [AccessTable(store), AccessTable(other)]

    def write(table: AccessTable, name: str) -> None:
        for number in range(10):
            one = event(who=name, count=number + 1)
            table.append(lambda _, one=one: ([one], {}))  # type: ignore[misc]

    threads = [
        threading.Thread(target=write, args=(table, name))
        for table, name in zip(tables, "ab", strict=True)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    found = [one for _, one in verified(tables[0].read())]
    other.close()
    for name in "ab":
        assert [x.count for x in found if x.who == name] == list(range(1, 11))


def test_a_token_and_its_event_are_stored_together(store: Any) -> None:
    registry, table = open_registry(store, clock=CLOCK), AccessTable(store)
    terms = TokenTerms("olga", ANALYST)
    issued = [registry.add_token(terms, created_by="ada") for _ in range(100)]
    with pytest.raises(Exception, match="100 active tokens"):
        registry.add_token(terms, created_by="ada")
    for _ in range(2):
        registry.revoke_token(issued[0].token.id, revoked_by="root")
    found = [one for _, one in verified(table.read())]
    assert len(found) == 101
    first, last = found[0], found[-1]
    assert (first.kind, first.who, first.owner) == (
        AccessKind.TOKEN_CREATED,
        "ada",
        "olga",
    )
    assert (last.kind, last.who) == (AccessKind.TOKEN_REVOKED, "root")
    assert first.token == last.token == issued[0].token.id


def test_damage_in_the_database_is_found(place: Place, store: Any) -> None:
    table = AccessTable(store)
    table.append(lambda _: ([event(), event()], {}))
    if place.url.startswith("postgresql"):
        with pytest.raises(Exception, match="append-only"):
            place.damage("DELETE FROM {s}trail WHERE seq = 1")
        return
    place.damage("INSERT INTO trail (seq, payload, hash) VALUES (0, x'00', '')")
    with pytest.raises(Exception, match="broken at event 1"):
        list(verified(table.read()))


# --- the queue ---


def test_a_first_use_and_new_settings_are_noted_once(place: Place, store: Any) -> None:
    registry = open_registry(store, clock=CLOCK)
    issued = registry.add_token(TokenTerms("olga", ANALYST), created_by="ada")
    for digests in ({"": "1", "listen": "a"}, {"": "1", "listen": "a"}, {"": "2"}):
        again = open_registry(store, clock=CLOCK)
        trail = Trail(store, CLOCK)
        again.on_use = trail.note_use
        trail.start(digests)
        for _ in range(3):
            assert again.token_by_digest(issued.token.digest)
        trail.close()
    table = AccessTable(store)
    count = Counter(kinds(table))
    assert count == {
        "token-created": 1,
        "token-used": 1,
        "settings-changed": 1,
        "server-started": 3,
        "server-stopped": 3,
    }
    (changed,) = (x for _, x in verified(table.read()) if x.settings)
    assert (changed.settings, changed.parts) == ("2", ("listen",))


class Failing:
    """A store whose turns fail before, or after they were stored."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.fails: str = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def rows_beside(self, statement: Any) -> Any:
        return self._store.rows_beside(statement)

    def change_beside(self, statements: Any) -> Any:
        return self.change_read(lambda _: statements)

    def change_read(self, change: Any) -> Any:
        if self.fails == "before":
            raise UnavailableError(Problem(Code.LEDGER_UNWRITABLE, "full"))
        done = self._store.change_read(change)
        if self.fails == "after":
            raise UnavailableError(Problem(Code.LEDGER_BUSY, "unknown"))
        return done


@pytest.mark.spec("REG-12")
def test_an_unknown_outcome_and_a_failure_lose_and_repeat_nothing(store: Any) -> None:
    failing, now = Failing(store), [0.0]
    assert isinstance(failing, ServiceTables)
    trail = Trail(failing, CLOCK, seconds=lambda: now[0])
    for number, how in enumerate(["after", "before", "after", ""], 1):
        failing.fails = how
        trail.note(event(count=number))
        assert trail.store_now() == (not how)
        assert trail.state().is_written == (not how)
    assert [x.count for _, x in verified(trail.table.read())] == [1, 2, 3, 4]
    assert trail.state().waiting == 0
    failing.fails = "before"
    trail.note(event())
    trail.store_now()
    trail.must_be_written()
    now[0] = FAILING_SECONDS
    with pytest.raises(UnavailableError) as caught:
        trail.must_be_written()
    assert caught.value.code is Code.TRAIL_UNWRITTEN
    for _ in range(QUEUE_MAX + 5):
        trail.note(event())
    assert trail.state().waiting == QUEUE_MAX
    assert trail.state().left_out == 6


# --- bounds ---


@pytest.mark.spec("REG-11")
@given(
    st.lists(
        st.tuples(
            st.sampled_from([AccessKind.CREDENTIAL, AccessKind.RIGHT]),
            st.integers(0, 12),
            st.integers(1, 40),
        ),
        max_size=30,
    )
)
def test_refusals_are_bounded_and_counted(
    drawn: list[tuple[AccessKind, int, int]],
) -> None:
    now = [0.0]
    bounds = RefusalBounds(lambda: now[0])
    taken: Counter[AccessKind] = Counter()
    noted: Counter[AccessKind] = Counter()
    by_source: Counter[tuple[AccessKind, int]] = Counter()
    for kind, source, count in drawn:
        for _ in range(count):
            noted[kind] += 1
            if bounds.takes(event(kind, outcome="refused", client=str(source))):
                taken[kind] += 1
                by_source[kind, source] += 1
    assert all(count <= KIND_MAX for count in taken.values())
    assert all(count <= SOURCE_MAX for count in by_source.values())
    assert bounds.counted(NOON) == []
    now[0] = WINDOW_SECONDS
    # A flood that goes on does not keep the counts back.
    assert bounds.takes(event(AccessKind.SIGN_IN, outcome="refused"))
    for one in bounds.counted(NOON):
        taken[AccessKind(one.of)] += one.count
    assert taken == noted
    assert bounds.counted(NOON, at_end=True) == []


def test_done_accesses_are_never_left_out() -> None:
    bounds = RefusalBounds(lambda: 0.0)
    assert all(bounds.takes(event(who="ann")) for _ in range(1000))


# --- requests ---


@pytest.mark.parametrize(
    ("route", "status", "more", "expected"),
    [
        ("/login/callback", 303, {"who": "ann"}, ("sign-in", "done")),
        ("/login/callback", 401, {}, ("sign-in", "refused")),
        ("/login/callback", 403, {"who": "ann"}, ("sign-in", "refused")),
        ("/login/callback", 503, {}, ("sign-in", "refused")),
        ("/login", 303, {}, None),
        ("/api/v1/rules", 401, {}, ("credential", "refused")),
        ("/api/v1/rules", 503, {"code": "MOD837"}, ("credential", "refused")),
        ("/api/v1/rules", 503, {"code": "MOD837", "who": "ann"}, None),
        ("/api/v1/rules", 403, {"who": "ann"}, ("right", "refused")),
        ("/api/v1/releases:batch", 200, {"code": "MOD832"}, ("right", "refused")),
        ("/api/v1/rules", 200, {"who": "ann"}, None),
        ("/api/v1/audit/bundles", 200, {"who": "ann"}, ("export", "done")),
        ("/api/v1/audit/bundles", 304, {"who": "ann"}, None),
        ("/api/v1/ledger/entries", 200, {"who": "a"}, None),
        ("/api/v1/ledger/entries", 200, {"is_lines": True}, ("export", "done")),
    ],
)
def test_the_event_of_a_request(
    route: str, status: int, more: dict[str, Any], expected: tuple[str, str] | None
) -> None:
    one = Served("t", route, "GET", status, 0.1, network="192.0.2.1", **more)
    found = event_of(one, lambda: NOON)
    assert (found and (found.kind.value, found.outcome)) == expected
    if found is not None:
        is_named = bool(found.who) and found.kind is not AccessKind.SIGN_IN
        assert found.client == ("" if is_named else "192.0.2.1")


ACTIONS = ("use", "wrong", "none", "create", "revoke", "forbidden", "export", "link")


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    (tmp_path / "policy.yaml").write_text(POLICY)
    ledger = tmp_path / "ledger.db"
    with_ledger = sqlite_place(ledger, keep_open=True).open()
    Workspace(with_ledger, CLOCK, policy=compiled(), actor="tester").init()
    with_ledger.close()
    door = PublicAddress("127.0.0.1", 8642, "ann")
    made = make_parts(Settings(ledger=str(ledger)), door)
    yield made
    for one in (made.decider.close, *made.closing):
        one()


@pytest.mark.spec("REG-9")
@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(drawn=st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=8))
def test_each_access_has_exactly_one_event(parts: Parts, drawn: list[str]) -> None:
    assert parts.access is not None
    trail, registry = parts.access.trail, parts.registry
    trail.store_now()
    before = trail.table.last()
    trail._bounds = RefusalBounds()
    expected: list[tuple[str, str]] = []
    client = browser(parts)
    secrets = [MARK]
    for action in drawn:
        issued = registry.add_token(TokenTerms("olga", ANALYST), created_by="ada")
        expected.append(("token-created", "done"))
        secrets.append(issued.text)
        own = {"Authorization": f"Bearer {issued.text}"}
        if action == "use":
            for _ in range(2):
                assert client.get("/api/v1/me", headers=own).status_code == 200
            expected.append(("token-used", "done"))
        elif action == "wrong":
            bad = {"Authorization": f"Bearer mdc_{'a' * 10}_{MARK}{'b' * 36}"}
            path = f"/api/v1/releases/{MARK}?{MARK}={MARK}"
            assert client.get(path, headers=bad).status_code == 401
            expected.append(("credential", "refused"))
        elif action == "none":
            assert client.get("/api/v1/me").status_code == 401
            expected.append(("credential", "refused"))
        elif action == "revoke":
            registry.revoke_token(issued.token.id)
            expected.append(("token-revoked", "done"))
        elif action == "forbidden":
            answer = client.get("/api/v1/audit/bundles", headers=own)
            assert answer.status_code == 403
            expected += [("token-used", "done"), ("right", "refused")]
        elif action == "export":
            terms = TokenTerms("audra", {Role.AUDITOR: frozenset({"*"})})
            other = registry.add_token(terms, created_by="ada")
            headers = {"Authorization": f"Bearer {other.text}"}
            answer = client.get("/api/v1/audit/bundles", headers=headers)
            assert answer.status_code == 200
            expected += [("token-created", "done"), ("token-used", "done")]
            expected.append(("export", "done"))
        elif action == "link":
            key = f"?key={MARK}{MARK}"
            assert client.get(f"/login/local{key}").status_code == 401
            expected.append(("sign-in", "refused"))
    trail.store_now()
    records = [*trail.table.read(0 if before is None else before.seq)]
    found = [(x.kind.value, x.outcome) for _, x in verified(records, before)]
    stopped = [one for one in found if one[0] not in ("server-started", "left-out")]
    assert Counter(stopped) == Counter(expected)
    text = b"".join(one.payload for one in records).decode()
    assert not any(one in text for one in secrets)


def test_a_sign_in_by_a_link_is_noted(parts: Parts) -> None:
    assert parts.entrance is not None
    assert parts.access is not None
    (link,) = parts.entrance.links.values()
    client = browser(parts)
    assert client.get(link).status_code == 303
    parts.access.trail.store_now()
    (found,) = (
        one
        for _, one in verified(parts.access.trail.table.read())
        if one.kind is AccessKind.SIGN_IN
    )
    assert (found.who, found.via, found.client) == ("ann", "one-time link", "127.0.0.1")
    assert link.partition("key=")[2].encode() not in b"".join(
        one.payload for one in parts.access.trail.table.read()
    )


# --- settings ---


def test_digests_of_settings_tell_what_changed_and_no_password() -> None:
    first = settings_digests(Settings(ledger="postgresql://a:one@h/d?password=one"))
    second = settings_digests(Settings(ledger="postgresql://a:two@h/d?password=two"))
    assert first == second
    oidc = Oidc("https://login.example.org", "modicum", Path("secret"))
    for other, part in (
        (Settings(listen=Listen(port=1)), "listen"),
        (Settings(grants={"g": ANALYST}), "grants"),
        (Settings(oidc=oidc), "oidc"),
    ):
        before, after = settings_digests(Settings()), settings_digests(other)
        assert {x for x in before if before[x] != after[x]} == {"", part}


def test_an_identity_is_named_and_not_its_grants() -> None:
    who = Identity("ann", ANALYST, via=f"token {MARK * 100}")
    one = Served("t", "/api/v1/rules", "GET", 403, 0.1, who=who.name, via=who.via)
    found = event_of(one, lambda: NOON)
    assert found is not None
    assert len(found.via) <= 200
    assert "visits" not in repr(found)


# --- reading it ---


def browser(parts: Parts) -> TestClient:
    return TestClient(
        build(parts),
        base_url="http://127.0.0.1:8642",
        client=("127.0.0.1", 5),
        follow_redirects=False,
    )


def bearer(parts: Parts, role: Role, name: str = "audra") -> dict[str, str]:
    terms = TokenTerms(name, {role: frozenset({"*"})})
    issued = parts.registry.add_token(terms, created_by="ada")
    return {"Authorization": f"Bearer {issued.text}"}


def test_officers_and_auditors_read_it_page_by_page(parts: Parts) -> None:
    client = browser(parts)
    owns = {role: bearer(parts, role, f"x-{role.value}") for role in Role}
    for role, own in owns.items():
        status = client.get("/api/v1/audit/trail", headers=own).status_code
        may = role in (Role.AUDITOR, Role.PRIVACY_OFFICER)
        assert status == (200 if may else 403)
    assert parts.access is not None
    parts.access.trail.store_now()
    own = owns[Role.AUDITOR]
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        query: dict[str, Any] = {"limit": 3, "cursor": cursor}
        answer = client.get("/api/v1/audit/trail", headers=own, params=query).json()
        found += answer["events"]
        cursor = answer["next"]
        if not cursor:
            break
    records = [*parts.access.trail.table.read()]
    assert [(x["seq"], x["hash"]) for x in found] == [(x.seq, x.hash) for x in records]
    assert answer["head"] == {"seq": records[-1].seq, "head": records[-1].hash}
    refused = [x["who"] for x in found if x["kind"] == "right"]
    assert len(refused) == len(Role) - 2
    later = client.get("/api/v1/audit/trail?after=4", headers=own).json()["events"]
    assert later[0] == found[4]


def test_a_right_that_is_refused_within_a_batch_is_noted_once(parts: Parts) -> None:
    terms = TokenTerms("ann", ANALYST)
    issued = parts.registry.add_token(terms, created_by="ada")
    own = {"Authorization": f"Bearer {issued.text}", "Idempotency-Key": "k"}
    named = {"dataset": MARK, "mechanisms": []}
    releases = [{"release": f"r-{number}", **named} for number in range(3)]
    answer = browser(parts).post(
        "/api/v1/releases:batch", headers=own, json={"releases": releases}
    )
    problems = [one["problem"]["code"] for one in answer.json()["answers"]]
    assert (answer.status_code, problems) == (200, ["MOD832"] * 3)
    assert parts.access is not None
    parts.access.trail.store_now()
    events = [one for _, one in verified(parts.access.trail.table.read())]
    (found,) = (one for one in events if one.kind is AccessKind.RIGHT)
    assert (found.who, found.action) == ("ann", "POST /api/v1/releases:batch")
    assert MARK not in repr(events)


# --- bundles ---


@pytest.mark.spec("REG-10")
def test_a_bundle_has_the_trail_and_is_refused_if_it_was_changed(
    parts: Parts, tmp_path: Path
) -> None:
    client, own = browser(parts), bearer(parts, Role.AUDITOR)
    assert parts.access is not None
    parts.access.trail.store_now()
    path = tmp_path / "audit.bundle"
    path.write_bytes(client.get("/api/v1/audit/bundles", headers=own).content)
    with open_bundle(path) as bundle:
        assert verify_bundle(bundle, Trust(), path=path).report.entries
        manifest, trail = bundle.manifest, bundle.manifest.trail
    assert trail is not None
    whole = list(unpacked(io.BytesIO(path.read_bytes()).read))
    (page,) = (data for name, data in whole if name.startswith("trail/"))
    lines = page.splitlines(keepends=True)
    assert len(lines) == trail.events

    def refused(data: bytes, own: Manifest = manifest) -> None:
        members = [
            (
                name,
                {"manifest.json": own.to_bytes(), "trail/00000001.jsonl": data}[name],
            )
            if name in ("manifest.json", "trail/00000001.jsonl")
            else (name, found)
            for name, found in whole
        ]
        with pytest.raises(VerificationError):
            list(BundleReader(members).records())

    last = decode(lines[-1][:-1])
    assert isinstance(last, dict)
    refused(page.replace(b'"ada"', b'"eve"'))
    refused(b"".join([*lines[:-1]]))
    refused(b"".join([*lines[1:]]))
    refused(b"".join([lines[1], lines[0], *lines[2:]]))
    refused(page, replace(manifest, trail=replace(trail, pages=2)))
    refused(page, replace(manifest, trail=None))
    assert len(list(BundleReader(whole).records())) == manifest.entries


# --- kills ---

_NOTING = """
from modicum.ledger.proof.access_trail import AccessEvent, AccessKind
from modicum.server.access_trail.trail import Trail
from modicum.system.clock import SystemClock

trail, where = Trail(store, SystemClock()), "WHERE"
original = store.change_read

def killed(change):
    def partly(query):
        yield from change(query)
        die()  # All statements were executed, and nothing is committed.

    if where == "before":
        die()
    original(partly if where == "within" else change)
    die()

for number in range(3):
    trail.note(AccessEvent("2026-01-01", AccessKind.EXPORT, count=number + 1))
    trail.store_now()
    say(str(number))
store.change_read = killed
for number in range(3):
    trail.note(AccessEvent("2026-01-01", AccessKind.EXPORT, count=number + 4))
trail.store_now()
"""


@pytest.mark.spec("REG-10")
@pytest.mark.parametrize("where", ["before", "within", "after"])
def test_a_kill_leaves_whole_batches(place: Place, store: Any, where: str) -> None:
    for round_ in range(2):
        ended, said = place.run(_NOTING.replace("WHERE", where))
        assert (ended, said.split()) == (-9, ["0", "1", "2"])
        found = [one.count for _, one in verified(AccessTable(store).read())]
        per_run = [1, 2, 3] if where != "after" else [1, 2, 3, 4, 5, 6]
        assert found == per_run * (round_ + 1)
