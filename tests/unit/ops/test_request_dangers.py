"""Requests that somebody else put there read no other file, and fill no memory."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from samples.small import compiled, counts

from modicum.core.errors import Code, InputError, Problem
from modicum.ops.files import request_tables
from modicum.ops.files.request_tables import pages
from modicum.ops.files.requests import load

COMPILED = compiled()
SECRET = "password: hunter2\nkey: AKIA123456\n"
NAMES = ("r.yaml", "r.yml", "r.json", "r.jsonl", "r.parquet")


def problems(path: Path) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        load(path, policy=COMPILED)
    return caught.value.problems


def request(folder: Path, name: str) -> Path:
    """Return the path of a file of one request."""
    path, text = folder / name, json.dumps(counts("a"))
    if path.suffix == ".parquet":
        parquet.write_table(pa.table({"release": [text]}), path)
    else:
        path.write_text(text)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "requests"
    found.mkdir()
    return found


# --- links ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_link_that_leads_out_of_a_folder_is_refused_unread(
    name: str, folder: Path
) -> None:
    outside = folder.parent / "secret"
    outside.write_text(SECRET)
    (folder / name).symlink_to(outside)
    (problem,) = problems(folder)
    assert problem.code is Code.FILE_UNREADABLE
    assert str(folder / name) in problem.message
    assert "outside the folder" in problem.message
    said = repr(problem)
    assert "hunter2" not in said
    assert "AKIA" not in said
    assert str(outside) not in said


@pytest.mark.parametrize("name", NAMES)
def test_a_link_through_a_folder_is_refused_too(name: str, folder: Path) -> None:
    outside = folder.parent / "outside"
    outside.mkdir()
    request(outside, name)
    (folder / "inner").symlink_to(outside)
    (folder / name).symlink_to(Path("inner") / name)
    assert ["outside the folder" in one.message for one in problems(folder)] == [True]


def test_a_folder_whose_name_another_begins_with_is_outside(folder: Path) -> None:
    beside = folder.parent / "requests-of-others"
    beside.mkdir()
    (folder / "r.yaml").symlink_to(request(beside, "r.yaml"))
    assert ["outside the folder" in one.message for one in problems(folder)] == [True]


@pytest.mark.parametrize("name", NAMES)
def test_a_link_within_a_folder_is_followed(name: str, folder: Path) -> None:
    inner = folder / "kept" / "here"
    inner.mkdir(parents=True)
    request(inner, name)
    (folder / name).symlink_to(inner / name)
    (folder.parent / "also").symlink_to(folder)  # The folder itself may be a link.
    for path in (folder, folder.parent / "also"):
        assert [one.release.id for one in load(path, policy=COMPILED)] == ["a"]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_named_may_be_a_link(name: str, folder: Path) -> None:
    link = folder.parent / name
    link.symlink_to(request(folder, name))
    assert [one.release.id for one in load(link, policy=COMPILED)] == ["a"]


def test_links_in_a_circle_and_to_nothing_are_told(folder: Path) -> None:
    (folder / "a.yaml").symlink_to(folder / "b.yaml")
    (folder / "b.yaml").symlink_to(folder / "a.yaml")
    (folder / "c.yaml").symlink_to(folder / "nothing")
    assert [one.code for one in problems(folder)] == [Code.FILE_UNREADABLE] * 3


@pytest.mark.parametrize("name", NAMES)
def test_a_second_name_of_a_file_is_refused_unread(name: str, folder: Path) -> None:
    outside = folder.parent / "secret"
    outside.write_text(SECRET)
    (folder / name).hardlink_to(outside)
    (problem,) = problems(folder)
    assert problem.code is Code.FILE_UNREADABLE
    assert str(folder / name) in problem.message
    assert "it has several names" in problem.message
    assert "hunter2" not in repr(problem)


def test_a_second_name_behind_a_link_is_refused_too(folder: Path) -> None:
    outside = folder.parent / "secret"
    outside.write_text(SECRET)
    (folder / "kept").mkdir()
    (folder / "kept" / "r").hardlink_to(outside)
    (folder / "r.yaml").symlink_to(folder / "kept" / "r")
    assert ["several names" in one.message for one in problems(folder)] == [True]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_named_may_have_other_names(name: str, folder: Path) -> None:
    other = folder.parent / name
    other.hardlink_to(request(folder, name))
    assert [one.release.id for one in load(other, policy=COMPILED)] == ["a"]


# --- what is no file ------------------------------------------------------------------


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("make", [pipe, device, listening])
@pytest.mark.parametrize("named", [False, True])
def test_what_is_no_file_is_refused_without_waiting(
    named: bool, make: Callable[[Path], None], name: str, folder: Path
) -> None:
    make(folder / name)
    found: list[tuple[Problem, ...]] = []
    path = folder / name if named else folder
    thread = threading.Thread(target=lambda: found.append(problems(path)), daemon=True)
    thread.start()
    thread.join(timeout=60)  # One that waits for a writer would never end.
    assert [one.code for one in found[0]] == [Code.FILE_UNREADABLE]


# --- tables that become large ---------------------------------------------------------


def wide(path: Path, size: int, **how: Any) -> Path:
    """Return a table of one request of so many bytes."""
    text = json.dumps(counts("a")).ljust(size)
    parquet.write_table(pa.table({"release": [text]}), path, **how)
    return path


HOWS: list[dict[str, Any]] = [
    {"compression": "zstd"},
    {"compression": "gzip", "use_dictionary": False},
    {"compression": "snappy", "data_page_version": "2.0"},
    {
        "compression": "zstd",
        "use_dictionary": False,
        "column_encoding": "DELTA_BYTE_ARRAY",
    },
]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize(
    ("limit", "said"), [("PAGE_BYTES_MAX", "a page of"), ("BYTES_MAX", "a.parquet")]
)
def test_a_table_that_becomes_large_is_refused_before_it_is_unpacked(
    limit: str,
    said: str,
    how: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = wide(tmp_path / "a.parquet", 400_000, **how)
    assert path.stat().st_size < 60_000
    assert len(load(path, policy=COMPILED)) == 1
    monkeypatch.setattr(request_tables, limit, 300_000)
    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", None)  # Not even begun.
    (problem,) = problems(path)
    assert problem.code is Code.TOO_LARGE
    assert said in problem.message
    assert "when it is unpacked" in problem.message


def natural(value: int) -> bytes:
    """Return a number as Thrift writes it."""
    *rest, last = [value >> place & 127 for place in range(0, value.bit_length(), 7)]
    return bytes([*(each | 128 for each in rest), last])


def test_a_footer_that_lies_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = wide(tmp_path / "a.parquet", 400_000, compression="zstd")
    stated = parquet.read_metadata(path).row_group(0).column(0).total_uncompressed_size
    true = natural(2 * stated)
    false = bytes([*[128] * (len(true) - 1), 0])  # Zero, of as many bytes.
    assert path.read_bytes().count(true) >= 1
    path.write_bytes(path.read_bytes().replace(true, false))
    result = parquet.read_metadata(path).row_group(0).column(0)
    assert result.total_uncompressed_size == 0
    assert len(load(path, policy=COMPILED)) == 1
    monkeypatch.setattr(request_tables, "PAGE_BYTES_MAX", 300_000)
    assert [one.code for one in problems(path)] == [Code.TOO_LARGE]


def test_no_more_rows_are_in_memory_than_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = pa.array([json.dumps(counts("a")).ljust(100_000)])
    shared = pa.DictionaryArray.from_arrays(pa.array([0] * 40, pa.int32()), texts)
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"release": shared}), path, store_schema=False)
    monkeypatch.setattr(request_tables, "PAGE_BYTES_MAX", 500_000)
    sizes: list[int] = []
    iterate = parquet.ParquetFile.iter_batches

    def noted(table: Any, batch_size: int) -> Any:
        sizes.append(batch_size)
        return iterate(table, batch_size=batch_size)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", noted)
    assert [one.code for one in problems(path)] == [Code.DUPLICATE_NAME] * 39
    assert sizes == [4]


@pytest.mark.parametrize("column", ["release", "utility"])
def test_a_long_cell_is_refused_before_it_is_copied(
    column: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = {"release": [json.dumps(counts("a"))], "utility": ["1"]}
    cells |= {column: ["1" * 600_000]}
    parquet.write_table(pa.table(cells), tmp_path / "a.parquet")
    (problem,) = problems(tmp_path / "a.parquet")
    assert problem.code is Code.TOO_LARGE
    assert f"`{column}` has more than" in problem.message


@pytest.mark.parametrize("cell", [[1], {"a": 1}, [[None] * 9]])
def test_a_column_of_lists_is_refused(cell: Any, tmp_path: Path) -> None:
    table = pa.table({"release": [json.dumps(counts("a"))], "utility": [cell]})
    parquet.write_table(table, tmp_path / "a.parquet")
    assert [one.code for one in problems(tmp_path / "a.parquet")] == [Code.WRONG_TYPE]


@pytest.mark.parametrize("how", HOWS)
def test_pages_are_as_large_as_the_library_says(
    how: dict[str, Any], tmp_path: Path
) -> None:
    texts = ["x" * (each % 700) for each in range(5000)]
    parquet.write_table(
        pa.table({"release": texts}), tmp_path / "a.parquet", row_group_size=900, **how
    )
    metadata = parquet.read_metadata(tmp_path / "a.parquet")
    with (tmp_path / "a.parquet").open("rb") as file:
        found = list(pages(file, metadata))
    groups = range(metadata.num_row_groups)
    stated = sum(
        metadata.row_group(each).column(0).total_uncompressed_size for each in groups
    )  # With the headers, which have some 20 to 100 bytes each.
    assert 0 < stated - sum(one.unpacked for one in found) < 4500 * len(found)
    assert 5000 <= sum(one.values for one in found) <= 10_000


def codes(path: Path) -> set[Code]:
    try:
        load(path, policy=COMPILED)
    except InputError as error:
        return {one.code for one in error.problems}
    return set()


@pytest.mark.parametrize("place", [4, 5, 6, 7, 8])
def test_a_header_of_any_bytes_is_read_or_refused(place: int, tmp_path: Path) -> None:
    path = wide(tmp_path / "a.parquet", 1000)
    data = bytearray(path.read_bytes())
    found = set()
    for value in range(256):
        data[place] = value
        path.write_bytes(data)
        found |= codes(path)
    assert Code.FILE_UNREADABLE in found
