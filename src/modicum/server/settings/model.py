"""The settings of a server: its settings file, and overriding options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from modicum.api.permissions.identity import Grants
from modicum.api.ports.storage import EventStore
from modicum.policy.model import ReservationBound
from modicum.server.settings.audit_targets import AuditTarget
from modicum.server.settings.quotas import Quotas
from modicum.server.settings.tables import TablesOf
from modicum.storage.witness.factory import NONE
from modicum.storage.witness.heads import KnownHead

#: The default listening address.
DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8642
#: The default limit on one actor's reservations, on a server with several actors.
RESERVATIONS: Final = Quotas(ReservationBound(Fraction(1, 4), 7))

Network: TypeAlias = IPv4Network | IPv6Network
#: Grants by the name of a group, a person or a program.
GrantsByName: TypeAlias = Mapping[str, Grants]


@dataclass(frozen=True, slots=True)
class Listen:
    """The address that a server binds to.

    Attributes:
        host: A name or an address.
        port: From 0 to 65535; 0 chooses a free one.
    """

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT


@dataclass(frozen=True, slots=True)
class ClaimNames:
    """The names of claims in a provider's tokens.

    Attributes:
        name: The claim with a person's name. `email` counts only if the provider marks
            it as verified.
        groups: The claim that lists a person's groups.
        fold_case: Whether the provider treats names that differ in case as equal. If
            not, names with capitals are refused.
    """

    name: str = "email"
    groups: str = "groups"
    fold_case: bool = False


@dataclass(frozen=True, slots=True)
class Programs:
    """The authentication of programs by JWT access tokens.

    Attributes:
        audience: The required `aud` of their tokens.
        name: The claim that names a program.
        told_by: A claim and the value that only tokens of programs have. If None,
            programs have `sub` equal to the name claim.
    """

    audience: str
    name: str = "client_id"
    told_by: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Oidc:
    """The OpenID provider of people and programs.

    Attributes:
        issuer: Its issuer, exactly as its tokens name it.
        client_id: This server's client id.
        client_secret_file: A file with the secret that both share.
        scopes: The scopes requested at sign-in.
        claims: The names of claims.
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
    """The lifetime of sessions.

    Attributes:
        idle_minutes: Until they must sign in again if they do nothing.
        absolute_hours: The maximum lifetime, independent of use.
    """

    idle_minutes: int = 30
    absolute_hours: int = 12


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits on one request, and on one identity.

    Attributes:
        body_bytes: The largest body of a request.
        data_bytes: The maximum body size of requests with data or a program for the
            escrow.
        requests_per_minute: Of one identity, in each process.
        unrecognized_per_minute: Unauthenticated requests per address, in each process.
        leave_s: The time the server continues after the stop signal, reported by
            `/readyz` to load balancers.
        shutdown_s: How long open requests may take when the server stops.
        analysis_rows: The maximum number of rows of an analyzed table.
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
    """The storage of an escrow, and the user of its programs.

    Attributes:
        vault: The folder of the vault.
        keys: The file with the keys that wrap its keys, or that names the service
            which has them.
        sandbox_uid: If the server runs as root, the user that runs programs, used for
            nothing else.
        task_s: The maximum total sandbox time of a task, in seconds: others wait.
    """

    vault: Path
    keys: Path
    sandbox_uid: int | None = None
    task_s: int = 3600


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The telemetry of a server.

    Attributes:
        log_level: The least that is logged: debug, info, warning or error.
        otlp_endpoint: The address for traces; None for none.
    """

    log_level: str = "info"
    otlp_endpoint: str | None = None


#: What only the settings of the server have: it is the same for all ledgers.
SHARED: Final = (
    *("listen", "workers", "telemetry", "limits", "allowed_hosts", "trusted_proxies"),
    *("local_people", "ledgers"),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a server. Secrets are in files, which are only named here.

    Attributes:
        ledger: The ledger: a file, or a URL.
        known_head: An entry that the ledger must have.
        witness: The witness of its head: a file, a URL, or `none`; None for that of
            the environment.
        public_url: How people and programs reach the server, without a path.
        listen: The address that it binds to.
        workers: How many processes serve.
        allowed_hosts: Further values of the header `Host` that are answered.
        trusted_proxies: The networks whose `X-Forwarded-…` headers are believed.
        oidc: The OpenID provider, if there is one.
        api_tokens: Whether API tokens are accepted.
        console: Whether it serves the web console to people who sign in.
        grants: The grants of each group's members.
        people: The grants of each person, by the name as `person_key` returns it.
        programs: The grants of each program, by name.
        local_people: The grants of each person of a server without sign-in, by name;
            if empty, the user who starts it is the only one.
        sessions: The lifetime of sessions.
        limits: The limits of requests.
        reservations: The limit on one actor's reservations that are not started,
            besides the policy's; None for no limit.
        signing_key_file: The key that signs checkpoints and receipts.
        tables: The tables that can be analyzed, by the name of their data set.
        escrow: The location of its escrow; None if it has none.
        telemetry: The telemetry settings.
        file: The file that they are from, whose grants are read again on SIGHUP; None
            if there is none.
        audit_to: Where the access trail is shipped to.
        ledgers: The settings of each further ledger, by name.
    """

    ledger: str = "ledger.db"
    known_head: KnownHead | None = None
    witness: str | None = None
    public_url: str | None = None
    listen: Listen = field(default_factory=Listen)
    workers: int = 1
    allowed_hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[Network, ...] = ()
    oidc: Oidc | None = None
    api_tokens: bool = False
    console: bool = True
    grants: GrantsByName = field(default_factory=dict)
    people: GrantsByName = field(default_factory=dict)
    programs: GrantsByName = field(default_factory=dict)
    local_people: GrantsByName = field(default_factory=dict)
    sessions: SessionTimes = field(default_factory=SessionTimes)
    limits: Limits = field(default_factory=Limits)
    reservations: Quotas | None = None
    signing_key_file: Path | None = None
    tables: Mapping[str, TablesOf] = field(default_factory=dict)
    escrow: EscrowSettings | None = None
    telemetry: Telemetry = field(default_factory=Telemetry)
    file: Path | None = field(default=None, compare=False)
    audit_to: tuple[AuditTarget, ...] = ()
    ledgers: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def completed(self) -> dict[str, Settings]:
        """The settings of each further ledger, with what the server's are for all."""
        hosts = {self.host, *self.allowed_hosts} - {""}
        return {
            name: replace(
                own,
                listen=self.listen,
                workers=self.workers,
                telemetry=self.telemetry,
                limits=self.limits,
                trusted_proxies=self.trusted_proxies,
                allowed_hosts=tuple(sorted(hosts)),
                public_url=own.public_url or self.public_url,
                console=own.console and own.public_url is not None,
                witness=own.witness or NONE,  # The environment's is the first one's.
            )
            for name, own in self.ledgers.items()
        }

    @property
    def host(self) -> str:
        """The host of its public URL, with the port, as requests name it."""
        return urlsplit(self.public_url or "").netloc.lower()

    def refuse_behind(self, store: EventStore) -> None:
        """Refuse a ledger without the entry that it must have."""
        known = self.known_head
        if known is not None:
            known.must_be(store.record(known.seq), store.name)

    @property
    def is_local(self) -> bool:
        """Whether there is no sign-in: people on one machine have one-time links."""
        return self.oidc is None and not self.api_tokens

    @property
    def bound(self) -> Quotas | None:
        """The limit on one actor's reservations; a single user has none."""
        is_alone = self.is_local and not self.local_people
        return self.reservations or (None if is_alone else RESERVATIONS)
