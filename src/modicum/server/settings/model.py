"""What a server is told: by its settings file, and by options that override it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Final, TypeAlias

from modicum.api.permissions.identity import Grants
from modicum.policy.model import ReservationBound
from modicum.server.settings.tables import TablesOf
from modicum.writer.known_head import HeadFile, KnownHead

#: Where a server listens if nothing else is said.
DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8642
#: What one identity may hold reserved on a server that tells people apart.
RESERVATIONS: Final = ReservationBound(Fraction(1, 4), 7)

Network: TypeAlias = IPv4Network | IPv6Network
#: Grants by the name of a group, a person or a program.
GrantsByName: TypeAlias = Mapping[str, Grants]


@dataclass(frozen=True, slots=True)
class Listen:
    """The address that a server binds to.

    Attributes:
        host: A name or an address.
        port: From 0 to 65535; 0 takes a free one.
    """

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT


@dataclass(frozen=True, slots=True)
class ClaimNames:
    """Which claims of a provider's tokens say what.

    Attributes:
        name: The claim that names a person. `email` counts only where the provider
            says that it was verified.
        groups: The claim that lists a person's groups.
        fold_case: Whether the provider takes names that differ in capitals only to
            be the same. If not, names with capitals are refused.
    """

    name: str = "email"
    groups: str = "groups"
    fold_case: bool = False


@dataclass(frozen=True, slots=True)
class Programs:
    """How programs are recognized by access tokens that are JWTs.

    Attributes:
        audience: What `aud` of their tokens must hold.
        name: The claim that names a program.
        told_by: A claim and the value that only tokens of programs have. None: of
            programs, `sub` is what `name` is.
    """

    audience: str
    name: str = "client_id"
    told_by: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Oidc:
    """The OpenID provider that says who people and programs are.

    Attributes:
        issuer: Its issuer, exactly as its tokens name it.
        client_id: What it calls this server.
        client_secret_file: A file with the secret that both share.
        scopes: What is asked for at sign-in.
        claims: Which claims say what.
        programs: How programs are recognized; None if only people are.
        leeway_s: By how many seconds clocks may differ, from 0 to 120.
    """

    issuer: str
    client_id: str
    client_secret_file: Path
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    claims: ClaimNames = field(default_factory=ClaimNames)
    programs: Programs | None = None
    leeway_s: int = 30


@dataclass(frozen=True, slots=True)
class SessionTimes:
    """How long somebody stays signed in.

    Attributes:
        idle_minutes: Until they must sign in again if they do nothing.
        absolute_hours: Until they must sign in again, whatever they do.
    """

    idle_minutes: int = 30
    absolute_hours: int = 12


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one request, and one identity, may ask for.

    Attributes:
        body_bytes: The largest body of a request.
        data_bytes: The largest body of a request that brings data or a program into
            the escrow.
        requests_per_minute: Of one identity, in each process.
        unrecognized_per_minute: That recognize nobody, of one address, in each process.
        leave_s: How long the server goes on when it is told to stop, while `/readyz`
            says so: whoever sends requests to it learns of it.
        shutdown_s: How long open requests may take when the server stops.
        analysis_rows: So many rows a table has at most that is analyzed.
        analysis_s: So long one analysis of risk may take.
    """

    body_bytes: int = 1024 * 1024
    data_bytes: int = 64 * 1024 * 1024
    requests_per_minute: int = 6000
    unrecognized_per_minute: int = 600
    leave_s: int = 0
    shutdown_s: int = 30
    analysis_rows: int = 10_000_000
    analysis_s: int = 600


@dataclass(frozen=True, slots=True)
class EscrowSettings:
    """Where the data of an escrow lies, and as whom programs run on it.

    Attributes:
        vault: The folder of the vault.
        keys: The file with the keys that wrap its keys, or that names the service
            which has them.
        sandbox_uid: Where the server runs as root, the user that programs run as, and
            that nobody else is.
        task_s: So many seconds a task may have its sandbox in all: others wait.
    """

    vault: Path
    keys: Path
    sandbox_uid: int | None = None
    task_s: int = 3600


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What a server tells about itself.

    Attributes:
        log_level: The least that is logged: debug, info, warning or error.
        otlp_endpoint: Where traces go; None if nowhere.
    """

    log_level: str = "info"
    otlp_endpoint: str | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """All that a server is told. Secrets are in files, which are only named here.

    Attributes:
        ledger: The ledger: a file, or a URL.
        known_head: An entry that the ledger must have.
        head_file: Where the server keeps the head of the ledger for its next start.
        public_url: How people and programs reach the server, without a path.
        listen: The address that it binds to.
        workers: How many processes serve.
        allowed_hosts: Further values of the header `Host` that are answered.
        trusted_proxies: The networks whose `X-Forwarded-…` headers are believed.
        oidc: The OpenID provider, if there is one.
        api_tokens: Whether API tokens are accepted.
        grants: What the members of each group may do.
        people: What each person may do, by the name as `meant_by` returns it.
        programs: What each program may do, by its name.
        sessions: How long somebody stays signed in.
        limits: How much may be asked for.
        reservations: What one identity may hold reserved and not started, besides what
            the policy says; None if nothing says so.
        signing_key_file: The key that signs checkpoints and receipts.
        tables: The tables that can be analyzed, by the name of their data set.
        escrow: Where its escrow is; None if it has none.
        telemetry: What the server tells about itself.
    """

    ledger: str = "ledger.db"
    known_head: KnownHead | None = None
    head_file: Path | None = None
    public_url: str | None = None
    listen: Listen = field(default_factory=Listen)
    workers: int = 1
    allowed_hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[Network, ...] = ()
    oidc: Oidc | None = None
    api_tokens: bool = False
    grants: GrantsByName = field(default_factory=dict)
    people: GrantsByName = field(default_factory=dict)
    programs: GrantsByName = field(default_factory=dict)
    sessions: SessionTimes = field(default_factory=SessionTimes)
    limits: Limits = field(default_factory=Limits)
    reservations: ReservationBound | None = None
    signing_key_file: Path | None = None
    tables: Mapping[str, TablesOf] = field(default_factory=dict)
    escrow: EscrowSettings | None = None
    telemetry: Telemetry = field(default_factory=Telemetry)

    def known_heads(self) -> Iterator[KnownHead]:
        """Yield the entries that the ledger must have."""
        if self.known_head is not None:
            yield self.known_head
        kept = HeadFile(self.head_file).read() if self.head_file else None
        if kept is not None:
            yield kept

    @property
    def is_local(self) -> bool:
        """Whether nobody can be told from anybody: one person on one machine."""
        return self.oidc is None and not self.api_tokens

    @property
    def bound(self) -> ReservationBound | None:
        """What one identity may hold reserved: one person alone is in nobody's way."""
        return self.reservations or (None if self.is_local else RESERVATIONS)
