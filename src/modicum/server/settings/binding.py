"""Permitted listening addresses: without authentication, the local machine only."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from modicum.core.document import Node, from_python
from modicum.core.errors import Code, Problem, UsageError
from modicum.core.reader import fail, line
from modicum.server.settings.audit_targets import (
    AuditTarget,
    TargetKind,
    audit_target,
)
from modicum.server.settings.model import Listen, Settings
from modicum.server.settings.urls import is_loopback, origin
from modicum.storage.witness.heads import KnownHead

#: Returns the addresses of a host.
Resolve: TypeAlias = Callable[[str], Sequence[str]]

_ALONE: Final = "or listen on this machine only:  --host 127.0.0.1"


def overridden(  # noqa: PLR0913 - one for each option
    settings: Settings,
    *,
    ledger: str | None = None,
    known: str | None = None,
    public_url: str | None = None,
    host: str | None = None,
    port: int | None = None,
    workers: int | None = None,
    log_level: str | None = None,
    audit_to: Sequence[str] = (),
) -> Settings:
    """Return settings with command line options applied; None changes nothing."""
    if known is not None:
        node = from_python(known)
        settings = replace(settings, known_head=known_head(node, "`--known-head`"))
    if public_url is not None:
        public_url = origin(from_python(public_url), "`--public-url`")
    listen = Listen(
        settings.listen.host if host is None else host,
        settings.listen.port if port is None else port,
    )
    telemetry = settings.telemetry
    if log_level is not None:
        telemetry = replace(telemetry, log_level=log_level)
    found = replace(
        settings,
        listen=listen,
        telemetry=telemetry,
        ledger=settings.ledger if ledger is None else ledger,
        public_url=settings.public_url if public_url is None else public_url,
        workers=settings.workers if workers is None else workers,
        audit_to=_targets(audit_to) or settings.audit_to,
    )
    _refuse_shared(found)
    return found


def _refuse_shared(settings: Settings) -> None:
    """Refuse ledgers of one server that share what each must have for itself.

    A host counts without its port: else a request with another spelling of the host of
    one ledger could reach the first one.
    """
    known: set[tuple[str, str]] = set()
    for own in (settings, *settings.ledgers.values()):
        place = own.ledger if "://" in own.ledger else _resolved(own.ledger)
        files = (one.place for one in own.audit_to if one.kind is TargetKind.FILE)
        hosts = {urlsplit(f"//{one}").hostname or one for one in own.hosts}
        mine = {
            ("`ledger`", place),
            *(("`audit_to`", _resolved(one)) for one in files),
            *(("a host of `public_url` or `allowed_hosts`", one) for one in hosts),
        }
        for what, value in sorted(mine & known):
            message = f"two ledgers of the server have the same {what}"
            shown = value if what != "`ledger`" or "://" not in value else "a URL"
            help_ = "give each ledger its own"
            raise UsageError(
                Problem(Code.KEYS_CONFLICT, message, notes=(shown,), help=help_)
            )
        known |= mine


def _resolved(path: str) -> str:
    try:
        return str(Path(path).resolve())
    except (OSError, ValueError):  # Nothing can be there; who opens it says so.
        return path


def _targets(given: Sequence[str]) -> tuple[AuditTarget, ...]:
    found = (audit_target(from_python(one), "`--audit-to`", Path()) for one in given)
    return tuple(dict.fromkeys(found))


def known_head(node: Node, what: str) -> KnownHead:
    """Return an entry that a ledger must have."""
    given = line(node, what)
    found = KnownHead.read(given)
    if found is None:
        raise fail(
            Code.BAD_NAME,
            f'{what} is "{given[:100]}", which is not a head',
            node,
            help="write the number of an entry, a colon, and at least 12 digits of its"
            " hash, as `ledger list` prints them",
        )
    return found


def resolved(host: str) -> list[str]:
    """Return the addresses of a host, as the system binds to them."""
    found = socket.getaddrinfo(
        host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    return list(dict.fromkeys(str(one[4][0]) for one in found))


def bound_address(settings: Settings, resolve: Resolve = resolved) -> str:
    """Return the numeric address that a server may bind to.

    A name is resolved once, here: later changes have no effect.
    """
    addresses = _addresses(settings.listen.host, resolve)
    if settings.is_local and settings.workers > 1:
        raise _refused(
            "a server without sign-in is one process: only one of several would know"
            " its link",
            "leave  --workers  out, or configure sign-in",
        )
    if all(is_loopback(one) for one in addresses):
        return addresses[0]
    shown = f"`{settings.listen.host}`"
    if settings.is_local:
        raise _refused(
            f"{shown} is reachable by others, without authentication",
            f"configure `oidc` or `api_tokens` in the settings file, {_ALONE}",
        )
    if not (settings.public_url or "").startswith("https://"):
        raise _refused(
            f"{shown} is reachable by others, and `public_url` is not https",
            f"put a proxy with TLS in front of the server, write  public_url: https://NAME,"
            f" {_ALONE}",
        )
    if not settings.trusted_proxies:
        raise _refused(
            f"{shown} is reachable by others, and `trusted_proxies` has no proxy"
            " that terminates TLS",
            f"write the address of the proxy to `trusted_proxies`, {_ALONE}",
        )
    return addresses[0]


def _addresses(host: str, resolve: Resolve) -> Sequence[str]:
    # An empty host means every address to the system, not none.
    if not host.strip() or host != host.strip() or "%" in host:
        raise _refused(
            f"`{host}` is not a host to listen on", "write  --host 127.0.0.1"
        )
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        addresses = resolve(bare)
    except (OSError, UnicodeError) as error:
        raise _refused(
            f"`{host}` does not resolve to an address here", "write  --host 127.0.0.1"
        ) from error
    if not addresses:
        raise _refused(f"`{host}` does not resolve to an address here", "correct it")
    return addresses


def _refused(message: str, remedy: str) -> UsageError:
    return UsageError(Problem(Code.NOT_SUPPORTED, message, help=remedy))
