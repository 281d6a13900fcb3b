"""Witnesses of each kind for tests, and small servers for those behind a URL."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from modicum.api.ports.storage import HeadWitness
from modicum.ledger.proof.claims import WitnessedHead, witnessed_bytes
from modicum.storage.witness.factory import open_witness
from samples.postgres import Cluster
from samples.small import NOON

KINDS = ("file", "http", "postgresql", "s3")
_NUMBERS = count(1)
#: With what boto3 finds no machine but the stand-in.
AWS = {
    "AWS_ACCESS_KEY_ID": "modicum",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


class Register(BaseHTTPRequestHandler):
    """Keeps one line for each path, and never a lower entry than before."""

    protocol_version = "HTTP/1.1"
    lines: dict[str, bytes]
    guard: threading.Lock

    def do_GET(self) -> None:
        line = self.lines.get(self.path)
        if line is None:
            self._answer(404)
        else:
            self._answer(200, line)

    def do_PUT(self) -> None:
        new = _whole_body(self)
        with self.guard:
            old = self.lines.get(self.path)
            if self.headers.get("If-None-Match") == "*":
                may = old is None
            else:
                may = old is not None and self.headers.get("If-Match") == _tag(old)
            if may and old is not None:
                may = _seq(old) < _seq(new)
            if may:
                self.lines[self.path] = new
        self._answer(200 if may else 412)

    def log_request(self, *_: Any) -> None:
        pass

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        if body:
            self.send_header("ETag", _tag(body))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _whole_body(request: BaseHTTPRequestHandler) -> bytes:
    """Return the body of a request; what came of a lost one is not kept."""
    length = int(request.headers["Content-Length"])
    found = request.rfile.read(length)
    if len(found) < length:
        raise ConnectionAbortedError
    return found


def _tag(line: bytes) -> str:
    return f'"{sha256(line).hexdigest()}"'


def _seq(line: bytes) -> int:
    return int(json.loads(line)["claim"]["seq"])


class Buckets(BaseHTTPRequestHandler):
    """Answers as S3 does where versions are kept, to those requests that are sent."""

    protocol_version = "HTTP/1.1"
    lines: dict[str, list[tuple[str, bytes]]]  # By path, the versions; empty: deleted.
    guard: threading.Lock

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = parse_qs(url.query, keep_blank_values=True)
        with self.guard:
            if "versions" in query:
                path = f"{url.path.rstrip('/')}/{query['prefix'][0]}"
                return self._list(path, query)
            found = self.lines.get(url.path, [])
            if "versionId" in query:
                found = [one for one in found if one[0] == query["versionId"][0]]
        if found and found[-1][1]:
            return self._answer(200, found[-1][1])
        return self._refuse(404, "NoSuchKey")

    def do_PUT(self) -> None:
        new = _whole_body(self)
        with self.guard:
            found = self.lines.setdefault(self.path, [])
            old = found[-1][1] if found else b""
            if "If-None-Match" in self.headers:
                may = not old
            else:
                may = self.headers["If-Match"] == _tag(old)
            if not may:
                return self._refuse(412, "PreconditionFailed")
            found.append((f"v{len(found)}", new))
        return self._answer(200, tag=_tag(new))

    def do_DELETE(self) -> None:
        with self.guard:
            found = self.lines.setdefault(self.path, [])
            found.append((f"v{len(found)}", b""))
        self._answer(204)

    def log_request(self, *_: Any) -> None:
        pass

    def _list(self, path: str, query: Mapping[str, list[str]]) -> None:
        key = path.split("/", 2)[2]
        # Another key that begins in the same way comes last.
        found = [(key, *one) for one in reversed(self.lines.get(path, []))]
        found.append((f"{key}-2", "v0", b"another"))
        begin = int(query.get("key-marker", ["0"])[0])  # Opaque to clients.
        page = found[begin : begin + int(query["max-keys"][0])]
        kinds = {True: "Version", False: "DeleteMarker"}
        shown = "".join(
            f"<{kinds[bool(data)]}><Key>{name}</Key><VersionId>{version}</VersionId>"
            f"</{kinds[bool(data)]}>"
            for name, version, data in page
        )
        end = begin + len(page)
        if end < len(found):
            shown += (
                f"<IsTruncated>true</IsTruncated><NextKeyMarker>{end}</NextKeyMarker>"
                "<NextVersionIdMarker>v</NextVersionIdMarker>"
            )
        self._answer(200, _xml(f"<Listed>{shown}</Listed>"))

    def _refuse(self, status: int, code: str) -> None:
        self._answer(status, _xml(f"<Error><Code>{code}</Code></Error>"))

    def _answer(self, status: int, body: bytes = b"", tag: str = "") -> None:
        self.send_response(status)
        self.send_header("ETag", tag or _tag(body))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _xml(text: str) -> bytes:
    return f"<?xml version='1.0' encoding='UTF-8'?>{text}".encode()


@contextmanager
def buckets() -> Iterator[str]:
    """Run a stand-in for S3, which boto3 finds in the environment; yield its URL."""
    with pytest.MonkeyPatch.context() as patch, serving(Buckets) as url:
        for name, value in {**AWS, "AWS_ENDPOINT_URL_S3": url}.items():
            patch.setenv(name, value)
        yield url


@contextmanager
def register() -> Iterator[str]:
    """Run a server; yield its URL."""
    with serving(Register) as url:
        yield url


@contextmanager
def serving(base: type[BaseHTTPRequestHandler], *, anew: bool = True) -> Iterator[str]:
    """Run a server, by default without lines; yield its URL."""
    own = {"lines": {}, "guard": threading.Lock()} if anew else {}
    handler = type("Own", (base,), own)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(
            target=server.serve_forever, args=(0.01,), daemon=True
        )
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def line(seq: int, by: int = 0) -> bytes:
    """Return the line of an entry by one of several writers."""
    head = sha256(b"%d" % by).hexdigest()
    return witnessed_bytes(WitnessedHead("0" * 64, seq, head, at=NOON, key=""))


def new_name(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """Return the name of a witness that has no head yet.

    Args:
        kind: Its kind.
        folder: An empty folder, or one with other witnesses.
        request: Gives a server; the test has fixtures `register_url` and
            `buckets_url`.
    """
    number = next(_NUMBERS)
    if kind == "file":
        return str(folder / f"head-{number}")
    if kind == "http":
        return f"{request.getfixturevalue('register_url')}/{number}"
    if kind == "s3":
        request.getfixturevalue("buckets_url")
        return f"s3://ledgers/heads/{number}"
    cluster: Cluster = request.getfixturevalue("postgres")
    return cluster.new_ledger()


def opened(name: str) -> HeadWitness:
    """Return a witness, opened anew."""
    found = open_witness(name)
    assert found is not None
    return found
