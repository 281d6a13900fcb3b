"""The Adult table for tests: the real one where it is at hand, else made-up people."""

from __future__ import annotations

import os
from functools import cache

import pyarrow as pa
import pyarrow.csv

from modicum.workloads.adult.people import adult_people


@cache
def adult() -> pa.Table:
    """Return the table that `MODICUM_ADULT` names; made-up people without it."""
    path = os.environ.get("MODICUM_ADULT")
    return made_up() if path is None else pyarrow.csv.read_csv(path)


@cache
def made_up() -> pa.Table:
    """Return as many made-up people as the real table has."""
    return pa.table(adult_people())
