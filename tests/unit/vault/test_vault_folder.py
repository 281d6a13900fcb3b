"""Is what is sealed there, whole, secret, and once and for all?"""

from __future__ import annotations

import io
import json
import os
import stat
import threading
from pathlib import Path

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import sealed_things

from modicum.api.ports.escrow import Sealed, Vault
from modicum.core.errors import (
    Code,
    ConflictError,
    InputError,
    ModicumError,
    UnavailableError,
    VerificationError,
)
from modicum.vault import (
    EncryptedVault,
    FileKeys,
    add_key,
    encrypted_stream,
    file_keys,
    new_key_file,
    open_vault,
)
from modicum.vault import folder as folder_module
from modicum.vault.folder import names_of

CONTENT = b"age,race\n39,White\n" * 40_000


@pytest.fixture
def keys(tmp_path: Path) -> FileKeys:
    new_key_file(tmp_path / "keys.json")
    return file_keys(tmp_path / "keys.json")


@pytest.fixture
def vault(tmp_path: Path, keys: FileKeys) -> EncryptedVault:
    return open_vault(tmp_path / "vault", keys)


def refusal(code: Code, kind: type[ModicumError]) -> pytest.RaisesExc[ModicumError]:
    return pytest.RaisesExc(kind, check=lambda error: error.code is code)


GONE = refusal(Code.KEY_DESTROYED, UnavailableError)
BROKEN = refusal(Code.SEALED_BROKEN, VerificationError)
USED = refusal(Code.SEALED_BEFORE, ConflictError)
UNUSABLE = refusal(Code.VAULT_UNUSABLE, UnavailableError)


def test_it_is_the_port(vault: EncryptedVault) -> None:
    port: Vault = vault
    sealed = port.seal("visits/3", CONTENT)
    assert port.open(sealed) == CONTENT


def test_it_opens_by_the_book(vault: EncryptedVault, tmp_path: Path) -> None:
    for size in (0, 1, 2**18, 2**18 + 1, len(CONTENT)):
        vault.seal(f"size {size}", CONTENT[:size])
        found = sealed_things.opened(
            tmp_path / "vault", tmp_path / "keys.json", f"size {size}"
        )
        assert found == CONTENT[:size]


def test_nothing_of_it_is_readable(vault: EncryptedVault, tmp_path: Path) -> None:
    vault.seal("visits/3", CONTENT)
    assert stat.S_IMODE((tmp_path / "vault").stat().st_mode) == 0o700
    files = list((tmp_path / "vault").iterdir())
    assert len(files) == 2
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert b"White" not in file.read_bytes()
        assert "visits" not in file.name


def test_an_id_stands_for_one_thing(vault: EncryptedVault) -> None:
    first = vault.seal("a", b"first")
    with USED:
        vault.seal("a", b"second")
    assert vault.open(first) == b"first"


IDS = ["../x", "..", ".", "/etc/passwd", "a/../../b", "c-12ab/noisy", "x" * 512, "é"]


def test_ids_lead_nowhere_else(vault: EncryptedVault, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    kept = [vault.seal(one, one.encode()) for one in IDS]
    assert [vault.open(one) for one in kept] == [one.encode() for one in IDS]
    assert set(tmp_path.iterdir()) == before
    assert {path.parent for path in tmp_path.rglob("*.sealed")} == {tmp_path / "vault"}


@pytest.mark.parametrize("one", ["", "x" * 513, "é" * 257, "a\0b", "a\nb", "\udc80"])
def test_ids_that_nothing_can_have(vault: EncryptedVault, one: str) -> None:
    with refusal(Code.BAD_NAME, InputError):
        vault.seal(one, b"")


def test_what_the_ledger_remembers_decides(vault: EncryptedVault) -> None:
    a, b = vault.seal("a", b"one"), vault.seal("b", b"two")
    with BROKEN:
        vault.open(Sealed("a", b.digest))
    with BROKEN:
        vault.open(Sealed("b", a.digest))
    with refusal(Code.KEY_UNAVAILABLE, UnavailableError):
        vault.open(Sealed("c", a.digest))


def test_files_stay_with_their_ids(vault: EncryptedVault, tmp_path: Path) -> None:
    """Content, key, or both, of one thing under the name of another one."""
    for which in (("sealed",), ("key",), ("sealed", "key")):
        ids = [f"{one}/{'+'.join(which)}" for one in "ab"]
        a, b = (vault.seal(one, one.encode()) for one in ids)
        for ending in which:
            swap(*(tmp_path / "vault" / f"{stem(one)}.{ending}" for one in ids))
        for one in (a, b, Sealed(a.id, b.digest), Sealed(b.id, a.digest)):
            with BROKEN:
                vault.open(one)


def swap(a: Path, b: Path) -> None:
    first, second = a.read_bytes(), b.read_bytes()
    a.write_bytes(second)
    b.write_bytes(first)


def stem(identifier: str) -> str:
    return names_of(identifier).tag.hex()


@settings(max_examples=examples(100, 40), deadline=None)
@given(data=st.data())
def test_any_change_is_found(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("changed")
    new_key_file(folder / "keys")
    vault = open_vault(folder / "vault", file_keys(folder / "keys"))
    sealed = vault.seal("a", CONTENT[:300])
    ending = data.draw(st.sampled_from(["sealed", "key"]))
    file = folder / "vault" / f"{stem('a')}.{ending}"
    held = bytearray(file.read_bytes())
    at = data.draw(st.integers(0, len(held) - 1))
    change = data.draw(st.sampled_from(["flip", "cut", "add", "drop"]))
    if change == "flip":
        held[at] ^= data.draw(st.integers(1, 255))
    elif change == "cut":
        del held[at:]
    elif change == "add":
        held += bytes(at)
        held += b"\0"
    else:
        del held[at]
    file.write_bytes(held)
    # A key id that is another one is unknown, and that is told before all else.
    with pytest.raises((VerificationError, UnavailableError)):
        vault.open(sealed)


def test_bytes_are_compared_before_a_key_is_asked_for(
    vault: EncryptedVault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = vault.seal("a", b"one")
    with (tmp_path / "vault" / f"{stem('a')}.sealed").open("ab") as file:
        file.write(b"\0")
    monkeypatch.setattr(FileKeys, "unwrap", None)
    with BROKEN:
        vault.open(sealed)


def test_whoever_had_the_data_key_forges_nothing(
    vault: EncryptedVault, tmp_path: Path
) -> None:
    """Other content under the same key: each chunk is right, and the digest is not."""
    sealed = vault.seal("a", b"one")
    folder = tmp_path / "vault"
    record = json.loads((folder / f"{stem('a')}.key").read_bytes())
    key = sealed_things.unwrap(record, tmp_path / "keys.json")
    other = io.BytesIO(b"two")
    forged = b"".join(encrypted_stream.encrypted(other.read, key, names_of("a")))
    assert sealed_things.decrypt(forged, key, "a") == b"two"
    (folder / f"{stem('a')}.sealed").write_bytes(forged)
    with BROKEN:
        vault.open(sealed)
    with BROKEN:
        vault.find("a")


def test_a_record_of_something_else_is_not_unwrapped(
    vault: EncryptedVault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = vault.seal("a", b"one")
    vault.seal("b", b"one")
    keys = [tmp_path / "vault" / f"{stem(one)}.key" for one in "ab"]
    keys[0].write_bytes(keys[1].read_bytes())
    monkeypatch.setattr(FileKeys, "unwrap", None)
    with BROKEN:
        vault.open(sealed)


# --- who may look into it ------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o750, 0o705, 0o770, 0o777])
def test_an_open_folder_is_refused(
    tmp_path: Path, keys: FileKeys, vault: EncryptedVault, mode: int
) -> None:
    sealed = vault.seal("a", b"one")
    (tmp_path / "vault").chmod(mode)
    with UNUSABLE:
        open_vault(tmp_path / "vault", keys)
    with UNUSABLE:
        vault.open(sealed)
    with UNUSABLE:
        vault.seal("b", b"")
    with UNUSABLE:
        vault.shred("a")


def test_a_folder_of_others_is_refused(
    tmp_path: Path, vault: EncryptedVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    with UNUSABLE:
        vault.seal("a", b"one")


def test_links_are_refused(
    tmp_path: Path, keys: FileKeys, vault: EncryptedVault
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "vault")
    with UNUSABLE:
        open_vault(tmp_path / "link", keys)
    for ending in ("sealed", "key"):
        sealed = vault.seal(ending, b"one")
        file = tmp_path / "vault" / f"{stem(ending)}.{ending}"
        file.rename(tmp_path / ending)
        file.symlink_to(tmp_path / ending)
        with UNUSABLE:
            vault.open(sealed)
        file.unlink()
        os.mkfifo(file)
        with UNUSABLE:
            vault.open(sealed)
        file.unlink()


def test_a_missing_content_is_no_wait_for_better_times(
    vault: EncryptedVault, tmp_path: Path
) -> None:
    sealed = vault.seal("a", b"one")
    (tmp_path / "vault" / f"{stem('a')}.sealed").unlink()
    with BROKEN:
        vault.open(sealed)


# --- shredding -----------------------------------------------------------------------


def test_what_is_shredded_stays_shredded(vault: EncryptedVault, tmp_path: Path) -> None:
    sealed = vault.seal("a", CONTENT)
    kept = vault.seal("b", b"two")
    for _ in range(2):
        vault.shred("a")
        with GONE:
            vault.open(sealed)
        with USED:
            vault.seal("a", b"again")
        assert vault.find("a") is None
    assert vault.open(kept) == b"two"
    names = {path.name for path in (tmp_path / "vault").iterdir()}
    assert {name for name in names if name.startswith(stem("a"))} == {
        f"{stem('a')}.shredded"
    }


def test_the_wrapped_key_is_overwritten(vault: EncryptedVault, tmp_path: Path) -> None:
    vault.seal("a", b"one")
    file = tmp_path / "vault" / f"{stem('a')}.key"
    with file.open("rb") as held:  # What the disk holds under no name any more.
        size = len(held.read())
        vault.shred("a")
        held.seek(0)
        assert held.read() == bytes(size)


def test_shredding_what_never_was_or_lost_its_content(
    vault: EncryptedVault, tmp_path: Path
) -> None:
    sealed = vault.seal("a", b"one")
    (tmp_path / "vault" / f"{stem('a')}.sealed").unlink()
    vault.shred("a")
    with GONE:
        vault.open(sealed)
    vault.shred("never")
    with USED:
        vault.seal("never", b"")


def test_a_restored_key_opens_nothing(vault: EncryptedVault, tmp_path: Path) -> None:
    sealed = vault.seal("a", b"one")
    files = {path: path.read_bytes() for path in (tmp_path / "vault").iterdir()}
    vault.shred("a")
    for path, data in files.items():
        path.write_bytes(data)
    with GONE:
        vault.open(sealed)
    assert vault.rotate().kept == 0
    vault.shred("a")
    assert not any(path.exists() for path in files)


# --- many at a time ------------------------------------------------------------------


def test_one_of_many_gets_an_id(vault: EncryptedVault) -> None:
    won, lost = list[Sealed](), list[str]()
    begin = threading.Barrier(8)

    def run(number: int) -> None:
        begin.wait()
        try:
            won.append(vault.seal("a", str(number).encode()))
        except ConflictError as error:
            lost.append(error.code.value)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lost == ["MOD853"] * 7
    [sealed] = won
    assert vault.open(sealed).isdigit()
    assert vault.find("a") == sealed


def test_what_others_write_is_not_swept(
    vault: EncryptedVault, keys: FileKeys, tmp_path: Path
) -> None:
    """A folder is opened, and swept, while somebody is in the middle of sealing."""
    wrap = keys.wrap

    def during(*args: object) -> object:
        debris = [p for p in (tmp_path / "vault").iterdir() if p.suffix == ".part"]
        assert len(debris) == 1
        return wrap(*args)  # type: ignore[arg-type]

    from modicum.vault import vault as module

    swept = list[bool]()

    def encrypted(*args: object) -> object:
        for number, piece in enumerate(original(*args)):  # type: ignore[arg-type]
            if number == 1:
                open_vault(tmp_path / "vault", keys)
                swept.append(True)
            yield piece

    original = encrypted_stream.encrypted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "encrypted", encrypted)
        patch.setattr(keys, "wrap", during)
        sealed = vault.seal("a", CONTENT)
    assert swept == [True]
    assert vault.open(sealed) == CONTENT


def test_debris_is_swept(tmp_path: Path, keys: FileKeys, vault: EncryptedVault) -> None:
    sealed = vault.seal("a", b"one")
    folder = tmp_path / "vault"
    before = {path.name for path in folder.iterdir()}
    (folder / f"{stem('b')}.{'0' * 16}.part").write_bytes(b"half")
    (folder / f"{stem('a')}.key.new").write_bytes(b"half")
    (folder / "notes.txt").write_text("not ours to remove")
    assert open_vault(folder, keys).open(sealed) == b"one"
    assert {path.name for path in folder.iterdir()} == {*before, "notes.txt"}


def test_a_busy_folder_is_not_waited_for_for_good(
    vault: EncryptedVault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "WAIT_SECONDS", 0.05)
    with folder_module.opened(tmp_path / "vault") as other, other.locked(), UNUSABLE:
        vault.seal("a", b"one")
    assert vault.open(vault.seal("a", b"one")) == b"one"


def test_a_generation_that_is_added_is_used_at_once(
    vault: EncryptedVault, tmp_path: Path
) -> None:
    vault.seal("a", b"one")
    new = add_key(tmp_path / "keys.json")
    vault.seal("b", b"two")
    assert vault.wrapped_under()[new] == 1
