"""CSV files of a controller: no row decides how the others are taken apart."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from modicum.core.errors import InputError
from modicum.risk.measurement import ControllerData, choose_publicly, rdr

#: Rows that look as if the file had other delimiters, quotes, comments or headers.
ROWS = {
    "semicolons": "a;b,3\n" * 9,
    "bars": "a|b,3\n" * 9,
    "tabs": "a\tb,3\n" * 9,
    "single quotes": "'a,b'\n'c,d'\n" * 9,
    "comments": "#a,3\n#b,4\n" * 9,
    "escapes": '"a\\""",3\n' + "b,4\n" * 9,
    "quotes": '"a,b",3\n"c""d",4\n',
    "texts": "town,name\n" * 9,
    "numbers in the second line": "1,2\n3,4\n",
}


def written(folder: Path, rows: str, names: str = "user,cost") -> Path:
    place = folder / "t.csv"
    place.write_text(f"{names}\n{rows}")
    return place


@pytest.mark.spec("RSK-5")
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS.keys())
@pytest.mark.parametrize(
    "names", ["user,cost", '"u;s|er",cost', "1,2", "#a,b", " user,cost"]
)
def test_rows_are_taken_apart_at_commas(rows: str, names: str, tmp_path: Path) -> None:
    place = written(tmp_path, rows, names)
    with place.open(newline="") as file:
        first, *others = csv.reader(file)
    with ControllerData({"t": place}) as opened:
        assert opened.engine.columns() == {"t": tuple(first)}
        found = opened.engine.fetch(f"SELECT * FROM {opened.engine.relations()['t']}")
    assert found.num_rows == len(others)
    result = zip(*(column.to_pylist() for column in found.columns), strict=True)
    assert [[str(value) for value in row] for row in result] == others


@pytest.mark.spec("RSK-5")
@pytest.mark.parametrize(
    "rows", [*ROWS.values(), "", '"never closed', "1,2,3,4\n", "\xff\x00\n"]
)
def test_the_default_is_the_same_whatever_rows_a_file_holds(
    rows: str, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"bounds": {"cost": (0, 10)}}
    sql = "SELECT SUM(cost) FROM t WHERE user > 3"
    usual = choose_publicly(written(tmp_path, "1,2\n3,4\n"), sql, 0.5, **options)
    other = choose_publicly(written(tmp_path, rows), sql, 0.5, **options)
    assert other.to_dict() == usual.to_dict()


def test_a_file_without_commas_is_refused(tmp_path: Path) -> None:
    place = written(tmp_path, "1;2\n3;4\n", "user;cost")
    with pytest.raises(InputError, match="comma"):
        rdr(place, "SELECT COUNT(*) FROM t")


def test_types_are_still_found(tmp_path: Path) -> None:
    place = written(tmp_path, "a,2.5\nb,\n")
    risk = rdr(place, "SELECT SUM(cost) FROM t", bounds=(0, 3))
    assert risk.indicator.distances.greatest == 2.5
    assert risk.people == 2
