"""Checks of a ledger in a file: its turn, its disk, and who may read it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from modicum.ops.doctor.findings import Finding, Status
from modicum.storage.sqlite_lock import SqliteLock, TurnTimeoutError

#: Timeout for the turn: a server's turns take less than a second.
WAIT_SECONDS = 5.0
#: With less room than this, the next turns may fail.
_ROOM_LEAST = 64 * 2**20
#: Minimum free space before a warning.
_ROOM_LOW = 2**30
#: A private key is shorter.
_KEY_BYTES_MAX = 16 * 1024
#: The files beside a ledger. Anyone who may read a lock can also hold it.
_BESIDE = ("-wal", "-shm", "-journal", ".snapshot", ".lock", ".queue", ".live")


def check_file(ledger: str) -> Iterator[Finding]:
    """Yield the findings about an existing ledger file."""
    path = Path(ledger).resolve()
    yield _check_turn(path)
    yield _check_room(path)
    yield _check_rights(path)
    yield _check_keys(path.parent)


def _check_turn(path: Path) -> Finding:
    name = "turn"
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        message = "this user may only read the ledger"
        return Finding(name, Status.WARN, message, facts={"may_write": False})
    locks = [Path(f"{path}{suffix}") for suffix in (".lock", ".queue")]
    if not all(one.exists() for one in locks) and path.stat().st_uid != os.geteuid():
        # Made by this user, the ledger's owner could perhaps not open them.
        message = "not tested: the ledger belongs to another user"
        return Finding(name, Status.WARN, message, "run this as its owner")
    try:
        with SqliteLock(path, WAIT_SECONDS).writing():
            return Finding(name, Status.OK, "available", facts={"may_write": True})
    except TurnTimeoutError:
        message = f"others kept it for {WAIT_SECONDS:g} seconds"
        return Finding(
            name, Status.FAIL, message, "find the process that holds the ledger's .lock"
        )
    except OSError as error:
        reason = (error.strerror or "it is not available").lower()
        remedy = "let this user write the files .lock and .queue next to the ledger"
        return Finding(name, Status.FAIL, f"is not available: {reason}", remedy)


def _check_room(path: Path) -> Finding:
    disk = os.statvfs(path.parent)
    free = disk.f_bavail * disk.f_frsize
    size = path.stat().st_size
    message = f"{free // 2**20} MiB free; the ledger uses {size // 2**20} MiB"
    facts = {"free_mib": free // 2**20, "ledger_mib": size // 2**20}
    remedy = "free some space: writes that cannot be stored are refused"
    if free < _ROOM_LEAST:
        return Finding("disk", Status.FAIL, message, remedy, facts)
    if free < max(_ROOM_LOW, size):
        return Finding("disk", Status.WARN, message, remedy, facts)
    return Finding("disk", Status.OK, message, facts=facts)


def _check_rights(path: Path) -> Finding:
    files = [Path(f"{path}{end}") for end in ("", *_BESIDE)]
    modes = {one.name: one.stat().st_mode for one in files if one.exists()}

    def open_to(right: int) -> list[str]:
        return [name for name, mode in modes.items() if mode & right]

    written, read = open_to(stat.S_IWOTH), open_to(stat.S_IROTH)
    is_shared = bool(open_to(stat.S_IRWXG))
    facts = {
        "others_may_write": bool(written),
        "others_may_read": bool(read),
        "group_may": is_shared,
    }
    remedy = f"chmod o-rw {path.name}*"
    if written:
        message = f"every user of this machine may write {written[0]}"
        return Finding("permissions", Status.FAIL, message, remedy, facts)
    if read:
        message = f"every user of this machine may read {read[0]}"
        return Finding("permissions", Status.WARN, message, remedy, facts)
    who = "its owner and its group" if is_shared else "its owner"
    message = f"only {who} may read the ledger"
    return Finding("permissions", Status.OK, message, facts=facts)


def _check_keys(folder: Path) -> Finding:
    keys = [one for one in sorted(folder.iterdir()) if _is_private_key(one)]
    loose = [one.name for one in keys if one.stat().st_mode & 0o077]
    facts = {"private_keys": len(keys), "readable_by_others": len(loose)}
    if loose:
        message = f"others may read the private key {loose[0]}"
        remedy = (
            f"chmod 600 {loose[0]}  , and create a new key: this one may be compromised"
        )
        return Finding("keys", Status.FAIL, message, remedy, facts)
    message = (
        f"{len(keys)} private keys next to the ledger, readable only by their owner"
    )
    return Finding("keys", Status.OK, message, facts=facts)


def _is_private_key(path: Path) -> bool:
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > _KEY_BYTES_MAX:
            return False
        first = path.read_bytes().split(b"\n", 1)[0]
    except OSError:  # Not ours to read, or gone.
        return False
    return first.startswith(b"-----BEGIN ") and b"PRIVATE KEY" in first
