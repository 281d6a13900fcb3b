"""Reading the settings file `server/v1`: strictly, with the place of each mistake."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from msgspec import structs

from modicum.api.local.escrow.execution import TASK_SECONDS
from modicum.core.document import Node
from modicum.core.errors import Code, InputError
from modicum.core.reader import (
    Fields,
    Problems,
    boolean,
    choice,
    count,
    fail,
    items,
    line,
    name,
    optional_items,
)
from modicum.core.yaml_reader import read_document
from modicum.ops.files.documents import read_bytes
from modicum.server.settings.audit_targets import audit_target
from modicum.server.settings.binding import known_head
from modicum.server.settings.grants import read_grants
from modicum.server.settings.model import (
    RESERVATIONS,
    SHARED,
    ClaimNames,
    EscrowSettings,
    GrantsByName,
    Limits,
    Listen,
    Network,
    Oidc,
    Programs,
    SessionTimes,
    Settings,
    Telemetry,
)
from modicum.server.settings.quotas import read_quotas
from modicum.server.settings.tables import read_tables
from modicum.server.settings.urls import host_of, network, origin, service_url
from modicum.storage.witness.factory import NONE

#: The version of the format that this module reads.
FORMAT: Final = "server/v1"
#: Clocks that differ by more are a fault to be mended, not to be allowed for.
LEEWAY_S_MAX: Final = 120
WORKERS_MAX: Final = 64
#: The greatest number of a user.
UID_MAX: Final = 2**32 - 2
#: Maximum number of ledgers beside the first one.
LEDGERS_MAX: Final = 32
_LEDGER: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_ON_OFF: Final = ("on", "off")
LOG_LEVELS: Final = ("debug", "info", "warning", "error")


def load_settings(path: str | Path) -> Settings:
    """Return the settings of a file."""
    node = read_document(read_bytes(path), str(path))
    return replace(read_settings(node, Path(path).parent), file=Path(path))


def _of_ledger(path: Path, node: Node) -> Settings:
    """Return the settings of a further ledger, as they are in its file."""
    own, basic = load_settings(path), Settings()
    given = [key for key in SHARED if getattr(own, key) != getattr(basic, key)]
    if given:
        raise fail(
            Code.KEYS_CONFLICT,
            f"`{given[0]}` belongs into the settings of the server",
            node,
            notes=(f"it is in {path}",),
            help="move it there: all ledgers share it",
        )
    if own.is_local:
        raise fail(
            Code.MISSING_KEY,
            f"nobody can be recognized for the ledger of {path}",
            node,
            help="write  api_tokens: true  there, or `oidc`",
        )
    return own


def read_settings(node: Node, folder: Path) -> Settings:
    """Return the settings of a tree."""
    fields = Fields(node, "the settings")
    _version(fields)
    reader = _Reader(fields, folder)
    settings = reader.settings()
    with reader.found.guard():
        fields.finish()
    reader.found.raise_any()
    return settings


def _version(fields: Fields) -> None:
    node = fields.take("modicum", help=f"start with  modicum: {FORMAT}")
    given = line(node, "`modicum`")
    if given != FORMAT:
        raise fail(
            Code.UNKNOWN_VERSION,
            f'unknown format "{given[:40]}"',
            node,
            help=f"this version reads {FORMAT}",
        )


class _Reader:
    """Reads one file: section by section, so that one run finds every mistake."""

    def __init__(self, fields: Fields, folder: Path) -> None:
        self._fields = fields
        self._folder = folder
        self.found = Problems()

    def settings(self) -> Settings:
        got = self._basics(Settings())
        for key, read in (
            ("listen", self._listen),
            ("oidc", self._oidc),
            ("sessions", self._sessions),
            ("limits", self._limits),
            ("escrow", self._escrow),
            ("telemetry", self._telemetry),
        ):
            node = self._fields.take_optional(key)
            if node is not None:
                with self.found.guard():
                    got = read(Fields(node, f"`{key}`"), got)
        got = self._who(got)
        further: dict[str, Settings] = {}
        with self.found.guard():
            further = self._ledgers(got)
        return replace(got, ledgers=further)

    def _ledgers(self, got: Settings) -> dict[str, Settings]:
        """Return the settings of the further ledgers, each from its own file."""
        node = self._fields.take_optional("ledgers")
        pairs = [] if node is None else Fields(node, "`ledgers`").rest()
        if len(pairs) > LEDGERS_MAX:
            message = f"`ledgers` has more than {LEDGERS_MAX} entries"
            raise fail(Code.OUT_OF_RANGE, message, node)
        found: dict[str, Settings] = {}
        places, urls = {_place(got.ledger)}, {got.public_url}
        for key, value in pairs:
            if not _LEDGER.fullmatch(given := line(key, "a ledger")):
                raise fail(
                    Code.BAD_NAME,
                    f"`{given[:60]}` is not a name of a ledger",
                    key,
                    help="use up to 40 lower-case letters, digits and -",
                )
            own = _of_ledger(self._path(value, f"`{given}`"), value)
            place = _place(own.ledger)
            is_same_url = own.public_url is not None and own.public_url in urls
            if place in places or is_same_url:
                what = "`public_url`" if is_same_url else "`ledger`"
                message = f"two ledgers of the server have the same {what}"
                raise fail(Code.KEYS_CONFLICT, message, value)
            places.add(place)
            urls.add(own.public_url)
            found[given] = own
        return found

    def _basics(self, got: Settings) -> Settings:
        take = self._fields.take_optional
        with self.found.guard():
            if (node := take("ledger")) is not None:
                got = replace(got, ledger=self._ledger(node))
        with self.found.guard():
            if (node := take("known_head")) is not None:
                got = replace(got, known_head=known_head(node, "`known_head`"))
        with self.found.guard():
            got = replace(got, witness=self._witness())
        with self.found.guard():
            if (node := take("public_url")) is not None:
                got = replace(got, public_url=origin(node, "`public_url`"))
        with self.found.guard():
            if (node := take("workers")) is not None:
                workers = count(node, "`workers`", at_least=1, at_most=WORKERS_MAX)
                got = replace(got, workers=workers)
        with self.found.guard():
            hosts = optional_items(take("allowed_hosts"), "`allowed_hosts`")
            allowed = tuple(host_of(one, "a host") for one in hosts)
            got = replace(got, allowed_hosts=allowed)
        with self.found.guard():
            got = replace(got, trusted_proxies=self._proxies(take("trusted_proxies")))
        with self.found.guard():
            got = replace(got, tables=read_tables(take("tables"), self._folder))
        with self.found.guard():
            if (node := take("reservations")) is not None:
                quotas = read_quotas(node, RESERVATIONS)
                got = replace(got, reservations=quotas)
        with self.found.guard():
            targets = optional_items(take("audit_to"), "`audit_to`")
            named = (audit_target(one, "a target", self._folder) for one in targets)
            got = replace(got, audit_to=tuple(dict.fromkeys(named)))
        with self.found.guard():
            if (node := take("signing_key_file")) is not None:
                path = self._path(node, "`signing_key_file`")
                got = replace(got, signing_key_file=path)
        return got

    def _who(self, got: Settings) -> Settings:
        take = self._fields.take_optional
        with self.found.guard():
            if (node := take("api_tokens")) is not None:
                got = replace(got, api_tokens=boolean(node, "`api_tokens`"))
            if (node := take("console")) is not None:
                state = choice(node, "console", _ON_OFF, Code.UNKNOWN_CHOICE)
                got = replace(got, console=state == "on")
        by_section: dict[str, GrantsByName] = {}
        for key, one in (
            ("grants", "a group"),
            ("people", "a person"),
            ("programs", "a program"),
        ):
            with self.found.guard():
                by_section[key] = read_grants(take(key), key, one)
        with self.found.guard():
            if (node := take("local_people")) is not None:
                got = replace(
                    got,
                    local_people=_local_people(node, got, by_section.get("people", {})),
                )
        return replace(
            got,
            grants=by_section.get("grants", {}),
            people=by_section.get("people", {}),
            programs=by_section.get("programs", {}),
        )

    def _ledger(self, node: Node) -> str:
        given = line(node, "`ledger`")
        return given if "://" in given else str(self._folder / given)

    def _witness(self) -> str | None:
        """Return the witness; `head_file` is how settings before it name a file."""
        node = self._fields.take_optional("witness")
        file = self._fields.take_optional("head_file")
        if file is not None:
            if node is not None:
                raise fail(
                    Code.KEYS_CONFLICT,
                    "`head_file` is a `witness`: remove one of them",
                    file,
                )
            return str(self._path(file, "`head_file`"))
        if node is None:
            return None
        given = line(node, "`witness`")
        if given == NONE or "://" in given:
            return given
        return str(self._path(node, "`witness`"))

    def _path(self, node: Node, what: str) -> Path:
        given = line(node, what)
        if not given:
            raise fail(Code.BAD_NAME, f"{what} is empty", node)
        return self._folder / given

    def _proxies(self, node: Node | None) -> tuple[Network, ...]:
        found = Problems()
        networks: list[Network] = []
        for item in optional_items(node, "`trusted_proxies`"):
            with found.guard():
                networks.append(network(item))
        found.raise_any()
        return tuple(networks)

    # --- sections ------------------------------------------------------------

    @staticmethod
    def _listen(fields: Fields, got: Settings) -> Settings:
        listen = Listen()
        if (node := fields.take_optional("host")) is not None:
            listen = replace(listen, host=line(node, "`host`"))
        if (node := fields.take_optional("port")) is not None:
            port = count(node, "`port`", at_least=0, at_most=65535)
            listen = replace(listen, port=port)
        fields.finish()
        return replace(got, listen=listen)

    def _oidc(self, fields: Fields, got: Settings) -> Settings:
        _refuse_secret(fields)
        issuer = service_url(fields.take("issuer"), "`issuer`")
        client_id = line(fields.take("client_id"), "`client_id`")
        secret = self._path(fields.take("client_secret_file"), "`client_secret_file`")
        oidc = Oidc(issuer, client_id, secret)
        if (node := fields.take_optional("scopes")) is not None:
            oidc = replace(oidc, scopes=_scopes(node))
        if (node := fields.take_optional("claims")) is not None:
            oidc = replace(oidc, claims=_claims(Fields(node, "`claims`")))
        if (node := fields.take_optional("programs")) is not None:
            settings = _programs(Fields(node, "`programs`"), client_id)
            oidc = replace(oidc, programs=settings)
        if (node := fields.take_optional("leeway_s")) is not None:
            leeway = count(node, "`leeway_s`", at_least=0, at_most=LEEWAY_S_MAX)
            oidc = replace(oidc, leeway_s=leeway)
        fields.finish()
        return replace(got, oidc=oidc)

    @staticmethod
    def _sessions(fields: Fields, got: Settings) -> Settings:
        times = SessionTimes()
        if (node := fields.take_optional("idle_minutes")) is not None:
            idle = count(node, "`idle_minutes`", at_least=1, at_most=24 * 60)
            times = replace(times, idle_minutes=idle)
        if (node := fields.take_optional("absolute_hours")) is not None:
            hours = count(node, "`absolute_hours`", at_least=1, at_most=7 * 24)
            times = replace(times, absolute_hours=hours)
        fields.finish()
        return replace(got, sessions=times)

    @staticmethod
    def _limits(fields: Fields, got: Settings) -> Settings:
        limits = Limits()
        for key, least, most in (
            ("body_bytes", 1024, 256 * 1024 * 1024),
            ("data_bytes", 1024, 2 * 1024 * 1024 * 1024),
            ("requests_per_minute", 1, 1_000_000),
            ("unrecognized_per_minute", 1, 1_000_000),
            ("leave_s", 0, 600),
            ("shutdown_s", 0, 600),
            ("analysis_rows", 1, 1_000_000_000),
            ("analysis_s", 1, 24 * 3600),
        ):
            if (node := fields.take_optional(key)) is not None:
                given = count(node, f"`{key}`", at_least=least, at_most=most)
                limits = replace(limits, **{key: given})
        fields.finish()
        return replace(got, limits=limits)

    def _escrow(self, fields: Fields, got: Settings) -> Settings:
        vault = self._path(fields.take("vault"), "`vault`")
        keys = self._path(fields.take("keys"), "`keys`")
        escrow = EscrowSettings(vault, keys)
        if (uid := fields.take_optional("sandbox_uid")) is not None:
            user = count(uid, "`sandbox_uid`", at_least=1, at_most=UID_MAX)
            escrow = replace(escrow, sandbox_uid=user)
        if (most := fields.take_optional("task_s")) is not None:
            seconds = count(most, "`task_s`", at_least=1, at_most=TASK_SECONDS)
            escrow = replace(escrow, task_s=seconds)
        fields.finish()
        return replace(got, escrow=escrow)

    @staticmethod
    def _telemetry(fields: Fields, got: Settings) -> Settings:
        settings = Telemetry()
        if (node := fields.take_optional("log_level")) is not None:
            level = choice(node, "log level", LOG_LEVELS, Code.UNKNOWN_CHOICE)
            settings = replace(settings, log_level=level)
        if (node := fields.take_optional("otlp_endpoint")) is not None:
            endpoint = service_url(node, "`otlp_endpoint`", plain=True)
            settings = replace(settings, otlp_endpoint=endpoint)
        fields.finish()
        return replace(got, telemetry=settings)


def _place(ledger: str) -> str:
    return ledger if "://" in ledger else str(Path(ledger).resolve())


def _local_people(node: Node, got: Settings, named: Iterable[str]) -> GrantsByName:
    if not got.is_local:
        other = "api_tokens" if got.oidc is None else "oidc"
        raise fail(
            Code.KEYS_CONFLICT,
            f"`local_people` is for a server without sign-in: remove it, or `{other}`",
            node,
            help="with `oidc`, write the grants of people to `people`",
        )
    people = read_grants(node, "local_people", "a person", named)
    for who, grants in people.items():
        if not grants:
            raise fail(Code.MISSING_KEY, f"`{who}` has no role", node)
    return people


def _refuse_secret(fields: Fields) -> None:
    """Refuse a secret in the file itself, without showing its line."""
    if "client_secret" in fields:
        raise InputError(
            *(
                structs.replace(
                    problem,
                    mark=problem.mark and structs.replace(problem.mark, source=""),
                )
                for problem in fail(
                    Code.UNKNOWN_KEY,
                    "secrets are not allowed in the settings",
                    fields.key_node("client_secret"),
                    notes=("settings are read by many people, and copied",),
                    help="write it to a file, chmod 600, and name it as"
                    " `client_secret_file`; replace it if others may have read it",
                ).problems
            )
        )


def _scopes(node: Node) -> tuple[str, ...]:
    scopes = tuple(line(one, "a scope") for one in items(node, "`scopes`"))
    if "openid" not in scopes:
        raise fail(
            Code.MISSING_KEY,
            "`scopes` must contain `openid`",
            node,
            notes=("without it, a provider does not identify the user",),
        )
    return scopes


def _claims(fields: Fields) -> ClaimNames:
    claims = ClaimNames()
    if (node := fields.take_optional("name")) is not None:
        claims = replace(claims, name=line(node, "`name`"))
    if (node := fields.take_optional("groups")) is not None:
        claims = replace(claims, groups=line(node, "`groups`"))
    if (node := fields.take_optional("fold_case")) is not None:
        claims = replace(claims, fold_case=boolean(node, "`fold_case`"))
    fields.finish()
    return claims


def _programs(fields: Fields, client_id: str) -> Programs:
    node = fields.take("audience")
    audience = line(node, "`audience`")
    if audience == client_id or not audience:
        raise fail(
            Code.KEYS_CONFLICT,
            "`audience` must not be the `client_id`",
            node,
            notes=("the sign-in token of a person would also work for a program",),
            help="configure the provider to issue tokens for a separate audience",
        )
    programs = Programs(audience)
    if (node_name := fields.take_optional("name")) is not None:
        programs = replace(programs, name=line(node_name, "`name`"))
    if (settings := fields.take_optional("told_by")) is not None:
        pairs = Fields(settings, "`told_by`").rest()
        if len(pairs) != 1:
            raise fail(
                Code.WRONG_TYPE, "`told_by` must be one claim and its value", settings
            )
        (claim, value) = pairs[0]
        told_by = (name(claim, "a claim"), line(value, "its value"))
        programs = replace(programs, told_by=told_by)
    fields.finish()
    return programs
