"""The settings file: what is read, and what is refused with its place."""

from __future__ import annotations

from dataclasses import fields, replace
from ipaddress import ip_network
from pathlib import Path

import pytest
from samples.entrances import WITH_OIDC, settings_of

from modicum.api.permissions.actions import APART, Role
from modicum.api.permissions.identity import ALL
from modicum.core.errors import Code, InputError
from modicum.core.yaml_reader import read_document
from modicum.server.settings.binding import overridden
from modicum.server.settings.model import (
    RESERVATIONS,
    ClaimNames,
    EscrowSettings,
    Limits,
    Listen,
    Programs,
    Settings,
)
from modicum.server.settings.reader import load_settings, read_settings
from modicum.server.settings.tables import TablesOf

HEAD = "modicum: server/v1\n"
ESCROW = "escrow: {vault: v, keys: k, %s}\n"
LOCAL = "local_people: {Olga: {privacy-officer: all}, ann: {analyst: [a]}}\n"
OIDC = "oidc: {issuer: 'https://x.org', client_id: m, client_secret_file: s%s}\n"


def read(text: str) -> Settings:
    return read_settings(
        read_document((HEAD + text).encode(), "s.yaml"), Path("/etc/m")
    )


def problem(text: str) -> tuple[Code, str]:
    with pytest.raises(InputError) as caught:
        read(text)
    return caught.value.code, caught.value.render()


def test_a_whole_file_says_what_it_says(tmp_path: Path) -> None:
    got = settings_of(WITH_OIDC, tmp_path)

    assert got.ledger == str(tmp_path / "ledger.db")
    assert got.public_url == "https://privacy.example.org"
    assert got.trusted_proxies == (ip_network("10.1.2.0/24"),)
    assert got.oidc is not None
    assert got.oidc.client_secret_file == tmp_path / "secret"
    assert got.oidc.programs == Programs("https://privacy.example.org/api")
    assert got.grants["labs"] == {Role.ANALYST: frozenset({"labs"})}
    assert got.grants["privacy-team"] == {Role.PRIVACY_OFFICER: frozenset({ALL})}
    assert got.people == {"ann@example.org": {Role.ANALYST: frozenset({"visits"})}}
    assert not got.is_local


def test_every_setting_can_be_written() -> None:
    got = read(
        """
ledger: postgresql://db/ledger
known_head: '7:0123456789AB'
witness: /run/head
public_url: https://X.example.org:443/
listen: {host: 10.0.0.1, port: 80}
workers: 4
allowed_hosts: [Health.example.org, "[fd00::1]:8642"]
trusted_proxies: [10.0.0.9, "fd00::/64"]
console: off
api_tokens: true
oidc:
  issuer: https://x.org/realm/
  client_id: m
  client_secret_file: /run/s
  scopes: [openid, groups]
  claims: {name: sub, groups: roles, fold_case: true}
  programs: {audience: api, name: azp, told_by: {idtyp: app}}
  leeway_s: 0
grants: {7: {analyst: [a, b]}}
people: {Dana@Example.org: {admin: all}}
programs: {etl: {analyst: all}}
sessions: {idle_minutes: 5, absolute_hours: 1}
limits: {body_bytes: 2048, data_bytes: 4096, requests_per_minute: 5,
         unrecognized_per_minute: 7, leave_s: 3, shutdown_s: 0, analysis_s: 9}
signing_key_file: key.pem
tables: {7: visits.parquet}
escrow: {vault: vault, keys: /run/keys.json, sandbox_uid: 65000, task_s: 60}
telemetry: {log_level: warning, otlp_endpoint: "http://collector:4318"}
reservations: {share: 0.5, days: 3}
audit_to: [trail.jsonl, "syslog://log:514", "otlp+https://collector/v1/logs"]
"""
    )
    untouched = Settings()
    for field in fields(Settings):
        if not field.compare:  # It is no setting.
            continue
        if field.name == "ledgers":  # Their files are read: test_several_ledgers.py.
            continue
        if field.name == "local_people":  # It is for servers without sign-in.
            got = replace(got, local_people=read(LOCAL).local_people)
        assert getattr(got, field.name) != getattr(untouched, field.name), field.name
    assert got.public_url == "https://x.example.org"
    assert [one.place for one in got.audit_to] == [
        "/etc/m/trail.jsonl",
        "log",
        "https://collector/v1/logs",
    ]
    assert got.allowed_hosts == ("health.example.org", "[fd00::1]:8642")
    assert got.ledger == "postgresql://db/ledger"
    assert got.signing_key_file == Path("/etc/m/key.pem")
    assert got.limits == Limits(2048, 4096, 5, 7, 3, 0, analysis_s=9)
    vault, keys = Path("/etc/m/vault"), Path("/run/keys.json")
    assert got.escrow == EscrowSettings(vault, keys, 65000, 60)
    assert got.oidc is not None
    assert got.oidc.claims == ClaimNames("sub", "roles", fold_case=True)
    assert got.oidc.programs == Programs("api", "azp", ("idtyp", "app"))
    assert list(got.people) == ["dana@example.org"]
    assert list(got.grants) == ["7"]


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (LOCAL + OIDC % "", Code.KEYS_CONFLICT, "remove it, or `oidc`"),
        (LOCAL + "api_tokens: true\n", Code.KEYS_CONFLICT, "or `api_tokens`"),
        ("local_people: {olga: {}}\n", Code.MISSING_KEY, "`olga` has no role"),
        ("local_people: [olga]\n", Code.WRONG_TYPE, "`local_people`"),
        ("local_people: {a: {x: all}}\n", Code.UNKNOWN_CHOICE, "role"),
        (
            "local_people: {a: {auditor: all, analyst: all}}\n",
            Code.DUTIES_JOINED,
            "must be separate",
        ),
        ("console: maybe\n", Code.UNKNOWN_CHOICE, "console"),
        ("public_ulr: https://x.org\n", Code.UNKNOWN_KEY, 'mean "public_url"'),
        ("public_url: http://x.org\n", Code.BAD_NAME, "write  https://x.org"),
        ("public_url: https://x.org/path\n", Code.BAD_NAME, "has a path"),
        ("public_url: https://u:p@x.org\n", Code.BAD_NAME, "without user"),
        ("public_url: https://x.org#a\n", Code.BAD_NAME, "not an address of a server"),
        (
            "public_url: 'javascript:alert(1)'\n",
            Code.BAD_NAME,
            "not an address of a server",
        ),
        ("public_url: https://x.org:0\n", Code.BAD_NAME, "not an address of a server"),
        (
            "public_url: 'https://x.org:99999'\n",
            Code.BAD_NAME,
            "not an address of a server",
        ),
        ("trusted_proxies: [0.0.0.0/0]\n", Code.OUT_OF_RANGE, "contains all addresses"),
        ("trusted_proxies: ['::/0']\n", Code.OUT_OF_RANGE, "contains all addresses"),
        ("trusted_proxies: [10.0.0.1/8]\n", Code.BAD_NAME, "10.0.0.1/8"),
        ("allowed_hosts: ['*']\n", Code.BAD_NAME, "not a host"),
        ("workers: 0\n", Code.OUT_OF_RANGE, "from 1"),
        ("limits: {leave_s: 601}\n", Code.OUT_OF_RANGE, "600"),
        ("limits: {unrecognized_per_minute: 0}\n", Code.OUT_OF_RANGE, "from 1"),
        ("limits: {data_bytes: 1023}\n", Code.OUT_OF_RANGE, "from 1024"),
        ("limits: {data_bytes: 2147483649}\n", Code.OUT_OF_RANGE, "2147483648"),
        ("escrow: vault\n", Code.WRONG_TYPE, "`escrow`"),
        ("escrow: {keys: k}\n", Code.MISSING_KEY, "`escrow`"),
        ("escrow: {vault: v}\n", Code.MISSING_KEY, "`keys`"),
        ("escrow: {vault: '', keys: k}\n", Code.BAD_NAME, "`vault` is empty"),
        ("escrow: {vault: v, keys: ''}\n", Code.BAD_NAME, "`keys` is empty"),
        ("escrow: {vault: v, keys: 7}\n", Code.WRONG_TYPE, "`keys` must be text"),
        (ESCROW % "sandbox_uid: 0", Code.OUT_OF_RANGE, "from 1"),
        (ESCROW % "sandbox_uid: -1", Code.OUT_OF_RANGE, "from 1"),
        (ESCROW % "sandbox_uid: 4294967295", Code.OUT_OF_RANGE, "4294967294"),
        (ESCROW % "sandbox_uid: nobody", Code.NOT_A_NUMBER, "`sandbox_uid`"),
        (ESCROW % "task_s: 0", Code.OUT_OF_RANGE, "from 1"),
        (ESCROW % "task_s: 86401", Code.OUT_OF_RANGE, "86400"),
        (ESCROW % "uid: 65000", Code.UNKNOWN_KEY, "key `uid`"),
        ("listen: {port: 70000}\n", Code.OUT_OF_RANGE, "65535"),
        ("grants: {g: {analist: all}}\n", Code.UNKNOWN_CHOICE, 'mean "analyst"'),
        ("grants: {g: {analyst: some}}\n", Code.WRONG_TYPE, "or `all`"),
        ("grants: {g: {analyst: []}}\n", Code.MISSING_KEY, "has no data set"),
        ("grants: {g: {analyst: ['*']}}\n", Code.BAD_NAME, "`*`"),
        (
            "people: {Dana: {admin: all}, dana: {admin: all}}\n",
            Code.DUPLICATE_NAME,
            "d",
        ),
        ("telemetry: {log_level: loud}\n", Code.UNKNOWN_CHOICE, "warning"),
        (OIDC % ", scopes: [email]", Code.MISSING_KEY, "openid"),
        (OIDC % ", leeway_s: 121", Code.OUT_OF_RANGE, "120"),
        (OIDC % ", programs: {audience: m}", Code.KEYS_CONFLICT, "client_id"),
        (OIDC.replace("https", "http") % "", Code.BAD_NAME, "must be https"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(
    text: str, code: Code, said: str
) -> None:
    got, shown = problem(text)

    assert got is code
    assert said in shown
    assert "s.yaml:2" in shown


@pytest.mark.parametrize(("one", "other"), APART)
def test_roles_that_stay_apart_are_refused_where_they_are_written(
    one: Role, other: Role
) -> None:
    code, shown = problem(f"grants: {{g: {{{one.value}: all, {other.value}: [a]}}}}\n")

    assert code is Code.DUTIES_JOINED
    assert "s.yaml:2:10" in shown


def test_a_secret_in_the_file_is_refused_and_not_shown() -> None:
    code, shown = problem(
        "oidc: {issuer: 'http://x', client_id: m, client_secret: canary, more: 1}\n"
    )

    assert code is Code.UNKNOWN_KEY
    assert "client_secret_file" in shown
    assert "canary" not in shown


def test_all_mistakes_are_told_at_once() -> None:
    _, shown = problem("workers: 0\npublic_url: x\ngrants: {a: {b: all}}\nodd: 1\n")

    assert shown.count("error[") == 4


def test_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "server.yaml"
    path.write_text("modicum: server/v2\n")
    with pytest.raises(InputError) as caught:
        load_settings(path)
    assert caught.value.code is Code.UNKNOWN_VERSION


def test_options_override_the_file() -> None:
    got = read("public_url: https://x.org\nlisten: {host: 10.0.0.1, port: 80}\n")

    assert overridden(got) == got
    changed = overridden(
        got, host="::1", port=0, workers=2, ledger="l", public_url="https://Y.org"
    )
    assert changed.listen == Listen("::1", 0)
    assert (changed.workers, changed.ledger) == (2, "l")
    assert changed.public_url == "https://y.org"
    with pytest.raises(InputError, match="https"):
        overridden(got, public_url="http://y.org")


def test_tables_are_read_by_their_data_sets() -> None:
    got = read(
        """
tables:
  visits: visits.parquet
  stays: {rows: /srv/stays.csv, unit: patient}
  labs: {rows: {labs: db.duckdb::labs, patients: ../p.csv}}
"""
    ).tables
    assert got == {
        "visits": TablesOf({"": "/etc/m/visits.parquet"}),
        "stays": TablesOf({"": "/srv/stays.csv"}, "patient"),
        "labs": TablesOf(
            {"labs": "/etc/m/db.duckdb::labs", "patients": "/etc/m/../p.csv"}
        ),
    }
    limits = read("limits: {analysis_rows: 5, analysis_s: 6}\n").limits
    assert (limits.analysis_rows, limits.analysis_s) == (5, 6)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[visits]", Code.WRONG_TYPE),
        ("{visits: [a]}", Code.WRONG_TYPE),
        ("{visits: {unit: u}}", Code.MISSING_KEY),
        ("{visits: {rows: {}}}", Code.MISSING_KEY),
        ("{visits: {rows: a, unit: ''}}", Code.BAD_NAME),
        ("{visits: {rows: a, units: b}}", Code.UNKNOWN_KEY),
        ("{visits: s3://bucket/a.parquet}", Code.NOT_SUPPORTED),
        ("{visits: ''}", Code.NOT_SUPPORTED),
        ("{'../visits': a}", Code.BAD_NAME),
    ],
)
def test_tables_that_are_none_are_refused(text: str, code: Code) -> None:
    assert problem(f"tables: {text}\n")[0] is code


def test_every_mistake_in_tables_is_told() -> None:
    with pytest.raises(InputError) as caught:
        read("tables: {visits: {}, labs: ''}\nworkers: 0\n")
    assert len(caught.value.problems) == 3


def test_local_people_are_several_actors() -> None:
    got = read(LOCAL)
    assert got.is_local
    assert list(got.local_people) == ["olga", "ann"]
    assert (got.bound, read("").bound) == (RESERVATIONS, None)
    assert read("local_people: {}\n") == read("")
