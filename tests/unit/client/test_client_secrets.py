"""Tokens: where they come from, where they go, and that nothing shows them."""

from __future__ import annotations

import logging
import os
import stat
import traceback
from pathlib import Path

import pytest
from samples.certificates import certificate
from samples.remote import BEFORE, answering, saying
from samples.small import POLICY, counts

import modicum as mo
from modicum.client import retry_connection
from modicum.client.credentials import Token, token_of

SECRET = "canary-7f3a9c"


@pytest.fixture(autouse=True)
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry_connection, "ATTEMPTS_MAX", 1)
    monkeypatch.delenv("MODICUM_TOKEN", raising=False)
    monkeypatch.delenv("MODICUM_TOKEN_FILE", raising=False)


def answer(status: str, *headers: str, body: bytes = b"{}") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


@pytest.mark.parametrize(
    "url",
    [
        "http://modicum.example",
        "http://10.0.0.1:8642",
        "http://localhost.example",
        "http://127.0.0.1.example",
        "http://[::2]:80",
        "ftp://localhost",
        "localhost:8642",
        "https://",
        "https://modicum.example?x=1",
        "https://modicum.example/#x",
        "https://modicum.example:port",
        f"https://olga:{SECRET}@modicum.example",
        f"https://{SECRET}@modicum.example",
        "https://modicum.example\nx",
        "https://modicum.example/api/v1/releases",
        "https://modicum.example/behind/api/v1/openapi.json",
    ],
)
def test_an_address_that_shows_secrets_is_refused(url: str) -> None:
    with pytest.raises(mo.UsageError) as caught:
        mo.connect(url, token=SECRET)
    assert caught.value.code.value == "MOD844"
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1",
        "http://127.8.0.1",
        "http://[::1]:8642",
        "http://localhost:1/",
        "https://modicum.example/behind/",
    ],
)
def test_an_address_that_keeps_them_is_taken(url: str) -> None:
    with mo.connect(url, token=SECRET) as there:
        assert there._connection.url == url.rstrip("/")
        assert SECRET not in repr(there) + repr(vars(there)) + repr(there._connection)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://modicum.example/api/v1", "https://modicum.example"),
        ("https://modicum.example/api/v1//", "https://modicum.example"),
        ("http://[::1]:8642/api/v1/", "http://[::1]:8642"),
        ("https://modicum.example/behind/api/v1", "https://modicum.example/behind"),
        ("https://modicum.example/api/v10", "https://modicum.example/api/v10"),
        ("https://api/v1", "https://api/v1"),
    ],
)
def test_what_is_asked_of_a_server_may_stand_in_its_address(
    url: str, address: str
) -> None:
    with mo.connect(url, token=SECRET) as there:
        assert there._connection.url == address


def test_nobody_asks_without_a_token() -> None:
    with pytest.raises(mo.UsageError, match="no token is given") as caught:
        mo.connect("https://modicum.example")
    assert caught.value.code.value == "MOD844"
    assert "modicum token create" in (caught.value.problems[0].help or "")


@pytest.mark.parametrize("token", ["", "a b", "a\nb", "ä", "a\0", "x" * 16_385])
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(mo.UsageError) as caught:
        mo.connect("https://modicum.example", token=token)
    assert caught.value.code.value == "MOD844"
    assert not token or token not in caught.value.render()


def test_a_token_is_not_shown() -> None:
    assert SECRET not in repr(Token(SECRET)) + str(Token(SECRET))


def test_where_a_token_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    file = tmp_path / "token"
    file.write_text(f"{BEFORE}dara\n")
    file.chmod(0o600)
    with answering(tmp_path / "l.db", policy=tmp_path / "policy.yaml") as url:

        def who(**given: object) -> str:
            with mo.connect(url, **given) as there:  # type: ignore[arg-type]
                return there.actor

        assert who(token=f"{BEFORE}ann") == "ann"
        assert who(token_file=file) == "dara"
        monkeypatch.setenv("MODICUM_TOKEN_FILE", str(file))
        assert who() == "dara"
        assert who(token=f"{BEFORE}ann") == "ann"
        monkeypatch.setenv("MODICUM_TOKEN_FILE", "")
        monkeypatch.setenv("MODICUM_TOKEN", f"{BEFORE}olga")
        assert who() == "olga"
        assert who(token_file=file) == "dara"
        monkeypatch.setenv("MODICUM_TOKEN_FILE", str(file))
        with pytest.raises(mo.UsageError, match="a token and a token file"):
            mo.connect(url)
    with pytest.raises(mo.UsageError, match="cannot be read"):
        mo.connect(url, token_file=tmp_path / "none")
    file.write_text(f"{SECRET} and more\n")
    with pytest.raises(mo.UsageError) as caught:
        mo.connect(url, token_file=file)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "mode", [0, 0o600, 0o700, *(1 << n for n in range(6)), 0o444, 0o644]
)
def test_a_token_file_of_ones_own_is_for_its_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    file = tmp_path / "token"
    file.write_text(SECRET)
    file.chmod(mode | stat.S_IRUSR)
    others = stat.S_IRWXG | stat.S_IRWXO
    if not mode & others:
        assert token_of(None, file).value == SECRET
        return
    with pytest.raises(mo.UsageError, match="accessible to other users") as caught:
        token_of(None, file)
    assert "chmod 600" in (caught.value.problems[0].help or "")
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    # What is mounted belongs to somebody else, who alone can change its mode.
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert token_of(None, file).value == SECRET


def test_a_token_may_come_from_a_pipe() -> None:
    reading, writing = os.pipe()
    os.fchmod(reading, 0o644)
    os.write(writing, SECRET.encode())
    os.close(writing)
    assert token_of(None, f"/dev/fd/{reading}").value == SECRET
    os.close(reading)


@pytest.mark.parametrize("status", ["301", "302", "303", "307", "308"])
def test_redirects_are_not_followed(status: str) -> None:
    with saying(answer("200 OK")) as other:
        where = f"Location: http://127.0.0.1:{other[0].decode()}/api/v1/releases"
        with saying(answer(f"{status} Moved", where)) as received:
            url = f"http://127.0.0.1:{received[0].decode()}"
            with (
                mo.connect(url, token=SECRET) as there,
                pytest.raises(mo.UnavailableError) as caught,
            ):
                there.submit(counts("moved"))
        assert caught.value.code.value == "MOD843"
        assert f"bearer {SECRET}".encode() in received[1].lower()
        assert len(other) == 1


def test_nothing_tells_a_token(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    texts: list[str] = []
    for response in (
        answer("200 OK"),
        answer("200 OK", body=b"no json"),
        answer("401 No", body=b'{"kind": "access", "problems": []}'),
        answer("500 No"),
        answer("503 No"),
        b"HTTP/9 nonsense\r\n\r\n",
        b"",
    ):
        with saying(response) as received:
            url = f"http://127.0.0.1:{received[0].decode()}"
            with (
                mo.connect(url, token=SECRET) as there,
                pytest.raises(mo.UnavailableError) as caught,
            ):
                there.submit(counts("told"))
            texts += traceback.format_exception(caught.value)
            texts += [repr(caught.value), caught.value.render()]
            assert SECRET.encode() in received[1]
    texts += [record.getMessage() for record in caplog.records]
    assert SECRET not in "".join(texts)


def test_a_server_must_show_a_certificate_that_is_trusted(tmp_path: Path) -> None:
    pem, context = certificate(tmp_path)
    head = b'{"seq": 3, "head": "' + b"ab" * 32 + b'"}'
    with saying(answer("200 OK", body=head), context) as received:
        port = received[0].decode()
        with (
            mo.connect(f"https://127.0.0.1:{port}", token=SECRET) as there,
            pytest.raises(mo.UnavailableError),
        ):
            there.head()
        with (
            mo.connect(f"https://localhost:{port}", token=SECRET, ca_file=pem) as there,
            pytest.raises(mo.UnavailableError),
        ):
            there.head()
        assert len(received) == 1  # Nobody heard the token.
        url = f"https://127.0.0.1:{port}"
        with mo.connect(url, token=SECRET, ca_file=pem) as there:
            assert there.head().seq == 3
        assert SECRET.encode() in received[1]
    for file in (tmp_path / "none.pem", tmp_path / "key.pem"):
        with pytest.raises(mo.UsageError, match="no readable certificates"):
            mo.connect(url, token=SECRET, ca_file=file)
