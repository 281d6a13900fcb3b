"""Quick reading says what strict reading says, or leaves the entry to it."""

from __future__ import annotations

import copy
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from samples.kinds import BODIES
from samples.small import NOON
from samples.stored import to_plain

from modicum.core.canonical import decode, digest, encode
from modicum.ledger import GENESIS, ChainBreakError, Event, Record, seal
from modicum.ledger.log import chain, codec
from modicum.ledger.log.codec import from_plain, read_entry
from modicum.ledger.log.events import (
    EVENT_VERSION,
    PastRecorded,
    ReleaseDenied,
    ReleaseExpired,
    ReleasePosted,
    ReleaseReserved,
    ReleaseStarted,
)
from modicum.ledger.log.recorded_release import RecordedRelease, record_release
from modicum.release import Label, Partition, Population, Unit, Vocabulary
from modicum.release.price_cache import read_and_price

OLD_LEDGER = Path(__file__).parents[2] / "golden" / "ledgers" / "v1.db"
SHA = "d" * 64


def words(relation: Any = "add-remove") -> Vocabulary:
    units = {
        "user": Unit("user", "id", neighbors=relation),
        "day": Unit("day", "id", "day", "at", ("user",), neighbors=relation),
    }
    country = Partition("country", ("CH", "DE"), 0, 1, (), None)
    return Vocabulary(
        frozenset({"age", "country"}),
        {"ml": Label(("none", "all"), "none"), "aim": Label(("a", "b"), "b")},
        tuple(units),
        relation,
        units,
        Population({"country": country}, frozenset({"user"})),
    )


VOCABULARIES = tuple(words(one) for one in ("add-remove", "substitute", "any-change"))

parts: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "where": st.sampled_from([{"country": "CH"}, [{"country": ["DE"]}]]),
        "periods": st.sampled_from(["2026", "2026-11-03", {"from": "2025"}]),
        "groups": st.sampled_from([1, [3, 5]]),
        "ml": st.sampled_from(["none", "all"]),
    },
)
mechanisms = st.builds(
    lambda cost, part, more: {
        "mechanism": "declared",
        "attributes": ["country", "age"],
        "cost": {"user": cost, "day": cost},
        **part,
        **more,
    },
    st.sampled_from([{"rho": 1}, {"eps": Fraction(1, 3)}, {"eps": 1, "delta": 1e-9}]),
    parts,
    st.sampled_from([{}, {"aim": "a"}]),
)
names = st.text('aé\\"😀\uffff,{}[]:', max_size=4)
releases = st.builds(
    lambda given_id, some, part, text: {
        "release": f"r{given_id}",
        "mechanisms": [{**one, "name": f"m{n}"} for n, one in enumerate(some)],
        **part,
        "purpose": text,
    },
    st.integers(0, 99),
    st.lists(mechanisms, min_size=1, max_size=3),
    parts,
    names.map(lambda text: f"x{text}"),
)
recorded = st.builds(
    lambda release, vocabulary: record_release(read_and_price(release, vocabulary)),
    releases,
    st.sampled_from(VOCABULARIES),
)
events = st.builds(
    lambda release, how, actor: Event(NOON, actor, how(release)),
    recorded,
    st.sampled_from(
        [
            lambda one: ReleaseReserved(one, SHA, NOON),
            lambda one: ReleaseReserved(one, SHA, NOON, ("olga", "é")),
            lambda one: ReleaseDenied(one, SHA, ("attr:age", "global")),
            lambda one: PastRecorded(one, SHA),
            lambda one: ReleaseStarted(one.id),
            lambda one: ReleasePosted(one.id),
            lambda one: ReleaseExpired(one.id),
            lambda one: PastRecorded(
                structs.replace(one, given=None), SHA, ("who knows",)
            ),
        ]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
)
#: Of every kind, those about releases as often as all others.
every_event = st.one_of(
    events, st.sampled_from(BODIES).map(lambda body: Event(NOON, "tester", body))
)


@settings(max_examples=examples(150), deadline=None)
@given(every_event)
def test_a_release_is_sealed_in_the_canonical_bytes_of_its_event(event: Event) -> None:
    plain: Any = {"seq": 3, "prev": GENESIS, "event": to_plain(event)}
    for _ in range(2):
        record = seal(event, 3, GENESIS)
        assert record.payload == encode(plain)
        assert record.hash == digest(encode(plain))


@settings(max_examples=examples(150), deadline=None)
@given(every_event)
def test_what_is_read_quickly_is_the_event_to_the_last_type(event: Event) -> None:
    record = seal(event, 3, GENESIS)
    found = read_entry(record.payload)
    assert found is not None
    assert (found.seq, found.prev, found.event) == (3, GENESIS, event)
    strict = from_plain(decode(encode(to_plain(event))))
    assert repr(found.event) == repr(strict), "True is not 1, a list is no tuple"
    assert seal(found.event, 3, GENESIS) == record


def strictly(monkeypatch: pytest.MonkeyPatch) -> Callable[[Record], object]:
    def read(record: Record) -> object:
        with monkeypatch.context() as patched:
            patched.setattr(codec, "read_entry", lambda _: None)
            return outcome(record)

    return read


def outcome(record: Record) -> object:
    found: list[object] = []
    for previous in (None, GENESIS, "e" * 64):
        try:
            event = (
                chain.event_of(record, 3)
                if previous is None
                else chain.read_record(record, 3, previous)
            )
            found.append(repr(event))
        except ChainBreakError as error:
            found.append(str(error))
    return found


def places(plain: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container of plain data with each of its keys."""
    pairs = (
        list(plain.items())
        if isinstance(plain, dict)
        else list(enumerate(plain))
        if isinstance(plain, list)
        else []
    )
    for key, value in pairs:
        yield plain, key
        yield from places(value)


WRONG: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 10**20, "", "x", "1", "inf", SHA, NOON),
    *([], [1], ["x"], {}, {"x": 1}, {"x": "y"}, [[1, 2]], [["2026-01-01", None]]),
    *(
        "2026-02-30T12:00:00.000000Z",
        "release-denied",
        "grid-v0",
        [{"country": ["CH"]}],
    ),
)


@settings(max_examples=examples(400), deadline=None)
@given(every_event, st.randoms(use_true_random=False))
def test_whatever_stands_in_an_entry_is_read_as_strictly_as_ever(
    event: Event, rng: random.Random
) -> None:
    plain: Any = copy.deepcopy({"seq": 3, "prev": GENESIS, "event": to_plain(event)})
    for _ in range(rng.choice((1, 1, 2))):
        holder, key = rng.choice(list(places(plain)))
        how = rng.random()
        if how < 0.6:
            holder[key] = copy.deepcopy(rng.choice(WRONG))
        elif how < 0.8 or isinstance(holder, list):
            del holder[key]
        else:
            holder["neighbors" if rng.random() < 0.5 else "zzz"] = copy.deepcopy(
                rng.choice(WRONG)
            )
    payload = encode(plain)
    record = Record(3, payload, digest(payload))
    with pytest.MonkeyPatch.context() as patch:
        assert outcome(record) == strictly(patch)(record)


FLIPS = (b"", b" ", b"0", b"1.0", b'"', b"\\u0061", b"-0", b"\xff", b"}", b",", b"null")


@settings(max_examples=examples(400), deadline=None)
@given(every_event, st.randoms(use_true_random=False))
def test_whatever_bytes_an_entry_has_it_is_read_as_strictly_as_ever(
    event: Event, rng: random.Random
) -> None:
    payload = bytearray(seal(event, 3, GENESIS).payload)
    at = rng.randrange(len(payload))
    payload[at : at + rng.randrange(3)] = rng.choice(FLIPS)
    record = Record(3, bytes(payload), digest(bytes(payload)))
    with pytest.MonkeyPatch.context() as patch:
        assert outcome(record) == strictly(patch)(record)


def one_release() -> RecordedRelease:
    release = {
        "release": "r-1",
        "purpose": "x",
        "mechanisms": [
            {
                "mechanism": "declared",
                "attributes": ["age"],
                "cost": {"user": {"rho": 1}, "day": {"rho": 1}},
            }
        ],
    }
    return record_release(read_and_price(release, VOCABULARIES[0]))


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        (b'"seq":3', b'"seq":3.0'),
        (b'"seq":3', b'"seq":true'),
        (b'"v":%d' % EVENT_VERSION, b'"v":%d.0' % EVENT_VERSION),
        (b'"v":%d' % EVENT_VERSION, b'"v":1'),
        (b'"v":%d' % EVENT_VERSION, b'"v":%d' % (EVENT_VERSION + 1)),
        (b'"purpose":"x"', b'"purpose":"x","purpose":"x"'),
        (b'"purpose":"x"', b'"purpose":"x","a":"x"'),
        (b'"given":[]', b'"given":[ ]'),
        (b'"given":[],', b""),
        (b'"grid":"grid-v1"', b'"grid":"grid-v2"'),
        (b'"name":"mechanism-1"', b'"name":"mechanism-1","name":"mechanism-1"'),
        (b'"name":"mechanism-1"', b'"name":1.5'),
        (b'"name":"mechanism-1"', b'"name":"\\u006d"'),
        (b'"name":"mechanism-1"', b'"name":"\xff"'),
        (b'"public_frame":false', b'"public_frame":-0'),
        (b'"where":null', b'"where":[]'),
        (b'"losses":{', b'"losses":{"a":[1],'),
        (b",0]}", b",0.0]}"),
        (b",0]}", b",false]}"),
        (b",0]}", b',"0"]}'),
    ],
)
def test_what_is_almost_an_entry_is_no_entry(was: bytes, becomes: bytes) -> None:
    body = ReleaseReserved(one_release(), SHA, NOON)
    payload = seal(Event(NOON, "t", body), 3, GENESIS).payload
    assert was in payload
    for _ in range(2):  # What is wrong is not remembered.
        changed = payload.replace(was, becomes)
        with pytest.raises(ChainBreakError):
            chain.read_record(Record(3, changed, digest(changed)), 3, GENESIS)
        chain.read_record(Record(3, payload, digest(payload)), 3, GENESIS)


def stored(version: str, folder: Path) -> list[bytes]:
    """Return the payloads of an old ledger."""
    copied = shutil.copy(OLD_LEDGER.with_name(version), folder / version)
    with closing(sqlite3.connect(copied)) as connection:
        rows = connection.execute("SELECT payload FROM events").fetchall()
    assert len(rows) > 5
    return [payload for (payload,) in rows]


def test_the_first_version_is_left_to_the_strict_reader(tmp_path: Path) -> None:
    assert all(read_entry(payload) is None for payload in stored("v1.db", tmp_path))


@pytest.mark.parametrize("version", ["v2.db", "v3.db"])
def test_a_later_version_is_read_as_the_strict_reader_reads_it(
    version: str, tmp_path: Path
) -> None:
    for payload in stored(version, tmp_path):
        plain: Any = decode(payload)
        found = read_entry(payload)
        assert found is not None
        assert found.event == from_plain(plain["event"])


def test_what_is_shared_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = codec._Shared(decode)
    monkeypatch.setattr(shared, "_most", 3)
    for number in range(10):
        assert shared.of(b"%d" % number) == number
    assert len(shared._found) <= 3
    long = encode("x" * 20_000)
    assert shared.of(long) == "x" * 20_000
    assert shared.get(long) is None


def test_several_threads_read_what_was_sealed() -> None:
    release = one_release()
    bodies = [
        ReleaseReserved(structs.replace(release, id=f"r-{number}"), SHA, NOON)
        for number in range(200)
    ]
    sealed = [(body, seal(Event(NOON, "t", body), 3, GENESIS)) for body in bodies]

    def read(start: int) -> bool:
        turned = sealed[start:] + sealed[:start]
        return all(chain.event_of(one, 3).body == body for body, one in turned)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(read, (0, 50, 100, 150)))


def test_a_mechanism_that_is_changed_is_written_anew() -> None:
    one = one_release()
    seal(Event(NOON, "t", ReleaseReserved(one, SHA, NOON)), 3, GENESIS)
    (mechanism,) = one.mechanisms
    other = structs.replace(
        one, mechanisms=(replace(mechanism, attributes=("country",)),)
    )
    event = Event(NOON, "t", ReleaseReserved(other, SHA, NOON))
    plain: Any = {"seq": 3, "prev": GENESIS, "event": to_plain(event)}
    assert seal(event, 3, GENESIS).payload == encode(plain)
