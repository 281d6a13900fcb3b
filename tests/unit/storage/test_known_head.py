"""A head that is known from elsewhere: what is behind it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples.postgres import Cluster
from samples.stores import Place, append, numbered, postgres_place, sqlite_place

from modicum.core.errors import Code, VerificationError
from modicum.storage.witness.heads import KnownHead


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "postgres":
        cluster: Cluster = request.getfixturevalue("postgres")
        return postgres_place(cluster)
    return sqlite_place(tmp_path / "ledger.db", keep_open=True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        "3:",
        f"3:{'a' * 11}",
        f"0:{'a' * 64}",
        f"3:{'a' * 65}",
        f"-3:{'a' * 64}",
        f"3:{'g' * 64}",
        f"3 :{'a' * 64}",
        f"3:{'a' * 64}\n4:{'a' * 64}",
        f"²:{'a' * 64}",
    ],
)
def test_what_is_no_head(text: str) -> None:
    assert KnownHead.read(text) is None


def test_what_is_a_head() -> None:
    assert KnownHead.read(f" 3:{'A' * 12}\n") == KnownHead(3, "a" * 12)
    assert KnownHead.read(f"41:{'0' * 64}") == KnownHead(41, "0" * 64)


@pytest.mark.spec("LED-18")
def test_a_ledger_behind_a_known_head_is_refused(place: Place) -> None:
    store = place.open()
    records = numbered(1, 4)
    append(store, records[:3])
    for one in records[:3]:
        KnownHead(one.seq, one.hash).must_be(store.record(one.seq), "l")
        KnownHead(one.seq, one.hash[:12]).must_be(store.record(one.seq), "l")
    for known in (KnownHead(4, records[3].hash), KnownHead(2, records[2].hash)):
        with pytest.raises(VerificationError, match="known head") as caught:
            known.must_be(store.record(known.seq), "l")
        assert caught.value.code is Code.LEDGER_BEHIND
    store.close()
