"""Whose request it is, and how it traveled: what proxies say, if they may say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeAlias

from modicum.server.settings.model import Network

Address: TypeAlias = IPv4Address | IPv6Address

#: Every header by which proxies tell of a request; none of them goes further in.
FORWARDING = frozenset(
    {
        "forwarded",
        "via",
        "x-client-ip",
        "x-forwarded-by",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-port",
        "x-forwarded-prefix",
        "x-forwarded-proto",
        "x-forwarded-scheme",
        "x-forwarded-server",
        "x-forwarded-ssl",
        "x-original-host",
        "x-original-url",
        "x-real-ip",
        "x-rewrite-url",
    }
)


@dataclass(frozen=True, slots=True)
class ClientPath:
    """How a request came.

    Attributes:
        client: The address that it came from; None if nobody knows.
        is_safe: Whether nobody could read it on the way: by https up to a proxy that
            is trusted, or without leaving this machine.
        is_https: Whether the client used https.
    """

    client: Address | None
    is_safe: bool
    is_https: bool


def address_of(text: str | None) -> Address | None:
    """Return an address, IPv4 in either form as IPv4; None if the text is none."""
    try:
        address = ip_address((text or "").strip())
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_trusted(address: Address | None, trusted: Sequence[Network]) -> bool:
    """Return whether an address is one of the proxies that are believed."""
    return address is not None and any(
        address.version == network.version and address in network for network in trusted
    )


def client_path(
    peer: str | None,
    headers: Sequence[tuple[str, str]],
    trusted: Sequence[Network],
) -> ClientPath:
    """Return how a request came, believing only those who may be believed."""
    client = address_of(peer)
    if not is_trusted(client, trusted):
        # Who speaks for others without being trusted is a proxy that the settings
        # do not name: what it carries may have come from anywhere.
        speaks_for_others = any(name in FORWARDING for name, _ in headers)
        is_here = client is not None and client.is_loopback
        return ClientPath(client, is_here and not speaks_for_others, is_https=False)
    protocols = {
        one.strip().lower()
        for name, value in headers
        if name == "x-forwarded-proto"
        for one in value.split(",")
    }
    is_https = protocols == {"https"}
    hops = [
        one
        for name, value in headers
        if name == "x-forwarded-for"
        for one in value.split(",")
    ]
    told = _first_stranger(hops, trusted)
    return ClientPath(told, is_https, is_https)


def _first_stranger(hops: Sequence[str], trusted: Sequence[Network]) -> Address | None:
    """Return the last address that is no trusted proxy's; what is before is hearsay."""
    for hop in reversed(hops):
        address = address_of(hop)
        if address is None or not is_trusted(address, trusted):
            return address
    return None
