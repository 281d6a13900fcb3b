"""How users get the Adult table: only the known one is written, from whatever it came.

The table is not shipped and nothing is downloaded here. Made-up people stand for it,
with their own checksums in place of the known ones; where `MODICUM_ADULT` names the
real table, the known ones are tried, too.
"""

from __future__ import annotations

import hashlib
import http.server
import importlib.util
import io
import os
import random
import shutil
import ssl
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from samples.adult import made_up

from modicum.workloads.adult.queries import COLUMNS, ROWS

FOLDER = Path(__file__).parents[2] / "examples/adult"


def script(name: str) -> ModuleType:
    found = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def as_published(rows: list[list[str]]) -> bytes:
    """Return rows in the form of `adult.data`: no header, and an empty last line."""
    return "".join(", ".join(row) + "\n" for row in rows).encode() + b"\n"


def zipped(data: bytes, member: str = "adult.data") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("adult.names", "words")
        archive.writestr(member, data)
    return file.getvalue()


@pytest.fixture(scope="module")
def rows() -> list[list[str]]:
    columns = [column.to_pylist() for column in made_up().columns]
    return [[str(value) for value in row] for row in zip(*columns, strict=True)]


@pytest.fixture
def fetch(rows: list[list[str]]) -> ModuleType:
    """The script, for which the made-up people are the known table."""
    module = script("fetch")
    lines = sorted(",".join(row) + "\n" for row in rows)
    module.DATA_SHA256 = hashlib.sha256(as_published(rows)).hexdigest()  # type: ignore[attr-defined]
    module.ROWS_SHA256 = hashlib.sha256("".join(lines).encode()).hexdigest()  # type: ignore[attr-defined]
    return module


@pytest.fixture
def served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, Path]]:
    """An https server on this machine that the script trusts, and its folder."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(folder))  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("localhost", 0), Quiet)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    yield f"https://localhost:{server.server_port}", folder
    server.shutdown()
    thread.join()
    server.server_close()


def run(fetch: ModuleType, source: object, to: Path) -> int:
    code: int = fetch.main([str(source), "--to", str(to)])
    return code


def test_an_archive_becomes_the_table(
    fetch: ModuleType,
    rows: list[list[str]],
    served: tuple[str, Path],
    tmp_path: Path,
) -> None:
    address, folder = served
    (folder / "adult.zip").write_bytes(zipped(as_published(rows)))
    to = tmp_path / "adult.csv"
    assert run(fetch, f"{address}/adult.zip", to) == 0
    expected = [",".join(COLUMNS), *(",".join(row) for row in rows)]
    assert to.read_bytes() == ("\n".join(expected) + "\n").encode()


def test_what_is_not_there_is_told(
    fetch: ModuleType,
    served: tuple[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(fetch, f"{served[0]}/adult.zip", tmp_path / "adult.csv") == 1
    assert "404" in capsys.readouterr().err
    assert run(fetch, tmp_path / "none.zip", tmp_path / "adult.csv") == 1
    assert not (tmp_path / "adult.csv").exists()


def test_the_bare_file_will_do(
    fetch: ModuleType, rows: list[list[str]], tmp_path: Path
) -> None:
    (tmp_path / "adult.data").write_bytes(as_published(rows))
    assert run(fetch, tmp_path / "adult.data", tmp_path / "adult.csv") == 0


@pytest.mark.parametrize("wrong", ["one digit", "order", "end", "member", "broken"])
def test_anything_else_is_refused_and_nothing_is_written(
    fetch: ModuleType,
    rows: list[list[str]],
    tmp_path: Path,
    wrong: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = as_published(rows)
    given = {
        "one digit": data.replace(b"40", b"41", 1),
        "order": as_published(random.Random(1).sample(rows, len(rows))),
        "end": data[:-1],
        "member": zipped(data, "adult.test"),
        "broken": zipped(data)[:5000],
    }[wrong]
    source, to = tmp_path / "given", tmp_path / "adult.csv"
    source.write_bytes(given)
    to.write_text("what was there\n")
    assert run(fetch, source, to) == 1
    assert "Nothing was written." in capsys.readouterr().err
    assert to.read_text() == "what was there\n"


def test_other_rows_are_refused_even_with_the_right_checksum_of_the_file(
    fetch: ModuleType, rows: list[list[str]], tmp_path: Path
) -> None:
    other = [[*row[:-1], "<=50K"] for row in rows]
    (tmp_path / "adult.data").write_bytes(as_published(other))
    fetch.DATA_SHA256 = hashlib.sha256(as_published(other)).hexdigest()  # type: ignore[attr-defined]
    assert run(fetch, tmp_path / "adult.data", tmp_path / "adult.csv") == 1
    fewer = as_published(rows[1:])
    (tmp_path / "adult.data").write_bytes(fewer)
    fetch.DATA_SHA256 = hashlib.sha256(fewer).hexdigest()  # type: ignore[attr-defined]
    assert run(fetch, tmp_path / "adult.data", tmp_path / "adult.csv") == 1
    assert not (tmp_path / "adult.csv").exists()


def test_what_is_too_large_is_not_read_on(
    fetch: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fetch.BYTES_MAX = 1000  # type: ignore[attr-defined]
    (tmp_path / "adult.data").write_bytes(b"1" * 1001)
    assert run(fetch, tmp_path / "adult.data", tmp_path / "adult.csv") == 1
    assert "more than 1,000 bytes" in capsys.readouterr().err


def test_the_real_table_is_the_known_one() -> None:
    path = os.environ.get("MODICUM_ADULT")
    if path is None:
        pytest.skip("MODICUM_ADULT names no table")
    fetch = script("fetch")
    text = Path(path).read_text(encoding="ascii")
    assert text.splitlines()[0] == ",".join(COLUMNS)
    assert fetch.digest_of_rows(text) == fetch.ROWS_SHA256
    real = [line.split(",") for line in text.splitlines()[1:]]
    published = as_published(real)
    # The publisher's file has as many bytes; its order of rows is not known here.
    assert len(published) == 3_974_305
    assert fetch.converted(published) == text


def test_made_up_people_are_written_as_they_are_made(
    rows: list[list[str]], tmp_path: Path
) -> None:
    path = tmp_path / "adult.csv"
    script("look_alike").main([str(path)])
    expected = [list(COLUMNS), *rows]
    assert [line.split(",") for line in path.read_text().splitlines()] == expected
    script("look_alike").main([str(path), "--rows", "3"])
    assert len(path.read_text().splitlines()) == 1 + 3
    assert len(rows) == ROWS
