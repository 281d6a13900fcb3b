"""Tables of Spark's catalogs: those that hold rows, in one version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from samples import watched
from samples.spark import spark_or_skip

from modicum.core.errors import Code, InputError
from modicum.engines.sources import CatalogTable
from modicum.engines.spark_catalog import frame_of
from modicum.engines.spark_engine import SparkEngine, SparkOptions
from modicum.query.statistics import Secrets

SECRETS = Secrets("ab" * 32, "cd" * 32)
COUNTED = {(watched.ROW,): watched.NUMBER}


@pytest.fixture(scope="module")
def options() -> Iterator[SparkOptions]:
    """Return options with a session that has a catalog with tables and views."""
    found = spark_or_skip()
    session = found.session
    assert session is not None
    for schema in ("sales", "`order`"):
        session.sql(f"CREATE SCHEMA {schema}")
    session.createDataFrame(watched.rows()).createOrReplaceTempView("given_rows")
    rows = session.table("given_rows")
    rows.write.mode("overwrite").saveAsTable("sales.views")
    rows.write.mode("overwrite").format("orc").saveAsTable("`order`.`select`")
    rows.write.mode("overwrite").format("csv").saveAsTable("sales.texts")
    rows.createOrReplaceGlobalTempView("of_all")
    session.sql("CREATE VIEW sales.drawn AS SELECT * FROM sales.views")
    yield found
    session.sql("DROP SCHEMA sales CASCADE")
    session.sql("DROP SCHEMA `order` CASCADE")
    session.catalog.dropGlobalTempView("of_all")
    session.catalog.dropTempView("given_rows")


@pytest.mark.parametrize(
    "name",
    [
        "sales.views",
        "spark_catalog.sales.views",
        'spark_catalog."sales"."views"',
        "order.select",
        'spark_catalog."order".`select`',
    ],
)
def test_a_table_of_a_catalog_is_read(options: SparkOptions, name: str) -> None:
    with SparkEngine({"views": f"table:{name}"}, options) as engine:
        assert engine.run(watched.plan(), SECRETS)["n"] == COUNTED


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("sales.drawn", "it is a view"),
        ("global_temp.of_all", "it is a view"),
        ("sales.texts", "it is not stored as Parquet, ORC, Delta or Iceberg"),
        ("sales.gone", "Spark knows no table `sales.gone`"),
        ("gone.views", "Spark knows no table `gone.views`"),
        ("gone.sales.views", "Spark knows no table `gone.sales.views`"),
    ],
)
def test_what_holds_no_rows_of_its_own_is_refused(
    options: SparkOptions, name: str, told: str
) -> None:
    with pytest.raises(InputError) as caught:
        SparkEngine({"views": f"table:{name}"}, options)
    (problem,) = caught.value.problems
    assert problem.code is Code.DATA_NOT_AS_DECLARED
    assert told in problem.message
    assert problem.help


def test_a_catalog_of_the_session_is_one_of_the_own_session(
    options: SparkOptions,
) -> None:
    session = options.session
    assert session is not None
    key = "spark.sql.catalog.elsewhere"
    session.conf.set(key, "no.such.Catalog")
    try:
        with SparkEngine({"views": "table:sales.views"}, options) as engine:
            assert engine._session.conf.get(key) == "no.such.Catalog"
            assert engine._session.conf.get("spark.sql.caseSensitive") == "true"
    finally:
        session.conf.unset(key)


# --- versions, as Delta and Iceberg tell them -----------------------------------------


class Told:
    """A session that answers statements about one table, and notes what is read."""

    def __init__(self, provider: str, **properties: str) -> None:
        self.provider = provider
        self.properties = properties
        self.read: list[str] = []
        self.catalog = self
        self.asked: list[str] = []

    def tableExists(self, name: str) -> bool:  # noqa: N802 - as Spark calls it
        self.asked.append(name)
        return name == "`ice`.`db`.`t`"

    def sql(self, statement: str) -> Any:
        if statement == "DESCRIBE TABLE EXTENDED `ice`.`db`.`t`":
            facts = {"Type": "MANAGED", "Provider": self.provider, "Name": "t"}
            columns = [("Provider", "string"), ("# Detailed Table Information", "int")]
            told = [*columns, ("", ""), ("# Detailed Table Information", "")]
            told += [*facts.items(), ("Provider", "other")]
            return Rows([{"col_name": a, "data_type": b} for a, b in told])
        if statement == "SHOW TBLPROPERTIES `ice`.`db`.`t`":
            return Rows([{"key": a, "value": b} for a, b in self.properties.items()])
        if statement == "DESCRIBE HISTORY `ice`.`db`.`t` LIMIT 1":
            return Rows([{"version": int(self.properties["version"])}])
        return self.table(statement)

    def table(self, name: str) -> Any:
        self.read.append(name)
        return self

    def limit(self, number: int) -> Any:
        self.read.append(f"limit {number}")
        return self


class Rows:
    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self.rows = rows

    def collect(self) -> Sequence[dict[str, Any]]:
        return self.rows


SNAPSHOT = {"format-version": "2", "current-snapshot-id": "8271"}
AT = "SELECT * FROM `ice`.`db`.`t` VERSION AS OF "


@pytest.mark.parametrize(
    ("told", "read"),
    [
        (Told("iceberg", **SNAPSHOT), [f"{AT}8271"]),
        (Told("Iceberg", **SNAPSHOT), [f"{AT}8271"]),
        (
            Told("iceberg", **{**SNAPSHOT, "current-snapshot-id": "none"}),
            ["`ice`.`db`.`t`", "limit 0"],
        ),
        (Told("delta", version="17"), [f"{AT}17"]),
        (Told("parquet"), ["`ice`.`db`.`t`"]),
    ],
)
def test_a_table_with_versions_is_read_in_one(told: Any, read: list[str]) -> None:
    assert frame_of(told, CatalogTable(("ice", "db", "t")), "orders") is told
    assert told.read == read


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (Told("iceberg", **{"current-snapshot-id": "8271"}), "metadata of another"),
        (Told("jdbc"), "is not stored as"),
        (Told(""), "is not stored as"),
    ],
)
def test_a_table_without_rows_of_its_own_is_refused(told: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        frame_of(told, CatalogTable(("ice", "db", "t")), "orders")
    assert told.read == []


def test_each_part_of_a_name_is_quoted() -> None:
    told: Any = Told("parquet")
    with pytest.raises(InputError, match="knows no table"):
        frame_of(told, CatalogTable(("a.b", "c`d", "SELECT 1")), "orders")
    assert told.asked == ["`a.b`.`c``d`.`SELECT 1`"]
