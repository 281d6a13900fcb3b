"""Whatever step fails, or is the last before a crash: is nothing half there?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from modicum.api.ports.escrow import Sealed
from modicum.core.errors import Code, ConflictError, ModicumError, UnavailableError
from modicum.vault import (
    EncryptedVault,
    FileKeys,
    add_key,
    file_keys,
    new_key_file,
    open_vault,
)
from modicum.vault.folder import names_of

#: More than any of the operations below has.
STEPS_MAX = 40
#: What changes a folder or makes it durable.
CALLS = ("open", "fsync", "replace", "unlink")


class Crash(BaseException):
    """The process is gone: nothing after this happens."""


@contextmanager
def failing(step: int, *, crash: bool) -> Iterator[list[str]]:
    """Let one step of all that touch the disk fail; yield what was called.

    Args:
        step: Which, from 0.
        crash: Whether everything after it fails too, as if nobody was there.
    """
    called = list[str]()
    real = {name: getattr(os, name) for name in CALLS}

    def wrapped(name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if name == "open" and not changes(args):
                return real[name](*args, **options)
            called.append(name)
            if crash and len(called) > step:
                raise Crash
            if len(called) - 1 == step:
                raise OSError(28, "No space left on device")
            return real[name](*args, **options)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, wrapped(name))
        yield called


def changes(args: tuple[Any, ...]) -> bool:
    return bool(args[1] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR))


@pytest.fixture
def keys(tmp_path: Path) -> FileKeys:
    new_key_file(tmp_path / "keys")
    return file_keys(tmp_path / "keys")


@pytest.fixture
def vault(tmp_path: Path, keys: FileKeys) -> EncryptedVault:
    return open_vault(tmp_path / "vault", keys)


def after_crash(vault: EncryptedVault, tmp_path: Path) -> EncryptedVault:
    return open_vault(tmp_path / "vault", file_keys(tmp_path / "keys"))


def test_every_failing_step_of_sealing_leaves_nothing(
    vault: EncryptedVault, tmp_path: Path
) -> None:
    """The caller is told, and may seal the same again."""
    for step in range(STEPS_MAX):
        before = sorted(path.name for path in (tmp_path / "vault").iterdir())
        name = f"a{step}"
        with failing(step, crash=False) as called:
            try:
                sealed = vault.seal(name, b"one")
            except UnavailableError as error:
                assert error.code is Code.VAULT_UNUSABLE  # noqa: PT017
            else:
                if len(called) <= step:
                    break
                assert called[step] == "unlink"  # What is left is swept.
                assert vault.open(sealed) == b"one"
                continue
        after = sorted(path.name for path in (tmp_path / "vault").iterdir())
        assert [one for one in after if not one.endswith(".part")] == before, step
        assert vault.open(vault.seal(name, b"two")) == b"two"
    else:
        pytest.fail("more steps than that")
    assert step >= 10


def test_every_crash_of_sealing_leaves_all_or_nothing(
    vault: EncryptedVault, tmp_path: Path
) -> None:
    kept = vault.seal("other", b"other")
    whole = 0
    for step in range(STEPS_MAX):
        name = f"a{step}"
        with failing(step, crash=True) as called:
            try:
                vault.seal(name, b"one")
            except Crash:
                pass
            else:
                assert len(called) <= step
                break
        vault = after_crash(vault, tmp_path)
        found = vault.find(name)
        if found is None:
            assert vault.open(vault.seal(name, b"two")) == b"two"
        else:
            whole += 1
            assert vault.open(found) == b"one"
            with pytest.raises(ConflictError):
                vault.seal(name, b"two")
        assert vault.open(kept) == b"other"
        left = {path.suffix for path in (tmp_path / "vault").iterdir()}
        assert left == {".sealed", ".key"}
    else:
        pytest.fail("more steps than that")
    assert step >= 10
    assert whole >= 1


@pytest.mark.parametrize("crash", [False, True])
def test_shredding_goes_on_where_it_stopped(
    vault: EncryptedVault, tmp_path: Path, crash: bool
) -> None:
    for step in range(STEPS_MAX):
        name = f"a{step}"
        sealed = vault.seal(name, b"one")
        with failing(step, crash=crash) as called:
            try:
                vault.shred(name)
            except (Crash, UnavailableError):
                pass
            else:
                assert len(called) <= step
                break
        tag = names_of(name).tag.hex()
        try:
            assert vault.open(sealed) == b"one"
        except ModicumError as error:
            assert error.code is Code.KEY_DESTROYED, step  # noqa: PT017
        else:
            assert not (tmp_path / "vault" / f"{tag}.shredded").exists(), step
        vault = after_crash(vault, tmp_path)
        vault.shred(name)
        with pytest.raises(UnavailableError, match="destroyed"):
            vault.open(sealed)
        with pytest.raises(ConflictError):
            vault.seal(name, b"two")
        names = [path.name for path in (tmp_path / "vault").iterdir()]
        assert [one for one in names if one.startswith(tag)] == [f"{tag}.shredded"]
    else:
        pytest.fail("more steps than that")
    assert step >= 6


@pytest.mark.parametrize("crash", [False, True])
def test_rotation_goes_on_where_it_stopped(
    vault: EncryptedVault, tmp_path: Path, crash: bool
) -> None:
    kept = {name: vault.seal(name, name.encode()) for name in ("a", "b", "c")}
    contents = {path: path.read_bytes() for path in tmp_path.rglob("*.sealed")}
    ended = False
    for step in range(STEPS_MAX):
        new = add_key(tmp_path / "keys")
        with failing(step, crash=crash):
            try:
                moved = vault.rotate().moved
            except (Crash, UnavailableError):
                moved = -1
        vault = after_crash(vault, tmp_path)
        before = vault.wrapped_under().get(new, 0)
        check(vault, kept)
        done = vault.rotate()
        assert (done.moved, done.kept) == (3 - before, before)
        assert vault.wrapped_under() == {new: 3}
        check(vault, kept)
        if moved == 3 and step > 12:
            ended = True
            break
    assert ended
    assert {path: path.read_bytes() for path in contents} == contents


def check(vault: EncryptedVault, kept: dict[str, Sealed]) -> None:
    for name, sealed in kept.items():
        assert vault.open(sealed) == name.encode()


def test_a_rotation_that_crashed_leaves_no_key_to_shred_past(
    vault: EncryptedVault, tmp_path: Path
) -> None:
    """A second wrapped key of the same thing would outlive the first."""
    vault.seal("a", b"one")
    tag = names_of("a").tag.hex()
    record = (tmp_path / "vault" / f"{tag}.key").read_bytes()
    (tmp_path / "vault" / f"{tag}.key.new").write_bytes(record)
    vault.shred("a")
    assert [path.name for path in (tmp_path / "vault").iterdir()] == [f"{tag}.shredded"]


@pytest.mark.parametrize("crash", [False, True])
def test_a_key_file_is_the_old_one_or_the_new_one(tmp_path: Path, crash: bool) -> None:
    path = tmp_path / "keys"
    first = new_key_file(path)
    vault = open_vault(tmp_path / "vault", file_keys(path))
    sealed = vault.seal("a", b"one")
    for step in range(STEPS_MAX):
        with failing(step, crash=crash) as called:
            try:
                add_key(path)
            except (Crash, ModicumError):
                pass
            else:
                assert len(called) <= step
                break
        assert vault.open(sealed) == b"one"
        vault.seal(f"b{step}", b"two")
    else:
        pytest.fail("more steps than that")
    assert step >= 4
    assert vault.wrapped_under()[first] >= 1


def test_bytes_are_durable_before_names_and_names_before_keys(
    vault: EncryptedVault,
) -> None:
    """A power cut cannot be had here; the order of steps can be looked at."""
    with failing(STEPS_MAX, crash=False) as called:
        vault.seal("a", b"one")
    attempt = ["open"]  # To erase a key that is not there.
    assert called == [
        *("open", "fsync"),
        *(*attempt, "open", "fsync"),
        *("replace", "fsync"),
        *("replace", "fsync"),
        "unlink",
    ]
    with failing(STEPS_MAX, crash=False) as called:
        vault.shred("a")
    tombstone = ["open", "fsync", "fsync"]
    overwritten = ["open", "fsync", "unlink"]
    assert called == [*tombstone, *attempt, *overwritten, "unlink", "fsync"]
