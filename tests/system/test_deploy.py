"""The files in `deploy/`: linters pass them, and what they run is what modicum has."""

from __future__ import annotations

import asyncio
import http.server
import json
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from samples.small import POLICY
from starlette.testclient import TestClient
from typer.testing import CliRunner

import modicum as mo
from modicum.cli.main import app
from modicum.core.errors import InputError
from modicum.core.yaml_reader import read_document
from modicum.server.app import build
from modicum.server.auth.setup import PublicAddress
from modicum.server.factory import make_parts
from modicum.server.settings.binding import bound_address, overridden
from modicum.server.settings.model import (
    EscrowSettings,
    Limits,
    Listen,
    Oidc,
    SessionTimes,
    Settings,
    Telemetry,
)
from modicum.server.settings.reader import load_settings, read_settings
from modicum.storage.proofs.signing_keys import make_key

DEPLOY = Path(__file__).parents[2] / "deploy"
PROGRAM = "/opt/modicum/bin/modicum"
UNITS = ("modicum.service", "modicum-backup.service", "modicum-backup.timer")


def read(name: str) -> str:
    return (DEPLOY / name).read_text(encoding="utf-8")


def compose() -> Any:
    return YAML(typ="safe").load(read("compose.yaml"))


def run(*args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(arg) for arg in args], check=False, capture_output=True, text=True
    )


# --- the image ---


def hadolint(file: Path) -> subprocess.CompletedProcess[str]:
    return run(Path(sys.executable).parent / "hadolint", "--no-color", file)


def test_the_dockerfile_is_linted(tmp_path: Path) -> None:
    done = hadolint(DEPLOY / "Dockerfile")
    assert (done.returncode, done.stdout) == (0, "")
    worse = tmp_path / "Dockerfile"
    worse.write_text(read("Dockerfile").replace(":3.11-slim-bookworm", ":latest"))
    assert "DL3007" in hadolint(worse).stdout


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile, and what follows each."""
    joined = read("Dockerfile").replace("\\\n", " ")
    lines = [line for line in joined.splitlines() if line and line[0] != "#"]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def last(instruction: str) -> str:
    return [rest for name, rest in instructions() if name == instruction][-1]


def test_the_image_runs_as_a_user_without_rights() -> None:
    """After USER nothing changes the user back, and its number is not that of root."""
    assert last("USER") == "10001:10001"
    names = [name for name, _ in instructions()]
    assert names.index("USER") > max(
        at for at, name in enumerate(names) if name in ("RUN", "COPY")
    )


def test_the_image_is_pinned_and_gets_no_secret() -> None:
    for name, rest in instructions():
        if name == "FROM":
            assert re.match(r"python:3\.11-slim-bookworm( AS build)?$", rest)
        if name in ("ENV", "ARG"):
            assert not re.search(r"password|secret|token|key", rest, re.IGNORECASE)
    assert "--constraint constraints.txt" in read("Dockerfile")


def test_only_what_the_image_is_made_of_gets_into_its_context() -> None:
    lines = [one for one in read("Dockerfile.dockerignore").splitlines() if one]
    rules = [one for one in lines if one[0] != "#"]
    assert rules[0] == "*"
    kept = {one[1:] for one in rules if one[0] == "!"}
    copied = {
        word
        for name, rest in instructions()
        if name == "COPY" and "--from" not in rest
        for word in rest.split()[:-1]
    }
    assert kept == copied
    assert all((DEPLOY.parent / one).exists() for one in kept)


@contextmanager
def answering(status: int) -> Iterator[int]:
    """Yield the port of a server that answers /readyz so, and else that it is lost."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/readyz" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "is_healthy"), [(200, True), (503, False), (404, False)]
)
def test_the_image_is_healthy_when_the_service_is_ready(
    status: int, is_healthy: bool
) -> None:
    python, *rest = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
    assert python == "python"
    with answering(status) as port:
        done = run(sys.executable, *(one.replace("8080", str(port)) for one in rest))
        assert (done.returncode == 0) == is_healthy
    done = run(sys.executable, *(one.replace("8080", str(port)) for one in rest))
    assert done.returncode  # Nobody listens there any more.


# --- compose ---


def fits_schema(file: Path) -> bool:
    checker = Path(sys.executable).parent / "check-jsonschema"
    done = run(checker, "--builtin-schema", "vendor.compose-spec", file)
    return done.returncode == 0


def test_servers_leave_no_core_dumps() -> None:
    assert compose()["services"]["modicum"]["ulimits"] == {"core": 0}
    assert "\nLimitCORE=0\n" in read("modicum.service")


def test_the_compose_file_fits_its_schema(tmp_path: Path) -> None:
    assert fits_schema(DEPLOY / "compose.yaml")
    worse = tmp_path / "compose.yaml"
    worse.write_text(read("compose.yaml").replace("cap_drop:", "cap_drops:"))
    assert not fits_schema(worse)


def test_services_have_few_rights_and_no_password_in_the_file() -> None:
    document = compose()
    for name, service in document["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        for key, value in service["environment"].items():
            if "PASS" in key:
                assert value.startswith("/run/secrets/"), key
                assert value.rpartition("/")[2] in service["secrets"]
    assert "cap_add" not in document["services"]["modicum"]
    assert not re.search(r"://[^/\s@]*:[^/\s@]*@", read("compose.yaml"))
    for secret in document["secrets"].values():
        assert set(secret) == {"file"}


def test_the_database_is_reached_from_inside_only() -> None:
    document = compose()
    database, service = (document["services"][name] for name in ("db", "modicum"))
    assert database["networks"] == ["inside"]
    assert "ports" not in database
    assert document["networks"]["inside"] == {"internal": True}
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["depends_on"] == {"db": {"condition": "service_healthy"}}
    assert database["image"].startswith("postgres:15-")
    assert "healthcheck" in database
    assert "HEALTHCHECK" in [name for name, _ in instructions()]


# --- the settings ---


def test_the_example_of_settings_says_everything_that_can_be_said() -> None:
    """Read by the server's own reader; no setting is left at what it is without it."""
    text = read("config.yaml")
    # A container cannot have an escrow, and each ledger has heads of its own: comments.
    comments = r"^# ((?:escrow|known_head|audit_to): .*)$"
    own = "\n".join(re.findall(comments, text, re.MULTILINE))
    node = read_document(f"{text}\n{own}\n".encode(), "config.yaml")
    got, untouched = read_settings(node, DEPLOY), Settings()
    same = {
        field.name
        for field in fields(Settings)
        if field.compare and getattr(got, field.name) == getattr(untouched, field.name)
    }
    # Written out with the values that they have anyway.
    # `local_people` are for a server without sign-in, `ledgers` have further files.
    assert same == {"sessions", "limits", "console", "local_people", "ledgers"}
    given = YAML(typ="safe").load(f"{text}\n{own}\n")
    for key, kind in (
        ("listen", Listen),
        ("oidc", Oidc),
        ("sessions", SessionTimes),
        ("limits", Limits),
        ("escrow", EscrowSettings),
        ("telemetry", Telemetry),
    ):
        assert set(given[key]) == {one.name for one in fields(kind)}, key
    named = {one.name for one in fields(Settings) if one.compare}
    assert set(given) == named - {"local_people", "ledgers"} | {"modicum"}


def test_the_example_of_settings_fits_the_compose_file() -> None:
    """Where it binds, whom it believes, and the files that it names are there."""
    service = compose()["services"]["modicum"]
    command = service["command"]
    options = dict(zip(command[1::2], command[2::2], strict=True))
    got = overridden(
        load_settings(DEPLOY / "config.yaml"),
        ledger=service["environment"]["MODICUM_LEDGER"],
        host=options["--host"],
        port=int(options["--port"]),
        workers=int(options["--workers"]),
    )
    assert got == load_settings(DEPLOY / "config.yaml")
    assert bound_address(got) == "0.0.0.0"
    assert any(one.startswith("./config.yaml:") for one in service["volumes"])
    (pool,) = compose()["networks"]["outside"]["ipam"]["config"]
    assert [str(one) for one in got.trusted_proxies] == [f"{pool['gateway']}/32"]
    assert got.oidc is not None
    for path in (got.oidc.client_secret_file, got.signing_key_file):
        assert path is not None
        assert path.parent == Path("/run/secrets")
        assert path.name in service["secrets"]


def test_a_server_takes_the_example_of_settings(tmp_path: Path) -> None:
    """With secrets and a ledger of its own it answers; without them it says why."""
    text = read("config.yaml").replace("/run/secrets", str(tmp_path))
    text = text.replace("/var/lib/modicum", str(tmp_path))
    (tmp_path / "config.yaml").write_text(text)
    (tmp_path / "policy.yaml").write_text(POLICY)
    ledger = str(tmp_path / "ledger.db")
    mo.open(ledger, policy=tmp_path / "policy.yaml", actor="olga").init()
    options = {"ledger": ledger, "host": "127.0.0.1", "port": 8080, "workers": 1}
    settings = overridden(load_settings(tmp_path / "config.yaml"), **options)  # type: ignore[arg-type]
    door = PublicAddress("127.0.0.1", 8080, "me")
    with pytest.raises(InputError, match="signing_key"):
        make_parts(settings, door)
    make_key(tmp_path / "signing_key")
    with pytest.raises(InputError, match="oidc_secret"):
        make_parts(settings, door)
    (tmp_path / "oidc_secret").write_text("made-for-this-test")
    (tmp_path / "oidc_secret").chmod(0o600)
    parts = make_parts(settings, door)
    try:
        # Without its lifespan nothing is closed by the client.
        with TestClient(build(parts), base_url="http://127.0.0.1:8080") as client:
            assert client.get("/readyz").status_code == 200
            other = client.get("/readyz", headers={"Host": "modicum:8080"})
            assert other.status_code == 200
            assert client.get("/readyz", headers={"Host": "x"}).status_code == 400
    finally:
        asyncio.run(parts.close())
    done = CliRunner().invoke(app, ["doctor", "--ledger", ledger, "--json"])
    document = json.loads(done.stdout)
    assert {one["check"] for one in document["checks"]} >= {"chain", "policy"}


# --- systemd ---

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze here"
)


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """A folder with the units, their program being one that is on this machine."""
    there = shutil.which("true")
    assert there is not None
    for name in UNITS:
        (tmp_path / name).write_text(read(name).replace(PROGRAM, there))
    return tmp_path


@needs_systemd
def test_systemd_understands_the_units(units: Path) -> None:
    paths = [units / name for name in UNITS]
    done = run("systemd-analyze", "verify", "--man=no", *paths)
    assert (done.returncode, done.stderr) == (0, "")
    service = units / "modicum.service"
    service.write_text(service.read_text().replace("NoNewPriv", "NoNewRights"))
    assert "NoNewRights" in run("systemd-analyze", "verify", "--man=no", service).stderr


@needs_systemd
@pytest.mark.parametrize("name", ["modicum.service", "modicum-backup.service"])
def test_units_expose_little(units: Path, name: str) -> None:
    """The scale goes from 0 to 100; systemd calls up to 2.0 of 10 `OK`."""
    judge = ("systemd-analyze", "security", "--offline=yes", "--threshold=20")
    assert run(*judge, units / name).returncode == 0
    service = units / name
    bare = re.sub(r"^(Protect|Private|Restrict|Capab)\w+=.*\n", "", read(name), flags=8)
    service.write_text(bare)
    assert run(*judge, service).returncode != 0


# --- what they run ---


def started(unit: str) -> list[list[str]]:
    """Return the command lines of a unit that run modicum, without the program."""
    lines = re.findall(r"^ExecStart(?:Pre)?=(.*)$", read(unit), re.MULTILINE)
    found = []
    for line in lines:
        args = shlex.split(line)
        if args[0].endswith("/sh"):
            args = shlex.split(re.sub(r"\$\$\(.*?\)", "NOW", args[-1][len("exec ") :]))
        assert args[0] == PROGRAM
        found.append(args[1:])
    return found


def command_lines() -> list[list[str]]:
    return [
        json.loads(last("CMD")),
        compose()["services"]["modicum"]["command"],
        *(line for unit in UNITS for line in started(unit)),
    ]


def test_modicum_has_the_commands_and_options_that_are_run() -> None:
    lines = command_lines()
    assert ["db", "upgrade", "--check"] in lines
    assert [args[0] for args in lines].count("serve") == 3
    assert any(args[:2] == ["db", "backup"] for args in lines)
    served = CliRunner().invoke(app, ["serve", "--help"]).exit_code == 0
    for args in lines:
        if args[0] != "serve" or served:
            assert is_understood(args), args
    assert not is_understood(["db", "upgrade", "--checks"])
    assert not is_understood(["db", "upgrades", "--check"])


def is_understood(args: list[str]) -> bool:
    """Return whether there are such a command and such options, without running it.

    Help comes after all options were read; one that is not there is told before.
    """
    return CliRunner().invoke(app, [*args, "--help"]).exit_code == 0


def test_names_of_backups_are_new_each_second() -> None:
    """What systemd hands to the shell, after it has taken out its own signs."""
    (line,) = re.findall(r"^ExecStart=(.*)$", read("modicum-backup.service"), re.M)
    _, _, script = shlex.split(line)
    script = script.replace("$$", "$").replace("%%", "%").replace(PROGRAM, "echo")
    output = run("/bin/sh", "-ec", script).stdout
    pattern = r"db backup /var/lib/modicum/backups/ledger-\d{8}T\d{6}Z\.db\n"
    assert re.fullmatch(pattern, output)


def test_the_environment_of_the_unit_names_a_ledger_and_no_password() -> None:
    lines = [one for one in read("modicum.env").splitlines() if one and one[0] != "#"]
    assert [one.partition("=")[0] for one in lines] == ["MODICUM_LEDGER"]
    assert not re.search(r"://[^/\s@]*:[^/\s@]*@", read("modicum.env"))
    for unit in ("modicum.service", "modicum-backup.service"):
        assert "EnvironmentFile=/etc/modicum/modicum.env" in read(unit)
