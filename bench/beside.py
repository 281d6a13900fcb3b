"""The query of `query.py` in another library, with the Python that has it.

`query.py` starts it: `--side opendp private`, or `tumult`, or with `plain`. It needs
neither modicum nor its libraries.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

ROWS_OF_A_USER = 70
DAYS = [date(2026, 10, 1) + timedelta(number) for number in range(31)]
PAGES = 100


def opendp(path: str, memory: str) -> dict[str, Callable[[], Any]]:
    """Return the queries in Polars, and in OpenDP on Polars."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    views = pl.scan_parquet(path).select(
        "user_id", pl.col("event_time").dt.date().alias("day"), "page"
    )
    days = pl.DataFrame({"day": DAYS}, schema={"day": pl.Date})
    keys = days.join(pl.DataFrame({"page": range(PAGES)}), how="cross").lazy()

    def private() -> Any:
        context = dp.Context.compositor(
            data=views,
            privacy_unit=dp.unit_of(contributions=1, identifier="user_id"),
            privacy_loss=dp.loss_of(rho=0.105),
            split_evenly_over=1,
            margins=[dp.polars.Margin(by=[], max_length=10**9)],
        )
        query = context.query().truncate_per_group(ROWS_OF_A_USER)
        counts = query.group_by("day", "page").agg(dp.len())
        return counts.with_keys(keys).release().collect()

    return {
        "plain": lambda: views.group_by("day", "page").agg(pl.len()).collect(),
        "private": private,
    }


def tumult(path: str, memory: str) -> dict[str, Callable[[], Any]]:
    """Return the queries in Spark, and in Tumult Analytics on Spark."""
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import col, to_date
    from tmlt.analytics import (
        AddRowsWithID,
        KeySet,
        MaxRowsPerID,
        QueryBuilder,
        RhoZCDPBudget,
        Session,
    )

    spark = (
        SparkSession.builder.config("spark.driver.memory", memory.lower())
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    views = spark.read.parquet(path).select(
        "user_id", to_date("event_time").alias("day"), col("page")
    )
    keys = KeySet.from_dict({"day": DAYS, "page": list(range(PAGES))})

    def private() -> Any:
        budget = RhoZCDPBudget(0.105)
        session = Session.from_dataframe(
            budget, "views", views, protected_change=AddRowsWithID("user_id")
        )
        capped = QueryBuilder("views").enforce(MaxRowsPerID(ROWS_OF_A_USER))
        return session.evaluate(capped.groupby(keys).count(), budget).collect()

    return {
        "plain": lambda: views.groupBy("day", "page").count().collect(),
        "private": private,
    }


def serve(library: str, kind: str, memory: str) -> None:
    """Run the query over each file that a line names; print what it took as JSON."""
    sys.path.append(str(Path(__file__).parent))
    from query import cpu_seconds, peak_mb

    runs: dict[str, Callable[[], Any]] = {}
    for line in sys.stdin:
        path = line.strip()
        if path not in runs:
            runs[path] = {"opendp": opendp, "tumult": tumult}[library](path, memory)[
                kind
            ]
        wall, cpu = time.perf_counter(), cpu_seconds()
        groups = len(runs[path]())
        wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
        found = {"wall": wall, "cpu": cpu, "peak_mb": peak_mb(), "groups": groups}
        print(json.dumps(found), flush=True)


def main() -> None:
    """Serve one side."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--side", nargs=2, required=True)
    parser.add_argument("--folder")
    parser.add_argument("--memory", default="4G")
    given = parser.parse_args()
    serve(*given.side, given.memory)


if __name__ == "__main__":
    main()
