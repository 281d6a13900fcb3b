"""Does the vault get on with a key service, and with one that does not behave?"""

from __future__ import annotations

import base64
import json
import logging
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from modicum.core.errors import (
    Code,
    ModicumError,
    UnavailableError,
    UsageError,
    VerificationError,
)
from modicum.vault import (
    Context,
    KeyProvider,
    Transit,
    TransitKeys,
    Wrapped,
    open_vault,
    transit,
    transit_keys,
)

TOKEN = "hvs.CAESIJ-only-a-test"
KEY = bytes(range(32))
A, B = Context("a", "0" * 64), Context("b", "0" * 64)
FOREIGN = {"errors": ["cipher: message authentication failed"]}


class RefusedError(Exception):
    """A request that the service refuses: a status, and what it says."""


@dataclass
class Service:
    """A transit engine with one derived key, as far as the vault speaks to it."""

    versions: list[bytes] = field(default_factory=lambda: [secrets.token_bytes(32)])
    derived: bool = True
    oldest: int = 1
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    #: What answers instead: status and body.
    instead: Callable[[str], tuple[int, bytes] | None] = lambda _: None

    def answer(self, path: str, sent: dict[str, str]) -> dict[str, Any]:
        verb, _, name = path.removeprefix("/v1/transit/").partition("/")
        if name != "modicum":
            raise RefusedError(400, "encryption key not found")
        match verb:
            case "keys":
                return {
                    "type": "aes256-gcm96",
                    "derived": self.derived,
                    "latest_version": len(self.versions),
                }
            case "encrypt":
                return {"ciphertext": self.encrypt(sent, sent["plaintext"])}
            case "decrypt":
                return {"plaintext": self.decrypt(sent)}
            case "rewrap":
                return {"ciphertext": self.encrypt(sent, self.decrypt(sent))}
            case _:
                raise RefusedError(404, "no handler for route")

    def cipher(self, version: int, context: str) -> AESGCM:
        info = base64.b64decode(context)
        return AESGCM(HKDF(SHA256(), 32, None, info).derive(self.versions[version - 1]))

    def encrypt(self, sent: dict[str, str], plaintext: str) -> str:
        version, nonce = len(self.versions), secrets.token_bytes(12)
        cipher = self.cipher(version, sent["context"])
        sealed = nonce + cipher.encrypt(nonce, base64.b64decode(plaintext), None)
        return f"vault:v{version}:{base64.b64encode(sealed).decode()}"

    def decrypt(self, sent: dict[str, str]) -> str:
        _, version, text = sent["ciphertext"].split(":")
        if int(version[1:]) < self.oldest:
            raise RefusedError(400, "ciphertext or signature version is disallowed")
        sealed = base64.b64decode(text)
        try:
            found = self.cipher(int(version[1:]), sent["context"]).decrypt(
                sealed[:12], sealed[12:], None
            )
        except InvalidTag:
            raise RefusedError(400, "cipher: message authentication failed") from None
        return base64.b64encode(found).decode()


def handler(service: Service) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.respond({})

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            self.respond(json.loads(self.rfile.read(length)))

        def respond(self, sent: dict[str, str]) -> None:
            service.asked.append(self.path)
            service.headers.append(dict(self.headers))
            instead = service.instead(self.path)
            if instead is not None:
                status, body = instead
            else:
                status, body = self.told(sent)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Location", "/v1/transit/keys/modicum")
            self.end_headers()
            self.wfile.write(body)

        def told(self, sent: dict[str, str]) -> tuple[int, bytes]:
            if self.headers.get("X-Vault-Token") != TOKEN:
                return 403, b'{"errors": ["permission denied"]}'
            try:
                found = service.answer(self.path, sent)
            except RefusedError as refused:
                status, why = refused.args
                return status, json.dumps({"errors": [why]}).encode()
            return 200, json.dumps({"data": found}).encode()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    return Handler


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def where(service: Service, tmp_path: Path) -> Iterator[Transit]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(service))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    (tmp_path / "token").write_text(TOKEN + "\n")
    (tmp_path / "token").chmod(0o600)
    yield Transit(
        f"http://127.0.0.1:{server.server_port}", "modicum", tmp_path / "token"
    )
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def keys(where: Transit) -> Iterator[TransitKeys]:
    found = transit_keys(where)
    yield found
    found.close()


def test_a_key_goes_and_comes_back(keys: TransitKeys) -> None:
    port: KeyProvider = keys
    wrapped = port.wrap(KEY, A)
    assert wrapped.key_id == port.current() == "transit/modicum/v1"
    assert wrapped.data.startswith(b"vault:v1:")
    assert port.unwrap(wrapped, A) == KEY


def test_a_key_of_one_thing_opens_no_other(keys: TransitKeys) -> None:
    wrapped = keys.wrap(KEY, A)
    for ask in (keys.unwrap, keys.rewrap):
        for other in (B, Context("a", "1" * 64)):
            with pytest.raises(VerificationError) as caught:
                ask(wrapped, other)
            assert caught.value.code is Code.SEALED_BROKEN


def test_a_vault_rotates_without_seeing_a_key(
    keys: TransitKeys, service: Service, tmp_path: Path
) -> None:
    vault = open_vault(tmp_path / "vault", keys)
    kept = [vault.seal(one, one.encode()) for one in "abc"]
    service.versions.append(secrets.token_bytes(32))
    vault.shred("c")
    service.asked.clear()
    assert vault.rotate().moved == 2
    assert service.asked == [
        "/v1/transit/keys/modicum",
        "/v1/transit/rewrap/modicum",
        "/v1/transit/rewrap/modicum",
    ]
    service.oldest = 2
    assert [vault.open(one) for one in kept[:2]] == [b"a", b"b"]
    assert vault.wrapped_under() == {"transit/modicum/v2": 2}
    assert vault.rotate().moved == 0


def test_a_retired_version_is_no_damage(keys: TransitKeys, service: Service) -> None:
    wrapped = keys.wrap(KEY, A)
    service.oldest = 2
    with pytest.raises(UnavailableError) as caught:
        keys.unwrap(wrapped, A)
    assert caught.value.code is Code.KEY_UNAVAILABLE


def test_a_key_that_is_not_derived_binds_nothing(
    keys: TransitKeys, service: Service, tmp_path: Path
) -> None:
    service.derived = False
    vault = open_vault(tmp_path / "vault", keys)
    with pytest.raises(UnavailableError, match="not derived"):
        vault.seal("a", b"one")
    assert vault.find("a") is None
    assert not any("encrypt" in path for path in service.asked)


def test_a_key_of_elsewhere_is_not_sent(keys: TransitKeys, service: Service) -> None:
    wrapped = keys.wrap(KEY, A)
    service.asked.clear()
    with pytest.raises(UnavailableError, match="a key other than"):
        keys.unwrap(replace(wrapped, key_id="transit/other/v1"), A)
    with pytest.raises(UnavailableError, match="a key other than"):
        keys.unwrap(replace(wrapped, key_id="transit/modicum/v2"), A)
    for data in (b"", b"vault:v0:AAAA", b"vault:v1:", b"\xff", b"vault:v1:AA\n"):
        with pytest.raises(VerificationError):
            keys.unwrap(Wrapped("transit/modicum/v1", data), A)
    assert service.asked == []


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b""),
        (200, b"[]"),
        (200, b"no json " + KEY),
        (200, b'{"data": []}'),
        (200, b'{"data": {"plaintext": "AAAA"}}'),
        (200, b'{"data": {"plaintext": 1, "ciphertext": 1}}'),
        (200, b'{"data": {"ciphertext": "vault:v1:", "derived": true}}'),
        (200, b'{"data": {"type": "rsa-4096", "derived": true, "latest_version": 1}}'),
        (200, b'{"data": {"type": "aes256-gcm96", "derived": true}}'),
        (200, b"[" * 100_000),
        (200, b" " * 300_000),
        (307, b"{}"),
        (400, b'{"errors": ["secret-word"]}'),
        (403, b'{"errors": 7}'),
        (503, b'{"errors": []}'),
    ],
)
def test_whatever_it_answers_is_a_mistake_with_a_code(
    keys: TransitKeys, service: Service, status: int, body: bytes
) -> None:
    wrapped = keys.wrap(KEY, A)
    service.instead = lambda _: (status, body)
    for ask in (
        keys.current,
        lambda: keys.wrap(KEY, A),
        lambda: keys.unwrap(wrapped, A),
        lambda: keys.rewrap(wrapped, A),
    ):
        with pytest.raises((UnavailableError, VerificationError)) as caught:
            ask()
        assert "secret-word" not in caught.value.render()
        assert caught.value.__cause__ is None
    assert service.asked[-1].endswith("/rewrap/modicum"), "it follows no redirect"


def test_what_is_too_long_is_not_read(keys: TransitKeys, service: Service) -> None:
    found = {"type": "aes256-gcm96", "derived": True, "latest_version": 1}
    body = json.dumps({"data": found}).encode()
    service.instead = lambda _: (200, body)
    assert keys.current() == "transit/modicum/v1"
    service.instead = lambda _: (200, body + b" " * 2**18)
    with pytest.raises(UnavailableError, match="too large"):
        keys.current()


def test_a_service_in_trouble_is_no_damage(keys: TransitKeys, service: Service) -> None:
    wrapped = keys.wrap(KEY, A)
    body = json.dumps(FOREIGN).encode()
    for status, kind in ((400, VerificationError), (500, UnavailableError)):
        service.instead = lambda _, status=status: (status, body)  # type: ignore[misc]
        with pytest.raises(kind):
            keys.unwrap(wrapped, A)


def test_the_token_is_read_each_time_and_shown_nowhere(
    keys: TransitKeys,
    where: Transit,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    wrapped = keys.wrap(KEY, A)
    where.token_file.write_text("hvs.another")
    with pytest.raises(UnavailableError, match="403") as caught:
        keys.unwrap(wrapped, A)
    told = [caught.value.render(), repr(keys), repr(vars(keys)), caplog.text]
    for secret in (TOKEN, "hvs.another", base64.b64encode(KEY).decode()):
        assert not any(secret in one for one in told)
    assert "127.0.0.1" in caplog.text, "something was logged, but no secret"
    where.token_file.write_text(TOKEN)
    assert keys.unwrap(wrapped, A) == KEY


@pytest.mark.parametrize("text", ["", "two words", "two\nlines", "\xff", "x" * 20_000])
def test_what_is_no_token_is_not_sent(
    keys: TransitKeys, where: Transit, service: Service, text: str
) -> None:
    where.token_file.write_bytes(text.encode("latin-1"))
    with pytest.raises(UnavailableError):
        keys.current()
    assert service.asked == []


def test_a_token_that_others_can_read_is_not_sent(
    keys: TransitKeys, where: Transit, service: Service
) -> None:
    where.token_file.chmod(0o640)
    with pytest.raises(UnavailableError, match="accessible to other users"):
        keys.current()
    assert service.asked == []


def test_a_namespace_is_named(where: Transit, service: Service) -> None:
    keys = transit_keys(replace(where, namespace="team/data"))
    keys.current()
    keys.close()
    assert service.headers[-1]["X-Vault-Namespace"] == "team/data"


def test_nobody_there(where: Transit) -> None:
    keys = transit_keys(replace(where, address="http://127.0.0.1:9"))
    with pytest.raises(UnavailableError) as caught:
        keys.current()
    keys.close()
    assert caught.value.code is Code.KEY_UNAVAILABLE


def test_a_service_that_trickles_is_not_waited_for(
    keys: TransitKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transit, "SECONDS_MAX", -1.0)
    with pytest.raises(UnavailableError, match="too large"):
        keys.current()


@pytest.mark.parametrize(
    "address",
    [
        "http://vault.example:8200",
        "http://10.0.0.1",
        "http://127.0.0.1.evil.example",
        "https://name:word@vault.example",
        "https://vault.example/path",
        "https://vault.example?x",
        "https://vault.example#x",
        "https://",
        "ftp://localhost",
        "vault.example",
        "https://vault.example:x",
        "https://[::1",
        "",
    ],
)
def test_addresses_that_are_not_asked(where: Transit, address: str) -> None:
    with pytest.raises(UsageError) as caught:
        transit_keys(replace(where, address=address))
    assert caught.value.code is Code.BAD_ADDRESS
    assert "word" not in caught.value.render()


def test_addresses_that_are(where: Transit) -> None:
    for address in ("https://v.example:8200/", "http://[::1]:8200", "http://localhost"):
        transit_keys(replace(where, address=address))


@pytest.mark.parametrize("name", ["", "..", "a/b", "a?b", "a b", "é", "x" * 101, ".a"])
def test_names_that_would_lead_elsewhere(where: Transit, name: str) -> None:
    for change in ({"key": name}, {"mount": name}, {"namespace": f"a/{name}"}):
        if name == "a/b" and "namespace" in change:
            continue
        with pytest.raises(ModicumError) as caught:
            transit_keys(replace(where, **change))  # type: ignore[arg-type]
        assert caught.value.code is Code.BAD_NAME


def test_certificates_that_cannot_be_read(where: Transit, tmp_path: Path) -> None:
    address = "https://localhost:9"
    keys = transit_keys(replace(where, address=address, ca_file=tmp_path / "none"))
    with pytest.raises(UnavailableError, match="certificates"):
        keys.current()


def test_without_httpx2_it_says_what_to_install(
    where: Transit, monkeypatch: pytest.MonkeyPatch
) -> None:
    import builtins

    real = builtins.__import__

    def without(name: str, *args: Any, **more: Any) -> Any:
        if name == "httpx2":
            raise ModuleNotFoundError(name=name)
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match="httpx2"):
        transit_keys(where)
