"""The doctor's checks: each says yes where all is well, and no where it is not."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from importlib import metadata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement as Oracle
from packaging.version import Version
from samples.audited import ASKING, LATER, WIDER, activated, log, priced, sealed
from samples.postgres import Cluster
from samples.small import compiled
from samples.stores import append
from samples.witnesses import register

from modicum.api.local import Workspace
from modicum.core.errors import Code, InvariantError, VerificationError
from modicum.ledger import event_of
from modicum.ledger.log.events import (
    ApprovalGiven,
    Body,
    PolicyProposed,
    ReleaseRequested,
    ReleaseReserved,
    ReleaseStarted,
    RequestWithdrawn,
)
from modicum.ops.doctor import log as log_checks
from modicum.ops.doctor import sqlite_file
from modicum.ops.doctor.checks import examine
from modicum.ops.doctor.findings import Diagnosis, Finding, Status, is_harmless
from modicum.ops.doctor.machine import (
    Requirement,
    check_clock,
    check_libraries,
    is_enough,
    requirements,
)
from modicum.storage.factory import open_store
from modicum.storage.proofs.signing_keys import make_key
from modicum.storage.sqlite_lock import SqliteLock
from modicum.storage.witness.file import FileWitness
from modicum.storage.witness.http import HttpWitness
from modicum.storage.witness.store import WitnessedStore
from modicum.system.clock import FixedClock

OK, WARN, FAIL = Status.OK, Status.WARN, Status.FAIL
#: An hour after the last entry of the sample log.
SOON = FixedClock("2026-05-01T13:14:00.000000Z")
HEAD = "2026-05-01T12:14:00.000000Z"


def diagnosis(
    ledger: str | Path, clock: FixedClock = SOON, *, deep: bool = False
) -> Diagnosis:
    return examine(str(ledger), clock, deep=deep)


def found(diagnosis: Diagnosis, check: str) -> Finding:
    (one,) = [one for one in diagnosis.findings if one.check == check]
    return one


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A ledger in order, in a folder of its own."""
    path = tmp_path / "kept" / "ledger.db"
    path.parent.mkdir()
    append(open_store(path), list(log()))
    path.chmod(0o600)
    return path


# --- facts ---


@pytest.mark.parametrize(
    "fact", [0, True, None, "1.2.3", "2.0rc1", "0.4.0.post1", "MOD702", "sqlite", "on"]
)
def test_numbers_versions_and_known_words_are_facts(fact: object) -> None:
    assert Finding("x", OK, "", facts={"x": fact}).facts == {"x": fact}  # type: ignore[dict-item]


@pytest.mark.spec("OPS-6")
@pytest.mark.parametrize(
    "fact",
    ["acme", "r-0001", "/home/ana", "1.2.3 of acme", "1.2-acme", "", "1" * 41, "1.2\n"],
)
def test_nothing_else_is_a_fact(fact: str) -> None:
    with pytest.raises(InvariantError):
        Finding("x", OK, "", facts={"x": fact})


@given(st.text(max_size=12))
def test_a_text_that_is_a_fact_has_no_word_of_its_own(text: str) -> None:
    from modicum.ops.doctor.findings import WORDS

    if is_harmless(text) and text not in WORDS:
        for suffix in ("rc", "post", "dev", "a", "b"):
            text = text.replace(suffix, "")
        assert set(text) <= set("0123456789.")


# --- the machine ---


def test_what_is_needed_is_read_as_others_read_it() -> None:
    written = metadata.requires("modicum") or []
    mine = {
        (one.name, one.least, one.below, one.extra) for one in requirements(written)
    }
    expected = set()
    for one in map(Oracle, written):
        extra = str(one.marker).rpartition(" ")[2].strip("'\"") if one.marker else ""
        if extra not in ("test", "dev"):
            bounds = {bound.operator: bound.version for bound in one.specifier}
            assert bounds.keys() <= {">=", "<"}
            least, below = bounds.get(">=", ""), bounds.get("<", "")
            expected.add((one.name, least, below, extra))
    assert mine == expected
    assert {"", "server", "postgres"} <= {extra for *_, extra in mine}


NUMBERS = st.lists(st.integers(0, 12), min_size=1, max_size=4)


@given(NUMBERS, NUMBERS, st.sampled_from(["", ".post1", "+local"]))
def test_versions_are_compared_as_others_compare_them(
    one: list[int], other: list[int], suffix: str
) -> None:
    have, need = ".".join(map(str, one)) + suffix, ".".join(map(str, other))
    if suffix and Version(have).release == Version(need).release:
        return  # A later post-release of the same version is enough all the same.
    assert is_enough(have, need) == (Version(have) >= Version(need))


@pytest.mark.parametrize(
    ("extra", "libraries", "status"),
    [
        ("", {"numpy": "2"}, OK),
        ("", {"numpy": ""}, OK),
        ("", {"no-such-library": "1"}, FAIL),
        ("", {"numpy": "2", "no-such-library": "1"}, FAIL),
        ("", {"numpy": "999"}, FAIL),
        ("some", {"numpy": "2"}, OK),
        ("some", {"no-such-library": "1"}, OK),  # Nobody asked for it.
        ("some", {"numpy": "2", "no-such-library": "1"}, WARN),
        ("some", {"numpy": "999"}, WARN),
    ],
)
def test_libraries(extra: str, libraries: dict[str, str], status: Status) -> None:
    needed = [Requirement(name, least, extra) for name, least in libraries.items()]
    (one,) = check_libraries(needed)
    assert one.status is status
    assert ("pip install" in one.remedy) == (status is not OK)
    assert set(one.facts) == set(libraries)


def test_an_extra_of_which_others_brought_a_part_was_not_asked_for() -> None:
    shared = [Requirement("numpy", "2", extra) for extra in ("large", "small")]
    needed = [*shared, Requirement("no-such-library", "1", "large")]
    large, small = check_libraries(needed)
    assert (large.message, large.status) == ("not installed", OK)
    assert (small.message, small.status) == ("1 installed", OK)


def test_what_is_missing_is_installed_and_what_is_old_is_upgraded() -> None:
    (missing,) = check_libraries([Requirement("no-such-library", "1", "")])
    assert missing.remedy == "pip install modicum"
    (old,) = check_libraries([Requirement("numpy", "999", "some")])
    assert old.remedy == "pip install --upgrade 'modicum[some]'"


def test_a_library_may_be_too_new() -> None:
    (one,) = check_libraries([Requirement("numpy", "2", "some", below="2")])
    assert one.status is WARN
    assert one.message.endswith("required is below 2")
    assert one.remedy == "pip install --upgrade 'modicum[some]'"


class Clocks:
    """A clock that shows one time after the other."""

    def __init__(self, times: Sequence[str]) -> None:
        self._times = iter(times)

    def now(self) -> str:
        return next(self._times)

    def after(self, now: str, seconds: int) -> str:
        raise NotImplementedError

    def checked(self, now: str, at: str) -> str:
        raise NotImplementedError


def test_a_clock_that_goes_back_is_wrong() -> None:
    assert check_clock(Clocks([HEAD, HEAD])).status is OK
    assert check_clock(Clocks([HEAD, LATER])).status is OK
    assert check_clock(Clocks([LATER, HEAD])).status is FAIL


# --- the file ---


@pytest.mark.spec("OPS-6")
def test_a_ledger_in_order_passes_and_is_not_written(ledger: Path) -> None:
    before = ledger.read_bytes()
    result = diagnosis(ledger)
    wrong = [one for one in result.findings if one.status is not OK]
    assert wrong == []
    assert ledger.read_bytes() == before
    assert found(result, "entries").facts["entries"] == len(log())
    assert found(result, "chain").facts["read"] == len(log())
    deep = diagnosis(ledger, deep=True)
    assert found(deep, "chain").facts["decisions"]


def test_without_a_ledger_only_the_machine_is_looked_at() -> None:
    checks = {one.check for one in examine(None, SOON).findings}
    assert {"python", "libraries", "clock"} <= checks
    assert not checks & {"store", "chain"}


@pytest.mark.parametrize(
    ("mode", "status"),
    [(0o600, OK), (0o640, OK), (0o660, OK), (0o644, WARN), (0o602, FAIL)],
)
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", ".snapshot", ".lock", ".live"])
def test_who_may_read_and_write_the_ledger(
    ledger: Path, mode: int, status: Status, suffix: str
) -> None:
    store = open_store(ledger)
    Workspace(store, SOON, snapshots=store).state()
    file = Path(f"{ledger}{suffix}")
    file.touch(0o600)
    file.chmod(mode)
    seen = found(diagnosis(ledger), "permissions")
    assert seen.status is status
    assert seen.facts["group_may"] is bool(mode & 0o070)
    assert (file.name in seen.message) is (status is not OK)


@pytest.mark.parametrize(
    ("kind", "mode", "status", "count"),
    [
        ("PRIVATE KEY", 0o600, OK, 1),
        ("ENCRYPTED PRIVATE KEY", 0o640, FAIL, 1),
        ("PRIVATE KEY", 0o604, FAIL, 1),
        ("PUBLIC KEY", 0o644, OK, 0),
    ],
)
def test_private_keys_beside_the_ledger(
    ledger: Path, kind: str, mode: int, status: Status, count: int
) -> None:
    key = ledger.parent / "signer.pem"
    key.write_text(f"-----BEGIN {kind}-----\nAAAA\n")
    key.chmod(mode)
    one = found(diagnosis(ledger), "keys")
    assert (one.status, one.facts["private_keys"]) == (status, count)


def test_a_turn_that_cannot_be_had(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found(diagnosis(ledger), "turn").status is OK
    monkeypatch.setattr(sqlite_file, "WAIT_SECONDS", 0.05)
    taken, enough = threading.Event(), threading.Event()

    def hold() -> None:
        with SqliteLock(ledger.resolve(), 20).writing():
            taken.set()
            enough.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert taken.wait(60)
    try:
        (one,) = [
            one for one in sqlite_file.check_file(str(ledger)) if one.check == "turn"
        ]
    finally:
        enough.set()
        holder.join()
    assert one.status is FAIL
    assert "others kept it" in one.message


@pytest.mark.spec("OPS-6")
def test_lock_files_are_not_made_for_another_user(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger's owner could not open those that root makes."""
    for suffix in (".lock", ".queue"):
        Path(f"{ledger}{suffix}").unlink()
    monkeypatch.setattr(os, "geteuid", lambda: ledger.stat().st_uid + 1)
    monkeypatch.setattr(os, "access", lambda *_: True)
    assert found(diagnosis(ledger), "turn").status is WARN
    assert os.listdir(ledger.parent) == ["ledger.db"]


def test_who_may_only_read_is_told_so(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, how: how != os.W_OK)
    one = found(diagnosis(ledger), "turn")
    assert (one.status, one.facts) == (WARN, {"may_write": False})


@pytest.mark.parametrize(
    ("free", "status"),
    [(2**40, OK), (2**30, OK), (2**30 - 1, WARN), (2**26, WARN), (2**26 - 1, FAIL)],
)
def test_room_on_the_disk(
    ledger: Path, monkeypatch: pytest.MonkeyPatch, free: int, status: Status
) -> None:
    real = os.statvfs(ledger)
    fields = list(real)
    fields[1], fields[4] = 1, free  # f_frsize, f_bavail
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(fields))
    assert found(diagnosis(ledger), "disk").status is status


@pytest.mark.spec("OPS-6")
def test_tables_of_an_older_version_are_found_and_left(tmp_path: Path) -> None:
    golden = Path(__file__).parents[2] / "golden" / "ledgers" / "v1.db"
    old = tmp_path / "old.db"
    old.write_bytes(golden.read_bytes())
    one = found(diagnosis(old), "store")
    assert one.status is WARN
    assert "db upgrade" in one.remedy
    assert old.read_bytes() == golden.read_bytes()


def test_what_is_no_ledger_is_refused(tmp_path: Path) -> None:
    (tmp_path / "words.db").write_text("These are words.\n" * 20)
    with pytest.raises(VerificationError) as caught:
        diagnosis(tmp_path / "words.db")
    assert caught.value.code is Code.NOT_A_LEDGER


# --- the log ---


def harm(ledger: Path, seq: int) -> None:
    with closing(sqlite3.connect(ledger, isolation_level=None)) as connection:
        connection.execute("UPDATE events SET payload = x'00' WHERE seq = ?", (seq,))


def test_a_broken_log_is_found(ledger: Path) -> None:
    harm(ledger, 4)
    result = diagnosis(ledger)
    one = found(result, "chain")
    assert (one.status, one.is_broken, one.facts["code"]) == (FAIL, True, "MOD702")
    assert result.is_broken
    assert "entry 4" in one.message


@pytest.mark.parametrize("seq", range(1, 15))
def test_after_a_snapshot_the_last_entries_are_read_or_else_all(
    ledger: Path, monkeypatch: pytest.MonkeyPatch, seq: int
) -> None:
    store = open_store(ledger)
    workspace = Workspace(store, SOON, snapshots=store)
    workspace.state()
    workspace.save_snapshot()
    monkeypatch.setattr(log_checks, "LAST", 3)
    assert found(diagnosis(ledger), "chain").facts["read"] == 3
    harm(ledger, seq)
    last = len(log())
    # The entry before them is read, too: they must follow it.
    assert diagnosis(ledger).is_broken == (seq >= last - 3)
    assert diagnosis(ledger, deep=True).is_broken


@pytest.mark.parametrize(
    ("third", "status", "falls"),
    [
        ("2026-05-01T12:00:00.000000Z", WARN, 1),
        ("2026-05-01T12:02:00.000000Z", OK, 0),  # As the entry before it.
    ],
)
def test_times_that_fall_are_found(
    tmp_path: Path, third: str, status: Status, falls: int
) -> None:
    from modicum.ledger import GENESIS, Event, Record, read_record, seal

    rows: list[Record] = []
    before = GENESIS
    for one in log()[:3]:
        event = read_record(one, one.seq, before)
        at = event.at if one.seq != 3 else third
        chained = rows[-1].hash if rows else GENESIS
        rows.append(seal(Event(at, event.actor, event.body), one.seq, chained))
        before = one.hash
    append(open_store(tmp_path / "falling.db"), rows)
    fell = found(diagnosis(tmp_path / "falling.db"), "chain")
    assert (fell.status, fell.facts["falling_times"]) == (status, falls)


@pytest.mark.parametrize(
    ("now", "status", "ago"),
    [
        ("2026-05-01T12:14:00.000000Z", OK, 0),
        ("2026-05-01T12:13:00.000000Z", OK, -60),
        ("2026-05-01T12:12:59.000000Z", WARN, -61),
        ("2026-05-02T12:14:00.000000Z", OK, 86400),
        ("2036-04-28T12:14:00.000000Z", OK, 3650 * 86400),
        ("2036-04-28T12:14:01.000000Z", FAIL, 3650 * 86400 + 1),
    ],
)
def test_the_clock_is_held_against_the_last_entry(
    ledger: Path, now: str, status: Status, ago: int
) -> None:
    one = found(diagnosis(ledger, FixedClock(now)), "last entry")
    assert (one.status, one.facts["seconds_ago"]) == (status, ago)


def test_reservations_that_stand_for_more_than_a_day(tmp_path: Path) -> None:
    digest = compiled(ASKING).policy.digest
    rows = sealed(
        [
            activated(ASKING),
            ReleaseReserved(priced("a", rho="0.001"), digest, LATER),  # at 12:02
            ReleaseReserved(priced("b", rho="0.001"), digest, LATER),  # at 12:03
            ReleaseReserved(priced("c", rho="0.001"), digest, LATER),  # at 12:04
            ReleaseStarted("a"),
        ]
    )
    append(open_store(tmp_path / "l.db"), rows)
    messages = []
    for now, old in (
        ("2026-05-02T12:03:00.000000Z", 0),
        ("2026-05-02T12:03:01.000000Z", 1),
        ("2026-05-02T12:04:01.000000Z", 2),
    ):
        one = found(diagnosis(tmp_path / "l.db", FixedClock(now)), "reservations")
        assert one.facts == {"reserved": 2, "old": old, "started": 1}
        assert one.status is (WARN if old else OK)
        messages.append(one.message)
    assert ["`b`" in message for message in messages] == [False, True, True]


def test_requests_that_were_spoken_to_and_wait(tmp_path: Path) -> None:
    digest = compiled(ASKING).policy.digest
    first = priced("r-1", rho="0.004", purpose="press")
    who = ("privacy-officer",)
    votes = [
        ApprovalGiven("release", "x", first.content, True, who, "fine"),
        ApprovalGiven("policy", "x", "0" * 64, True, who, "fine"),
    ]
    append(open_store(tmp_path / "l.db"), sealed([activated(ASKING), *votes]))
    assert found(diagnosis(tmp_path / "l.db"), "requests").facts == {"waiting": 2}
    came_in = ReleaseReserved(first, digest, LATER, ("olga",))
    happened: list[Body] = [activated(ASKING), *votes, came_in]
    append(open_store(tmp_path / "m.db"), sealed(happened))
    assert found(diagnosis(tmp_path / "m.db"), "requests").facts == {"waiting": 1}


WEEK = 7 * 24 * 60 * 60


@pytest.mark.parametrize(("seconds", "status"), [(WEEK, OK), (WEEK + 1, WARN)])
def test_what_people_overlooked_is_told(
    tmp_path: Path, seconds: int, status: Status
) -> None:
    policy = compiled(ASKING).policy.digest
    wider = compiled(WIDER).policy
    waiting = [
        priced(f"r-{number}", rho="0.004", purpose="press") for number in range(3)
    ]
    happened: list[Body] = [
        activated(ASKING),
        *(ReleaseRequested(one, policy, "please") for one in waiting),
        PolicyProposed(wider.digest, wider.name, wider.text, "more room"),
        RequestWithdrawn("r-0", "not needed"),
    ]
    records = sealed(happened)
    append(open_store(tmp_path / "l.db"), records)
    # The first request is gone: the oldest that waits is of the third entry.
    since = event_of(records[2], 3).at
    clock = FixedClock(FixedClock(since).after(since, seconds))
    one = found(diagnosis(tmp_path / "l.db", clock), "pending")
    assert one.status is status
    assert one.facts == {"requests": 2, "proposals": 1, "oldest_seconds": seconds}
    assert ("7 days" in one.message) == (status is WARN)


def test_where_nothing_waits_nobody_overlooked_it(ledger: Path) -> None:
    late = FixedClock("2026-12-01T12:00:00.000000Z")
    one = found(diagnosis(ledger, late), "pending")
    assert one.status is OK
    assert one.facts == {"requests": 0, "proposals": 0, "oldest_seconds": 0}


def test_a_ledger_without_a_policy_is_told(tmp_path: Path) -> None:
    from modicum.ledger.log.events import Annotated

    append(open_store(tmp_path / "l.db"), sealed([Annotated("", "hello")]))
    assert found(diagnosis(tmp_path / "l.db"), "policy").status is WARN


def test_a_snapshot_that_cannot_be_used_is_told(ledger: Path) -> None:
    store = open_store(ledger)
    workspace = Workspace(store, SOON, snapshots=store)
    workspace.state()
    assert found(diagnosis(ledger), "snapshot").facts["entries_behind"] == len(log())
    workspace.save_snapshot()
    snapshot = Path(f"{ledger}.snapshot")
    snapshot.chmod(0o600)
    one = found(diagnosis(ledger), "snapshot")
    assert (one.status, one.facts["entries_behind"]) == (OK, 0)
    snapshot.write_bytes(snapshot.read_bytes()[:-1])
    one = found(diagnosis(ledger), "snapshot")
    assert (one.status, one.facts["is_there"]) == (WARN, True)


# --- the server ---


def test_a_ledger_on_a_server_passes_and_gets_no_entry(own_postgres: Cluster) -> None:
    url = own_postgres.new_ledger()
    append(open_store(url), list(log()))
    result = diagnosis(url)
    assert [one for one in result.findings if one.status is not OK] == []
    assert found(result, "store").facts["kind"] == "postgresql"
    assert found(result, "turn").facts == {"may_write": True}
    assert list(open_store(url).read(0)) == list(log())
    append(open_store(url), [])  # The turn was given back.


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_server_that_may_forget_is_found(own_postgres: Cluster, setting: str) -> None:
    url = own_postgres.new_ledger()
    append(open_store(url), list(log()))
    own_postgres.execute(f"ALTER SYSTEM SET {setting} = off")
    own_postgres.restart()
    try:
        one = found(diagnosis(url), "server")
    finally:
        own_postgres.execute(f"ALTER SYSTEM RESET {setting}")
        own_postgres.restart()
    assert (one.status, one.facts[setting]) == (FAIL, "off")
    assert found(diagnosis(url), "server").status is OK


def test_a_role_that_may_only_read_is_told_so(own_postgres: Cluster) -> None:
    url = own_postgres.new_ledger()
    append(open_store(url), list(log()))
    schema = f"modicum_{url.rpartition('=')[2]}"
    for statement in (
        "CREATE ROLE looker LOGIN",
        f"GRANT USAGE ON SCHEMA {schema} TO looker",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO looker",
    ):
        own_postgres.execute(statement)
    result = diagnosis(url.replace("postgres@", "looker@"))
    assert found(result, "turn").facts == {"may_write": False}
    assert [one.check for one in result.findings if one.status is not OK] == ["turn"]


def test_a_server_that_is_away_is_a_finding(own_postgres: Cluster) -> None:
    url = own_postgres.new_ledger()
    own_postgres.stop()
    try:
        one = found(diagnosis(url), "store")
    finally:
        own_postgres.start()
    assert (one.status, one.facts["code"]) == (FAIL, "MOD709")
    assert not one.is_broken


# --- the witness ---


def test_a_witness_is_compared_with_the_log(ledger: Path) -> None:
    records, witness = list(log()), FileWitness(ledger.parent / "head")

    def now() -> Finding:
        return found(examine(str(ledger), SOON, witness=witness), "witness")

    assert found(diagnosis(ledger), "witness").facts == {"kind": "none"}
    assert (now().status, now().facts) == (WARN, {"kind": "file"})
    for one, ahead in ((records[-1], 0), (records[-3], 2)):
        (ledger.parent / "head").write_text(f"{one.seq}:{one.hash}\n")
        facts = {"kind": "file", "ahead": ahead, "signed": False, "beside": True}
        assert (now().status, now().facts) == (WARN, facts)  # It is on the same disk.
    (ledger.parent / "head").write_text(f"{len(records) + 1}:{'0' * 64}\n")
    assert (now().status, now().facts) == (FAIL, {"code": "MOD711"})
    assert now().is_broken
    (ledger.parent / "head").write_text("none\n")
    assert now().is_broken
    witness = FileWitness(ledger.parent / "not-mounted" / "head")
    assert (now().status, now().facts) == (FAIL, {"code": "MOD712"})
    assert not now().is_broken


def test_a_witness_elsewhere_is_all_right(ledger: Path) -> None:
    with register() as url:
        witness = HttpWitness(f"{url}/head")
        key = make_key(ledger.parent / "key.pem")
        append(WitnessedStore(open_store(ledger), witness, key), [])
        witness.close()
        one = found(examine(str(ledger), SOON, witness=witness), "witness")
    facts = {"kind": "http", "ahead": 0, "signed": True, "beside": False}
    assert (one.status, one.facts) == (OK, facts)
