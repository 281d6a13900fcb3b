"""What a file says of its blocks does not decide which rows count."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from modicum.risk.measurement import rdr


@pytest.mark.spec("RSK-13")
@pytest.mark.parametrize("unit", [None, "who"])
@pytest.mark.parametrize("greatest", [1.0, 9.0])
def test_nan_counts_whatever_its_block_holds(
    tmp_path: Path, unit: str | None, greatest: float
) -> None:
    """NaN is above 5 in DuckDB; what a file says of its blocks leaves it out."""
    values = [0.5, math.nan, greatest, math.nan]
    rows = pa.table({"who": [1, 2, 3, 4], "x": values})
    pq.write_table(rows, tmp_path / "t.parquet")
    query = "SELECT COUNT(*) FROM t WHERE x > 5"
    for data in (tmp_path / "t.parquet", rows):
        influence = rdr(data, query, unit=unit, rows_max=1).influence
        moved = influence.profile("l1")
        counted = int(moved.people[moved.values == 1].sum())
        assert counted == 2 + (greatest > 5)
        assert int(moved.people.sum()) == 4
