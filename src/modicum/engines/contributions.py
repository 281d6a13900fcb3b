"""The folder of a query that is answered day by day: which rows of whom were kept.

    stream.json               the digest of the stream, once its loss is spent
    days/2026-11-03.json      empty while the day is read, then its answers
    used/2026-11-03/1.parquet the rows of each id that the second cap kept of the day

A day counts once it has answers: what caps kept is durable before these are, and these
before anybody is given them. So a run that ends in between neither counts a day twice
nor gives out answers of rows that are not counted. It holds ids: nobody else may read
it, and nothing of it is in a message.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from modicum.core.canonical import Plain, decode, encode
from modicum.core.errors import (
    Code,
    ConflictError,
    Problem,
    UnavailableError,
    UsageError,
)

if TYPE_CHECKING:
    from types import TracebackType

    import pyarrow as pa

_STREAM: Final = "stream.json"
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Contributions:
    """The folder of a stream, locked until it is closed.

    Args:
        folder: The folder.
        new: Whether it begins: the folder is made, and must not belong to a stream. It
            is removed if nothing is spent.

    Raises:
        UsageError: If the folder cannot be used, or others can read it.
        ConflictError: If it is not there, or belongs to a stream already.
        UnavailableError: If another run uses it.
    """

    def __init__(self, folder: str | Path, *, new: bool) -> None:
        self._path, self._new = Path(folder), new
        self._days, self._used = self._path / "days", self._path / "used"
        if not new and not self._path.is_dir():
            raise self._lost("there is no such folder")
        with self._writing():
            if new:
                self._path.mkdir(mode=0o700, exist_ok=True)
            self._at = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._mine = False
        try:
            self._take()
            self._mine = True
            if new:
                self._begin_empty()
        except BaseException:
            self.close()
            raise

    def start(self, digest: str) -> None:
        """Note that the loss of a stream is spent, and that this is its folder."""
        with self._writing():
            _write(self._path / _STREAM, encode({"stream": digest}))
            _sync(self._path)
            _sync(self._path.absolute().parent)

    def must_be(self, digest: str) -> None:
        """Refuse the folder of another stream, or of a query that was changed."""
        if self._read(self._path / _STREAM) != {"stream": digest}:
            raise ConflictError(
                Problem(
                    Code.RELEASE_STATE,
                    f"{self._path} is the folder of another release, or the query, its"
                    " tables or the policy's units have changed since",
                    help="give the folder of this release, and the files as they were"
                    " on the first day",
                )
            )

    def answers(self, day: date) -> Plain:
        """Return the answers of a day; None if it can be begun.

        Raises:
            ConflictError: If it was begun and has none, or a later day was begun; or if
                another day's file is lost.
        """
        days = self._begun()
        self._must_have_all(days)
        if day in days:
            found = self._finished(day)
            if found is not None:
                return found["answers"]
            raise self._passed(f"{day} was begun, and its run did not end", day)
        if days and days[-1] > day:
            raise self._passed(f"{days[-1]} was begun before {day}", day)
        return None

    def used(self, number: int, since: date) -> pa.Table | None:
        """Return what a cap kept on the days that have answers; None if there are none.

        Args:
            number: The number of the cap.
            since: The first day that counts.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        tables = []
        for day in self._begun():
            finished = None if day < since else self._finished(day)
            if finished is None:
                continue
            file = self._used / day.isoformat() / f"{number}.parquet"
            data, digests = self._data(file), finished["used"]
            wanted = digests.get(str(number)) if isinstance(digests, dict) else None
            if hashlib.sha256(data).hexdigest() != wanted:
                raise self._damaged(file)
            tables.append(pq.read_table(io.BytesIO(data)))
        # Engines may differ from day to day, and with them the types of texts.
        return (
            pa.concat_tables(tables, promote_options="permissive") if tables else None
        )

    def begin(self, day: date) -> None:
        """Note, durably, that rows of a day are about to be read."""
        with self._writing():
            _write(self._days / f"{day}.json", b"")
            _sync(self._days)

    def finish(
        self, day: date, answers: Mapping[str, Any], counts: Mapping[int, pa.Table]
    ) -> None:
        """Keep the answers of a day, and what each cap kept.

        Args:
            day: The day.
            answers: The answers.
            counts: By the number of a cap, how many rows (`n`) of each `id`.
        """
        import pyarrow.parquet as pq

        digests: dict[str, Plain] = {}
        folder, beside = self._used / day.isoformat(), self._days / f".{day}.json"
        with self._writing():
            folder.mkdir(mode=0o700)
            for number, table in counts.items():
                sink = io.BytesIO()
                pq.write_table(table, sink)
                _write(folder / f"{number}.parquet", sink.getvalue())
                digests[str(number)] = hashlib.sha256(sink.getvalue()).hexdigest()
            _sync(folder)
            _sync(self._used)
            before: list[Plain] = [
                f"{one}" for one in self._begun() if one < day and self._finished(one)
            ]
            kept: Plain = {"answers": answers, "before": before, "used": digests}
            _write(beside, encode(kept))
            beside.replace(self._days / f"{day}.json")
            _sync(self._days)

    def close(self) -> None:
        """Unlock the folder; remove it if its stream has not begun."""
        if self._mine and self._new and not (self._path / _STREAM).exists():
            with suppress(OSError):  # It has something in it.
                for one in (self._days, self._used, self._path):
                    one.rmdir()
        os.close(self._at)

    def __enter__(self) -> Self:
        """Return the folder."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    # --- inside -----------------------------------------------------------------------

    def _take(self) -> None:
        """Take the lock of a folder that is for our eyes only."""
        found = os.fstat(self._at)
        if found.st_mode & 0o077 or found.st_uid != os.geteuid():
            raise UsageError(
                Problem(
                    Code.FILE_UNREADABLE,
                    f"{self._path} can be read by others, or belongs to another user",
                    notes=("it holds ids of the data",),
                    help=f"chmod 700 {self._path}",
                )
            )
        try:
            fcntl.flock(self._at, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UnavailableError(
                Problem(
                    Code.FILE_UNREADABLE,
                    f"{self._path} is in use by another run, or cannot be locked",
                    help="wait until it ends",
                )
            ) from None

    def _begin_empty(self) -> None:
        with self._writing():
            own = [one for one in (self._days, self._used) if one.is_dir()]
            there = [one for each in (self._path, *own) for one in each.iterdir()]
            if not set(there) - set(own):  # Nothing, or left over from a crash.
                for each in (self._days, self._used):
                    each.mkdir(mode=0o700, exist_ok=True)
                return
        raise ConflictError(
            Problem(
                Code.ALREADY_EXISTS,
                f"{self._path} is not empty, and the release has not begun",
                help="name a folder that is not there yet",
            )
        )

    def _begun(self) -> list[date]:
        """Return the days that were begun, in order."""
        with self._writing():
            files = [*self._days.glob("[!.]*.json")]
        try:
            return sorted(date.fromisoformat(one.stem) for one in files)
        except ValueError:
            raise self._damaged(self._days) from None

    def _must_have_all(self, days: Sequence[date]) -> None:
        """Refuse if a day that has answers is missing, or was emptied."""
        answered = [day for day in days if self._finished(day) is not None]
        known = {f"{day}" for day in answered}
        last = self._finished(answered[-1]) if answered else None
        before = [] if last is None else last["before"]
        assert isinstance(before, list)  # It was read as one.
        if not self._used.is_dir():
            raise self._damaged(self._used)
        with self._writing():
            kept = [one.name for one in self._used.iterdir()]
        begun = {f"{day}" for day in days}
        for day in (*before, *kept):
            if day not in (known if day in before else begun):
                raise self._damaged(self._days / f"{day}.json")

    def _finished(self, day: date) -> dict[str, Plain] | None:
        """Return the answers of a day and digests; None if its run did not end."""
        file = self._days / f"{day}.json"
        found = self._read(file)
        if found is not None and not (
            set(found) == {"answers", "before", "used"}
            and isinstance(found["before"], list)
        ):
            raise self._damaged(file)
        return found

    def _read(self, file: Path) -> dict[str, Plain] | None:
        """Return what a file holds; None if that is nothing."""
        data = self._data(file)
        if not data:
            return None
        try:
            found = decode(data)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise self._damaged(file)
        return found

    def _data(self, file: Path) -> bytes:
        try:
            return file.read_bytes()
        except FileNotFoundError:
            raise self._damaged(file) from None
        except OSError as error:
            raise self._unusable(error) from None

    def _damaged(self, file: Path) -> ConflictError:
        return self._lost(f"{file.relative_to(self._path)} is damaged or missing")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._unusable(error) from None

    def _unusable(self, error: OSError) -> UsageError:
        reason = (error.strerror or "it cannot be used").lower()
        message = f"cannot use {self._path}: {reason}"
        return UsageError(Problem(Code.FILE_UNREADABLE, message))

    def _lost(self, reason: str) -> ConflictError:
        return ConflictError(
            Problem(
                Code.RELEASE_STATE,
                f"what was kept of each id is lost: {reason} ({self._path})",
                notes=("without it, later days could keep too many rows",),
                help="restore it as it was after the last day; else the other days need"
                " a new release",
            )
        )

    def _passed(self, reason: str, day: date) -> ConflictError:
        return ConflictError(
            Problem(
                Code.RELEASE_STATE,
                f"{day} has no answer any more: {reason}",
                notes=("each day is read once, one after the other",),
                help="go on with a later day",
            )
        )


def _write(file: Path, data: bytes) -> None:
    """Write a new file for our eyes only, durably but for its name."""
    with os.fdopen(os.open(file, _NEW, 0o600), "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _sync(folder: Path) -> None:
    """Make the names in a folder durable."""
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(at)
    finally:
        os.close(at)
