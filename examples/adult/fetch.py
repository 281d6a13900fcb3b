"""Write adult.csv: the UCI Adult table, of which the queries of the RDR paper are.

    python examples/adult/fetch.py [FROM] [--to adult.csv]

FROM is an address that begins with https, or a file that you have: the archive, or
`adult.data` out of it. Without it, the archive is downloaded from its publisher. What
comes must be the known table, byte for byte; else nothing is written.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import sys
import urllib.request
import zipfile
from pathlib import Path

from modicum.workloads.adult.queries import COLUMNS, ROWS

PUBLISHER = "https://archive.ics.uci.edu/static/public/2/adult.zip"
MEMBER = "adult.data"
#: The SHA-256 of `adult.data` as it is published: 3,974,305 bytes.
DATA_SHA256 = "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"
#: The SHA-256 of the lines of adult.csv without its header, sorted, each with its end.
#: Copies of the table differ in the order of their rows, which no query sees.
ROWS_SHA256 = "4693e5bcb2f66eefa4e00f6561b917d909b6d42f867cfbf947ef3328f01bc4b9"
#: More than this is no copy of it.
BYTES_MAX = 1 << 24
SECONDS_MAX = 60


class NotTheTable(Exception):  # noqa: N818 - it is read as a sentence
    """What was fetched is not the table."""


def fetched(source: str) -> bytes:
    """Return what stands at an address or in a file."""
    if source.startswith("https://"):
        with urllib.request.urlopen(source, timeout=SECONDS_MAX) as answer:  # noqa: S310
            found: bytes = answer.read(BYTES_MAX + 1)
    else:
        with Path(source).open("rb") as file:
            found = file.read(BYTES_MAX + 1)
    if len(found) > BYTES_MAX:
        raise NotTheTable(f"`{source}` has more than {BYTES_MAX:,} bytes")
    return found


def unpacked(found: bytes) -> bytes:
    """Return `adult.data`, which may be within an archive."""
    if not found.startswith(b"PK"):
        return found
    try:
        with (
            zipfile.ZipFile(io.BytesIO(found)) as archive,
            archive.open(MEMBER) as file,
        ):
            return file.read(BYTES_MAX)
    except (KeyError, zipfile.BadZipFile) as error:
        raise NotTheTable(f"it is no archive with `{MEMBER}` in it") from error


def checked(data: bytes) -> bytes:
    """Return the same bytes, if they are those that are known."""
    found = hashlib.sha256(data).hexdigest()
    if found != DATA_SHA256:
        raise NotTheTable(
            f"`{MEMBER}` has SHA-256 {found}, but should have {DATA_SHA256}"
        )
    return data


def converted(data: bytes) -> str:
    """Return the text of adult.csv, rows in the order of `adult.data`."""
    lines = [line for line in data.decode("ascii").splitlines() if line.strip()]
    rows = [[field.strip() for field in line.split(",")] for line in lines]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    return text.getvalue()


def digest_of_rows(text: str) -> str:
    """Return the SHA-256 of a table's rows, whatever their order."""
    rows = sorted(text.splitlines(keepends=True)[1:])
    return hashlib.sha256("".join(rows).encode("ascii")).hexdigest()


def write(text: str, path: Path) -> None:
    """Write a whole file, or none."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="ascii", newline="\n")
    part.replace(path)


def main(arguments: list[str] | None = None) -> int:
    """Fetch, check, convert, and check again."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", nargs="?", default=PUBLISHER, metavar="FROM")
    parser.add_argument("--to", type=Path, default=Path("adult.csv"))
    given = parser.parse_args(arguments)
    try:
        text = converted(checked(unpacked(fetched(given.source))))
        if digest_of_rows(text) != ROWS_SHA256:
            raise NotTheTable("its rows are not those that are known")
        write(text, given.to)
    except (NotTheTable, OSError) as error:
        sys.stderr.write(f"error: {error}\nNothing was written.\n")
        return 1
    sys.stdout.write(f"{given.to}: {ROWS:,} people, SHA-256 as expected\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
