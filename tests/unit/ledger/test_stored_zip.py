"""The zip files of bundles: one form, and any program opens them."""

from __future__ import annotations

import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.ledger.proof.zip_format import (
    MEMBER_BYTES_MAX,
    Directory,
    Member,
    begins_like,
    packed,
    unpacked,
)

NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789/.-", min_size=1, max_size=60)
MEMBERS = st.dictionaries(NAMES, st.binary(max_size=300), max_size=6).map(
    lambda found: list(found.items())
)


def zipped(members: list[Member]) -> bytes:
    return b"".join(packed(members))


def read(data: bytes) -> list[Member]:
    return list(unpacked(BytesIO(data).read))


@pytest.mark.spec("AUD-1")
@settings(max_examples=examples(100), deadline=None)
@given(members=MEMBERS)
def test_what_is_packed_is_what_any_program_unpacks(members: list[Member]) -> None:
    data = zipped(members)
    assert read(data) == members
    with zipfile.ZipFile(BytesIO(data)) as archive:
        assert archive.testzip() is None
        assert [(one, archive.read(one)) for one in archive.namelist()] == members
    assert zipped(members) == data


@settings(max_examples=examples(200), deadline=None)
@given(members=MEMBERS.filter(bool), data=st.data())
def test_no_other_bytes_are_read(members: list[Member], data: st.DataObject) -> None:
    whole = bytearray(zipped(members))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(ValueError, match=r"."):
        read(bytes(whole))


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_zips_of_other_programs_are_refused(method: int) -> None:
    """A bomb of a kilobyte that swells to a gigabyte among them: nothing swells."""
    made = BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        archive.writestr("manifest.json", b"0" * 100_000)
    with pytest.raises(ValueError, match=r"header|truncated"):
        read(made.getvalue())


def test_names_that_stand_twice_are_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        zipped([("a", b"1"), ("a", b"2")])
    double = Directory()
    twice = double.add("a", b"1") + b"1"
    with pytest.raises(ValueError, match="twice"):
        read(twice + twice + double.ending())


@pytest.mark.spec("AUD-5")
def test_a_claimed_size_is_bounded_before_it_is_read() -> None:
    header = bytearray(Directory().add("a", b""))
    header[18:26] = (MEMBER_BYTES_MAX + 1).to_bytes(4, "little") * 2
    counts = []

    def reading(count: int) -> bytes:
        counts.append(count)
        return stream.read(count)

    stream = BytesIO(bytes(header))
    with pytest.raises(ValueError, match="larger"):
        list(unpacked(reading))
    assert max(counts) < 1000


def test_what_would_not_be_read_is_not_written() -> None:
    for member in (("a" * 201, b""), ("a", bytes(MEMBER_BYTES_MAX + 1))):
        with pytest.raises(ValueError, match="too large"):
            zipped([member])


def test_files_beyond_four_gigabytes_are_read_by_others(tmp_path: Path) -> None:
    """The second member stands behind a hole of five gigabytes."""
    path, offset = tmp_path / "far.zip", 5 << 30
    directory = Directory(offset)
    header = directory.add("far", b"away")
    with path.open("wb") as file:
        file.seek(offset)
        file.write(header + b"away" + directory.ending())
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["far"]
        assert archive.read("far") == b"away"


def test_many_members_are_counted() -> None:
    members = [(f"{number}", b"") for number in range(70_000)]
    data = zipped(members)
    assert read(data) == members
    with zipfile.ZipFile(BytesIO(data)) as archive:
        assert len(archive.namelist()) == 70_000


def test_a_file_is_told_by_its_beginning() -> None:
    start = zipped([("manifest.json", b"{}")])[:64]
    assert begins_like(start, "manifest.json")
    for bit in range(len(start) * 8):
        flipped = bytearray(start)
        flipped[bit // 8] ^= 1 << (bit % 8)
        assert begins_like(bytes(flipped), "manifest.json")
    other = BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("manifest.json", b"{}")
        archive.writestr("b", b"")
    for data in (b"", b"PK", b"%PDF-1.7 and so on", zipped([("other", b"")])[:64]):
        assert not begins_like(data, "manifest.json")
