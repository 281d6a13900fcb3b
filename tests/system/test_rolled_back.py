"""A ledger that was rolled back to an older copy: nothing is decided on it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from samples.postgres import Cluster
from samples.served import HEADER, Served, served
from samples.small import POLICY, counts


@dataclass
class Copied:
    """A ledger, and how an older copy of it is made and put back.

    Attributes:
        ledger: Its path or URL.
        copy: Makes the copy.
        put_back: Puts it back.
    """

    ledger: str
    copy: Callable[[], None]
    put_back: Callable[[], None]


def dumped(cluster: Cluster) -> Copied:
    """Return a ledger in PostgreSQL that is dumped and restored."""
    url = cluster.new_ledger()
    schema, dump = f"modicum_{url.rpartition('=')[2]}", cluster.folder / "dump"
    restore = ("pg_restore", "-d", cluster.url, "--clean", "--if-exists", dump)
    return Copied(
        url,
        lambda: cluster.run(
            "pg_dump", "-Fc", "-n", schema, "-f", dump, "-d", cluster.url
        ),
        lambda: cluster.run(*restore),
    )


def copied(folder: Path, *, in_place: bool) -> Copied:
    """Return a ledger in a file: its contents are exchanged, or the file."""
    path, older = folder / "ledger.db", folder / "older.db"

    def pages(source: Path, target: Path) -> None:
        with closing(sqlite3.connect(source)) as one, closing(
            sqlite3.connect(target)
        ) as other:
            one.backup(other)

    def moved() -> None:
        shutil.copy(older, folder / "moved.db")
        os.replace(folder / "moved.db", path)

    return Copied(
        str(path),
        lambda: pages(path, older),
        (lambda: pages(older, path)) if in_place else moved,
    )


@pytest.fixture(params=["postgresql", "pages of a file", "another file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Copied:
    (tmp_path / "policy.yaml").write_text(POLICY)
    if request.param == "postgresql":
        return dumped(request.getfixturevalue("postgres"))
    return copied(tmp_path, in_place=request.param.startswith("pages"))


def gauge(server: Served, name: str) -> float:
    """Return a metric of the ledger."""
    text = server.client.get("/metrics", headers={HEADER: "petra"}).text
    return next(
        one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
        if one.name == name
    )


def ready(server: Served) -> int:
    return server.client.get("/readyz").status_code


@pytest.mark.spec("LED-18")
def test_a_running_server_notices_by_itself(place: Copied, tmp_path: Path) -> None:
    with served(place.ledger, policy=tmp_path / "policy.yaml") as server:
        server.post("amir", "/releases", counts("one", rho="0.01"))
        place.copy()
        assert server.post("amir", "/releases", counts("two")).json()["decision"]
        assert ready(server) == 200
        assert gauge(server, "modicum_ledger_verify_ok") == 1
        place.put_back()
        server.parts.decider._checker._store.look_afresh()  # Half a second later.
        assert ready(server) == 503
        assert gauge(server, "modicum_ledger_verify_ok") == 0
        checked = server.post("amir", "/releases:check", counts("three"))
        assert (checked.status_code, checked.json()["code"]) == (503, "MOD702")
        submitted = server.post("amir", "/releases", counts("three"))
        assert (submitted.status_code, submitted.json()["code"]) == (503, "MOD702")
        assert ready(server) == 503
        assert gauge(server, "modicum_ledger_verify_ok") == 0


@pytest.mark.spec("LED-18")
def test_what_the_writer_sees_everybody_knows_at_once(
    place: Copied, tmp_path: Path
) -> None:
    with served(place.ledger, policy=tmp_path / "policy.yaml") as server:
        server.post("amir", "/releases", counts("one", rho="0.01"))
        place.copy()
        server.post("amir", "/releases", counts("two"))
        assert ready(server) == 200
        place.put_back()
        assert server.post("amir", "/releases", counts("three")).status_code == 503
        assert gauge(server, "modicum_ledger_verify_ok") == 0
        assert server.post("amir", "/releases:check", counts("3")).status_code == 503
        assert ready(server) == 503
