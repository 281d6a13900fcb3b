"""Files that people give an escrow, and beginning a vault."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import modicum as mo
from modicum.core.errors import InputError
from modicum.escrow.programs import CODE_BYTES_MAX, Range
from modicum.ops.escrow.factory import create_vault
from modicum.ops.escrow.inputs import read_program, read_rows, read_task, read_text
from modicum.vault.key_files import file_keys
from modicum.vault.vault import open_vault

UNIT = Range(Fraction(0), Fraction(1))
OWN = b"def score(tables, arguments, reference):\n    return 1\n"


def test_rows_are_told_by_the_end_of_the_name(tmp_path: Path) -> None:
    for name, media in (("a.csv", "csv"), ("b.CSV", "csv"), ("c.parquet", "parquet")):
        (tmp_path / name).write_bytes(b"\xff\x00rows")
        assert read_rows(tmp_path / name) == (b"\xff\x00rows", media)
    for name in ("a.txt", "csv", "a.csv.gz"):
        with pytest.raises(
            InputError, match="does not have the name of a CSV or Parquet file"
        ):
            read_rows(tmp_path / name)
    with pytest.raises(InputError, match=r"cannot read .*gone\.csv: no such file"):
        read_rows(tmp_path / "gone.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="is a directory"):
        read_rows(tmp_path / "folder.csv")


def test_a_program_is_told_by_the_end_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_bytes(OWN)
    found = read_program(tmp_path / "own.py", UNIT, compares=True)
    assert (found.language, found.code, found.compares) == ("python", OWN, True)
    (tmp_path / "own.wasm").write_bytes(b"\x00asm")
    wide = Range(Fraction(-1), Fraction(2))
    found = read_program(tmp_path / "own.wasm", wide, compares=False)
    assert (found.language, found.range, found.compares) == ("wasm", wide, False)
    (tmp_path / "long.wasm").write_bytes(b"0" * (CODE_BYTES_MAX["wasm"] + 10))
    with pytest.raises(InputError):
        read_program(tmp_path / "long.wasm", UNIT, compares=False)
    (tmp_path / "none.py").write_text("x = 1")
    with pytest.raises(InputError, match="no `score`"):
        read_program(tmp_path / "none.py", UNIT, compares=False)


def test_texts_and_tasks_say_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xff")
    with pytest.raises(InputError):
        read_text(tmp_path / "a.yaml")
    with pytest.raises(InputError):
        read_task(tmp_path / "a.yaml")
    (tmp_path / "b.yaml").write_text("task: answers\nevaluate: what\n")
    with pytest.raises(InputError) as caught:
        read_task(tmp_path / "b.yaml")
    assert f"{tmp_path / 'b.yaml'}:2:11" in caught.value.render()


def test_a_vault_begins_with_its_key(tmp_path: Path) -> None:
    vault, keys = tmp_path / "vault", tmp_path / "keys.json"
    assert create_vault(vault, keys) in keys.read_text()
    sealed = open_vault(vault, file_keys(keys)).seal("thing", b"secret")
    assert open_vault(vault, file_keys(keys)).open(sealed) == b"secret"
    before = keys.read_bytes()
    for place, key in (
        (vault, tmp_path / "new.json"),
        (tmp_path / "new", keys),
        (tmp_path / "new", tmp_path / "new" / "keys.json"),
        (tmp_path / "new", tmp_path / "no" / ".." / "new" / "keys.json"),
    ):
        with pytest.raises(mo.ModicumError):
            create_vault(place, key)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(mo.UsageError, match="exists"):
        create_vault(tmp_path / "link", tmp_path / "new.json")
    assert keys.read_bytes() == before
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        "keys.json",
        "link",
        "vault",
    ]


def test_keys_that_no_vault_uses_do_not_stay(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(mo.UnavailableError):
        create_vault(tmp_path / "file" / "vault", tmp_path / "keys.json")
    assert not (tmp_path / "keys.json").exists()
