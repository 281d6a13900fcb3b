"""Who may read and write the files of a ledger: never those whom the umask names."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from samples.stores import append, numbered

from modicum.storage.sqlite_lock import open_beside
from modicum.storage.sqlite_store import SqliteStore

BESIDE = {"-wal", "-shm", ".lock", ".queue", ".live", ".snapshot"}


@contextmanager
def umask(mask: int) -> Iterator[None]:
    old = os.umask(mask)
    try:
        yield
    finally:
        os.umask(old)


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def use(path: Path, first: int) -> dict[str, int]:
    """Write as a server does; return the rights of each file by its ending."""
    store = SqliteStore(path, keep_open=True)
    append(store, numbered(first, 3))
    assert len(list(store.read(0))) >= 3
    store.save_snapshot(b"kept")
    found = {
        one.name.removeprefix(path.name): rights(one) for one in path.parent.iterdir()
    }
    store.close()
    return found


@pytest.mark.spec("OPS-10")
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o027, 0o077])
@pytest.mark.parametrize("keep_open", [True, False])
def test_a_new_ledger_is_for_its_owner_only(
    tmp_path: Path, mask: int, *, keep_open: bool
) -> None:
    with umask(mask):
        store = SqliteStore(tmp_path / "ledger.db", keep_open=keep_open)
        append(store, numbered(1, 3))
        store.close()
        found = use(tmp_path / "ledger.db", 4)
    assert set(found) == {"", *BESIDE}
    assert set(found.values()) == {0o600}


@pytest.mark.spec("OPS-10")
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o660, 0o644, 0o666])
def test_new_files_beside_a_ledger_have_its_rights(
    tmp_path: Path, mask: int, mode: int
) -> None:
    path = tmp_path / "ledger.db"
    append(SqliteStore(path), numbered(1, 3))
    for one in tmp_path.iterdir():
        if one != path:
            one.unlink()
    path.chmod(mode)
    with umask(mask):
        found = use(path, 4)
    assert set(found) == {"", *BESIDE}
    assert set(found.values()) == {mode}


@pytest.mark.spec("OPS-10")
def test_rights_of_existing_files_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    append(SqliteStore(path), numbered(1, 3))
    path.chmod(0o644)
    Path(f"{path}.lock").chmod(0o666)
    Path(f"{path}.queue").chmod(0o606)
    found = use(path, 4)
    assert (found[""], found[".lock"], found[".queue"]) == (0o644, 0o666, 0o606)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_new_file_is_for_the_group_of_the_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    append(SqliteStore(path), numbered(1, 3))
    os.chown(path, -1, 12345)
    path.chmod(0o660)
    descriptor = open_beside(tmp_path / "new", path, os.O_RDWR)
    made = os.fstat(descriptor)
    os.close(descriptor)
    assert (stat.S_IMODE(made.st_mode), made.st_gid) == (0o660, 12345)


def test_another_group_gets_no_rights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.db"
    path.touch()
    path.chmod(0o660)
    real = os.fstat

    def elsewhere(descriptor: int) -> os.stat_result:
        found = list(real(descriptor))
        found[stat.ST_GID] += 1
        return os.stat_result(found)

    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "fstat", elsewhere)
    monkeypatch.setattr(os, "fchown", refused)
    os.close(open_beside(tmp_path / "new", path, os.O_RDWR))
    assert rights(tmp_path / "new") == 0o600


def test_a_file_that_another_process_just_made_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, real = tmp_path / "new", os.open

    def raced(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_EXCL:
            target.write_bytes(b"theirs")
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", raced)
    descriptor = open_beside(target, tmp_path / "ledger.db", os.O_RDWR)
    assert os.read(descriptor, 10) == b"theirs"
    os.close(descriptor)
