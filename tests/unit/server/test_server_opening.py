"""What settings and options say reaches the server."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest
from samples.fuzzed_escrow import TABLE
from samples.small import POLICY
from typer.testing import CliRunner, Result

import modicum as mo
from modicum.cli.exit_codes import Exit
from modicum.cli.main import app
from modicum.core.errors import UnavailableError
from modicum.server import factory, settings_check
from modicum.server.auth.setup import PublicAddress
from modicum.server.components import Parts
from modicum.server.processes import Listening
from modicum.server.settings.binding import overridden
from modicum.server.settings.model import Settings
from modicum.server.settings.reader import LOG_LEVELS, load_settings
from modicum.storage.proofs.signing_keys import load_key, make_key
from modicum.writer.factory import open_decider

SETTINGS = """
modicum: server/v1
ledger: ledger.db
listen: {port: 0}
limits: {body_bytes: 2048, unrecognized_per_minute: 2, leave_s: 7, shutdown_s: 9}
telemetry: {log_level: warning}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "server.yaml").write_text(SETTINGS)
    (tmp_path / "policy.yaml").write_text(POLICY)
    policy = tmp_path / "policy.yaml"
    mo.open(tmp_path / "ledger.db", policy=policy, actor="olga").init()
    return tmp_path


def test_limits_reach_the_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []
    monkeypatch.setattr(factory, "serve", lambda *given: begun.extend(given))
    arguments = ["serve", "--config", str(folder / "server.yaml")]
    found = CliRunner().invoke(app, [*arguments, "--log-level", "error"])
    assert found.exit_code == 0, found.output
    make, listening, _, log = begun
    assert isinstance(listening, Listening)
    assert (listening.body_bytes, listening.leave_seconds) == (2048, 7)
    assert listening.drain_seconds == 9
    assert log._least == 40
    parts = make()
    try:
        parts.anonymous_rates.note("x")
        parts.anonymous_rates.note("x")
        with pytest.raises(UnavailableError):
            parts.anonymous_rates.note("x")
        assert parts.watch.log._least == 40
    finally:
        parts.decider.close()
        for one in parts.closing:
            one()


@pytest.mark.parametrize("level", LOG_LEVELS)
def test_an_option_says_what_is_logged(level: str) -> None:
    assert overridden(Settings(), log_level=level).telemetry.log_level == level
    kept = overridden(Settings(), log_level=level)
    assert overridden(kept).telemetry.log_level == level


def test_no_other_level_is_known() -> None:
    found = CliRunner().invoke(app, ["serve", "--log-level", "loud"])
    assert found.exit_code == 2


# --- before anybody is let in ---

WITH_SIGN_IN = """
modicum: server/v1
ledger: ledger.db
listen: {port: 0}
public_url: https://modicum.example
api_tokens: true
workers: 2
signing_key_file: key
tables: {visits: visits.parquet}
escrow: {vault: vault, keys: keys.json}
oidc:
  issuer: https://login.example
  client_id: modicum
  client_secret_file: secret
  programs: {audience: "https://modicum.example/api"}
"""
SECRET = "canary-5c1e"


@pytest.fixture
def signing_in(folder: Path) -> Path:
    """Return settings by which people sign in, with all that they name."""
    (folder / "server.yaml").write_text(WITH_SIGN_IN)
    (folder / "secret").write_text(SECRET)
    (folder / "secret").chmod(0o600)
    make_key(folder / "key")
    mo.create_vault(folder / "vault", folder / "keys.json")
    return folder / "server.yaml"


def check(config: Path, *more: str) -> Result:
    return CliRunner().invoke(app, ["serve", "--check", "--config", str(config), *more])


def test_a_check_says_what_a_server_would_do(
    signing_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factory, "serve", forbidden)
    monkeypatch.setattr(factory, "bound", forbidden)
    before = mo.open(signing_in.parent / "ledger.db").state()
    found = check(signing_in)
    assert found.exit_code == 0, found.output
    told = dict(line.split(maxsplit=1) for line in found.stdout.splitlines()[:2])
    assert told["ledger"].endswith("ledger.db, 1 entry")
    assert told["policy"] == f"small ({before.policy.digest[:12]})"  # type: ignore[union-attr]
    assert "127.0.0.1, any port, 2 processes\n" in found.stdout
    assert "https://modicum.example\n" in found.stdout
    assert (
        "people who sign in at https://login.example; programs with its tokens; holders"
        " of API tokens\n"
    ) in found.stdout
    assert load_key(signing_in.parent / "key").id in found.stdout
    assert "visits\n" in found.stdout
    vault, keys = (signing_in.parent / one for one in ("vault", "keys.json"))
    assert f"escrow      0 data sets; vault {vault}, keys {keys}\n" in found.stdout
    assert SECRET not in found.output
    assert mo.open(signing_in.parent / "ledger.db").state() == before


def test_a_check_goes_by_options(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:  # It may be this server's.
        port = str(taken.getsockname()[1])
        found = check(folder / "server.yaml", "--port", port)
    assert found.exit_code == 0, found.output
    assert f"http://127.0.0.1:{port}, 1 process\n" in found.stdout
    assert "by a one-time link" in found.stdout
    assert "holders of API tokens\n" in found.stdout
    assert found.stdout.count("nothing: no") == 3
    assert "escrow      none: no `escrow`\n" in found.stdout


def test_a_check_tells_how_much_an_escrow_has(signing_in: Path) -> None:
    folder = signing_in.parent
    place = mo.EscrowPlace(folder / "vault", folder / "keys.json")
    ws = mo.open_escrow(folder / "ledger.db", place, actor="olga")
    declared = mo.Declared(TABLE)
    owned = mo.Ownership({"olga": ()}, 1)
    ws.escrow.register("people", b"user_id,age\n1,30\n", declared, owned)
    assert "escrow      1 data set; vault " in check(signing_in).stdout


def test_with_an_escrow_the_log_alone_counts(
    signing_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot says whatever somebody wrote into it, and signs nothing."""
    told: list[bool] = []

    def noted(*args: Any, from_beginning: bool = False, **named: Any) -> Any:
        told.append(from_beginning)
        return open_decider(*args, from_beginning=from_beginning, **named)

    monkeypatch.setattr("modicum.server.settings_check.open_decider", noted)
    monkeypatch.setattr("modicum.server.factory.open_decider", noted)

    def begun() -> None:
        settings = load_settings(signing_in)
        door = PublicAddress("127.0.0.1", 8642, "me")
        settings_check.checked(settings, "me")
        parts = factory.make_parts(settings, door)
        asyncio.run(parts.close())

    begun()
    assert told == [True, True]
    text = signing_in.read_text()
    signing_in.write_text(text.replace("escrow: {vault: vault, keys: keys.json}", ""))
    begun()
    assert told == [True, True, False, False]


def forbidden(*_: object) -> Any:
    raise AssertionError("this must not be reached")


def spoiled(config: Path, how: str) -> None:
    """Have something be wrong with what settings name."""
    folder = config.parent
    match how:
        case "no secret":
            (folder / "secret").unlink()
        case "open secret":
            (folder / "secret").chmod(0o644)
        case "open key":
            (folder / "key").chmod(0o640)
        case "no vault":
            (folder / "vault").rename(folder / "elsewhere")
        case "no vault keys":
            (folder / "keys.json").unlink()
        case "open vault keys":
            (folder / "keys.json").chmod(0o644)
        case "no ledger":
            (folder / "ledger.db").unlink()
        case "others":
            text = config.read_text().replace("{port: 0}", "{host: 0.0.0.0, port: 0}")
            config.write_text(text)
        case "settings":
            config.write_text(config.read_text().replace("workers", "wrokers"))
        case _:
            raise AssertionError(how)


@pytest.mark.parametrize(
    ("how", "exit_code", "told"),
    [
        ("no secret", Exit.INVALID, "the secret"),
        ("open secret", Exit.USAGE, "chmod 600"),
        ("open key", Exit.USAGE, "chmod 600"),
        ("no vault", Exit.USAGE, "there is no vault"),
        ("no vault keys", Exit.INTERNAL, "keys.json"),
        ("open vault keys", Exit.INTERNAL, "chmod 600"),
        ("no ledger", Exit.USAGE, "ledger.db"),
        ("others", Exit.USAGE, "trusted_proxies"),
        ("settings", Exit.INVALID, "wrokers"),
    ],
)
def test_what_is_wrong_is_told_before_the_server_listens(
    signing_in: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    exit_code: Exit,
    told: str,
) -> None:
    monkeypatch.setattr(factory, "serve", forbidden)
    monkeypatch.setattr(factory, "bound", forbidden)
    spoiled(signing_in, how)
    for found in (
        check(signing_in),
        CliRunner().invoke(app, ["serve", "--config", str(signing_in)]),
    ):
        assert found.exit_code == exit_code, found.output
        assert told in found.stderr
        assert "listening" not in found.output
        assert SECRET not in found.output


def test_a_server_says_where_it_listens_once_it_does(
    signing_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def serve(_make: object, _listening: object, own: socket.socket, _: object) -> None:
        assert told == [f"http://127.0.0.1:{own.getsockname()[1]}"]
        socket.create_connection(own.getsockname()).close()

    monkeypatch.setattr(factory, "serve", serve)
    settings = load_settings(signing_in)
    factory.open_server(settings, "me", lambda one: told.append(one.url))
    assert len(told) == 1


# --- links ---

SEVERAL = "local_people: {olga: {privacy-officer: all}, ann: {analyst: all}}\n"
LINK = r"http://127\.0\.0\.1:\d+/login/local\?key=[\w-]{43}"


class _AtOnce(Thread):
    def start(self) -> None:
        self.run()


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let servers end at once; return what a browser reads when it is opened."""
    found: list[str] = []

    def begin(make: Callable[[], Parts], *_: object) -> None:
        parts = make()
        parts.decider.close()
        for one in parts.closing:
            one()

    def browse(url: str) -> bool:
        path = Path(urlsplit(url).path)
        assert path.parent.stat().st_mode & 0o077 == 0
        found.append(path.read_text())
        return False  # That no browser opened is no mistake.

    monkeypatch.setattr(factory, "serve", begin)
    monkeypatch.setattr("modicum.cli.serve.Thread", _AtOnce)
    monkeypatch.setattr("webbrowser.open", browse)
    return found


def begun(*arguments: str) -> dict[str, str]:
    """Return the links that a server prints, by whose they are."""
    found = CliRunner().invoke(app, [*arguments])
    assert found.exit_code == 0, found.output
    return dict(re.findall(rf"one-time sign-in link(.*):  ({LINK})\n", found.stderr))


def test_a_server_prints_the_link_of_each_person(
    folder: Path, pages: list[str]
) -> None:
    config = folder / "server.yaml"
    assert list(begun("serve", "--config", str(config))) == [""]
    config.write_text(SETTINGS + SEVERAL)
    links = begun("serve", "--config", str(config))
    assert list(links) == [" of olga", " of ann"]
    assert len(set(links.values())) == 2
    assert pages == []
    found = check(config)
    assert "olga, ann by a one-time link, from this machine" in found.stdout


def test_a_browser_is_shown_the_first_link(folder: Path, pages: list[str]) -> None:
    config = folder / "server.yaml"
    config.write_text(SETTINGS + SEVERAL)
    links = begun("serve", "--config", str(config), "--open")
    assert [re.findall(LINK, page) for page in pages] == [[links[" of olga"]]]


def test_the_demo_is_served_to_six_people_and_served_again(
    tmp_path: Path, pages: list[str]
) -> None:
    arguments = ("demo", "--dir", str(tmp_path / "acme"), "--open", "--port", "0")
    people = [" of olga", " of omar", " of dara", " of erin", " of amir", " of audra"]
    first = begun(*arguments)
    assert list(first) == people
    ledger = mo.open(tmp_path / "acme" / "ledger.db")
    before = ledger.state().seq
    again = begun(*arguments)
    assert (list(again), ledger.state().seq) == (people, before)
    assert not set(first.values()) & set(again.values())
    assert len(pages) == 2


def test_what_was_made_otherwise_is_not_served(
    tmp_path: Path, pages: list[str]
) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    found = CliRunner().invoke(app, ["demo", "--dir", str(tmp_path), "--open"])
    assert found.exit_code == Exit.USAGE
    assert (list(tmp_path.iterdir()), pages) == ([tmp_path / "policy.yaml"], [])
