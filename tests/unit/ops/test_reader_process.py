"""The process that reads rows: it ends, and a mistake in it is one here."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from modicum.api.ports.escrow import Equipment, Sealed, Work
from modicum.core.errors import (
    Code,
    ConflictError,
    ModicumError,
    Problem,
    UnavailableError,
    VerificationError,
)
from modicum.ops.escrow.equipment import EscrowEquipment, EscrowPlace
from modicum.ops.escrow.reader import Reader
from modicum.vault.key_files import file_keys, new_key_file


@pytest.fixture
def equipment(tmp_path: Path) -> EscrowEquipment:
    new_key_file(tmp_path / "keys.json")
    keys = file_keys(tmp_path / "keys.json")  # No file is named: the keys stay here.
    return EscrowEquipment(EscrowPlace(tmp_path / "vault", keys))


def copies(equipment: Equipment, sealed: Sealed) -> Work:
    content = equipment.vault.open(sealed)
    run = yield None
    name = f"copy/{run}/{os.getpid()}"
    return {name: equipment.vault.seal(name, content).digest}


def tells_its_number(_: Equipment) -> Work:
    yield None
    return {"number": str(os.getpid())}


def fails(_: Equipment, kind: str) -> Work:
    if kind == "first":
        raise VerificationError(Problem(Code.LEDGER_BROKEN, "it is another"))
    yield None
    if kind == "dies":
        os._exit(1)
    raise ValueError("row 17")


def begins_another(_: Equipment) -> Work:
    yield None
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    return {"number": str(child.pid)}


def waits(_: Equipment, place: str) -> Work:
    Path(place).write_text(str(os.getpid()))
    time.sleep(600)
    yield None
    return {}


def gone(pid: int) -> bool:
    """Return whether a process ends; it is waited for."""
    for _ in range(600):
        try:
            if (
                "Z"
                in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            ):
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def test_it_opens_and_seals_with_keys_that_stay_here(
    equipment: EscrowEquipment,
) -> None:
    sealed = equipment.vault.seal("data/people/1", b"rows")
    with equipment.apart(copies, sealed, opens=[sealed.id]) as apart:
        ((name, digest),) = apart.finish(7).items()
    assert name.startswith("copy/7/")
    assert int(name.rpartition("/")[2]) != os.getpid()
    assert equipment.vault.open(Sealed(name, digest)) == b"rows"


@pytest.mark.spec("ESC-16")
def test_it_finds_a_vault_that_was_named_from_here(
    equipment: EscrowEquipment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = equipment.vault.seal("data/people/1", b"rows")
    monkeypatch.chdir(tmp_path)
    keys = file_keys(tmp_path / "keys.json")
    named = EscrowEquipment(EscrowPlace(Path("vault"), keys))
    with named.apart(copies, sealed, opens=[sealed.id]) as apart:
        ((name, digest),) = apart.finish(1).items()
    assert equipment.vault.open(Sealed(name, digest)) == b"rows"


def test_it_is_given_no_key_but_those_that_its_work_is_about(
    equipment: EscrowEquipment,
) -> None:
    sealed = equipment.vault.seal("data/people/1", b"rows")
    started = equipment.apart(copies, sealed, opens=["data/people/2"])
    with pytest.raises(UnavailableError, match="ended without a result"), started:
        pass


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("first", "it is another"),
        ("dies", "ended without a result"),
        ("last", "internal error in the process that reads rows"),
    ],
)
def test_a_mistake_in_it_is_one_here_and_quotes_no_row(
    equipment: EscrowEquipment, kind: str, why: str
) -> None:
    with (
        pytest.raises(ModicumError, match=why) as caught,
        equipment.apart(fails, kind) as apart,
    ):
        apart.finish(1)
    assert isinstance(caught.value, VerificationError) == (kind == "first")
    assert "row 17" not in repr(caught.value.problems)


@pytest.mark.spec("ESC-16")
@pytest.mark.parametrize("rest", [b"", b"xx", b'{"type":"ready"}'])
def test_a_handle_to_answers_is_closed_if_what_it_tells_is_wrong(
    equipment: EscrowEquipment, rest: bytes
) -> None:
    with Reader(equipment.keys, (), lambda: None) as reader:
        here, there = socket.socketpair()
        reader._own.close()
        reader._own = here
        job = os.memfd_create("job")
        head = max(len(rest), 16).to_bytes(8, "big")
        socket.send_fds(there, [head + rest], [job])
        os.close(job)
        there.close()
        with pytest.raises(UnavailableError):
            reader._received()
        links = [
            os.readlink(one)
            for one in Path("/proc/self/fd").iterdir()
            if one.is_symlink()
        ]
    assert not [one for one in links if "memfd:job" in one]


def test_what_it_began_ends_with_it(equipment: EscrowEquipment) -> None:
    with equipment.apart(begins_another) as apart:
        pid = int(apart.finish(1)["number"])
    assert gone(pid)


def test_it_ends_with_the_block(equipment: EscrowEquipment) -> None:
    with equipment.apart(tells_its_number) as apart:
        pid = int(apart.finish(1)["number"])
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()


def test_it_ends_when_nobody_waits_any_more(
    equipment: EscrowEquipment, tmp_path: Path
) -> None:
    result = tmp_path / "number"

    def still() -> None:
        if result.exists() and result.read_text():
            raise ConflictError(Problem(Code.NOT_PERMITTED, "given up"))

    started = equipment.apart(waits, str(result), still=still)
    with pytest.raises(ConflictError, match="given up"), started:
        pass
    assert not Path(f"/proc/{result.read_text()}").exists()


BEGINS = """
import sys
from pathlib import Path
from modicum.ops.escrow.equipment import EscrowEquipment, EscrowPlace
from unit.ops.test_reader_process import waits
place = EscrowPlace(Path(sys.argv[1], "vault"), Path(sys.argv[1], "keys.json"))
with EscrowEquipment(place).apart(waits, sys.argv[2]):
    pass
"""


def test_it_ends_with_the_process_that_began_it(
    equipment: EscrowEquipment, tmp_path: Path
) -> None:
    del equipment  # It began the vault.
    result = tmp_path / "number"
    tests = str(Path(__file__).parents[2])
    begins = f"import sys; sys.path.insert(0, {tests!r})\n{BEGINS}"
    process = subprocess.Popen(
        [sys.executable, "-c", begins, str(tmp_path), str(result)]
    )
    try:
        while not (result.exists() and result.read_text()):
            assert process.poll() is None
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()
    assert gone(int(result.read_text()))
