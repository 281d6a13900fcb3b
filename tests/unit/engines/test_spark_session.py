"""Sessions of Spark: of this process, and of a server of Spark Connect."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")
from pyspark.sql import SparkSession

from modicum.core.errors import Code, UsageError
from modicum.engines import spark_session
from modicum.engines.spark_engine import SparkEngine
from modicum.engines.spark_session import (
    SparkOptions,
    is_remote,
    own_session,
    release,
    running,
)


class Conf(dict[str, str]):
    """Settings of a session."""

    def set(self, key: str, value: str) -> None:
        self[key] = value

    @property
    def getAll(self) -> dict[str, str]:  # noqa: N802 - as Spark calls it
        return dict(self)


class Session:
    """A session with nothing but what one of Spark Connect has, before pyspark 4.3."""

    def __init__(self, conf: dict[str, str] | None = None) -> None:
        self.conf = Conf(conf or {})
        self.calls: list[str] = []
        self.client = SimpleNamespace(
            release_session=lambda: self.calls.append("released"),
            close=lambda: self.calls.append("closed"),
        )

    def cloneSession(self) -> Session:  # noqa: N802 - as Spark calls it
        return type(self)(self.conf)


class NewSession(Session):
    """One as since pyspark 4.3."""

    def newSession(self) -> Session:  # noqa: N802 - as Spark calls it
        return type(self)()


class Classic(NewSession):
    """One of this process."""

    def __init__(self, conf: dict[str, str] | None = None) -> None:
        super().__init__(conf)
        self.sparkContext = SimpleNamespace(setLogLevel=self.calls.append)


BASE = {"spark.sql.catalog.ice": "Cat", "spark.sql.ansi.enabled": "false", "x": "1"}


@pytest.mark.parametrize("kind", [Session, NewSession, Classic])
def test_a_query_has_a_session_of_its_own(kind: type[Session]) -> None:
    base: Any = kind(BASE)
    found: Any = own_session(base, SparkOptions(settings={"y": "2"}))
    assert found is not base
    assert base.conf == BASE
    assert found.conf["spark.sql.ansi.enabled"] == "true"
    assert found.conf["spark.sql.catalog.ice"] == "Cat"
    assert found.conf["y"] == "2"
    assert is_remote(base) is is_remote(found) is (kind is not Classic)
    assert base.calls == (["OFF"] if kind is Classic else [])


@pytest.mark.parametrize("kind", [Session, Classic])
def test_a_server_forgets_the_session_that_was_made(kind: type[Session]) -> None:
    made: Any = kind()
    release(made)
    assert made.calls == ([] if kind is Classic else ["released", "closed"])


def test_a_missing_attribute_is_what_spark_connect_raises() -> None:
    from pyspark.errors import PySparkAttributeError

    assert issubclass(PySparkAttributeError, AttributeError)


def test_spark_connect_needs_a_library_and_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spark_session, "find_spec", lambda name: None)
    with pytest.raises(UsageError) as caught:
        SparkEngine({}, SparkOptions("sc://host:15002/;token=canary"))
    (problem,) = caught.value.problems
    assert problem.code is Code.NOT_SUPPORTED
    assert "pyspark[connect]" in problem.help
    assert "canary" not in caught.value.render()


def test_a_session_of_another_thread_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    remote: Any = Session()
    module: Any = ModuleType("pyspark.sql.connect.session")
    module.SparkSession = SimpleNamespace(_get_default_session=lambda: remote)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    assert running() is SparkSession._instantiatedSession
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    assert running() is remote
