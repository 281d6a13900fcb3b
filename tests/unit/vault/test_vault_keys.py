"""Do keys of a file wrap for one purpose, and stay secret?"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from modicum.core.errors import (
    Code,
    InputError,
    ModicumError,
    UnavailableError,
    UsageError,
    VerificationError,
)
from modicum.vault import (
    Context,
    KeyProvider,
    Wrapped,
    add_key,
    file_keys,
    new_key_file,
    open_vault,
    retire_key,
)
from modicum.vault.folder import names_of

KEY = bytes(range(32))
A, B = Context("a", "0" * 64), Context("b", "0" * 64)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    new_key_file(tmp_path / "keys")
    return tmp_path / "keys"


def test_what_is_wrapped_is_unwrapped_for_the_same_only(path: Path) -> None:
    keys: KeyProvider = file_keys(path)
    wrapped = keys.wrap(KEY, A)
    assert wrapped.key_id == keys.current()
    assert keys.unwrap(wrapped, A) == KEY
    assert KEY not in wrapped.data
    for other in (B, Context("a", "1" * 64)):
        with pytest.raises(VerificationError):
            keys.unwrap(wrapped, other)
        with pytest.raises(VerificationError):
            keys.rewrap(wrapped, other)
    assert keys.wrap(KEY, A).data != wrapped.data


def test_every_bit_of_a_wrapped_key_counts(path: Path) -> None:
    keys = file_keys(path)
    wrapped = keys.wrap(KEY, A)
    for at in range(len(wrapped.data)):
        data = bytearray(wrapped.data)
        data[at] ^= 1
        with pytest.raises(VerificationError):
            keys.unwrap(replace(wrapped, data=bytes(data)), A)
    for cut in (0, 5, 11, 12, 27, 59):
        with pytest.raises(VerificationError):
            keys.unwrap(replace(wrapped, data=wrapped.data[:cut]), A)


def test_generations_do_not_stand_for_each_other(path: Path) -> None:
    keys = file_keys(path)
    old = keys.wrap(KEY, A)
    new = add_key(path)
    assert keys.current() == new != old.key_id
    assert keys.unwrap(old, A) == KEY
    moved = keys.rewrap(old, A)
    assert moved.key_id == new
    assert keys.unwrap(moved, A) == KEY
    with pytest.raises(VerificationError):
        keys.unwrap(replace(old, key_id=new), A)
    with pytest.raises(UnavailableError):
        keys.unwrap(replace(old, key_id="file-none"), A)


def test_what_is_no_data_key_is_refused(path: Path) -> None:
    keys = file_keys(path)
    with pytest.raises(VerificationError):
        keys.unwrap(keys.wrap(b"short", A), A)


def test_a_key_file_is_never_written_over(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(UsageError) as caught:
        new_key_file(path)
    assert caught.value.code is Code.ALREADY_EXISTS
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o600
    link = path.with_name("link")
    link.symlink_to(path.with_name("nowhere"))
    with pytest.raises(UsageError):
        new_key_file(link)
    with pytest.raises(UsageError):
        new_key_file(path / "below")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620, 0o602])
def test_a_key_file_that_others_can_open_is_refused(path: Path, mode: int) -> None:
    keys = file_keys(path)
    path.chmod(mode)
    for ask in (lambda: file_keys(path), keys.current, lambda: keys.wrap(KEY, A)):
        with pytest.raises(UnavailableError) as caught:
            ask()
        assert caught.value.code is Code.KEY_UNAVAILABLE
    with pytest.raises(ModicumError):
        add_key(path)


def test_a_key_file_of_others_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    with pytest.raises(UnavailableError, match="has another owner"):
        file_keys(path)


def test_links_pipes_and_nothing_are_no_key_files(path: Path) -> None:
    link, pipe = path.with_name("link"), path.with_name("pipe")
    link.symlink_to(path)
    os.mkfifo(pipe, 0o600)
    for one in (link, pipe, path.parent, path.with_name("nowhere")):
        with pytest.raises(UnavailableError):
            file_keys(one)


def test_what_holds_no_keys_is_refused_and_not_quoted(path: Path) -> None:
    whole = path.read_bytes()
    wrong = [
        b"",
        b"{}",
        b"secret",
        b"\xff",
        whole[:-1],
        whole + b"\n",
        whole.replace(b"vault-keys/v1", b"vault-keys/v2"),
        whole.replace(b'"current":"file-', b'"current":"none-'),
        whole.replace(b'"key":"', b'"key":"AAAA'),
        whole.replace(b'"key":"', b'"key":"?'),
        b"[" * 10_000,
        b" " * 70_000,
    ]
    for data in wrong:
        path.write_bytes(data)
        with pytest.raises(UnavailableError) as caught:
            file_keys(path)
        assert "secret" not in caught.value.render()


def test_nothing_shows_a_key(path: Path) -> None:
    keys = file_keys(path)
    wrapped = keys.wrap(KEY, A)
    shown = repr((keys, wrapped, vars(keys)))
    assert "data" not in shown
    assert str(KEY)[2:20] not in shown


def test_a_generation_is_retired_when_nothing_needs_it(path: Path) -> None:
    first = file_keys(path).current()
    vaults = [open_vault(path.with_name(one), file_keys(path)) for one in ("v", "w")]
    kept = [vault.seal("a", b"one") for vault in vaults]
    with pytest.raises(UsageError, match="current"):
        retire_key(path, first, [])
    second = add_key(path)
    vaults[0].rotate()
    with pytest.raises(UsageError, match="1 data keys") as caught:
        retire_key(path, first, vaults)
    assert caught.value.code is Code.KEY_UNAVAILABLE
    vaults[1].rotate()
    backup = path.read_bytes()
    retire_key(path, first, vaults)
    assert first.encode() in backup
    assert first.encode() not in path.read_bytes()
    assert [v.open(s) for v, s in zip(vaults, kept, strict=True)] == [b"one"] * 2
    assert vaults[0].wrapped_under() == {second: 1}
    with pytest.raises(UsageError, match="no key"):
        retire_key(path, first, vaults)


def test_a_shredded_thing_holds_no_generation(path: Path) -> None:
    first = file_keys(path).current()
    vault = open_vault(path.with_name("v"), file_keys(path))
    vault.seal("a", b"one")
    vault.shred("a")
    add_key(path)
    retire_key(path, first, [vault])


def test_a_damaged_key_keeps_its_generation_and_stops_no_other(path: Path) -> None:
    first = file_keys(path).current()
    vault = open_vault(path.with_name("v"), file_keys(path))
    kept = [vault.seal(one, one.encode()) for one in "abc"]
    file = path.with_name("v") / names_of("b").key
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    second = add_key(path)
    with pytest.raises(VerificationError) as caught:
        vault.rotate()
    assert len(caught.value.problems) == 1
    with pytest.raises(VerificationError):
        retire_key(path, first, [vault])
    file.write_bytes(whole)
    assert (done := vault.rotate()).moved == 1
    assert done.kept == 2
    assert vault.wrapped_under() == {second: 3}
    assert [vault.open(one) for one in kept] == [b"a", b"b", b"c"]


def test_retired_bytes_are_overwritten(path: Path) -> None:
    first = file_keys(path).current()
    vault = open_vault(path.with_name("v"), file_keys(path))
    vault.seal("a", b"one")
    add_key(path)
    record = path.with_name("v") / names_of("a").key
    with path.open("rb") as keys, record.open("rb") as wrapped:
        vault.rotate()
        retire_key(path, first, [vault])
        assert set(keys.read()) == {0}
        assert set(wrapped.read()) == {0}


def test_who_reads_while_keys_change_is_told_no_lies(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key is overwritten between somebody's opening and reading it."""
    vault = open_vault(path.with_name("v"), file_keys(path))
    sealed = vault.seal("a", b"one")
    real, changed = os.fdopen, list[str]()

    def fdopen(handle: int, mode: str = "r") -> object:
        name = Path(f"/proc/self/fd/{handle}").readlink().name
        if name in (path.name, names_of("a").key) and name not in changed:
            changed.append(name)
            with monkeypatch.context() as inner:
                inner.setattr(os, "fdopen", real)
                add_key(path)
                vault.rotate()
        return real(handle, mode)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdopen", fdopen)
        assert vault.open(sealed) == b"one"
    assert sorted(changed) == sorted([path.name, names_of("a").key])


def test_a_record_of_a_strange_id_is_damaged(path: Path) -> None:
    vault = open_vault(path.with_name("v"), file_keys(path))
    vault.seal("a", b"one")
    file = path.with_name("v") / names_of("a").key
    file.write_bytes(file.read_bytes().replace(b'"id":"a"', b'"id":"\\n"'))
    with pytest.raises(VerificationError):
        vault.wrapped_under()
    with pytest.raises(InputError):
        names_of("\n")


def test_a_record_under_the_name_of_another_is_damaged(path: Path) -> None:
    vault = open_vault(path.with_name("v"), file_keys(path))
    kept = [vault.seal(one, b"one") for one in "ab"]
    a, b = (path.with_name("v") / names_of(one.id).key for one in kept)
    whole = b.read_bytes()
    b.write_bytes(a.read_bytes())
    add_key(path)
    for ask in (vault.rotate, vault.wrapped_under):
        with pytest.raises(VerificationError):
            ask()
    b.write_bytes(whole)
    vault.rotate()
    assert [vault.open(one) for one in kept] == [b"one"] * 2


def test_a_provider_that_fails_leaves_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = file_keys(path)
    vault = open_vault(path.with_name("v"), keys)

    def wrap(data_key: bytes, context: Context) -> Wrapped:
        path.rename(path.with_name("elsewhere"))
        return file_keys(path).wrap(data_key, context)

    with monkeypatch.context() as patch:
        patch.setattr(keys, "wrap", wrap)
        with pytest.raises(UnavailableError):
            vault.seal("a", b"one")
    assert list(path.with_name("v").iterdir()) == []
    path.with_name("elsewhere").rename(path)
    assert vault.open(vault.seal("a", b"two")) == b"two"
