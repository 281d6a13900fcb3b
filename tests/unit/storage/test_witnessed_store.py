"""A store with a witness: what is acknowledged is witnessed, and stored."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from samples.audited import bodies, log, sealed
from samples.small import POLICY, compiled, counts
from samples.stores import ROOT, append

from modicum.api.local import Workspace
from modicum.api.local.ledger_view import LedgerView
from modicum.core.ed25519 import verify_signature
from modicum.core.errors import (
    Code,
    ModicumError,
    UnavailableError,
    VerificationError,
)
from modicum.ledger import event_of
from modicum.ledger.proof.claims import read_signed, read_witnessed
from modicum.storage.factory import open_store
from modicum.storage.proofs.signing_keys import make_key
from modicum.storage.witness.file import FileWitness
from modicum.storage.witness.heads import KnownHead, seconds_ahead, unreachable
from modicum.storage.witness.store import WitnessedStore
from modicum.system.clock import FixedClock, SystemClock
from modicum.writer.idempotency import IdempotencyKey as Once
from modicum.writer.idempotency import Replayed
from modicum.writer.service import Decider

RECORDS = tuple(log())
#: Another history, with the same first two entries.
BRANCH = (*bodies()[:2], *bodies()[4:9])
NOON = "2026-05-01T12:00:00.000000Z"


@dataclass
class Faulty(FileWitness):
    """A witness that can be made to fail, and counts.

    Attributes:
        is_away: Whether it does not answer.
        is_full: Whether it keeps nothing.
        looks: How often its line was read.
    """

    path: Path
    is_away: bool = False
    is_full: bool = False
    looks: int = 0

    def __post_init__(self) -> None:
        super().__init__(self.path)

    def latest(self) -> bytes | None:
        self.looks += 1
        if self.is_away:
            raise unreachable("w", "it is away")
        return super().latest()

    def replace(self, known: bytes | None, new: bytes) -> bool:
        if self.is_away or self.is_full:
            raise unreachable("w", "it is full")
        return super().replace(known, new)

    @property
    def seq(self) -> int:
        """The number of the entry that it has; 0 for none."""
        line = super().latest()
        return 0 if line is None else KnownHead.read_line(line, "w").seq


@pytest.fixture
def witness(tmp_path: Path) -> Faulty:
    return Faulty(tmp_path / "head")


@pytest.fixture
def store(tmp_path: Path, witness: Faulty) -> WitnessedStore:
    return WitnessedStore(open_store(tmp_path / "ledger.db"), witness)


def refused(attempt: Callable[[], object]) -> ModicumError:
    with pytest.raises(ModicumError) as caught:
        attempt()
    return caught.value


@pytest.mark.spec("LED-29")
def test_each_turn_is_witnessed_before_it_returns(
    store: WitnessedStore, witness: Faulty
) -> None:
    for one in RECORDS[:4]:
        append(store, [one])
        line = witness.latest()
        assert line is not None
        claim = read_witnessed(line, verify_signature)
        assert (claim.ledger, claim.seq, claim.head) == (
            RECORDS[0].hash,
            one.seq,
            one.hash,
        )
        assert claim.at == event_of(one, one.seq).at
        assert claim.key == ""
    append(store, list(RECORDS[4:]))
    assert witness.seq == len(RECORDS)


@pytest.mark.spec("LED-31")
def test_a_key_signs_what_is_witnessed(tmp_path: Path, witness: Faulty) -> None:
    key = make_key(tmp_path / "key.pem")
    append(WitnessedStore(open_store(tmp_path / "l.db"), witness, key), RECORDS[:2])
    line = witness.latest()
    assert line is not None
    assert read_witnessed(line, verify_signature).key == key.id
    with pytest.raises(ValueError, match="neither a checkpoint"):
        read_signed(line)  # It does not claim an audit.
    changed = json.loads(line)
    changed["claim"]["seq"] = 1
    (tmp_path / "head").write_text(json.dumps(changed, separators=(",", ":")) + "\n")
    error = refused(lambda: append(store_of(tmp_path, witness), RECORDS[2:3]))
    assert error.code is Code.LEDGER_BEHIND
    assert "contains no head" in str(error)


def store_of(folder: Path, witness: Faulty) -> WitnessedStore:
    return WitnessedStore(open_store(folder / "l.db"), witness)


@pytest.mark.parametrize(
    "change",
    [
        lambda plain: plain | {"signature": "00" * 64},
        lambda plain: plain | {"more": 1},
        lambda plain: (
            plain | {"claim": plain["claim"] | {"kind": "modicum-receipt/v1"}}
        ),
        lambda plain: plain | {"claim": plain["claim"] | {"key": "0" * 64}},
        lambda plain: plain | {"claim": plain["claim"] | {"seq": 0}},
        lambda plain: plain | {"claim": plain["claim"] | {"at": "now"}},
        lambda plain: [plain],
    ],
)
def test_a_line_in_another_form_is_no_head(
    store: WitnessedStore, tmp_path: Path, change: Callable[[object], object]
) -> None:
    append(store, RECORDS[:2])
    path = tmp_path / "head"
    plain = change(json.loads(path.read_bytes()))
    path.write_text(json.dumps(plain, separators=(",", ":"), sort_keys=True) + "\n")
    fresh = WitnessedStore(open_store(tmp_path / "ledger.db"), FileWitness(path))
    assert refused(lambda: fresh.record(1)).code is Code.LEDGER_BEHIND
    assert refused(lambda: append(fresh, RECORDS[2:3])).code is Code.LEDGER_BEHIND


@pytest.mark.spec("LED-29")
def test_nothing_is_written_while_it_is_away(
    store: WitnessedStore, witness: Faulty
) -> None:
    append(store, RECORDS[:1])
    witness.is_away = True
    error = refused(lambda: append(store, RECORDS[1:2]))
    assert (type(error), error.code) == (UnavailableError, Code.NOT_WITNESSED)
    witness.is_away = False
    assert list(store.read(0)) == list(RECORDS[:1])


@pytest.mark.spec("LED-29")
def test_the_next_turn_repairs_what_one_could_not_witness(
    store: WitnessedStore, witness: Faulty
) -> None:
    append(store, RECORDS[:1])
    witness.is_full = True
    error = refused(lambda: append(store, RECORDS[1:3]))
    assert (type(error), error.code) == (UnavailableError, Code.NOT_WITNESSED)
    assert "stored, but not confirmed" in str(error)
    assert witness.seq == 1
    error = refused(lambda: append(store, RECORDS[3:4]))  # Refused before it writes.
    assert "stored, but" not in str(error)
    assert list(store.read(0)) == list(RECORDS[:3])
    witness.is_full = False
    append(store, [])  # It adds nothing: what it may answer is witnessed.
    assert witness.seq == 3
    append(store, RECORDS[3:4])
    assert witness.seq == 4


@pytest.mark.spec("LED-29")
def test_a_retry_has_the_same_answer_and_is_charged_once(
    store: WitnessedStore, witness: Faulty
) -> None:
    ledger = Workspace(store, FixedClock(NOON), policy=compiled(POLICY), actor="t")
    ledger.init()
    witness.is_full = True
    for _ in range(3):
        error = refused(lambda: ledger.submit(counts("one", rho="0.01")))
        assert error.code is Code.NOT_WITNESSED
    witness.is_full = False
    assert ledger.submit(counts("one", rho="0.01")).allowed
    state = ledger.state()
    assert (state.seq, witness.seq) == (2, 2)
    assert list(state.releases) == ["one"]


@pytest.mark.spec("LED-30")
@pytest.mark.parametrize("more", [1, 3])
def test_of_two_copies_that_go_on_one_is_refused(
    tmp_path: Path, store: WitnessedStore, witness: Faulty, more: int
) -> None:
    plain, branch = open_store(tmp_path / "other.db"), sealed(BRANCH)
    append(store, RECORDS[:2])
    append(plain, branch[:2])
    other = WitnessedStore(plain, FileWitness(witness.path))

    def go_on() -> None:
        with other.turn() as theirs:  # It has compared its log with the witness.
            append(store, RECORDS[2:3])
            theirs.append(branch[2 : 2 + more])

    assert refused(go_on).code is Code.LEDGER_BEHIND  # Even with a higher number.
    assert witness.seq == 3
    append(store, RECORDS[3:4])
    assert refused(lambda: append(other, branch[5:6])).code is Code.LEDGER_BEHIND


@pytest.mark.spec("LED-30")
def test_a_witness_that_goes_back_is_refused(
    store: WitnessedStore, witness: Faulty, tmp_path: Path
) -> None:
    append(store, RECORDS[:2])
    older = (tmp_path / "head").read_bytes()
    append(store, RECORDS[2:3])
    (tmp_path / "head").write_bytes(older)
    assert "has an earlier one" in str(refused(lambda: append(store, RECORDS[3:4])))
    (tmp_path / "head").unlink()
    assert "has an earlier one" in str(refused(lambda: append(store, RECORDS[3:4])))
    assert len(list(open_store(tmp_path / "ledger.db").read(0))) == 3


@pytest.mark.spec("LED-31")
def test_a_ledger_that_is_gone_is_not_begun_anew(
    store: WitnessedStore, witness: Faulty, tmp_path: Path
) -> None:
    append(store, RECORDS[:2])
    other = WitnessedStore(open_store(tmp_path / "new.db"), witness)
    assert refused(other.exists).code is Code.LEDGER_BEHIND
    assert refused(lambda: append(other, RECORDS[:1])).code is Code.LEDGER_BEHIND


def test_reads_look_at_most_once_a_second(tmp_path: Path, witness: Faulty) -> None:
    now = [0.0]
    inner = open_store(tmp_path / "ledger.db")
    store = WitnessedStore(inner, witness, clock=lambda: now[0])
    append(store, RECORDS[:3])
    witness.looks = 0
    for _ in range(5):
        assert store.record(2) == RECORDS[1]
    assert witness.looks == 1
    now[0] += 1
    witness.is_away = True
    for _ in range(5):
        assert refused(lambda: store.record(2)).code is Code.NOT_WITNESSED
    assert witness.looks == 2
    now[0] += 1
    witness.is_away = False
    assert list(store.read(2)) == [RECORDS[2]]


def test_the_head_file_of_an_earlier_version_is_read(
    tmp_path: Path, witness: Faulty
) -> None:
    inner = open_store(tmp_path / "ledger.db")
    append(inner, RECORDS[:3])
    witness.path.write_text(f"3:{RECORDS[2].hash}\n")
    store = WitnessedStore(inner, witness)
    append(store, RECORDS[3:4])
    assert witness.seq == 4
    assert witness.path.read_text().startswith('{"claim"')
    witness.path.write_text(f"9:{RECORDS[2].hash}\n")
    with pytest.raises(VerificationError, match="ends before it"):
        store.record(1)


@pytest.mark.spec("LED-29")
def test_a_decider_answers_a_retry_once_it_is_witnessed(
    store: WitnessedStore, witness: Faulty
) -> None:
    once = Once("key", "0" * 64, lambda _: b"done")
    with Decider(store, FixedClock(NOON), policy=compiled(POLICY)) as decider:
        decider.submit(counts("zero"))
        witness.is_full = True
        for _ in range(2):
            with pytest.raises(UnavailableError) as caught:
                decider.submit(counts("one", rho="0.01"), once=once)
            assert caught.value.code is Code.NOT_WITNESSED
        witness.is_full = False
        with pytest.raises(Replayed):
            decider.submit(counts("one", rho="0.01"), once=once)
        assert decider.submit(counts("one", rho="0.01")).allowed
        assert decider.study(LedgerView.state).seq == witness.seq == 3


_KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[3:]
from modicum.storage.factory import open_store
from modicum.storage.witness.file import FileWitness
from modicum.storage.witness.store import WitnessedStore
from samples.audited import log
from samples.stores import ROOT, append

class Killed(FileWitness):
    def replace(self, known, new):
        os.kill(os.getpid(), signal.SIGKILL)

append(WitnessedStore(open_store(sys.argv[1]), Killed(Path(sys.argv[2]))), log()[2:5])
"""


@pytest.mark.spec("LED-29")
def test_a_kill_between_both_leaves_a_ledger_that_is_ahead(
    store: WitnessedStore, witness: Faulty
) -> None:
    append(store, RECORDS[:2])
    places = (store.name, str(witness.path), str(ROOT / "tests"), str(ROOT / "src"))
    done = subprocess.run((sys.executable, "-c", _KILLED, *places), check=False)
    assert done.returncode == -signal.SIGKILL
    assert witness.seq == 2
    assert list(store.read(0)) == list(RECORDS[:5])
    append(store, RECORDS[5:6])
    assert witness.seq == 6


_BUSY = """
import sys
sys.path[:0] = sys.argv[4:]
import modicum as mo
from samples.small import counts
ledger = mo.open(sys.argv[1], actor=sys.argv[2])
for number in range(int(sys.argv[3])):
    assert ledger.submit(counts(f"{sys.argv[2]}-{number}", rho=1e-6)).allowed
    assert ledger.check(counts("other", rho=1e-6)).allowed
"""


@pytest.mark.spec("LED-31")
@pytest.mark.parametrize("place", ["file", "postgresql"])
def test_many_processes_are_never_refused(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = str(tmp_path / "ledger.db")
    if place == "postgresql":
        url = request.getfixturevalue("postgres").new_ledger()
    witness = FileWitness(tmp_path / "head")
    store = WitnessedStore(open_store(url), witness)
    Workspace(store, SystemClock(), policy=compiled(POLICY), actor="o").init()
    running = [
        subprocess.Popen(
            (sys.executable, "-c", _BUSY, url, name, "8", ROOT / "tests", ROOT / "src"),
            env={**os.environ, "MODICUM_WITNESS": witness.name},
        )
        for name in ("ann", "ben", "cem")
    ]
    assert [one.wait(120) for one in running] == [0, 0, 0]
    line = witness.latest()
    assert line is not None
    head = KnownHead.read_line(line, "w")
    assert head.seq == 25
    store.close()


def test_a_witness_that_replaces_nothing_is_out_of_order(
    store: WitnessedStore, witness: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witness, "replace", lambda known, new: False)
    with pytest.raises(UnavailableError, match="not confirmed by the witness"):
        append(store, RECORDS[:1])


@pytest.mark.parametrize("zone", ["GMT", "-0000", "+0000"])
def test_the_date_of_an_answer_is_in_utc(zone: str) -> None:
    assert seconds_ahead(f"Thu, 01 Jan 1970 00:10:00 {zone}", 60.0) == 540.0
    assert seconds_ahead(None, 60.0) is seconds_ahead("yesterday", 60.0) is None
