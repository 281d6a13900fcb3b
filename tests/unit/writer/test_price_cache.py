"""Releases whose like was priced before: read by the writer, answered as ever."""

from __future__ import annotations

import array
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from budget import examples
from samples.small import NOON, POLICY, compiled, counts, workspace

import modicum as mo
from modicum.api.local.balances import Entry
from modicum.api.local.submit import prepared
from modicum.core.errors import InputError, ModicumError, UnavailableError
from modicum.release.memo import Memo
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock
from modicum.writer import preparation as clerks
from modicum.writer import price_cache
from modicum.writer.price_cache import Plain, PriceCache
from modicum.writer.service import Decider

#: No test waits longer for a thread; only a test that fails waits so long.
PATIENCE = 20.0

TINY = "0.0001"


@pytest.fixture(name="decider")
def decider_fixture(tmp_path: Path) -> Iterator[Decider]:
    with serving(tmp_path) as found:
        yield found


def serving(folder: Path, **more: Any) -> Decider:
    store = SqliteStore(folder / "ledger.db", keep_open=True)
    more.setdefault("policy", compiled())
    return Decider(store, FixedClock(NOON), actor="tester", **more)


@pytest.fixture(name="readers")
def readers_fixture(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the threads that read releases from now on."""
    found: list[str] = []
    read = prepared

    def noting(*given: Any, **more: Any) -> Any:
        found.append(threading.current_thread().name)
        return read(*given, **more)

    monkeypatch.setattr(clerks, "prepared", noting)
    return found


@contextmanager
def held(decider: Decider) -> Iterator[None]:
    """Hold the writer in a turn meanwhile, so that all who come stand in line."""
    reached, gate = threading.Event(), threading.Event()

    def work(_: Entry) -> None:
        reached.set()
        gate.wait(PATIENCE)

    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(decider.turn, work)
        assert reached.wait(PATIENCE)
        try:
            yield
        finally:
            gate.set()
        holding.result(PATIENCE)


# --- who reads -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "whole"),
    [
        ({"sampling": {"unit": "user", "rate": 0.01}}, {}),
        ({}, {"sampling": {"unit": "user", "rate": 0.01}}),
        ({"selection": {"distribution": "geometric", "gamma": 0.5}}, {}),
    ],
)
def test_what_is_slow_to_price_is_never_left_to_the_writer(
    own: dict[str, Any], whole: dict[str, Any], decider: Decider, readers: list[str]
) -> None:
    """Its price may be forgotten while it is still known that it was priced."""
    noise = {
        "mechanism": "laplace",
        "attributes": ["age"],
        "sensitivity": {"user": {"l1": 1}},
        "scale": 5000,
        **own,
    }
    for name in ("a", "b"):
        decider.submit({"release": name, **whole, "mechanisms": [noise]})
    assert len(readers) == 2
    assert "modicum-writer" not in readers


def test_what_is_new_is_read_by_its_client_and_its_like_by_the_writer(
    decider: Decider, readers: list[str]
) -> None:
    for name, rho in (("a", TINY), ("b", TINY), ("c", "0.0002"), ("d", TINY)):
        assert decider.submit(counts(name, rho=rho, purpose=name)).allowed
    client, writer = threading.current_thread().name, "modicum-writer"
    assert readers == [client, writer, client, writer]


def test_a_draft_is_handed_over_too(decider: Decider, readers: list[str]) -> None:
    count = mo.declared(attributes=["age"], cost={"user": mo.zcdp(0.0001)})
    for name in "ab":
        assert decider.submit(mo.Release(name, mechanisms=[count])).allowed
    assert readers[-1] == "modicum-writer"


@pytest.mark.parametrize(
    "release",
    [
        MappingProxyType(counts("still", rho=TINY)),
        counts("subclass", rho=TINY, purpose=type("Text", (str,), {})("why")),
        counts("long", rho=TINY, purpose="x" * 1000),
    ],
)
def test_what_is_not_plain_or_short_is_read_by_its_client(
    decider: Decider,
    readers: list[str],
    release: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(price_cache, "BYTES_MAX", 1000)
    decider.submit(counts("first", rho=TINY))
    assert decider.submit(release).allowed
    assert "modicum-writer" not in readers


def test_what_looks_plain_and_is_not_is_read_again_by_its_client(
    decider: Decider, readers: list[str]
) -> None:
    """Text of NumPy is text, but its bytes are not."""
    decider.submit(counts("first", rho=TINY))
    odd = counts("odd", rho=TINY, purpose=np.str_("why"))
    assert Plain.of(odd) is not None
    assert decider.submit(odd).status == "reserved"
    client = threading.current_thread().name
    assert readers == [client, "modicum-writer", client]


def test_what_was_handed_over_is_read_under_the_policy_that_decides(
    tmp_path: Path, readers: list[str]
) -> None:
    workspace(tmp_path).init()
    wider = compiled(POLICY.replace("name: small", "name: wider"))
    with serving(tmp_path, policy=None) as decider:
        decider.submit(counts("a", rho=TINY))
        workspace(tmp_path).governance.activate(wider, reason="another name")
        assert decider.submit(counts("b", rho=TINY)).policy_name == "wider"
        assert readers[1:] == ["modicum-writer"] * 2  # Under both policies.
        assert decider.submit(counts("c", rho=TINY)).policy_name == "wider"
        assert readers[3:] == [threading.current_thread().name]  # A new vocabulary.


# --- what is read --------------------------------------------------------------------


def test_what_a_client_changes_afterwards_changes_nothing(decider: Decider) -> None:
    decider.submit(counts("first", rho=TINY))
    request = counts("asked", rho=TINY)
    with ThreadPoolExecutor(1) as pool:
        with held(decider):
            answer = pool.submit(decider.submit, request)
            while not len(decider._desk._line):
                threading.Event().wait(0.001)
            request["release"] = "another"
            request["mechanisms"].clear()
        assert answer.result(PATIENCE).release == "asked"
    assert decider.check(counts("asked", rho=TINY)).retry


@pytest.mark.parametrize(
    "more",
    [
        {"release": ""},
        {"ml": "red-box"},
        {"nonsense": 1},
        {"purpose": b"bytes"},
        {"purpose": array.array("b", [1])},
    ],
)
def test_a_mistake_is_the_one_that_a_workspace_finds(
    decider: Decider, tmp_path: Path, more: dict[str, Any]
) -> None:
    decider.submit(counts("first", rho=TINY))
    wrong = {**counts("wrong", rho=TINY), **more}
    with pytest.raises(InputError) as error:
        decider.submit(wrong)
    with pytest.raises(InputError) as found:
        workspace(tmp_path).check(wrong)
    assert str(error.value) == str(found.value)
    assert workspace(tmp_path).state().seq == 2


def test_who_gives_up_in_time_is_not_read(
    decider: Decider, readers: list[str], tmp_path: Path
) -> None:
    decider.submit(counts("first", rho=TINY))
    with held(decider), pytest.raises(UnavailableError, match="not started"):
        decider.submit(counts("late", rho=TINY), timeout=0.01)
    decider.close()
    assert "modicum-writer" not in readers
    assert set(workspace(tmp_path).state().releases) == {"first"}


@pytest.mark.parametrize("seed", range(examples(4)))
def test_a_decider_writes_what_a_workspace_writes(seed: int, tmp_path: Path) -> None:
    """Whoever reads, the log is the same, byte by byte, and so are the mistakes."""
    (tmp_path / "plain").mkdir()
    plain = workspace(tmp_path / "plain")
    batch = list(_asked(random.Random(seed)))
    with serving(tmp_path) as decider:
        error = [_told(partial(decider.submit, one)) for one in batch]
    assert error == [_told(partial(plain.submit, one)) for one in batch]
    assert [one.hash for one in workspace(tmp_path).records()] == [
        one.hash for one in plain.records()
    ]
    assert len({kind for kind, _ in error}) > 2


def _asked(rng: random.Random) -> Iterator[Any]:
    """Yield releases of few kinds; some of them with mistakes, some not plain."""
    for number in range(40):
        one = counts(
            f"r-{rng.randrange(30)}",
            rho=rng.choice(["0.001", "0.002", "0.004"]),
            attributes=rng.choice([("age",), ("age", "steps"), ("diagnosis",)]),
        )
        odd = rng.randrange(8)
        if odd == 0:
            one[rng.choice(["ml", "purpose", "nonsense"])] = rng.choice(
                ["none", "black-box", 7, None, np.float64(1), np.str_("none")]
            )
        elif odd == 1:
            del one[rng.choice(list(one))]
        elif odd == 2:
            mechanism = one["mechanisms"][0]
            mechanism[rng.choice(list(mechanism))] = rng.choice(["x", 1, np.int64(1)])
        yield (
            mo.Release(f"d-{number}", mechanisms=one.get("mechanisms", []))
            if odd == 3
            else one
        )


def _told(ask: Callable[[], Any]) -> tuple[str, str]:
    try:
        answer = ask()
    except ModicumError as mistake:
        return type(mistake).__name__, str(mistake)
    return answer.status, answer.head


# --- what is known -------------------------------------------------------------------


def test_releases_are_alike_if_their_mechanisms_are() -> None:
    known, policy = PriceCache(), compiled()
    first = Plain.of(counts("a", rho=TINY))
    assert first is not None
    known.note(first, policy)
    for release, is_known in (
        (counts("b", rho=TINY, purpose="another"), True),
        (counts("a", rho="0.0002"), False),
        (counts("a", rho=TINY, attributes=("age",)), False),
    ):
        one = Plain.of(release)
        assert one is not None
        assert known.knows(one, policy) is is_known
        assert one.read() == release
    again = counts("a", rho=TINY)
    again["mechanisms"][0]["attributes"] = ["".join(("diag", "nosis"))]
    rebuilt = Plain.of(again)
    assert rebuilt is not None
    assert known.knows(rebuilt, policy)  # Of other strings that say the same.
    assert not known.knows(first, compiled(POLICY.replace("2.0", "3.0")))


def test_only_so_much_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price_cache, "KNOWN_MAX", 3)
    known, policy = PriceCache(), compiled()
    assert isinstance(known._known, Memo)
    for number in range(20):
        one = Plain.of(counts("a", rho=f"0.{number + 1}"))
        assert one is not None
        known.note(one, policy)
        assert known.knows(one, policy)
        assert len(known._known._found) <= 3
