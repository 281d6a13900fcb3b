"""A ledger that was rolled back to an older copy: nothing is decided on it."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from samples.postgres import Cluster
from samples.raw_http import eventually
from samples.served import HEADER, Served, served
from samples.small import POLICY, counts
from typer.testing import CliRunner, Result

import modicum as mo
from modicum.cli.exit_codes import Exit
from modicum.cli.main import app
from modicum.core.errors import VerificationError
from modicum.server import factory
from modicum.server.components import Parts


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


def dumped(cluster: Cluster, url: str | None = None) -> Copied:
    """Return a ledger in PostgreSQL that is dumped and restored."""
    dump = cluster.folder / ("dump" if url is None else "newer")
    url = url or cluster.new_ledger()
    schema = f"modicum_{url.rpartition('=')[2]}"
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
        with (
            closing(sqlite3.connect(source)) as one,
            closing(sqlite3.connect(target)) as other,
        ):
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


def becomes(server: Served, status: int) -> None:
    """Wait until a server is ready, or is not any more."""
    eventually(lambda: server.client.get("/readyz").status_code == status)


@pytest.mark.spec("LED-18")
def test_a_running_server_notices_by_itself(place: Copied, tmp_path: Path) -> None:
    with served(place.ledger, policy=tmp_path / "policy.yaml") as server:
        server.post("amir", "/releases", counts("one", rho="0.01"))
        place.copy()
        assert server.post("amir", "/releases", counts("two")).json()["decision"]
        becomes(server, 200)
        assert gauge(server, "modicum_ledger_verify_ok") == 1
        place.put_back()
        becomes(server, 503)
        assert gauge(server, "modicum_ledger_verify_ok") == 0
        checked = server.post("amir", "/releases:check", counts("three"))
        assert (checked.status_code, checked.json()["code"]) == (503, "MOD702")
        submitted = server.post("amir", "/releases", counts("three"))
        assert (submitted.status_code, submitted.json()["code"]) == (503, "MOD702")
        becomes(server, 503)
        assert gauge(server, "modicum_ledger_verify_ok") == 0


@pytest.mark.spec("LED-18")
def test_what_the_writer_sees_everybody_knows_at_once(
    place: Copied, tmp_path: Path
) -> None:
    with served(place.ledger, policy=tmp_path / "policy.yaml") as server:
        server.post("amir", "/releases", counts("one", rho="0.01"))
        place.copy()
        server.post("amir", "/releases", counts("two"))
        becomes(server, 200)
        place.put_back()
        assert server.post("amir", "/releases", counts("three")).status_code == 503
        assert gauge(server, "modicum_ledger_verify_ok") == 0
        assert server.post("amir", "/releases:check", counts("3")).status_code == 503
        becomes(server, 503)


@pytest.mark.spec("LED-18")
def test_a_server_goes_on_when_the_newer_copy_is_back(
    postgres: Cluster, tmp_path: Path
) -> None:
    older, policy = dumped(postgres), tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    newer = dumped(postgres, older.ledger)
    with served(older.ledger, policy=policy) as server:
        older.copy()
        server.post("amir", "/releases", counts("one", rho="0.01"))
        newer.copy()
        older.put_back()
        becomes(server, 503)
        newer.put_back()
        becomes(server, 200)
        assert gauge(server, "modicum_ledger_verify_ok") == 1
        answered = server.post("amir", "/releases", counts("two"))
        assert answered.json()["decision"] == "allow"


@pytest.mark.spec("LED-31")
def test_a_running_server_notices_what_it_never_read(
    place: Copied, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept").mkdir()
    monkeypatch.setenv("MODICUM_WITNESS", str(tmp_path / "kept" / "head"))
    with served(place.ledger, policy=tmp_path / "policy.yaml") as server:
        server.post("amir", "/releases", counts("one", rho="0.01"))
        becomes(server, 200)
        place.copy()
        mo.open(place.ledger, actor="ann").submit(counts("two"))  # Another process.
        place.put_back()
        becomes(server, 503)
        assert gauge(server, "modicum_ledger_verify_ok") == 0
        for path in ("/releases:check", "/releases"):
            answered = server.post("amir", path, counts("three"))
            assert answered.status_code == 503
            assert answered.json()["code"] in {"MOD702", "MOD711"}
    for end in ("-wal", "-shm"):  # What the server left would bring the entry back.
        Path(f"{place.ledger}{end}").unlink(missing_ok=True)
    place.put_back()
    for attempt in (
        lambda: mo.open_decider(place.ledger),
        lambda: mo.open(place.ledger, actor="ann").submit(counts("three")),
        lambda: mo.open(place.ledger, actor="ann").check(counts("three")),
    ):
        with pytest.raises(VerificationError, match="known head"):
            attempt()
    for command in ("status", "ledger verify", "release list"):
        arguments = [*command.split(), "--ledger", place.ledger]
        refused = CliRunner().invoke(app, arguments)
        assert refused.exit_code == Exit.BROKEN, (command, refused.output)
        assert "MOD711" in refused.stderr
    found = CliRunner().invoke(app, ["doctor", "--ledger", place.ledger])
    assert found.exit_code == Exit.BROKEN
    assert re.search(r"^fail +witness .*ends before it", found.stdout, re.MULTILINE)


@pytest.mark.spec("LED-29")
def test_nothing_is_acknowledged_without_the_witness(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "kept").mkdir()
    monkeypatch.setenv("MODICUM_WITNESS", str(tmp_path / "kept" / "head"))
    ledger = tmp_path / "ledger.db"
    with served(ledger, policy=tmp_path / "policy.yaml") as server:
        (tmp_path / "kept").rename(tmp_path / "gone")  # Its disk is not there.
        answered = server.post("amir", "/releases", counts("one"), key="once")
        assert (answered.status_code, answered.json()["code"]) == (503, "MOD712")
        (tmp_path / "gone").rename(tmp_path / "kept")
        again = server.post("amir", "/releases", counts("one"), key="once")
        assert again.json()["decision"] == "allow"
        assert kept(tmp_path)[0] == 2


# --- after a restart ---


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Parts]]:
    """Make the parts of servers that are begun, and serve nobody."""
    found: list[Parts] = []
    monkeypatch.setattr(factory, "serve", lambda make, *_: found.append(make()))
    yield found
    for one in found:
        end(one)


def end(parts: Parts) -> None:
    """End a server as a process does that is told to stop."""
    parts.decider.close()
    for one in parts.closing:
        one()


def serve(folder: Path, place: Copied, *more: str) -> Result:
    """Begin a server with a witness in another folder."""
    (folder / "kept").mkdir(exist_ok=True)
    (folder / "server.yaml").write_text(
        f"modicum: server/v1\nledger: '{place.ledger}'\nwitness: kept/head\n"
        "listen: {port: 0}\n"
    )
    arguments = ("serve", "--config", str(folder / "server.yaml"), *more)
    return CliRunner().invoke(app, arguments)


def kept(folder: Path) -> tuple[int, str]:
    """Return the number and the hash of the entry that the witness has."""
    claim = json.loads((folder / "kept" / "head").read_bytes())["claim"]
    return claim["seq"], claim["head"]


@pytest.mark.spec("LED-18", "LED-31")
def test_no_server_begins_behind_its_witness(
    place: Copied, tmp_path: Path, begun: list[Parts]
) -> None:
    mo.open(place.ledger, policy=tmp_path / "policy.yaml", actor="olga").init()
    assert serve(tmp_path, place).exit_code == 0
    begun[0].decider.submit(counts("one", rho="0.01"))
    end(begun.pop())
    place.copy()
    assert serve(tmp_path, place).exit_code == 0
    begun[0].decider.submit(counts("two"))
    head = begun[0].decider.glance(lambda view: view.state().head)
    end(begun.pop())
    assert kept(tmp_path) == (3, head)
    place.put_back()
    for more in ((), ("--check",)):
        refused = serve(tmp_path, place, *more)
        assert refused.exit_code == Exit.BROKEN, refused.output
        assert "MOD711" in refused.stderr
        assert f"3:{head[:12]}" in refused.stderr
        assert not begun
    (tmp_path / "kept" / "head").unlink()  # The operator takes the loss.
    assert serve(tmp_path, place).exit_code == 0
    begun[0].decider.submit(counts("three"))
    seq, other = kept(tmp_path)
    assert seq == 3
    assert other != head
    end(begun.pop())
    refused = serve(tmp_path, place, "--known-head", f"3:{head[:12]}")
    assert refused.exit_code == Exit.BROKEN
    assert "MOD711" in refused.stderr
    assert serve(tmp_path, place, "--known-head", f"3:{other}").exit_code == 0


@pytest.mark.spec("LED-18")
def test_a_process_that_is_begun_anew_is_refused_too(
    postgres: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, makes = dumped(postgres), list[Callable[[], Parts]]()
    (tmp_path / "policy.yaml").write_text(POLICY)
    mo.open(place.ledger, policy=tmp_path / "policy.yaml", actor="olga").init()
    place.copy()
    monkeypatch.setattr(factory, "serve", lambda make, *_: makes.append(make))
    assert serve(tmp_path, place).exit_code == 0
    first = makes[0]()
    first.decider.submit(counts("one"))
    end(first)
    place.put_back()
    with pytest.raises(VerificationError, match="known head"):
        makes[0]()


def test_a_known_head_is_a_number_and_a_hash(tmp_path: Path) -> None:
    refused = CliRunner().invoke(app, ["serve", "--known-head", "12"])
    assert refused.exit_code == Exit.INVALID
    assert 'is "12"' in refused.stderr
    (tmp_path / "server.yaml").write_text("modicum: server/v1\nknown_head: 12:x\n")
    arguments = ["serve", "--config", str(tmp_path / "server.yaml")]
    refused = CliRunner().invoke(app, arguments)
    assert refused.exit_code == Exit.INVALID
    assert "server.yaml:2" in refused.stderr
