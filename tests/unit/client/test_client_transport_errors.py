"""A server that is never reached: asked once, and told why, and what helps."""

from __future__ import annotations

import socket
import ssl
import traceback
from datetime import timedelta
from pathlib import Path

import pytest
from samples.certificates import certificate
from samples.remote import saying
from samples.small import counts

import modicum as mo
from modicum.client import retry_connection
from modicum.client.transport_errors import permanent_error

SECRET = "canary-7f3a9c"
HOUR = timedelta(hours=1)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return how long it was waited, each time; nobody really waits."""
    waited: list[float] = []
    monkeypatch.setattr(retry_connection, "sleep", waited.append)
    return waited


def mistake(url: str, ca_file: Path | None = None) -> mo.UnavailableError:
    """Return what a step says that did not reach a server."""
    with (
        mo.connect(url, token=SECRET, ca_file=ca_file) as there,
        pytest.raises(mo.UnavailableError) as caught,
    ):
        there.submit(counts("x"))
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert caught.value.code.value == "MOD842"
    assert "nothing was changed" in caught.value.problems[0].notes
    return caught.value


@pytest.mark.parametrize(
    ("address", "valid_for", "is_known", "message", "remedy"),
    [
        ("127.0.0.1", HOUR, False, "is not trusted", "ca_file"),
        ("127.0.0.2", HOUR, True, "is for another name", "the name"),
        ("127.0.0.1", -HOUR, True, "is not valid now", "clock"),
    ],
)
def test_a_certificate_that_does_not_hold(
    tmp_path: Path,
    waits: list[float],
    address: str,
    valid_for: timedelta,
    is_known: bool,
    message: str,
    remedy: str,
) -> None:
    pem, context = certificate(tmp_path, address=address, valid_for=valid_for)
    with saying(b"", context) as received:
        url = f"https://127.0.0.1:{received[0].decode()}"
        result = mistake(url, pem if is_known else None)
        assert received[1:] == []
    assert message in result.problems[0].message
    assert remedy in (result.problems[0].help or "")
    assert "later" not in result.render()
    assert waits == []


def test_another_name_is_told_of_a_host_too(tmp_path: Path, waits: list[float]) -> None:
    pem, context = certificate(tmp_path)
    with saying(b"", context) as received:
        result = mistake(f"https://localhost:{received[0].decode()}", pem)
    assert "is for another name" in result.problems[0].message
    assert waits == []


def test_a_port_without_tls(waits: list[float]) -> None:
    with saying(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") as received:
        result = mistake(f"https://127.0.0.1:{received[0].decode()}")
    assert "does not support a common version of TLS" in result.problems[0].message
    assert "port" in result.problems[0].help
    assert waits == []


def looking_up(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Have the look-up of every name end so."""

    def fail(*_: object, **__: object) -> object:
        raise socket.gaierror(number, "said by the system")

    monkeypatch.setattr(socket, "getaddrinfo", fail)


def test_a_host_that_nobody_knows(
    monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    looking_up(monkeypatch, socket.EAI_NONAME)
    result = mistake("https://modicum.example")
    assert "unknown host" in result.problems[0].message
    assert waits == []


def test_who_cannot_look_names_up_tries_again(
    monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    looking_up(monkeypatch, socket.EAI_AGAIN)
    result = mistake("https://modicum.example")
    assert result.problems[0].help == "try again later"
    assert len(waits) == retry_connection.ATTEMPTS_MAX - 1


def test_who_is_down_is_asked_again(waits: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as own:
        port = own.getsockname()[1]
    result = mistake(f"http://127.0.0.1:{port}")
    assert result.problems[0].help == "try again later"
    assert len(waits) == retry_connection.ATTEMPTS_MAX - 1


def because(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, reason)
    error.reason = reason
    return error


@pytest.mark.parametrize(
    "cause",
    [
        ConnectionRefusedError(111, "refused"),
        ConnectionResetError(104, "reset"),
        ssl.SSLError(1, "without a reason"),
        because("UNEXPECTED_EOF_WHILE_READING"),
        because("TLSV1_ALERT_INTERNAL_ERROR"),
        socket.gaierror(socket.EAI_AGAIN, "try again"),
        TimeoutError("timed out"),
    ],
)
def test_what_may_pass_is_not_for_good(cause: OSError) -> None:
    lost = Exception("lost")
    lost.__cause__ = cause
    # What was being handled when the server was asked says nothing about it.
    cause.__context__ = socket.gaierror(socket.EAI_NONAME, "of another request")
    assert permanent_error(lost, "https://modicum.example") is None


def test_a_step_that_a_server_may_have_heard_is_asked_for_to_the_end(
    monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    """That its name is gone by then does not say that nothing was done."""
    with saying(b"") as received:  # Hears the step, and hangs up.
        url = f"http://localhost:{received[0].decode()}"
        monkeypatch.setattr(
            retry_connection,
            "sleep",
            lambda _: looking_up(monkeypatch, socket.EAI_NONAME),
        )
        with (
            mo.connect(url, token=SECRET) as there,
            pytest.raises(mo.UnavailableError) as caught,
        ):
            there.submit(counts("x"))
        assert len(received) == 2
    assert any("it is unknown whether" in one for one in caught.value.problems[0].notes)
