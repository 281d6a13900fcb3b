"""Where no row counts, nobody moves the answer."""

from __future__ import annotations

import pyarrow as pa
import pytest

from modicum.risk.measurement import rdr


@pytest.mark.spec("RSK-13")
@pytest.mark.parametrize("aggregate", ["COUNT(*)", "COUNT(x)", "SUM(x)"])
def test_a_kind_of_row_that_is_not_there_is_nobody(aggregate: str) -> None:
    rows = pa.table({"x": [1.0, 2.0, 3.0]})
    query = f"SELECT {aggregate} FROM t WHERE x > 100"
    influence = rdr(rows, query, sensitivity=1).influence
    assert influence.people.tolist() == [3]
    moved = influence.profile("l1")
    assert moved.greatest == 0
    assert moved.values.tolist() == [0]
